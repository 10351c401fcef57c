"""Contended times against SimGrid's, as benchmarks/simgrid/compare.py recorded them."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from hccl_py.simulator import Stragglers, simulate_contended

FOLDER = Path(__file__).parents[2] / "benchmarks" / "simgrid"
RECORDED: dict[str, dict[str, Any]] = json.loads((FOLDER / "results.json").read_text("utf-8"))
CASES: dict[str, Any] = {
    case.name: case for case in runpy.run_path(str(FOLDER / "cases.py"))["CASES"]
}
SMALL = sorted(name for name, found in RECORDED.items() if found["tasks"] < 4000)


def test_all_cases_are_recorded_and_most_of_them_share_links() -> None:
    assert RECORDED.keys() == CASES.keys()
    shared = [name for name, r in RECORDED.items() if r["simgrid_us"] > 1.02 * r["alone_us"]]
    assert len(shared) >= 24


@pytest.mark.parametrize("name", SMALL)
def test_contended_times_are_those_of_simgrid(name: str) -> None:
    case, recorded = CASES[name], RECORDED[name]
    program = case.program()
    assert program.task_count == recorded["tasks"], "run benchmarks/simgrid/compare.py again"
    args = program, case.place(), case.cost(), Stragglers.parse(case.slow)
    assert simulate_contended(*args).total_us == pytest.approx(recorded["simgrid_us"], rel=1e-6)
