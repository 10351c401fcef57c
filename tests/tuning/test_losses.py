"""The parts of a time: they add up, and each is what its cost alone makes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import CostModel
from hccl_py.communicator.communicator import Communicator
from hccl_py.enums import DataType, ReduceOp
from hccl_py.simulator.bounds import lower_bound
from hccl_py.topology import Topology, topology_of
from hccl_py.tuning.losses import NEEDED, TimePart, time_parts
from hccl_py.tuning.recording import uncontended_us

SHAPES: tuple[dict[str, Any], ...] = (
    {"ranks": 4},
    {"servers": 2, "devices": 4},
    {"servers": 3, "devices": 2},
)


def parts_of(
    topology: Topology, cost: CostModel, count: int, executor: str | None = None
) -> tuple[float, list[TimePart]]:
    op = OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM)
    with Communicator(topology=topology) as comm:
        plan = comm.plan(op, executor)
    time_us = max(uncontended_us(plan.program, topology, cost))
    return time_us, time_parts(plan.program, topology, cost, lower_bound(plan.op, topology, cost))


@settings(max_examples=20)
@given(shape=st.sampled_from(SHAPES), count=st.integers(1, 1 << 22), product=st.booleans())
def test_parts_add_up_to_the_time(shape: dict[str, Any], count: int, product: bool) -> None:
    topology = topology_of(**shape)
    cost = CostModel.of(topology.product.name if product else "study")
    time_us, parts = parts_of(topology, cost, count)
    assert sum(part.us for part in parts) == pytest.approx(time_us)
    assert all(part.us > 0 for part in parts)
    assert [part.us for part in parts] == sorted((part.us for part in parts), reverse=True)


def test_reductions_and_latency_of_a_ring_by_hand() -> None:
    """A ring of 4 adds three quarters of the data; α counts for each of its steps, six at least."""
    free, count, steps = CostModel.of("study").formula(), 1 << 20, []
    for alpha_us in (5.0, 10.0):
        hccs = free.hccs.model_copy(update={"alpha_us": alpha_us, "gbps": 10.0})
        cost = free.model_copy(update={"hccs": hccs, "reduce_gbps": 100.0})
        _, parts = parts_of(topology_of(ranks=4), cost, count, "AllReduceRing")
        found = {part.what: part.us for part in parts}
        assert found["reductions"] == pytest.approx(3 * count / 100e3)
        steps.append(found["α of steps one after the other"] / alpha_us)
    assert steps == pytest.approx([round(steps[0])] * 2)
    assert steps[0] >= 6


def test_bytes_that_any_algorithm_moves_are_those_of_the_bound() -> None:
    topology = topology_of(ranks=8)
    cost = CostModel.of(topology.product.name)
    op = OpParam("all_reduce", 1 << 20, DataType.FP32, ReduceOp.SUM)
    _, parts = parts_of(topology, cost, op.count)
    needed = next(part.us for part in parts if part.what == NEEDED)
    assert needed == pytest.approx(lower_bound(op, topology, cost).bandwidth_us)
