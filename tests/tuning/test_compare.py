"""Comparisons: rows, winners, what HCCL's rules cost, what is left out."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hccl_py.call.config import Config
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.simulator import CostModel
from hccl_py.tuning.compare import ENDED, Comparison, compare
from hccl_py.tuning.points import BEATEN, evaluate
from tests.tuning.evaluations import point

COST = CostModel.of("study")


def compared(op: str, *sizes: int, ranks: int = 4, **options: Any) -> Comparison:
    timed = point(0, op, ranks=ranks, network=options.pop("network", "uncontended"))
    return compare(timed, sizes, jobs=options.pop("jobs", 1), **options)


@pytest.fixture(scope="module")
def eight() -> Comparison:
    return compared("all_reduce", 1 << 10, 1 << 18, 1 << 24, ranks=8)


def test_the_fastest_wins(eight: Comparison) -> None:
    assert list(eight.winners) == list(eight.by_size) == [1 << 10, 1 << 18, 1 << 24]
    for size, rows in eight.by_size.items():
        least = min(row.time_us for row in rows)
        assert eight.winners[size].time_us == pytest.approx(least, rel=1e-12)  # two may be alike
        assert rows[0].is_winner
        assert [row.is_winner for row in rows].count(True) == 1
        assert [row.candidate.is_hccl for row in rows].count(True) == 1


def test_what_rules_cost(eight: Comparison) -> None:
    costs = [eight.cost_of_rules(size) for size in eight.by_size]
    latency, beta = 2 * COST.hccs.alpha_us, 2 * COST.hccs.beta_us + COST.gamma_us
    by_rules = latency + 1024 * (beta + 2 * COST.copy_us)  # chunks of 16 KiB: one rank has all
    fastest = latency + 128 * (beta + 2 * COST.copy_us)  # into a block, and out
    assert costs[0] == pytest.approx(by_rules / fastest, rel=1e-9)
    assert costs[1] == eight.hccl[1 << 18].time_us / eight.winners[1 << 18].time_us > 1


def test_rows_are_outcomes_of_their_points(eight: Comparison) -> None:
    row = eight.rows[5]
    assert evaluate(row.point).simulated_us == row.time_us
    assert row.times_bound is not None
    assert row.times_bound >= 1


def test_every_candidate_has_every_size(eight: Comparison) -> None:
    assert not eight.left_out
    names = [{row.candidate.name for row in rows} for rows in eight.by_size.values()]
    assert names[0] == names[1] == names[2]


@pytest.mark.parametrize("op", ["broadcast", "all_to_all_v", "barrier", "send_recv", "reduce"])
def test_every_sort_of_op(op: str) -> None:
    found = compared(op, 1 << 12)
    assert len(found.winners) == 1


def test_sizes_that_make_the_same_call_are_one() -> None:
    found = compared("all_gather", 1, 2, 16, 17)
    assert list(found.by_size) == [16, 32]


def test_only_those_that_are_named() -> None:
    found = compared("all_reduce", 1 << 12, executors=["AllReduceRing"])
    assert {row.candidate.executor for row in found.rows} == {"AllReduceRing"}
    assert not found.hccl
    assert found.cost_of_rules(1 << 12) is None
    with pytest.raises(ParameterError, match="all_reduce has no executor 'AllReduceRung'"):
        compared("all_reduce", 1 << 12, executors=["AllReduceRung"])
    with pytest.raises(NotSupportedError, match="No candidate of all_reduce could be timed"):
        compared("all_reduce", 1 << 12, executors=["AllReduceSingleExecutor"])


def test_links_carry_no_more_than_they_can() -> None:
    """Without contention the root feeds all peers of other servers through one port at once."""
    names = ["ScatterStar", "ScatterRingExecutor"]
    found = compared("scatter", 1 << 26, ranks=32, executors=names)
    by_name = {row.candidate.executor: row.outcome for row in found.rows}
    at_once, ring = (by_name[name] for name in names)
    assert at_once.simulated_us is not None
    assert 2 * at_once.simulated_us < ring.time_us
    assert at_once.simulated_us < at_once.time_us == at_once.busiest_us
    assert found.remarks[0].startswith("as long as their busiest links need, which is more")


def test_what_takes_long_is_left_out_but_for_what_hccl_takes() -> None:
    found = compared("all_reduce", 1 << 10, 1 << 12, 1 << 14, ranks=24, effort_s=1e-6)
    assert len(found.hccl) == 3
    reasons = {one.reason[:14] for one in found.left_out}
    assert reasons <= {"It records mor", "The effort was"}
    assert "It records mor" in reasons
    said = next(line for line in found.remarks if line.startswith("left out, of 3 sizes: "))
    number = sum(one.reason.startswith("It records mor") for one in found.left_out)
    assert said.count(" at ") == min(number, 6)
    assert (f" and {number - 6} more (--json). " in said) == (number > 6)
    alone = compared("all_reduce", 1 << 10, ranks=24, effort_s=1e-6)
    assert any(re.match(r"left out: \w+ [\w-]+, ", line) for line in alone.remarks)


def test_a_curve_that_is_cut_short_begins_with_the_smallest_size() -> None:
    sizes = [1 << at for at in range(10, 26, 2)]
    found = compared("all_reduce", *sizes, ranks=32, effort_s=0.02, executors=["AllReduceComm"])
    assert found.left_out
    for name in {one.candidate.name for one in found.left_out}:
        times = [r.bytes for r in found.rows if r.candidate.name == name]
        missing = [at for one in found.left_out if one.candidate.name == name for at in one.sizes]
        assert sorted([*times, *missing]) == sizes
        assert not times or sizes[0] in times


def test_the_fastest_gets_more_effort() -> None:
    """It takes long to record, wins at small sizes, and would lose some to a lack of effort."""
    few = ["ReduceScatterOrderPreservedExecutor", "ReduceScatterRing"]
    sizes = [1 << at for at in (10, 12, 14, 16, 18)]
    found = compared("reduce_scatter", *sizes, ranks=32, effort_s=0.2, executors=few)
    assert {row.candidate.executor for row in found.winners.values()} == {few[0]}
    assert sum(row.candidate.executor == few[0] for row in found.rows) == len(sizes)


KILLED = """
import os, signal
from tests.tuning.test_compare import FEW, SIZES
from hccl_py.tuning.compare import compare
from tests.tuning.evaluations import point

