"""What the built-in executors declare, counted, and held against the page that lists it."""

import runpy
from pathlib import Path

import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.config import Config
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.fidelity import UNDECLARED
from hccl_py.selection import select
from hccl_py.selection.rulesets import RULESETS
from hccl_py.topology import topology_of
from tests.recording import filled, op_of

ROOT = Path(__file__).resolve().parents[3]
DECLARED = {executor.__name__: executor.fidelity for executor in EXECUTORS}

SAME = 112
"""At least so many of those that HCCL's rules can name are `same`; the aim is 9 of 10."""


def test_every_executor_declares_something() -> None:
    assert [name for name, found in DECLARED.items() if found is UNDECLARED] == []


def test_deviations_are_sentences() -> None:
    for found in DECLARED.values():
        for part in (found, *found.cases.values()):
            assert part.is_same or part.deviation.endswith("."), part.deviation
            assert part.deviation[:1].isupper() or part.is_same, part.deviation


def test_how_many_of_those_that_selection_names_are_same() -> None:
    tables = [table for found in RULESETS.values() for table in found.tables.values()]
    rows = [row for table in tables for rows in table.values() for row in rows]
    named = {row.executor for row in rows if row.executor and "aiv" not in row.executor.lower()}
    same = {name for name in named if name in DECLARED and DECLARED[name].is_same}
    print(f"{len(same)} of {len(named)} that selection names are same")
    assert len(same) >= SAME


@pytest.mark.sweep
@pytest.mark.parametrize("preset", ["atlas-800t-a2", "atlas-900-a3"])
def test_nobody_is_ours_on_default_paths(preset: str) -> None:
    registry, config, ours = installed_executors(), Config(), set()
    layouts = [(1, n) for n in range(2, 9)] + [(n, 8) for n in range(2, 10)]
    for servers, devices in layouts:
        topology = topology_of(servers=servers, devices=devices, preset=preset)
        for name in OPERATORS:
            if name == "gather":  # HCCL's API has none
                continue
            for bits in range(0, 28, 3):
                count = max((1 << bits) // (servers * devices), 1)
                op = filled(op_of(name, count), topology.size)
                make_operator(name).check(op, topology)
                chosen, _ = select(op, topology, config, registry)
                if chosen.executor == chosen.hccl_executor and chosen.fidelity.kind == "ours":
                    ours.add(chosen.executor)
    print(f"{preset}: {len(ours)} are ours: {', '.join(sorted(ours))}")
    assert not ours


def test_the_page_lists_what_is_declared() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "fidelity.py"))
    page = (ROOT / "docs" / "fidelity.md").read_text("utf-8")
    assert page.partition(script["BEGIN"])[2] == "\n" + script["tables"](), (
        "run scripts/fidelity.py"
    )
