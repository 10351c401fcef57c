"""Every executor that comes with hccl-py: proved correct on calls of every kind.

A short run takes some calls of each executor's sweep, other ones for every executor; the long run
(`pytest -m long`) takes the whole sweeps of a sixth of them, another one under another seed, and
holds them to all that the testing kit asks.
"""

import pytest

from hccl_executors import EXECUTORS
from hccl_py.plugins.executor import Executor
from hccl_py.testing import check_executor
from hccl_py.testing.calls import fitting, recorded
from hccl_py.topology import PRESETS, Topology
from hccl_py.verifier import verify
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.sweeps.cases import Case
from tests.executors.calls import some_calls
from tests.executors.flat import in_turn
from tests.executors.kept import BARRIER, HCCLS, KEPT, kept_lines

SHORT = 4
"""Calls that a short run takes."""

WITH_DATA = 4_000
"""Tasks up to which a short run also runs a program on data, where its turn has come."""


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda executor: executor.__name__)
def test_some_calls_of_every_kind(executor: type[Executor]) -> None:
    first = EXECUTORS.index(executor)
    for number, case in enumerate(some_calls(executor, SHORT), first):
        program = recorded(executor, case)
        report = verify(program, product=case.topology.product)
        found = [f for f in report.findings if f.severity is Severity.ERROR]
        assert not found, (case.text, [finding.message for finding in found])
        if program.task_count <= WITH_DATA:
            wrong = run_numeric(program, in_turn(number)).wrong
            assert wrong is None, (case.text, wrong)


@pytest.mark.long
@pytest.mark.seeds(len(EXECUTORS) // 6)
def test_whole_sweeps(seed: int) -> None:
    executor = EXECUTORS[seed % len(EXECUTORS)]
    check_executor(executor, kept=kept_lines(executor.__name__))


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_there(name: str) -> None:
    assert name in {executor.__name__ for executor in EXECUTORS}
    assert len(kept_lines(name)) == len(BARRIER) + len(HCCLS) + len(KEPT[name])


A2, A3 = PRESETS["atlas-800t-a2"], PRESETS["atlas-900-a3"]
UNUSUAL = {
    "every second device": Topology.placed(A2, [0] * 4 + [1] * 4, [0, 2, 4, 6] * 2),
    "servers taking turns": Topology.placed(A2, [0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2]),
    "superpods taking turns": Topology.placed(A3, [0, 1, 2, 3], [0] * 4, [0, 1, 0, 1]),
    "single dies": Topology.placed(A3, [0] * 3, [0, 2, 4]),
    "superpods of other sizes": Topology(A3, (2, 2, 2), (2, 1)),
    "no HCCS between servers": Topology(A3, (4, 4), inter_hccs=False),
    "RoCE for PCIe": Topology(PRESETS["300i-duo"], (4,), intra_roce=True),
    "RoCE between the fours": Topology(PRESETS["atlas-800-9000"], (8, 8), intra_roce=True),
    "one device of every server": Topology(PRESETS["atlas-800-9000"], (1, 1, 1)),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_places(name: str) -> None:
    """What suits where ranks lie oddly, as in sub-communicators, is right there: of all executors
    one half here, the other half at the next place.
    """
    topology, suiting, place = UNUSUAL[name], 0, list(UNUSUAL).index(name)
    for executor in EXECUTORS[place % 2 :: 2]:
        number = EXECUTORS.index(executor)
        options = fitting(executor, topology, 77)
        if not options:
            continue
        suiting += 1
        op = options[(31 * number + 7 * place) % len(options)]
        program = recorded(executor, Case(topology, op, 1 << 20))
        report = verify(program, product=topology.product)
        found = [f.message for f in report.findings if f.severity is Severity.ERROR]
        assert not found, (executor.__name__, op, found)
    assert suiting > 10
