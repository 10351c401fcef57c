"""Uncontended times: every walk to the last bit, and the closed formulas."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import LinkKind
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, LinkCost, simulate_batches, simulate_tasks
from hccl_py.simulator.batches.kernels import in_lockstep, rank_by_rank
from hccl_py.simulator.tasks import _time_tasks
from hccl_py.topology import topology_of
from tests.program.authors import Notifies
from tests.recording import BY_NAME, op_of, recorded, without
from tests.simulator.costs import COST
from tests.suited import SuitedCall, suited


def ends_by_task(program: Program, cost: CostModel) -> npt.NDArray[np.float64]:
    timeline = simulate_tasks(program, None, cost)
    queue = program.tasks.rank.astype(np.int64) * program.streams + program.tasks.stream
    ends = np.zeros(program.ranks * program.streams)
    np.maximum.at(ends, queue, timeline.end_us)
    return ends.reshape(program.ranks, program.streams)


@given(call=suited(dtypes=("fp32", "int64")))
def test_all_walks_give_the_same_times_to_the_last_bit(call: SuitedCall) -> None:
    program = recorded(*call, 1 << 15)
    wanted = ends_by_task(program, COST)
    for lockstep in (True, False):
        assert np.array_equal(
            simulate_batches(program, None, COST, lockstep=lockstep).end_us, wanted
        )
    alone = recorded(*call, 1 << 15, by_rank=True)
    assert np.array_equal(ends_by_task(alone, COST), wanted)
    assert np.array_equal(simulate_batches(alone, None, COST).end_us, wanted)


def test_compiled_walks_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), topology_of(12))
    plain = (
        simulate_batches(program, None, COST),
        simulate_batches(program, None, COST, lockstep=False),
    )
    by_task = simulate_tasks(program, None, COST)
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    fast = (
        simulate_batches(program, None, COST),
        simulate_batches(program, None, COST, lockstep=False),
    )
    for a, b in zip(plain, fast, strict=True):
        assert np.array_equal(a.end_us, b.end_us)
        assert np.array_equal(a.connection_us, b.connection_us)
        assert a.lockstep == b.lockstep
    assert np.array_equal(by_task.effect_us, simulate_tasks(program, None, COST).effect_us)
    kernels: tuple[Any, ...] = (in_lockstep, rank_by_rank, _time_tasks)
    assert all(kernel.compiled.signatures for kernel in kernels)


@given(ranks=st.integers(2, 16), per_rank=st.integers(1, 40))
def test_times_equal_the_closed_formulas(ranks: int, per_rank: int) -> None:
    size = 128 * ranks * per_rank
    cost = CostModel.of("mesh").formula()
    alpha, beta, gamma = cost.hccs.alpha_us, cost.hccs.beta_us, cost.gamma_us
    share = (ranks - 1) / ranks * size
    large = min(size, -(-size // ranks // 16384) * 16384)  # chunks are multiples of 16 KiB
    formulas = {  # rings end with a barrier, which costs one α
        "AllGatherComm": ranks * alpha + share * beta,
        "AllGatherMeshOpbaseExecutor": alpha + size / ranks * beta,
        "AllReduceComm": (2 * ranks - 1) * alpha + 2 * share * beta + share * gamma,
        "AllReduceMeshOpbaseLoopExecutor": 2 * alpha + large * (2 * beta + gamma),
    }
    for name, wanted in formulas.items():
        op = str(BY_NAME[name].op)
        count = size // 4 if op == "all_reduce" else size // 4 // ranks
        program = recorded(name, op_of(op, count), topology_of(ranks, preset="mesh"))
        assert simulate_tasks(program, None, cost).total_us == pytest.approx(wanted, rel=1e-9)


def test_rdma_rings_cost_the_same_formula() -> None:
    topology = topology_of(servers=5, devices=1)
    cost = CostModel.of("study").formula()
    program = recorded("AllGatherComm", op_of("all_gather", 3200), topology)
    assert set(program.transports.kind) == {LinkKind.RDMA}
    steps = 4 + 1  # and the barrier's
    wanted = steps * cost.roce.alpha_us + 4 * 12800 * cost.roce.beta_us
    assert simulate_tasks(program, None, cost).total_us == pytest.approx(wanted, rel=1e-9)


def test_large_rings_run_in_lock_step() -> None:
    program = recorded(
        "AllReduceComm", op_of("all_reduce", 1 << 20), topology_of(256, preset="ring"), 200 << 20
    )
    clocks = simulate_batches(program, None, COST)
    assert clocks.lockstep == 1.0
    assert clocks.total_us == clocks.end_us.max() > 0


def test_programs_that_cannot_end_are_refused() -> None:
    ring = recorded("AllGatherComm", op_of("all_gather"), 3)
    stuck = without(ring, lambda i: i.kind == 8)
    for lockstep in (True, False):
        with pytest.raises(DeadlockError, match="3 of 36 tasks done"):
            simulate_batches(stuck, None, COST, lockstep=lockstep)
        late = recorded(Notifies("tx_ack", "tx_ack"), op_of("all_gather"), 2)
        with pytest.raises(OrchestrationError, match=r"overrun: Ack of rank \d from rank \d is"):
            simulate_batches(late, None, COST, lockstep=lockstep)
        left = without(ring, lambda i: i.kind == 9)
        with pytest.raises(OrchestrationError, match=r"Unmatched post|overrun"):
            simulate_batches(left, None, COST, lockstep=lockstep)
        once = recorded(Notifies("tx_ack"), op_of("all_gather"), 2)
        with pytest.raises(OrchestrationError, match="waits for Ack of rank 0 from rank 1"):
            simulate_batches(once, None, COST, lockstep=lockstep)
        local = recorded(Notifies("post"), op_of("all_gather"), 2)
        with pytest.raises(OrchestrationError, match="waits for notify 0 of sub 0 of rank 0"):
            simulate_batches(local, None, COST, lockstep=lockstep)


def test_programs_without_tasks_take_no_time() -> None:
    empty = recorded(Notifies(), op_of("all_gather"), 2)
    assert empty.task_count == 0
    assert simulate_tasks(empty, None, COST).total_us == 0
    assert simulate_batches(empty, None, COST).total_us == 0


def test_tasks_that_move_nothing_cost_nothing() -> None:
    ring = topology_of(3, preset="ring")
    program = recorded("AllGatherComm", op_of("all_gather", 0), ring)
    assert program.tasks.table.moves_data.any()
    cost = CostModel.of("ring").formula().model_copy(update={"task_us": 5.0})
    free = LinkCost(alpha_us=0, gbps=None)
    assert simulate_tasks(program, ring, cost.model_copy(update={"hccs": free})).total_us == 0
