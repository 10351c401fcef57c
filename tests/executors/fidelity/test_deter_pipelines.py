"""Pipelines of Atlas A2 with sums in a fixed order, held against models of HCCL's: every stream,
signal and transfer, and where in a buffer it goes.
"""

import pytest

from hccl_executors import EXECUTORS
from hccl_executors.deter_pipelines import AllReduceDeterPipelineExecutor
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from tests.executors.fidelity.deter_pipelines import (
    Seat,
    all_gather,
    overlapping,
    reduce_slots,
    scatter_slots,
    serial,
)
from tests.executors.fidelity.recorded import events_of, moves
from tests.executors.fidelity.transports import Event
from tests.recording import op_of, recorded

SCATTER, REDUCE = "ReduceScatterDeterPipelineExecutor", "AllReduceDeterPipelineExecutor"
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
LARGE = 2 << 20
"""Bytes of a chunk from which on HCCL's turns overlap, where there are three servers."""


def model(name: str, rank: int, servers: int, n: int, count: int, *, mended: bool) -> list[
    list[Event]
]:  # fmt: skip
    ranks, size = servers * n, 4 * count
    is_scatter = name == SCATTER
    me = Seat(rank, servers, n, (scatter_slots if is_scatter else reduce_slots)(size, ranks))
    if servers > 2 and (size if is_scatter else size // ranks) >= LARGE:
        overlapping(me)
    else:
        serial(me, mended=mended)
    if not is_scatter:
        all_gather(me)
    return me.streams


def check(name: str, servers: int, n: int, count: int) -> None:
    """Compare all ranks; n - 1 sub streams for peers and four that add are asked for."""
    where = topology_of(servers=servers, devices=n)
    op = op_of("reduce_scatter" if name == SCATTER else "all_reduce", count)
    program = recorded(name, op, where, 1 << 30)
    assert program.declared.sub_streams.tolist() == [n + 3] * where.size
    for rank in range(where.size):
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(n + 4)]
        assert ours == model(name, rank, servers, n, count, mended=True)


@pytest.mark.parametrize(("servers", "devices"), [(2, 3), (2, 8), (3, 4), (4, 3)])
@pytest.mark.parametrize("name", [SCATTER, REDUCE])
def test_turn_after_turn(name: str, servers: int, devices: int) -> None:
    for count in (5001, 40_000):
        check(name, servers, devices, count)


@pytest.mark.parametrize(("servers", "devices"), [(2, 3), (3, 3), (4, 5)])
@pytest.mark.parametrize("name", [SCATTER, REDUCE])
def test_turns_overlap(name: str, servers: int, devices: int) -> None:
    chunks = 1 if name == SCATTER else servers * devices
    check(name, servers, devices, (LARGE >> 2) * chunks)


def test_the_average_decides() -> None:
    """REDUCE:605 perRankAvgDataSize_: slots are rounded up to 2 MB here, but hold less."""
    check(REDUCE, 3, 3, (LARGE >> 2) * 9 - 9)


@pytest.mark.parametrize(("name", "op"), [(SCATTER, "reduce_scatter"), (REDUCE, "all_reduce")])
def test_sums_have_one_order(name: str, op: str) -> None:
    where = topology_of(servers=3, devices=4)
    report = verify(recorded(name, op_of(op, 1001), where, 1 << 20), product=where.product)
    assert "REDUCE_ORDER_NONDET" not in {finding.name for finding in report.findings}
    assert not report.errors


@pytest.mark.parametrize(
    ("servers", "devices", "reason"),
    [(1, 4, "there is one"), (2, 2, "three devices"), (2, 3, None)],
)
def test_where_it_runs(servers: int, devices: int, reason: str | None) -> None:
    op, where = op_of("all_reduce"), topology_of(servers=servers, devices=devices)
    verdict = AllReduceDeterPipelineExecutor().suits(op, where)
    assert reason is None or reason in repr(verdict)
    assert bool(verdict) == (reason is None)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [SCATTER, REDUCE])
def test_more_layouts(name: str) -> None:
    for servers in (2, 3, 5):
        for devices in (3, 7, 8):
            check(name, servers, devices, 70_001)


@pytest.mark.parametrize("name", [SCATTER, REDUCE])
def test_one_meeting_is_what_differs(name: str) -> None:
    """HCCL's leave out the Acks of the last exchange, where turns do not overlap."""
    assert KINDS[name] == "steps"
    servers, n = 2, 4
    for rank in range(servers * n):
        hccl, mended = (
            model(name, rank, servers, n, 5001, mended=mended) for mended in (False, True)
        )
        assert [moves(stream) for stream in hccl] == [moves(stream) for stream in mended]
        acks = [[acks_of(stream) for stream in streams] for streams in (hccl, mended)]
        assert acks[1] == [acks[0][0], *(more + 2 for more in acks[0][1:n]), *acks[0][n:]]


def acks_of(stream: list[Event]) -> int:
    """Count the Acks that are posted or waited for."""
    return sum(event[2] == "Ack" for event in stream)
