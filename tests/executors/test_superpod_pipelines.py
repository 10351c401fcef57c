"""Pipelines of several superpods of A3: right in many rounds, and as fast as their formula says."""

from dataclasses import replace

import pytest

from hccl_executors.rings.superpod_pipelines import (
    AllGatherPipelineFor91093Executor,
    ReduceScatterPipelineFor91093Executor,
)
from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost_files import find_cost
from hccl_py.enums import Mode
from hccl_py.plugins.executor import Unsuitable
from hccl_py.simulator import simulate
from hccl_py.topology import PRESETS, Topology
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import in_turn
from tests.recording import op_of, recorded

A3 = PRESETS["atlas-900-a3"]
PIPELINES = (AllGatherPipelineFor91093Executor, ReduceScatterPipelineFor91093Executor)


def rings_of(executor: type) -> str:
    """The executor of the same op without a pipeline."""
    op = executor.__name__.removesuffix("PipelineFor91093Executor")
    return f"Aligned{op}DoubleRingFor91093Executor"


def call_of(op: str, count: int, word: str = "ring") -> OpParam:
    return replace(op_of(op, count), level1=word, level2=word)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("word", ["ring", "NHR", "NB"])
@pytest.mark.parametrize("executor", PIPELINES)
def test_rounds_that_overlap_are_right(executor: type, word: str, in_place: bool) -> None:
    """In unfriendly interleavings, where a half may be used again too early."""
    for devices, servers in ((4, (1, 1)), (3, (2, 2)), (2, (1, 1, 1))):
        topology = Topology(A3, (devices,) * sum(servers), servers)
        call = replace(call_of(executor.op, 400, word), in_place=in_place)  # type: ignore[attr-defined]
        program = recorded(executor, call, topology, 2 * topology.size * 384 + 200)
        assert program.rounds == 5
        assert verify(program, product=topology.product).ok
        assert run_numeric(program, in_turn(devices)).wrong is None


@pytest.mark.parametrize("executor", PIPELINES)
def test_the_shorter_stage_is_hidden(executor: type) -> None:
    """r·max(t2, t) + min(t2, t), where rings alone take r(t2 + t)."""
    topology, op = Topology(A3, (4,) * 4, (2, 2)), executor.op  # type: ignore[attr-defined]
    slot = 1 << 20

    def time(name: str | type, rounds: int, halves: int) -> float:
        program = recorded(name, call_of(op, rounds * slot // 4), topology, halves * 16 * slot)
        assert program.rounds == rounds
        return simulate(program, topology, find_cost("study", "")).total_us

    first, second = time(executor, 1, 2), time(executor, 2, 2)
    longer = second - first
    shorter = first - longer
    assert 0 < shorter < longer
    assert time(executor, 5, 2) == pytest.approx(5 * longer + shorter)
    assert time(rings_of(executor), 5, 1) == pytest.approx(5 * first, rel=0.01)


@pytest.mark.parametrize("executor", PIPELINES)
@pytest.mark.parametrize(
    ("servers", "mode", "word", "reason"),
    [
        ((1, 1), Mode.GRAPH, "ring", "op-base mode only"),
        ((2,), Mode.OP_BASE, "ring", "needs several superpods"),
        ((1, 1), Mode.OP_BASE, "AHC", "AHC joins superpods"),
        ((2, 1), Mode.OP_BASE, "ring", "superpods alike"),
    ],
)
def test_refusals(
    executor: type, servers: tuple[int, ...], mode: Mode, word: str, reason: str
) -> None:
    topology = Topology(A3, (4,) * sum(servers), servers)
    call = replace(call_of(executor.op, 8, word), mode=mode)  # type: ignore[attr-defined]
    refusal = executor().suits(call, topology)
    assert isinstance(refusal, Unsuitable)
    assert reason in refusal.reason
