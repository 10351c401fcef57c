"""NHR_V1 on the flat plane: HCCL's grid, right for every p."""

from time import process_time

import numpy as np
import pytest

from hccl_executors.templates.nhr_v1 import (
    RankGrid,
    nhr_v1_all_gather,
    nhr_v1_all_reduce,
    nhr_v1_broadcast,
    nhr_v1_peers,
    nhr_v1_reduce_scatter,
)
from hccl_py.enums import Mode, TaskKind
from hccl_py.program.program import Program
from hccl_py.topology import PRESETS, Topology
from tests.executors.flat import (
    SCHEDULES,
    FlatExecutor,
    flat_executor,
    flat_op,
    in_turn,
    record_flat,
    run_flat,
)

GATHER = flat_executor("all_gather", nhr_v1_all_gather, nhr_v1_peers)
SCATTER = flat_executor("reduce_scatter", nhr_v1_reduce_scatter, nhr_v1_peers)
REDUCE = flat_executor("all_reduce", nhr_v1_all_reduce, nhr_v1_peers)
BROADCAST = flat_executor("broadcast", nhr_v1_broadcast, nhr_v1_peers)
SYMMETRIC = (GATHER, SCATTER, REDUCE)

SIZES = [*range(1, 18), 31, 32, 33]
MESH = PRESETS["mesh"]
ALLOWED = ("REDUNDANT_SYNC", "RESOURCE_UNUSED", "DEAD_TRANSFER")
"""Rings close with barriers, links of a column of extra members are requested, and an extra member
is given its row's block twice: as in HCCL.
"""


def received(program: Program, rank: int) -> tuple[int, int]:
    """Return the transfers that a rank waits for or reads, and their bytes; SDMA only."""
    tasks = program.tasks
    mine = (tasks.rank == rank) & np.isin(tasks.kind, (TaskKind.READ, TaskKind.READ_REDUCE))
    return int(mine.sum()), int(tasks.size[mine].sum())


@pytest.mark.sweep
@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("executor", SYMMETRIC, ids=lambda executor: executor.op)
def test_is_clean_and_right(executor: FlatExecutor, p: int) -> None:
    run_flat(executor, p, schedules=in_turn(p) if p < 10 else (), allowed=ALLOWED)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "p", [pytest.param(p, marks=pytest.mark.long) if p > 17 else p for p in SIZES]
)
def test_broadcast_is_clean_and_right_from_every_root(p: int) -> None:
    for root in range(p) if p < 7 else (0, p // 2, p - 1):
        run_flat(BROADCAST, p, root=root, schedules=in_turn(p + root), allowed=ALLOWED)


@pytest.mark.sweep
@pytest.mark.parametrize("executor", [*SYMMETRIC, BROADCAST], ids=lambda executor: executor.op)
@pytest.mark.parametrize("servers", [(1,) * 7, (2, 3, 4), (4, 4)], ids=str)
def test_runs_over_rdma_and_without_inline_reduce(
    executor: FlatExecutor, servers: tuple[int, ...]
) -> None:
    topology = Topology(MESH, servers)
    for case, dtype in enumerate(("fp32", "int64"), len(servers)):
        run_flat(executor, topology, dtype=dtype, schedules=in_turn(case), allowed=ALLOWED)


@pytest.mark.parametrize("executor", [GATHER, REDUCE, BROADCAST], ids=lambda executor: executor.op)
def test_runs_in_graph_mode(executor: FlatExecutor) -> None:
    run_flat(executor, 7, mode=Mode.GRAPH, schedules=SCHEDULES, allowed=ALLOWED)


@pytest.mark.parametrize("executor", [GATHER, SCATTER], ids=lambda executor: executor.op)
@pytest.mark.parametrize("counts", [(5, 0, 64, 1, 33), (0, 0, 7), (3, 2, 1, 0, 0, 9, 100)], ids=str)
def test_chunks_may_be_of_any_size(executor: FlatExecutor, counts: tuple[int, ...]) -> None:
    run_flat(executor, len(counts), counts=counts, allowed=ALLOWED)


@pytest.mark.parametrize(
    ("members", "lengths", "width"),
    [
        (2, (2,), 2),
        (5, (5,), 5),  # 1 × 5: sides that differ by 4 are near enough
        (6, (3, 3), 3),
        (7, (3, 2, 2), 2),  # 1 × 7 is not: 2 × 2, one row more, one left
        (8, (4, 4), 4),
        (11, (4, 4, 3), 3),
        (14, (4, 4, 3, 3), 3),
        (15, (5, 5, 5), 5),
        (16, (4,) * 4, 4),
        (31, (6, 5, 5, 5, 5, 5), 5),
    ],
)
def test_the_grid_is_that_of_the_source(members: int, lengths: tuple[int, ...], width: int) -> None:
    """By hand from RingInfo of nonuniform_hierarchical_ring_v1_base.cc."""
    assert RankGrid.of(members) == (lengths, width)


def test_extra_members_end_the_rings_of_columns() -> None:
    """Eight members would be {0, 3, 6, 2} and {1, 4, 7, 5} in HCCL's comment, were they not 2 × 4;
    fourteen are no rectangle.
    """
    columns = [[0, 4, 8, 11, 3], [1, 5, 9, 12, 7], [2, 6, 10, 13]]
    assert RankGrid.of(14).columns(extra=True) == columns
    assert nhr_v1_peers(3, 14) == [0, 2, 7, 11]
    assert nhr_v1_peers(0, 16) == [1, 3, 4, 12]
    assert [nhr_v1_peers(0, p) for p in (1, 2, 3)] == [[], [1], [1, 2]]


@pytest.mark.parametrize(("p", "steps"), [(2, 1), (5, 4), (12, 5), (16, 6)])
@pytest.mark.parametrize("executor", [GATHER, SCATTER], ids=lambda executor: executor.op)
def test_a_rectangle_moves_every_slot_once(executor: FlatExecutor, p: int, steps: int) -> None:
    """w - 1 steps along a row, h - 1 along a column; blocks of rows are one transfer each."""
    program = record_flat(executor, p, flat_op(executor, 32))
    assert {received(program, rank) for rank in range(p)} == {(steps, (p - 1) * 128)}


def test_all_reduce_of_a_rectangle() -> None:
    """16 members, 4 parts: 3 steps of a part, 2 · 3 of a quarter of it, 3 of a part."""
    program = record_flat(REDUCE, 16, flat_op(REDUCE, 16 * 32))
    assert {received(program, rank) for rank in range(16)} == {(12, 3 * 512 + 6 * 128 + 3 * 512)}
    assert len(program.batches) == 1


def test_an_extra_member_is_given_its_chunk_by_the_one_before() -> None:
    """7 members, rows of 3, 2, 2: member 2 is extra, and the last in the ring of column 0."""
    tasks = record_flat(SCATTER, 7, flat_op(SCATTER, 32)).tasks
    mine = (tasks.rank == 2) & np.isin(tasks.kind, (TaskKind.READ, TaskKind.READ_REDUCE))
    assert tasks.peer[mine].tolist() == [5, 5, 5, 1]
    assert tasks.kind[mine][-1] == TaskKind.READ


@pytest.mark.sweep
@pytest.mark.parametrize("executor", [*SYMMETRIC, BROADCAST], ids=lambda executor: executor.op)
def test_a_thousand_ranks_are_recorded_in_batches(executor: FlatExecutor) -> None:
    begin = process_time()
    program = record_flat(executor, 1024, flat_op(executor, 64))
    assert len(program.batches) <= 64
    assert process_time() - begin < 10  # it takes less than one second
