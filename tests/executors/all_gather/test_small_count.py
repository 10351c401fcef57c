"""The small all-gather: few steps, the last of them straight to the output."""

import pytest

from hccl_executors.all_gather.small_count import AllGatherSmallCount
from hccl_py.enums import Mode
from hccl_py.executor import Unsuitable
from hccl_py.platforms import Schedule
from hccl_py.topology import topology_of
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import FORMULA, formula_us, moves
from tests.recording import op_of, recorded


@pytest.mark.sweep
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", [*range(1, 14), 16, 20, 24, 31])
def test_it_gathers_everything_once(ranks: int, mode: Mode) -> None:
    program = recorded(
        AllGatherSmallCount, op_of("all_gather", mode=mode), topology_of(ranks, preset="mesh")
    )
    assert moves(program)[1] == [4000 * (ranks - 1)] * ranks
    assert run_numeric(program, [Schedule(ranks)]).wrong is None


@pytest.mark.parametrize(("ranks", "steps"), [(4, 1), (16, 2), (64, 3), (256, 4)])
def test_steps_are_those_of_four_fold_growth(ranks: int, steps: int) -> None:
    program = recorded(
        AllGatherSmallCount, op_of("all_gather", 1), topology_of(ranks, preset="mesh")
    )
    assert steps <= formula_us(program) / FORMULA.hccs.alpha_us < steps + 0.5


def test_thousand_ranks_are_few_batches() -> None:
    program = recorded(
        AllGatherSmallCount, op_of("all_gather", 100), topology_of(1000, preset="mesh")
    )
    assert len(program.batches) <= 8


def test_rdma_is_refused() -> None:
    refusal = AllGatherSmallCount().suits(op_of("all_gather"), topology_of(servers=2, devices=2))
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "reads from peers: SDMA links only"
