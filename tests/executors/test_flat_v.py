"""V-ops: all algorithms with blocks that differ, on every layout."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.all_gather_v.mesh import (
    AllGatherVMeshExecutor,
    AllGatherVMeshGraphExecutor,
    AllGatherVMeshOpbaseExecutor,
)
from hccl_executors.flat_v import AllGatherVComm, ReduceScatterVComm
from hccl_executors.reduce_scatter_v.deter import ReduceScatterVDeterExecutor
from hccl_executors.reduce_scatter_v.mesh import ReduceScatterVMeshExecutor
from hccl_executors.reduce_scatter_v.mesh_opbase import ReduceScatterVMeshOpbaseExecutor
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.plugins.executor import OpParam, Unsuitable, choices_of
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from tests.recording import op_of, recorded

EVERYWHERE: list[Any] = [AllGatherVComm, ReduceScatterVComm]
ONE_MESH: list[Any] = [
    AllGatherVMeshGraphExecutor,
    AllGatherVMeshOpbaseExecutor,
    ReduceScatterVMeshExecutor,
    ReduceScatterVMeshOpbaseExecutor,
]
MESHES: list[Any] = [AllGatherVMeshExecutor, ReduceScatterVDeterExecutor]
"""One in every server."""


@given(
    servers=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    dtype=st.sampled_from([DataType.FP32, DataType.INT8, DataType.FP64]),
    mode=st.sampled_from(Mode),
    adversary=st.sampled_from(Adversary),
    data=st.data(),
)
def test_all_blocks_arrive(
    servers: list[int],
    dtype: DataType,
    mode: Mode,
    adversary: Adversary,
    data: st.DataObject,
) -> None:
    topology = Topology(topology_of(preset="mesh").product, tuple(servers))
    sizes = st.lists(st.integers(0, 200), min_size=topology.size, max_size=topology.size)
    counts = data.draw(sizes, "counts")
    gaps = data.draw(sizes, "gaps")
    displs = tuple(sum(counts[:r]) + sum(gaps[: r + 1]) for r in range(topology.size))
    ops = {
        name: OpParam(name, 0, dtype, reduce, mode=mode, counts=tuple(counts), displs=displs)
        for name, reduce in (("all_gather_v", None), ("reduce_scatter_v", ReduceOp.SUM))
    }
    every = EVERYWHERE + ONE_MESH + MESHES
    suiting = [executor for executor in every if executor().suits(ops[executor.op], topology)]
    executor = data.draw(st.sampled_from(suiting), "executor")
    level1 = data.draw(st.sampled_from(choices_of(executor()).get("level1", ("",))), "level1")
    op = replace(ops[executor.op], level1=level1)
    assert executor().suits(op, topology)
    program = recorded(executor, op, topology, (1 << 12) + (1 << 14))
    report = verify(program, product=topology.product)
    assert report.ok, [finding.message for finding in report.errors]
    assert run_numeric(program, [Schedule(7, adversary)]).wrong is None


def test_servers_exchange_blocks_as_one() -> None:
    """In graph mode, where blocks stay in the output; HCCL leaves out gaps between them."""
    op = replace(op_of("all_gather_v", mode=Mode.GRAPH), counts=(1, 2, 3, 4))
    where, executor = topology_of(servers=2, devices=2), AllGatherVMeshExecutor()
    assert executor.suits(op, where)
    gaps = replace(op, displs=(0, 1, 4, 7))
    refusal = executor.suits(gaps, where)
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "needs blocks side by side, in order: servers exchange theirs as one"
    assert executor.suits(replace(gaps, mode=Mode.OP_BASE), where)
    assert executor.suits(gaps, topology_of(4))


@pytest.mark.parametrize(
    ("executor", "mode", "servers", "reason"),
    [
        (AllGatherVMeshGraphExecutor, Mode.OP_BASE, 1, "graph mode only"),
        (AllGatherVMeshOpbaseExecutor, Mode.GRAPH, 1, "op-base mode only"),
        (ReduceScatterVMeshExecutor, Mode.OP_BASE, 1, "graph mode only"),
        (ReduceScatterVMeshOpbaseExecutor, Mode.GRAPH, 2, "op-base mode only"),
    ],
)
def test_refusals(executor: Any, mode: Mode, servers: int, reason: str) -> None:
    topology = topology_of(servers=servers, devices=2)
    refusal = executor().suits(op_of(executor.op, mode=mode), topology)
    assert isinstance(refusal, Unsuitable)
    assert reason in refusal.reason