def stop(done, of):
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    compare(point(0), SIZES, executors=FEW, out="all.csv", jobs=1, progress=stop)
"""
FEW = ["AllReduceComm", "AllReduceRing"]
SIZES = [1 << 10, 1 << 16]


def test_a_killed_comparison_goes_on(tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "killed.py"], cwd=tmp_path, env=environment, timeout=60)
    assert done.returncode == -signal.SIGKILL
    with ThreadPoolExecutor(1) as pool:
        options: dict[str, Any] = {"executors": FEW, "out": tmp_path / "all.csv", "pool": pool}
        found = compared("all_reduce", *SIZES, **options)
        again = compared("all_reduce", *SIZES, **options)
    assert found.notes[-1].startswith(f"{len(found.rows) - 3} of {len(found.rows)} points timed")
    assert again.notes[-1].startswith(f"0 of {len(found.rows)} points timed")
    alone = compared("all_reduce", *SIZES, executors=FEW)
    wanted = [(r.candidate, r.time_us, r.is_winner) for r in alone.rows]
    assert [(r.candidate, r.time_us, r.is_winner) for r in again.rows] == wanted
    assert [(r.candidate, r.time_us, r.is_winner) for r in found.rows] == wanted


def test_who_does_the_work_does_not_matter(eight: Comparison) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = compared("all_reduce", 1 << 10, 1 << 18, 1 << 24, ranks=8, pool=pool)
    assert [(r.candidate, r.time_us, r.is_winner) for r in found.rows] == [
        (r.candidate, r.time_us, r.is_winner) for r in eight.rows
    ]


def test_processes_do_the_work() -> None:
    found = compared("barrier", 0, jobs=2)
    assert found.winners


def test_refusals_of_hccl_are_told() -> None:
    config = Config(strict=True)
    refused = point(0, config=config, topology="atlas-900-a3", dtype="int64", reduce_op="prod")
    found = compare(refused, [1 << 12], jobs=1)
    assert found.winners


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    compared("barrier", 0, progress=lambda done, of: told.append((done, of)))
    assert [done for done, _ in told] == list(range(told[0][1] + 1))


FAR = {"topology": "atlas-900-a3", "servers": 16, "devices": 16, "ranks": None}
"""256 ranks: programs of these are large."""


def test_what_cannot_win_is_not_simulated() -> None:
    """A flat ring sends everything over the links between servers, as its busiest one says."""
    large = point(0, "all_reduce", **FAR)
    names = ("AllReduceFastDoubleRingFor91093Executor", "AllReduceRing")
    pruned, whole = (
        compare(large, [1 << 26], executors=names, jobs=1, every=every) for every in (False, True)
    )
    assert pruned.left_out
    assert {one.reason for one in pruned.left_out} == {BEATEN}
    kept = {row.candidate.name: row.time_us for row in pruned.rows}
    times = {row.candidate.name: row.time_us for row in whole.rows}
    hccl = next(row.time_us for row in whole.rows if row.candidate.is_hccl)
    assert kept == {name: times[name] for name in kept}
    assert all(times[one.candidate.name] > hccl for one in pruned.left_out)
    assert pruned.winners[1 << 26].candidate == whole.winners[1 << 26].candidate


def test_ctrl_c_keeps_what_was_timed() -> None:
    def stopped(done: int, of: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    found = compared("all_reduce", 1 << 10, 1 << 20, progress=stopped)
    assert found.is_partial
    assert set(found.hccl) == {1 << 10, 1 << 20}
    assert ENDED in {one.reason for one in found.left_out}


def test_ctrl_c_before_anything_was_timed_ends_all() -> None:
    def stopped(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compared("all_reduce", 1 << 10, progress=stopped)
