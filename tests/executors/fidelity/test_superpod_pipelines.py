"""Pipelines of several superpods of A3, held against models of HCCL's, streams and all."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity.held import Held, Holders, form_of, rings_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.superpod_pipelines import AllGather, Pipeline, ReduceScatter
from tests.executors.fidelity.superpods import Grid
from tests.executors.fidelity.transports import Event
from tests.recording import op_of, recorded

A3 = PRESETS["atlas-900-a3"]
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
MODELS: dict[str, tuple[str, type[Pipeline]]] = {
    "AllGatherPipelineFor91093Executor": ("all_gather", AllGather),
    "ReduceScatterPipelineFor91093Executor": ("reduce_scatter", ReduceScatter),
}
GRIDS = [Grid(2, 1, 2, 1), Grid(2, 2, 3, 1), Grid(2, 1, 4, 2), Grid(2, 2, 4, 2), Grid(3, 2, 1, 1)]


def check(name: str, grid: Grid, count: int, room: int, rounds: int) -> None:
    """Compare every stream of every rank."""
    assert KINDS[name] == "same"
    op, model = MODELS[name]
    call = replace(op_of(op, count), level1="ring", level2="ring")
    topology = Topology(A3, (grid.devices,) * grid.pods * grid.servers, (grid.servers,) * grid.pods)
    assert len(topology.rings) == grid.rings
    program = recorded(name, call, topology, room)
    assert program.rounds == rounds
    for rank in range(grid.size):
        one = model(rank, grid, count, 4, room)
        one.run()
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(len(one.me.streams))]
        assert ours == one.me.streams, f"rank {rank} of {grid}"
        assert program.streams == len(one.me.streams)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_rounds_that_overlap(name: str, grid: Grid) -> None:
    """One round, two, and several of which the last is short; halves that begin anywhere."""
    room = 2 * grid.size * 384 + 200
    for count, rounds in ((1, 1), (96, 1), (192, 2), (200, 3), (400, 5)):
        check(name, grid, count, room, rounds)


@pytest.mark.parametrize("name", MODELS)
def test_nothing_without_data(name: str) -> None:
    """RunLoop returns at once."""
    call = replace(op_of(MODELS[name][0], 0), level1="ring", level2="ring")
    program = recorded(name, call, Topology(A3, (2, 2), (1, 1)))
    assert program.task_count == 0


@pytest.mark.parametrize(("name", "rounds"), [*zip(MODELS, (1, 3), strict=True)])
def test_large_rounds(name: str, rounds: int) -> None:
    """A reduce-scatter takes 8 MiB of each slot, whatever a buffer has room for."""
    check(name, Grid(2, 1, 2, 1), (20 << 20) // 4, 200 << 20, rounds)


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Three rounds."""
    op, model = MODELS[name]
    form = form_of(at)
    grid = Grid(form.pods, form.servers, form.devices, rings_of(form))
    room = 2 * grid.size * 384 + 200

    def streams(rank: int) -> list[list[Event]]:
        one = model(rank, grid, 200, 4, room)
        one.run()
        return one.me.streams

    yield Held(replace(op_of(op, 200, mode=mode), level1="ring", level2="ring"), streams, room)


HELD: Holders = dict.fromkeys(MODELS, _held)
