"""NHR_V1 on the flat plane: right and clean for every p, in 2√p steps, p - 1 slots each."""

from math import isqrt
from time import process_time

import numpy as np
import pytest

from hccl_executors.templates.nhr_v1 import (
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


def received(program: Program, rank: int) -> tuple[int, int]:
    """Return the transfers that a rank waits for or reads, and their bytes; SDMA only."""
    tasks = program.tasks
    mine = (tasks.rank == rank) & np.isin(tasks.kind, (TaskKind.READ, TaskKind.READ_REDUCE))
    return int(mine.sum()), int(tasks.size[mine].sum())


@pytest.mark.sweep
@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("executor", SYMMETRIC, ids=lambda executor: executor.op)
def test_is_clean_and_right(executor: FlatExecutor, p: int) -> None:
    run_flat(executor, p, schedules=in_turn(p) if p < 10 else ())


@pytest.mark.sweep
@pytest.mark.parametrize(
    "p", [pytest.param(p, marks=pytest.mark.long) if p > 17 else p for p in SIZES]
)
def test_broadcast_is_clean_and_right_from_every_root(p: int) -> None:
    for root in range(p) if p < 7 else (0, p // 2, p - 1):
        run_flat(BROADCAST, p, root=root, schedules=in_turn(p + root))


@pytest.mark.sweep
@pytest.mark.parametrize("executor", [*SYMMETRIC, BROADCAST], ids=lambda executor: executor.op)
@pytest.mark.parametrize("servers", [(1,) * 7, (2, 3, 4), (4, 4)], ids=str)
def test_runs_over_rdma_and_without_inline_reduce(
    executor: FlatExecutor, servers: tuple[int, ...]
) -> None:
    """What exchange() waits for at its end may be known from another link by then."""
    topology, allowed = Topology(MESH, servers), ["REDUNDANT_SYNC"]
    for case, dtype in enumerate(("fp32", "int64"), len(servers)):
        run_flat(executor, topology, dtype=dtype, schedules=in_turn(case), allowed=allowed)


@pytest.mark.parametrize("executor", [GATHER, REDUCE, BROADCAST], ids=lambda executor: executor.op)
def test_runs_in_graph_mode(executor: FlatExecutor) -> None:
    run_flat(executor, 7, mode=Mode.GRAPH, schedules=SCHEDULES)


@pytest.mark.parametrize("executor", [GATHER, SCATTER], ids=lambda executor: executor.op)
@pytest.mark.parametrize("counts", [(5, 0, 64, 1, 33), (0, 0, 7), (3, 2, 1, 0, 0, 9, 100)], ids=str)
def test_chunks_may_be_of_any_size(executor: FlatExecutor, counts: tuple[int, ...]) -> None:
    run_flat(executor, len(counts), counts=counts)


@pytest.mark.parametrize("p", [2, 3, 5, 12, 16, 31])
@pytest.mark.parametrize("executor", SYMMETRIC, ids=lambda executor: executor.op)
def test_takes_two_root_p_steps_and_moves_every_slot_once(executor: FlatExecutor, p: int) -> None:
    program = record_flat(executor, p, flat_op(executor, 32 * (p if executor is REDUCE else 1)))
    width = isqrt(p - 1) + 1
    phases = 2 if executor is REDUCE else 1
    labels = {label for label in program.labels if "/" in label}
    assert len(labels) == phases * (width - 1 + -(-p // width) - 1)
    for rank in range(p):
        assert received(program, rank)[1] == phases * (p - 1) * 128


def test_members_talk_to_four_neighbours() -> None:
    assert nhr_v1_peers(0, 16) == [1, 4, 12, 15]
    assert nhr_v1_peers(5, 12) == [1, 4, 6, 9]
    assert [nhr_v1_peers(0, p) for p in (1, 2, 3)] == [[], [1], [1, 2]]


def test_a_rectangle_reduces_in_few_transfers() -> None:
    """Slots are numbered down the columns, so that what goes along a row is one range."""
    program = record_flat(REDUCE, 16, flat_op(REDUCE, 16 * 32))
    assert {received(program, rank)[0] for rank in range(16)} == {2 * (3 + 3)}
    assert len(program.batches) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("executor", [*SYMMETRIC, BROADCAST], ids=lambda executor: executor.op)
def test_a_thousand_ranks_are_recorded_in_batches(executor: FlatExecutor) -> None:
    begin = process_time()
    program = record_flat(executor, 1024, flat_op(executor, 64))
    assert len(program.batches) <= 64
    assert process_time() - begin < 10  # it takes less than one second
