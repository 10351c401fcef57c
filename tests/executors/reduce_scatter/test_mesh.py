"""ReduceScatter over a mesh, two ways: how often data moves."""

from typing import Any

import pytest

from hccl_executors.reduce_scatter.mesh_dma_elimination import (
    ReduceScatterMeshDmaEliminationExecutor,
)
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Unsuitable
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from tests.executors.flat import moves
from tests.recording import op_of, recorded


def scattered(executor: Any, mode: Mode = Mode.OP_BASE, **shape: Any) -> Program:
    return recorded(executor, op_of("reduce_scatter", mode=mode), topology_of(**shape))


def tasks_of(program: Program, kind: TaskKind) -> int:
    """Return how many tasks of a kind each rank has."""
    return int((program.tasks.kind == int(kind)).sum()) // program.ranks


@pytest.mark.parametrize(
    ("executor", "copies", "reduces"),
    [
        (ReduceScatterMeshDmaEliminationExecutor, 2, 0),
    ],
)
def test_every_chunk_goes_over_one_link(executor: Any, copies: int, reduces: int) -> None:
    program = scattered(executor, ranks=7)
    assert moves(program) == ([6] * 7, [6 * 4000] * 7)
    assert tasks_of(program, TaskKind.COPY) == copies
    assert tasks_of(program, TaskKind.REDUCE) == reduces
    assert len(program.batches) == 1


def test_graph_mode_is_refused_without_staging() -> None:
    refusal = ReduceScatterMeshDmaEliminationExecutor().suits(
        op_of("reduce_scatter", mode=Mode.GRAPH), topology_of(4)
    )
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "works through CCL buffers: op-base mode only"
