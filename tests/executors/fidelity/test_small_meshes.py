"""Small data on Atlas A3, and sums in a fixed order in one mesh, held against models of HCCL's."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity.by_rank import hd_stage
from tests.executors.fidelity.collecting_beside import local_reduce
from tests.executors.fidelity.doubling_in_slots import hd_optim
from tests.executors.fidelity.fixed_sums import doubling, doubling_direct
from tests.executors.fidelity.held import Held, Holders
from tests.executors.fidelity.meshes import Mesh
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.small_counts import OnServers, at_device_0
from tests.executors.fidelity.stages import Stages
from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import Event, Slice, run
from tests.recording import op_of, recorded

A3 = "atlas-900-a3"
FIDELITY = {executor.__name__: executor.fidelity for executor in EXECUTORS}


def streams(program: Program, rank: int) -> list[list[Event]]:
    """Return the events of all streams of a rank."""
    found = events_of(program, rank)
    return [found.get(k, []) for k in range(program.streams)]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", range(3, 17))
def test_all_reduce_in_slots(ranks: int, mode: Mode) -> None:
    """coll_all_reduce_mesh_small_count_executor.cc:171 KernelRun: no sub stream has anything to do,
    though two must be there.
    """
    name = "AllReduceMeshSmallCountExecutor"
    assert FIDELITY[name].is_same
    if mode is Mode.GRAPH and ranks < 4:
        return
    call = op_of("all_reduce", 333, mode=mode)
    program = recorded(name, call, topology_of(ranks, preset=A3), 1 << 20)
    wanted = run(hd_optim, ranks, rdma=False, whole=Slice(0, 4 * 333))
    idle: list[list[Event]] = [[]] * (ranks - 1 - (mode is Mode.GRAPH))
    assert program.declared.sub_streams.tolist() == [len(idle)] * ranks
    for rank in range(ranks):
        assert streams(program, rank) == [wanted[rank], *idle][: program.streams]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", range(2, 9))
def test_all_reduce_at_rank_0(ranks: int, mode: Mode, fixed: bool) -> None:
    """The same of A2: added as it comes, or collected and added in a fixed order, which 8 ranks
    double for.
    """
    name = "AllReduceMeshSmallCountExecutor"
    if fixed and ranks == 8:
        return
    call = replace(op_of("all_reduce", 333, mode=mode), deterministic=fixed)
    program = recorded(name, call, topology_of(ranks), 1 << 20)
    for rank in range(ranks):
        me = OnServers(rank, 1, ranks, ranks - 1 - (mode is Mode.GRAPH))
        at_device_0(me, Slice(0, 4 * 333), added=not fixed)
        assert streams(program, rank) == me.streams


def test_eight_ranks_double_in_a_fixed_order() -> None:
    """Of A2 in op-base mode, from and to user memory."""
    call = replace(op_of("all_reduce", 333), deterministic=True)
    program = recorded("AllReduceMeshSmallCountExecutor", call, topology_of(8), 1 << 20)
    for rank in range(8):
        me = Mesh(rank, 8, 7)
        doubling_direct(me, 4 * 333, 4)
        assert streams(program, rank) == me.streams


@pytest.mark.parametrize("count", [1, 333, 8192])
def test_eight_ranks_double_in_graph_mode(count: int) -> None:
    """coll_all_reduce_mesh_small_count_executor.cc:201: main alone, though six streams are asked
    for.
    """
    call = replace(op_of("all_reduce", count, mode=Mode.GRAPH), deterministic=True)
    program = recorded("AllReduceMeshSmallCountExecutor", call, topology_of(8), 1 << 20)
    assert program.declared.sub_streams.tolist() == [6] * 8
    wanted = run(doubling, 8, rdma=False, whole=Slice(0, 4 * count))
    assert [streams(program, rank)[0] for rank in range(8)] == wanted
    assert not any(events for rank in range(8) for events in streams(program, rank)[1:])


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", [*range(2, 17), 20, 24])
def test_all_gather_in_stages(ranks: int, mode: Mode) -> None:
    """coll_all_gather_small_count_executor.cc:105 KernelRun, of one round."""
    name = "AllGatherSmallCount"
    assert FIDELITY[name].is_same
    where = topology_of(ranks, preset=A3)
    program = recorded(name, op_of("all_gather", 33, mode=mode), where, 1 << 20)
    for rank in range(ranks):
        model = Stages(rank, ranks, 132, graph=mode is Mode.GRAPH)
        model.run()
        assert streams(program, rank) == model.me.streams[: program.streams]
        assert not any(model.me.streams[program.streams :])


@pytest.mark.parametrize("count", [100, 9000])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("preset", ["atlas-800t-a2", A3])
def test_reduce_scatter_collects(preset: str, ranks: int, mode: Mode, count: int) -> None:
    """coll_reduce_scatter_deter_executor.cc:184 KernelRun; of at most 32 KiB, 4 and 8 ranks of A2
    halve in op-base mode.
    """
    name = "ReduceScatterDeterExecutor"
    assert FIDELITY[name].is_same
    size, graph = 4 * count, mode is Mode.GRAPH
    if preset != A3 and not graph and ranks in (4, 8) and size <= 32 << 10:
        return
    call = replace(op_of("reduce_scatter", count, mode=mode), deterministic=True)
    program = recorded(name, call, topology_of(ranks, preset=preset), 1 << 20)
    memory = ranks * size if graph else 1 << 20
    for rank in range(ranks):
        me = Worker(rank, ranks - 1 - graph)
        local_reduce(me, ranks, size, memory, size, 0)
        assert streams(program, rank) == me.streams[: program.streams]
        assert not any(me.streams[program.streams :])


def test_rounds_that_collect() -> None:
    """CalcLoopMaxCount, :130: a buffer but 16 KiB for every rank, in whole 16 Ki elements."""
    ranks, room, count = 3, 300 << 10, 40000
    most = (room - 16384 * ranks) // 4 // (ranks - 1) // 16384 * 16384
    call = replace(op_of("reduce_scatter", count), deterministic=True)
    where = topology_of(ranks)
    program = recorded("ReduceScatterDeterExecutor", call, where, room)
    for rank in range(ranks):
        me = Worker(rank, ranks - 1)
        for start in range(0, count, most):
            size = 4 * min(most, count - start)
            local_reduce(me, ranks, size, room, 4 * count, 4 * start)
        assert program.rounds == 3
        assert streams(program, rank) == me.streams


def _all_reduce(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Slots on A3; on A2 at rank 0, added as it comes, and in a fixed order."""
    size, graph = 4 * 333, mode is Mode.GRAPH
    call = op_of("all_reduce", 333, mode=mode)
    if at.product.device == "910_93":
        wanted = run(hd_optim, at.size, rdma=False, whole=Slice(0, size))
        yield Held(call, lambda rank: [wanted[rank]])
        return

    def at_0(rank: int, *, added: bool) -> list[list[Event]]:
        me = OnServers(rank, 1, at.size, at.size - 1 - graph)
        at_device_0(me, Slice(0, size), added=added)
        return me.streams

    def doubled(rank: int) -> list[list[Event]]:
        if graph:
            return [run(doubling, 8, rdma=False, whole=Slice(0, size))[rank]]
        me = Mesh(rank, 8, 7)
        doubling_direct(me, size, 4)
        return me.streams

    yield Held(call, partial(at_0, added=True))
    fixed = doubled if at.size == 8 else partial(at_0, added=False)
    yield Held(replace(call, deterministic=True), fixed)


