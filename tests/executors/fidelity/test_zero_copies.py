"""Executors on registered user memory, held against models of HCCL's, streams and all."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode, TaskKind
from hccl_py.program.program import Program
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity.held import Held, Holders, form_of, rings_of
from tests.executors.fidelity.recorded import MOVES, events_of
from tests.executors.fidelity.superpods import Grid
from tests.executors.fidelity.transports import Event
from tests.executors.fidelity.zero_copies import Slots, Whole, ZeroCopy
from tests.executors.fidelity.zero_copy_pipelines import Pipeline
from tests.recording import op_of, recorded

A3 = PRESETS["atlas-900-a3"]
BY_NAME = {executor.__name__: executor for executor in EXECUTORS}

FORMS: dict[str, tuple[type[ZeroCopy], str, str]] = {
    "AllGatherRingZerocopyExecutor": (Slots, "all_gather", ""),
    "AllGatherRingZerocopyExchangeExecutor": (Slots, "all_gather", "exchange"),
    "ReduceScatterRingZerocopyExecutor": (Slots, "reduce_scatter", ""),
    "ReduceScatterRingZerocopyExchangeExecutor": (Slots, "reduce_scatter", "exchange"),
    "AllGatherRingZerocopyPipelineExecutor": (Pipeline, "all_gather", ""),
    "ReduceScatterRingZerocopyExchangePipelineExecutor": (Pipeline, "reduce_scatter", ""),
    "AllReduceRingZerocopyExecutor": (Whole, "all_reduce", ""),
    "BroadCastRingZerocopyExecutor": (Whole, "broadcast", ""),
}

GRIDS = (
    *(Grid(1, 1, 2, 1), Grid(1, 1, 4, 2), Grid(1, 1, 5, 1), Grid(1, 1, 6, 2)),
    *(Grid(1, 2, 2, 1), Grid(1, 2, 4, 2), Grid(1, 3, 3, 1), Grid(1, 4, 4, 2), Grid(1, 5, 2, 1)),
    *(Grid(2, 1, 3, 1), Grid(2, 2, 2, 1), Grid(2, 2, 4, 2), Grid(3, 2, 3, 1)),
    *(Grid(2, 1, 4, 2), Grid(2, 4, 2, 1), Grid(4, 3, 4, 2)),
)


def check(
    name: str, grid: Grid, count: int, ccl: int, word: str = "", *, hccs: bool = True
) -> Program:
    """Compare every stream of every rank, for one root."""
    model, op, form = FORMS[name]
    root = grid.size * 2 // 3 if op == "broadcast" else None
    form, word = word or form, word or ("NHR" if op == "broadcast" else "ring")
    level2 = "pipeline" if model is Pipeline else word
    call = replace(op_of(op, count), mode=Mode.OP_BASE, level1=word, level2=level2, root=root)
    servers = (grid.devices,) * grid.pods * grid.servers
    topology = Topology(A3, servers, (grid.servers,) * grid.pods, inter_hccs=hccs)
    assert len(topology.rings) == grid.rings
    program = recorded(name, call, topology, ccl)
    for rank in range(grid.size):
        expected = model(rank, grid, 4 * count, ccl, root=root or 0, hccs=hccs)
        getattr(expected, op)(form)
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        assert ours == expected.me.streams, f"rank {rank} of {grid}"
    return program


def grids_of(name: str) -> list[Grid]:
    """Where an executor runs: pipelines need several superpods."""
    return [grid for grid in GRIDS if grid.pods > 1 or FORMS[name][0] is not Pipeline]


def counts_of(name: str, grid: Grid) -> tuple[int, ...]:
    """Elements of a slot, or of data that is cut for devices and servers: few, even, uneven."""
    if FORMS[name][0] is not Whole:
        return (1, 64, 77)
    even = 64 * grid.pods * grid.pods * grid.servers * grid.devices
    return (even - 37, 1, even, 77)


@pytest.mark.parametrize("name", FORMS)
def test_one_round(name: str) -> None:
    assert BY_NAME[name].fidelity.is_same
    for number, grid in enumerate(grids_of(name)):
        counts = counts_of(name, grid)
        check(name, grid, counts[number % len(counts)], 1 << 20)


@pytest.mark.parametrize("name", FORMS)
def test_several_rounds(name: str) -> None:
    for grid in grids_of(name):
        if grid.pods * grid.servers > 1 and grid.size <= 16:
            check(name, grid, counts_of(name, grid)[2] * 5, 512 * grid.pods * grid.servers)


@pytest.mark.parametrize("name", FORMS)
def test_rdma_between_all_servers(name: str) -> None:
    for grid in grids_of(name):
        check(name, grid, counts_of(name, grid)[2], 1 << 20, hccs=False)


@pytest.mark.parametrize("name", FORMS)
def test_neighbours_in_a_server_reach_user_memory_others_ccl_buffers(name: str) -> None:
    program = check(name, Grid(2, 2, 4, 2), 2048, 1 << 20)
    tasks, transports, table = program.tasks, program.transports, program.tasks.table
    is_user = np.array([name in ("IN", "OUT") for name in program.buffers])
    seen = set()
    for row in np.flatnonzero(np.isin(tasks.kind, [int(kind) for kind in MOVES])).tolist():
        kind, at = TaskKind(int(tasks.kind[row])), int(tasks.instruction[row])
        peers = table.dst_buffer if kind.writes_remote else table.src_buffer
        plane = transports.planes[transports.plane[tasks.end[row]]]
        inside = plane in ("level0", "ring0", "ring1")
        assert bool(is_user[peers[at]]) == inside, (plane, program.buffers[peers[at]])
        seen.add(inside)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("name", "small"),
    [("AllReduceRingZerocopyExecutor", 256 << 10), ("BroadCastRingZerocopyExecutor", 2 << 20)],
)
def test_a_slice_is_small_by_what_a_device_has_of_it(name: str, small: int) -> None:
    """With two devices twice as much goes over trees as elsewhere."""
    first, second = (
        check(name, Grid(1, 4, 2, 1), size * 2 // 4, 8 << 20, "NHR").task_count
        for size in (2 * small, 2 * small + 128)
    )
    assert first != second


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """A round, and several where there are several servers."""
    model, op, form = FORMS[name]
    shape = form_of(at)
    grid = Grid(shape.pods, shape.servers, shape.devices, rings_of(shape))
    root = grid.size * 2 // 3 if op == "broadcast" else None
    word = "NHR" if op == "broadcast" else "ring"
    level2 = "pipeline" if model is Pipeline else word
    count = counts_of(name, grid)[grid.size % 3]
    call = replace(op_of(op, count, mode=mode), level1=word, level2=level2, root=root)

    def streams(rank: int) -> list[list[Event]]:
        expected = model(rank, grid, 4 * count, 1 << 20, root=root or 0)
        getattr(expected, op)(form)
        return expected.me.streams

    yield Held(call, streams)


HELD: Holders = dict.fromkeys(FORMS, _held)
