"""Fitting to programs that share links and memory: the parameters of made-up measurements come
back, and programs that were not fitted are predicted.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import CallRequest
from hccl_py.errors import ParameterError
from hccl_py.fit.fit import fit
from hccl_py.fit.parameters import Parameter, TimedCall
from hccl_py.simulator import CostModel, LinkCost, simulate
from hccl_py.simulator.batches import simulate_batches

BASE = CostModel.of("study")
TRUTH = BASE.model_copy(
    update={
        "hccs": LinkCost(alpha_us=6.0, gbps=27.0),
        "reduce_gbps": 40.0,
        "memory_gbps": 140.0,
        "task_us": 2.5,
    }
)
NAMES = ("hccs.alpha_us", "hccs.gbps", "reduce_gbps", "memory_gbps", "task_us")
FITTED = (
    "AllReduceMeshOpbaseSmallCountDeterministicExecutor",
    "AllReduceOrderPreservedExecutor",
    "AllGatherMeshExecutor",
    "AllGatherMeshOpbaseExecutor",
)
HELD_OUT = (
    "AllReduceMeshExecutor",
    "ReduceScatterDeterExecutor",
    "ReduceScatterMeshOpbaseSmallCountDeterministicExecutor",
)
SIZES = (1 << 14, 1 << 22, 1 << 26)
OPS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}


@cache
def programs(executors: tuple[str, ...]) -> tuple[TimedCall, ...]:
    """Return every executor at every size on four ranks, without times."""
    found = []
    for name in executors:
        (op,) = (op for prefix, op in OPS.items() if name.startswith(prefix))
        request = CallRequest(CallOptions(op, ranks=4, executor=name))
        plans = [request.plan(request.op(size)) for size in SIZES]
        found += [TimedCall(plan.program, request.topology, 0.0) for plan in plans]
    return tuple(found)


def times(calls: Sequence[TimedCall], cost: CostModel) -> np.ndarray:
    found = [simulate(c.program, c.topology, cost, network="contended") for c in calls]
    return np.array([timeline.total_us for timeline in found])


def test_parameters_come_back_from_noisy_times_and_predict_other_programs() -> None:
    calls, rng = programs(FITTED), np.random.default_rng(7)
    noisy = times(calls, TRUTH) * np.exp(0.05 * rng.standard_normal((12, len(calls))))
    measured = [
        TimedCall(call.program, call.topology, float(time_us))
        for row in noisy
        for call, time_us in zip(calls, row, strict=True)
    ]
    found = fit(measured, BASE, [Parameter.parse(name) for name in NAMES], "contended")
    assert [e.parameter.name for e in found.estimates] == list(NAMES)
    assert found.rank == len(NAMES)
    for estimate in found.estimates:
        value = estimate.parameter.of(TRUTH)
        assert estimate.value == pytest.approx(value, rel=0.1)
        assert value is not None
        assert estimate.error is not None
        assert 0 < estimate.error < 0.08 * value
    others = programs(HELD_OUT)
    assert times(others, found.cost) == pytest.approx(times(others, TRUTH), rel=0.08)
    assert np.abs(times(others, BASE) / times(others, TRUTH) - 1).max() > 0.3


def test_tied_parameters_are_one_number_and_those_in_step_are_named() -> None:
    calls = programs(("AllGatherMeshOpbaseExecutor",))
    truth = BASE.model_copy(update={"copy_gbps": 99.0, "reduce_gbps": 99.0, "task_us": 3.0})
    measured = [
        TimedCall(c.program, c.topology, simulate_batches(c.program, c.topology, truth).total_us)
        for c in calls
    ]
    found = fit(measured, BASE, [Parameter.parse("reduce_gbps=copy_gbps"), *parsed("task_us")])
    (rate, task) = found.estimates
    assert rate.parameter.name == "reduce_gbps=copy_gbps"
    assert rate.value == pytest.approx(99.0)
    assert task.value == pytest.approx(3.0)
    assert found.cost.copy_gbps == found.cost.reduce_gbps == rate.value
    names = ("copy_gbps", "hccs.gbps", "task_us", "hccs.alpha_us")
    in_step = fit(measured, truth, parsed(*names))
    assert in_step.rank == 2
    assert len(in_step.held) == 2
    assert all(kept.why.startswith("it grows in step with") for kept in in_step.held)


def parsed(*names: str) -> list[Parameter]:
    return [Parameter.parse(name) for name in names]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hccs.gbp", r"no parameter 'hccs\.gbp'"),
        ("copy_gbps=task_us", "copy_gbps and task_us cannot be equal: one is a rate"),
    ],
)
def test_names_that_are_no_parameters(name: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Parameter.parse(name)


def test_a_rate_may_come_out_as_fast_as_any() -> None:
    """Times below what all other parameters take leave nothing for a copy."""
    calls = programs(FITTED)
    free = TRUTH.model_copy(update={"copy_gbps": None, "memory_gbps": None})
    measured = [
        TimedCall(c.program, c.topology, 0.8 * float(us))
        for c, us in zip(calls, times(calls, free), strict=True)
    ]
    base = free.model_copy(update={"copy_gbps": 20.0})
    found = fit(
        measured, base, [Parameter.parse("copy_gbps"), Parameter.parse("task_us")], "contended"
    )
    (estimate,) = (e for e in found.estimates if e.parameter.name == "copy_gbps")
    assert estimate.value is not None
    assert estimate.value > 1000
    assert estimate.error is not None
    assert np.isfinite(estimate.error)
