"""The small all-gather: placed, gathered in stages, and straight to the output in the last one.

Numbers of tasks are counted in all_gather_hd_stage.cc (cann-hcomm b5f3e5b), by hand:

    placing          1 local copy, or Ack pair, write, DataSignal pair
    NHR              5 a step, ⌈log2 q⌉ steps
    doubling         Ack pair, then read + 8 between steps, read, DataSignal pair
    mesh of four     4 + 6 + 4 for the Acks, 1, 6 + 1 + 3 · 3 + 6 for the reads, 1
    pair             1, 2, 2 + 2 + 2, 2
"""

import numpy as np
import pytest

from hccl_executors.all_gather.small_count import AllGatherSmallCount, Factors
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Unsuitable
from hccl_py.plugins.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.verifier.numeric import run_numeric
from tests.recording import op_of, recorded

GRAPH = Mode.GRAPH


def gathered(ranks: int, mode: Mode = Mode.OP_BASE, count: int = 1000) -> Program:
    topology = topology_of(ranks, preset="mesh")
    return recorded(AllGatherSmallCount, op_of("all_gather", count, mode=mode), topology)


@pytest.mark.sweep
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", [*range(1, 14), 16, 20, 24, 31])
def test_it_gathers_everything(ranks: int, mode: Mode) -> None:
    for count in (1000, 200_000 // ranks):  # one round, and several with a buffer of 1 MiB
        program = gathered(ranks, mode, count)
        assert run_numeric(program, [Schedule(ranks)]).wrong is None


@pytest.mark.parametrize(
    ("ranks", "mode", "at_home", "elsewhere"),
    [
        (3, Mode.OP_BASE, 1 + 10 + 1, None),
        (6, Mode.OP_BASE, 1 + 10 + 11, 5 + 10 + 11),
        (8, Mode.OP_BASE, 1 + 5 + 38, 5 + 5 + 38),
        (16, Mode.OP_BASE, 1 + 14 + 38, 5 + 14 + 38),
        (12, Mode.OP_BASE, 1 + 10 + 38, 5 + 10 + 38),
        (8, GRAPH, 1 + 23, 5 + 23),
        (2, GRAPH, 1 + 5, None),
    ],
)
def test_tasks_are_as_many_as_in_the_source(
    ranks: int, mode: Mode, at_home: int, elsewhere: int | None
) -> None:
    """Rank 0's block stays where it is; that of rank 1 goes elsewhere, if any does."""
    counts = np.bincount(gathered(ranks, mode).tasks.rank)
    assert counts[0] == at_home
    assert counts[1] == (at_home if elsewhere is None else elsewhere)


def test_partners_of_rank_1_of_8() -> None:
    """To 4, bits of 1 reversed; then with 1 xor 4; then backwards among ranks 0 to 3, and into
    the quarters 0, 3 and 1 of the output.
    """
    tasks = gathered(8).tasks
    kinds = tasks.table.kind[tasks.instruction]
    moved = (tasks.rank == 1) & np.isin(kinds, [int(TaskKind.READ), int(TaskKind.WRITE)])
    assert tasks.peer[moved].tolist() == [4, 5, 0, 3, 2]
    assert (tasks.dst_offset[moved][2:] // 8000).tolist() == [0, 3, 1]
    assert tasks.size[moved].tolist() == [4000, 4000, 8000, 8000, 8000]


def test_blocks_of_six_ranks_go_where_nhr_and_doubling_need_them() -> None:
    """Three groups of two: block b to group b mod 3, to its member b div 3."""
    assert Factors.of(6, Mode.OP_BASE).homes().tolist() == [0, 2, 4, 1, 3, 5]
    assert Factors.of(8, Mode.OP_BASE).homes().tolist() == [0, 4, 2, 6, 1, 5, 3, 7]


def test_thousand_ranks_are_few_batches() -> None:
    assert len(gathered(1000, count=100).batches) <= 8


def test_rdma_is_refused() -> None:
    refusal = AllGatherSmallCount().suits(op_of("all_gather"), topology_of(servers=2, devices=2))
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "reads from peers: SDMA links only"
