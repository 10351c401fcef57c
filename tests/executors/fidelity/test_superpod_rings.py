"""Executors of Atlas A3 whose servers are rings, held against models of HCCL's, streams and all."""

from dataclasses import replace
from math import prod

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.superpods import Executor, Grid
from tests.recording import op_of, recorded

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

SLOTTED = ("all_gather", "reduce_scatter", "scatter")


def check(name: str, form: tuple[str, str], grid: Grid, mode: Mode, count: int) -> None:
    """Compare every stream of every rank, for one root."""
    op, kind = form
    root = grid.size * 2 // 3 if op in ("broadcast", "reduce", "scatter") else None
    word = "NHR" if op == "broadcast" else "ring"
    call = replace(op_of(op, count, mode=mode), level1=word, level2=word, root=root)
    topology = Topology(A3, (grid.devices,) * grid.pods * grid.servers, (grid.servers,) * grid.pods)
    assert len(topology.rings) == grid.rings
    program = recorded(name, call, topology, 1 << 20)
    for rank in range(grid.size):
        model = Executor(rank, grid, 4 * count, op_base=mode is Mode.OP_BASE, root=root or 0)
        getattr(model, op)(kind)
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        assert ours == model.me.streams, f"rank {rank} of {grid}"


def counts(op: str, grid: Grid) -> tuple[int, ...]:
    """Elements that are cut evenly, and some that are not; NHR has pieces of its own."""
    even = 32 * 2 * (1 if op in SLOTTED else prod((grid.pods**2, grid.servers, grid.devices)))
    return (even, even - 37)


def kinds(forms: dict[str, tuple[str, str]]) -> None:
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
