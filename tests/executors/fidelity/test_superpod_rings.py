"""Executors of Atlas A3 whose servers are rings, held against models of HCCL's, streams and all."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import accumulate
from math import prod

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.program.program import Program
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity.held import Held, Holders, form_of, rings_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.superpods import Executor, Grid
from tests.executors.fidelity.superpods_v import Blocks, capped_rounds, shared_rounds
from tests.executors.fidelity.transports import Event
from tests.recording import op_of, recorded, same_tasks

A3 = PRESETS["atlas-900-a3"]
BY_NAME = {executor.__name__: executor for executor in EXECUTORS}

RINGS = {
    f"{name}RingFor91093Executor": (op, "")
    for name, op in (
        ("AllGather", "all_gather"),
        ("ReduceScatter", "reduce_scatter"),
        ("AllReduce", "all_reduce"),
        ("BroadCast", "broadcast"),
        ("Reduce", "reduce"),
        ("Scatter", "scatter"),
    )
}
DOUBLE = {
    "AlignedAllGatherDoubleRingFor91093Executor": ("all_gather", "aligned"),
    "AlignedReduceScatterDoubleRingFor91093Executor": ("reduce_scatter", "aligned"),
    "AlignedAllReduceDoubleRingFor91093Executor": ("all_reduce", "aligned"),
    "ReduceScatterFastDoubleRingFor91093Executor": ("reduce_scatter", "serial"),
    "AllReduceFastDoubleRingFor91093Executor": ("all_reduce", "serial"),
    "BroadCastRingFor91093Executor": ("broadcast", ""),
    "ReduceRingFor91093Executor": ("reduce", ""),
    "ScatterRingFor91093Executor": ("scatter", ""),
}
"""What HCCL runs where servers have two rings."""

BLOCKS = {
    "AllGatherVRingFor91093Executor": ("all_gather", "", 1),
    "ReduceScatterVRingFor91093Executor": ("reduce_scatter", "", 1),
    "AlignedAllGatherVDoubleRingFor91093Executor": ("all_gather", "aligned", 2),
    "AlignedReduceScatterVDoubleRingFor91093Executor": ("reduce_scatter", "aligned", 2),
    "ReduceScatterVFastDoubleRingFor91093Executor": ("reduce_scatter", "serial", 2),
}
"""Those of blocks: the op of even blocks, its form, and how many rings servers have."""

SLOTTED = ("all_gather", "reduce_scatter", "scatter")


def check(
    name: str, form: tuple[str, str], grid: Grid, mode: Mode, count: int, word: str = ""
) -> None:
    """Compare every stream of every rank, for one root."""
    op, kind = form
    root = grid.size * 2 // 3 if op in ("broadcast", "reduce", "scatter") else None
    word = word or ("NHR" if op == "broadcast" else "ring")
    call = replace(op_of(op, count, mode=mode), level1=word, level2=word, root=root)
    topology = Topology(A3, (grid.devices,) * grid.pods * grid.servers, (grid.servers,) * grid.pods)
    assert len(topology.rings) == grid.rings
    program = recorded(name, call, topology, max(8 * count * grid.size, 1 << 20))
    for rank in range(grid.size):
        model = Executor(rank, grid, 4 * count, op_base=mode is Mode.OP_BASE, root=root or 0)
        model.word = word
        getattr(model, op)(kind)
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        assert ours == model.me.streams, f"rank {rank} of {grid}"


def topology_of_grid(grid: Grid) -> Topology:
    """The ranks of a grid."""
    return Topology(A3, (grid.devices,) * grid.pods * grid.servers, (grid.servers,) * grid.pods)


def counts(op: str, grid: Grid) -> tuple[int, ...]:
    """Elements that are cut evenly, and some that are not; NHR has pieces of its own."""
    even = 32 * 2 * (1 if op in SLOTTED else prod((grid.pods**2, grid.servers, grid.devices)))
    return (even, even - 37)


def kinds(forms: Collection[str]) -> None:
    assert [n for n in forms if BY_NAME[n].fidelity.kind != "same"] == []


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", RINGS)
def test_one_ring_in_a_server(name: str, mode: Mode) -> None:
    kinds(RINGS)
    op = RINGS[name][0]
    for number, grid in enumerate((Grid(1, 1, 2, 1), Grid(1, 2, 3, 1), Grid(2, 2, 3, 1))):
        check(name, RINGS[name], grid, mode, counts(op, grid)[number % 2])


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", DOUBLE)
def test_two_rings_in_a_server(name: str, mode: Mode) -> None:
    kinds(DOUBLE)
    op, _ = DOUBLE[name]
    check(name, DOUBLE[name], Grid(1, 1, 4, 2), mode, counts(op, Grid(1, 1, 4, 2))[1])
    if mode is Mode.OP_BASE:  # all streams
        grid = Grid(2, 2, 4, 2)
        check(name, DOUBLE[name], grid, mode, counts(op, grid)[0])


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("op", ["AllGather", "AllReduce", "ReduceScatter"])
def test_nhr_between_servers_and_superpods(op: str, mode: Mode) -> None:
    """Over RDMA neighbours meet after every step of a reduce-scatter."""
    name = f"{op}RingFor91093Executor"
    for grid in (Grid(1, 3, 2, 1), Grid(2, 3, 1, 1), Grid(5, 2, 2, 1)):
        for count in (301, 200_003):
            check(name, RINGS[name], grid, mode, count, "NHR")


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter"])
def test_other_words_are_a_ring_between_superpods(op: str) -> None:
    """coll_all_gather_ring_for_910_93_executor.cc:361 and coll_reduce_scatter_ring_for_910_93_
    executor.cc:778 of libochao-huawei/hcomm @ 8958adb.
    """
    name = f"{''.join(part.title() for part in op.split('_'))}RingFor91093Executor"
    assert BY_NAME[name].fidelity.cases["H-D_R"].is_same
    call = replace(op_of(op, 301), level1="ring", level2="ring")
    for grid in (Grid(3, 2, 2, 1), Grid(4, 1, 1, 1)):
        ring, other = (
            recorded(name, replace(call, level2=word), topology_of_grid(grid), 1 << 20)
            for word in ("ring", "H-D_R")
        )
        assert same_tasks(ring, other)


def check_blocks(
    name: str, grid: Grid, mode: Mode, counts: list[int], room: int, word: str = "ring"
) -> int:
    """Compare every stream of every rank, of all rounds, with gaps between blocks in op-base mode;
    return how many rounds there are.
    """
    op, form, _ = BLOCKS[name]
    gap = 5 if mode is Mode.OP_BASE else 0
    displs = [at + gap * rank for rank, at in enumerate(accumulate(counts, initial=0))][:-1]
    call = replace(op_of(f"{op}_v", mode=mode), counts=tuple(counts), displs=tuple(displs))
    call = replace(call, level1=word, level2=word)
    topology = Topology(A3, (grid.devices,) * grid.pods * grid.servers, (grid.servers,) * grid.pods)
    assert len(topology.rings) == grid.rings
    rounds = [[4 * n for n in counts]]
    if mode is Mode.OP_BASE:
        cut = capped_rounds if op == "all_gather" else shared_rounds
        rounds = cut(counts, 4, room)
    program = recorded(name, call, topology, room)
    assert program.rounds == len(rounds)
    for rank in range(grid.size):
        model = Blocks(rank, grid, [4 * at for at in displs], op_base=mode is Mode.OP_BASE)
        model.word = word
        model.run(op, form, rounds)
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        assert ours == model.me.streams, f"rank {rank} of {grid}"
    return len(rounds)


def uneven(ranks: int) -> list[int]:
    """Some blocks without data, some small, some large."""
    return [(0, 700, 33, 4, 1500, 64, 1, 320)[rank * rank % 11 % 8] for rank in range(ranks)]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", BLOCKS)
def test_rings_of_blocks(name: str, mode: Mode) -> None:
    kinds(BLOCKS)
    rings = BLOCKS[name][2]
    for shape in ((1, 1, 4), (2, 2, 4)) if rings == 2 else ((1, 1, 2), (1, 2, 3), (2, 2, 3)):
        grid = Grid(*shape, rings)
        check_blocks(name, grid, mode, uneven(grid.size), 1 << 20)


LANDED = {"read_reduce": "read", "rdma_write_reduce": "rdma_write"}
"""What carries data that ranks reduce when it has come."""


def landing(streams: list[list[Event]]) -> list[list[Event]]:
    """The same without reductions on the way."""
    return [[(LANDED.get(kind, kind), *rest) for kind, *rest in events] for events in streams]


def recorded_landing(program: Program, rank: int) -> list[list[Event]]:
    """What is recorded; in graph mode data lands in the memory that slots lie in, behind them."""
    found, aside = events_of(program, rank), program.op.mode is Mode.GRAPH
    streams = [found.get(k, []) for k in range(program.streams)]
    if not aside:
        return streams
    moved = LANDED.values()
    return [[(*e[:3], e[-1]) if e[0] in moved else e for e in events] for events in streams]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("form", ["aligned", "serial"])
def test_two_rings_of_sums_that_links_cannot_make(form: str, mode: Mode) -> None:
    """The second ring alone takes slots that are no multiples of 32 bytes."""
    name = {"aligned": "Aligned", "serial": ""}[form] + "ReduceScatter"
    name += {"aligned": "", "serial": "Fast"}[form] + "DoubleRingFor91093Executor"
    assert BY_NAME[name].fidelity.is_same
    for grid in (Grid(1, 1, 4, 2), Grid(1, 2, 4, 2), Grid(2, 1, 6, 2)):
        for count in (1, 64, 97, 164):
            call = replace(op_of("reduce_scatter", count, "int64", mode=mode), level1="ring")
            program = recorded(name, replace(call, level2="ring"), topology_of_grid(grid), 1 << 20)
            for rank in range(grid.size):
                model = Executor(rank, grid, 8 * count, op_base=mode is Mode.OP_BASE)
                model.inline = False
                model.reduce_scatter(form)
                ours = recorded_landing(program, rank)
                assert ours == landing(model.me.streams), f"rank {rank} of {grid}, {count}"


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("form", ["aligned", "serial"])
def test_two_rings_of_blocks_that_links_cannot_reduce(form: str, mode: Mode) -> None:
    """Server by server."""
    name = {"aligned": "AlignedReduceScatterVDoubleRing", "serial": "ReduceScatterVFastDoubleRing"}
    for grid in (Grid(1, 1, 4, 2), Grid(1, 2, 4, 2)):
        for counts in (uneven(grid.size), [64] * 4 + [33, 64, 64, 64], [32, 64, 0, 128] * 2):
            blocks = counts[: grid.size]
            displs = [*accumulate(blocks, initial=0)][:-1]
            call = op_of("reduce_scatter_v", dtype="int64", mode=mode)
            call = replace(call, counts=tuple(blocks), displs=tuple(displs))
            call = replace(call, level1="ring", level2="ring")
            executor = f"{name[form]}For91093Executor"
            assert BY_NAME[executor].fidelity.is_same
            program = recorded(executor, call, topology_of_grid(grid), 1 << 20)
            rounds = [[8 * n for n in blocks]]
            if mode is Mode.OP_BASE:
                rounds = shared_rounds(blocks, 8, 1 << 20)
            for rank in range(grid.size):
                op_base = mode is Mode.OP_BASE
                model = Blocks(rank, grid, [8 * at for at in displs], op_base=op_base)
                model.inline = False
                model.run("reduce_scatter", form, rounds)
                ours = recorded_landing(program, rank)
                assert ours == landing(model.me.streams), f"rank {rank} of {grid}, {blocks}"


@pytest.mark.parametrize("blocks", ["even", "uneven"])
@pytest.mark.parametrize("name", ["AllGatherVRing", "ReduceScatterVRing"])
def test_nhr_between_servers(name: str, blocks: str) -> None:
    """What a step moves goes in the order of its places, and what touches as one."""
    for shape in ((1, 5, 2), (2, 7, 1), (2, 5, 3)):
        grid = Grid(*shape, 1)
        counts = [64] * grid.size if blocks == "even" else uneven(grid.size)
        executor = f"{name}For91093Executor"
        check_blocks(executor, grid, Mode.OP_BASE, counts, 1 << 20, "NHR")


@pytest.mark.parametrize("name", BLOCKS)
def test_rounds_of_blocks(name: str) -> None:
    """In all-gathers as much of each block, in reduce-scatters as much as a buffer has room for."""
    op, _, rings = BLOCKS[name]
    grids = [Grid(1, 1, 4, rings), Grid(2, 2, 4, rings)] if rings == 2 else [Grid(1, 2, 3, 1)]
    for grid in grids:
        rounds = check_blocks(name, grid, Mode.OP_BASE, uneven(grid.size), 128 * 3 * grid.size)
        assert rounds > 2
    grid, full = grids[0], op == "reduce_scatter"
    even = [256] * grid.size
    assert check_blocks(name, grid, Mode.OP_BASE, even, 512 * grid.size) == 2 + full
    assert check_blocks(name, grid, Mode.OP_BASE, even, 512 * grid.size + 128) == 2
    tiny = [0] * grid.size
    assert check_blocks(name, grid, Mode.OP_BASE, tiny, 1 << 20) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_many_sizes(name: str) -> None:
    rings = BLOCKS[name][2]
    for pods, servers in [(1, 1), (2, 1), (1, 3)]:
        for devices in (6,) if rings == 2 else (1, 5):
            grid = Grid(pods, servers, devices, rings)
            check_blocks(name, grid, Mode.GRAPH, uneven(grid.size), 1 << 20)
            check_blocks(name, grid, Mode.OP_BASE, uneven(grid.size)[::-1], 131 * 9 * grid.size)


@pytest.mark.sweep
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", sorted({*RINGS, *DOUBLE}))
def test_rings_of_many_sizes(name: str, mode: Mode) -> None:
    forms = {1: RINGS, 2: DOUBLE}
    for number, (pods, servers) in enumerate([(1, 1), (1, 4), (2, 1), (3, 2)]):
        for devices in (1, 3, 5, 4, 6):
            rings = 2 if devices > 2 and devices % 2 == 0 else 1
            if name in forms[rings]:
                grid, form = Grid(pods, servers, devices, rings), forms[rings][name]
                check(name, form, grid, mode, counts(form[0], grid)[(number + devices) % 2])


def _rings(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Cuts that are even, or not."""
    form = form_of(at)
    grid = Grid(form.pods, form.servers, form.devices, rings_of(form))
    op, kind = (DOUBLE if grid.rings == 2 else RINGS)[name]
    root = grid.size * 2 // 3 if op in ("broadcast", "reduce", "scatter") else None
    word, count = "NHR" if op == "broadcast" else "ring", counts(op, grid)[grid.size % 2]

    def streams(rank: int) -> list[list[Event]]:
        model = Executor(rank, grid, 4 * count, op_base=mode is Mode.OP_BASE, root=root or 0)
        getattr(model, op)(kind)
        return model.me.streams

    yield Held(replace(op_of(op, count, mode=mode), level1=word, level2=word, root=root), streams)


def _blocks(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Blocks side by side, in one round."""
    op, kind, rings = BLOCKS[name]
    form = form_of(at)
    grid, sizes = Grid(form.pods, form.servers, form.devices, rings), uneven(at.size)
    starts = list(accumulate((4 * n for n in sizes), initial=0))[:-1]

    def streams(rank: int) -> list[list[Event]]:
        model = Blocks(rank, grid, starts, op_base=mode is Mode.OP_BASE)
        model.run(op, kind, [[4 * n for n in sizes]])
        return model.me.streams

    call = replace(op_of(f"{op}_v", 0, mode=mode), counts=tuple(sizes), level1="ring")
    yield Held(replace(call, level2="ring"), streams)


HELD: Holders = {**dict.fromkeys({**RINGS, **DOUBLE}, _rings), **dict.fromkeys(BLOCKS, _blocks)}