def _all_gather(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    def staged(rank: int) -> list[list[Event]]:
        model = Stages(rank, at.size, 132, graph=mode is Mode.GRAPH)
        model.run()
        return model.me.streams

    yield Held(op_of("all_gather", 33, mode=mode), staged)


def _reduce_scatter(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Small data is halved where HCCL does so: :193 in op-base mode, by powers of two."""
    graph, servers = mode is Mode.GRAPH, len(at.servers)
    for count in (100, 9000):
        size = 4 * count
        call = replace(op_of("reduce_scatter", count, mode=mode), deterministic=True)

        def collected(rank: int, size: int = size) -> list[list[Event]]:
            me = Worker(rank, at.size - 1 - graph)
            local_reduce(me, at.size, size, at.size * size if graph else 1 << 20, size, 0)
            return me.streams

        def halved(rank: int, size: int = size) -> list[list[Event]]:
            return hd_stage(rank, at.size, size)

        is_small = not graph and at.size in (4, 8) and size <= 32 << 10
        yield Held(
            call, halved if (is_small and at.product.device == "910B") or servers > 1 else collected
        )


HELD: Holders = {
    "AllReduceMeshSmallCountExecutor": _all_reduce,
    "AllGatherSmallCount": _all_gather,
    "ReduceScatterDeterExecutor": _reduce_scatter,
}
