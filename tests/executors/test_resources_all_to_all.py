"""The resources of the all_to_all family and of messages: those of HCCL's own, row by row.

HCCL has two planes in BatchSendRecv, where it cuts every message by itself, as it does with the
parts of all_to_all; send and receive are calls of their own there, each with its link.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_executors.all_to_all.continuous_pipeline import RunAlltoAllVContinuousPipeline
from hccl_executors.all_to_all.direct_full_mesh import RunAlltoAllDirectFullmesh
from hccl_executors.all_to_all.for_310p import RunAlltoAllVFor310PExecutor
from hccl_executors.all_to_all.full_mesh import RunAlltoAllVFullMesh
from hccl_executors.all_to_all.pipeline_for_91093 import RunAlltoAllVPipelineFor91093
from hccl_executors.all_to_all.staged import RunAlltoAllVStaged
from hccl_executors.all_to_all.two_level_pipeline import RunAlltoAllVTwoLevelPipeline
from hccl_executors.batch_send_recv.batch_send_recv import BatchSendRecv
from hccl_executors.batch_send_recv.group import BatchSendRecvGroup
from hccl_executors.send_recv.send import SendExecutor
from hccl_py.enums import Buffer, DataType, Mode
from hccl_py.plugins.executor import OpParam, RankView
from hccl_py.topology import Topology, topology_of
from tests.recording import filled

CCL = 1 << 20
UNIT = 4
SMALL, LARGE = 100, 100_000
"""Elements for each rank: all of them fit the CCL buffers, or do not."""

A2 = topology_of(servers=2, devices=8)
A3 = topology_of(servers=2, devices=16, preset="atlas-900-a3")
PODS = topology_of(superpods=2, servers=1, devices=4, preset="atlas-900-a3")
BIG_POD = topology_of(servers=3, devices=16, preset="atlas-900-a3")
SCRATCH = 16 * SMALL * UNIT


class Row(NamedTuple):
    """What one rank asks for."""

    executor: type[Any]
    op: str
    topology: Topology
    mode: Mode
    amount: int
    planes: tuple[str, ...]
    subs: int | tuple[int, int]
    scratch: int
    most: int | None


OP_BASE, GRAPH = Mode.OP_BASE, Mode.GRAPH
FAMILY = "all_to_all"
FLAT, LEVELS, WIDE = ("flat",), ("level0", "level1"), ("level0", "level12")
FULL, STAGED = RunAlltoAllVFullMesh, RunAlltoAllVStaged
PIPELINE, DIRECT = RunAlltoAllVTwoLevelPipeline, RunAlltoAllDirectFullmesh
CONTINUOUS, OF_PODS = RunAlltoAllVContinuousPipeline, RunAlltoAllVPipelineFor91093
DUO = topology_of(4, preset="300i-duo")
FULL_PODS = topology_of(superpods=2, servers=1, devices=16, preset="atlas-900-a3")
TINY, BUSIEST = 2 << 20, 16 * LARGE * UNIT
"""What staged scratch is at least in op-base mode, and what a rank hands on of large data."""

TABLE = (
    Row(FULL, FAMILY, A2, OP_BASE, SMALL, FLAT, 0, 0, None),
    Row(FULL, FAMILY, A2, OP_BASE, LARGE, FLAT, 0, 0, None),
    Row(FULL, FAMILY, A3, OP_BASE, LARGE, FLAT, 31, 0, None),
    Row(FULL, FAMILY, A3, GRAPH, LARGE, FLAT, 0, 0, None),
    Row(FULL, FAMILY, BIG_POD, OP_BASE, LARGE, FLAT, 0, 0, None),
    Row(FULL, FAMILY, PODS, OP_BASE, LARGE, FLAT, 0, 0, None),
    Row(STAGED, FAMILY, A2, OP_BASE, SMALL, LEVELS, 6, TINY, None),
    Row(STAGED, FAMILY, A2, GRAPH, SMALL, LEVELS, 6, SCRATCH, None),
    Row(STAGED, FAMILY, A2, OP_BASE, LARGE, LEVELS, 0, BUSIEST, None),
    Row(STAGED, FAMILY, PODS, OP_BASE, SMALL, WIDE, 0, TINY, None),
    Row(STAGED, FAMILY, topology_of(8), OP_BASE, SMALL, ("level0",), 6, 0, None),
    Row(PIPELINE, FAMILY, A2, OP_BASE, SMALL, LEVELS, 8, TINY, None),
    Row(PIPELINE, FAMILY, A2, GRAPH, SMALL, LEVELS, 8, SCRATCH, None),
    Row(CONTINUOUS, "all_to_all_v", A2, OP_BASE, LARGE, LEVELS, 8, 0, None),
    Row(OF_PODS, FAMILY, PODS, OP_BASE, LARGE, ("level0", "level2"), 4, 0, None),
    Row(OF_PODS, FAMILY, FULL_PODS, OP_BASE, LARGE, ("level0", "level2"), 9, 0, None),
    Row(DIRECT, FAMILY, A3, OP_BASE, SMALL, FLAT, 16, 0, None),
    Row(DIRECT, FAMILY, PODS, OP_BASE, SMALL, FLAT, 8 + 2, 0, None),
    Row(DIRECT, FAMILY, topology_of(8), OP_BASE, SMALL, FLAT, 16, 0, None),
    Row(RunAlltoAllVFor310PExecutor, FAMILY, DUO, GRAPH, SMALL, FLAT, (2, 1), 0, None),
    Row(SendExecutor, "send_recv", A2, OP_BASE, SMALL, ("flat", "back"), 0, 0, CCL // UNIT),
    Row(BatchSendRecv, "batch_send_recv", A2, OP_BASE, SMALL, ("flat", "back"), 1, 0, None),
    Row(BatchSendRecvGroup, "batch_send_recv", A2, OP_BASE, SMALL, ("flat", "back"), 18, 0, None),
)  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.executor.__name__}-{row.subs}")
def test_resources(row: Row) -> None:
    op = replace(OpParam(row.op, row.amount, DataType.FP32), mode=row.mode)
    op = filled(op, row.topology.size)
    subs = row.subs if isinstance(row.subs, tuple) else (row.subs, row.subs)
    for rank, wanted in zip((0, row.topology.size - 1), subs, strict=True):
        view = RankView(np.array([rank]), op, row.topology, CCL)
        asked = row.executor().resources(op, view)
        assert tuple(plane.level for plane in asked.planes) == row.planes
        assert (asked.sub_streams, asked.notify_count) == (wanted, 2 * wanted)
        assert (asked.scratch_bytes, asked.max_count) == (row.scratch, row.most)


@pytest.mark.parametrize(
    ("executor", "mode", "first", "last"),
    [
        (STAGED, OP_BASE, (Buffer.CCL_IN, Buffer.SCRATCH), (Buffer.SCRATCH, Buffer.CCL_OUT)),
        (STAGED, GRAPH, (Buffer.USER_IN, Buffer.SCRATCH), (Buffer.SCRATCH, Buffer.USER_OUT)),
        (PIPELINE, OP_BASE, (Buffer.CCL_OUT, Buffer.CCL_OUT), (Buffer.CCL_IN, Buffer.CCL_OUT)),
        (PIPELINE, GRAPH, (Buffer.SCRATCH, Buffer.SCRATCH), (Buffer.USER_IN, Buffer.SCRATCH)),
    ],
)
def test_memories(
    executor: type[Any], mode: Mode, first: tuple[Buffer, ...], last: tuple[Buffer, ...]
) -> None:
    op = OpParam(FAMILY, SMALL, DataType.FP32, mode=mode)
    planes = executor().resources(op, RankView(np.array([0]), op, A2, CCL)).planes
    assert [(plane.input_mem, plane.output_mem) for plane in planes] == [first, last]
