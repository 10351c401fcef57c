"""The longest chains of steps, bytes and reduced bytes."""

import pytest

from hccl_py.simulator import CostModel
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.chain import Chain, longest_chain
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ring_all_reduce(ranks: int) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 32 * ranks), ranks)
    once = ranks - 1  # and a barrier at the end
    assert longest_chain(program) == Chain(2 * once + 1, 2 * once * 128, once * 128)


def test_rdma_counts_like_sdma() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 32), topology_of(servers=4, devices=1))
    assert program.transports.is_rdma.all()
    assert longest_chain(program) == Chain(3 + 1, 3 * 128, 0)


def test_costs_add_up_to_the_time_where_the_chains_are_one() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 32 * 5), 5)
    cost = CostModel.of("mesh").formula()
    steps, moved, reduced = longest_chain(program)
    total = steps * cost.hccs.alpha_us + moved * cost.hccs.beta_us + reduced * cost.gamma_us
    assert simulate_batches(program, None, cost).end_us.max() == pytest.approx(total, rel=1e-9)
