"""The resources of mesh executors: those of HCCL's own, row by row."""

from typing import NamedTuple

import numpy as np
import pytest

import hccl_executors
from hccl_py.enums import Buffer, Mode, ReduceOp
from hccl_py.orchestration.rank import RankView
from hccl_py.plugins.executor import ResourceRequest, with_levels
from hccl_py.topology import Topology, topology_of
from tests.recording import filled, op_of

CCL = 1 << 20
A2 = (2, 8)
COUNT = 1000
UNIT = 4


class Row(NamedTuple):
    """What one rank of 2 servers x 8 devices asks for, for 1000 elements of fp32."""

    executor: str
    subs: int
    loop: int
    """Most elements of one round in op-base mode."""
    scratch: int = 0
    """Bytes in graph mode."""


SLOT = CCL // 16 // 128 * 128 // UNIT
WHOLE = CCL // UNIT
TABLE = (
    Row("AllReduceMeshExecutor", 6, WHOLE),
    Row("AllReduceMixExecutor", 7, WHOLE),
    Row("AllGatherMeshExecutor", 6, SLOT),
    Row("AllGatherMixExecutor", 7, CCL // 16 // UNIT),
    Row("ReduceScatterMeshExecutor", 6, SLOT, 16 * COUNT * UNIT),
    Row("ReduceScatterMixExecutor", 7, CCL // 16 // UNIT, 16 * COUNT * UNIT),
    Row("BroadCastMeshExecutor", 6, WHOLE),
    Row("BroadCastMixExecutor", 7, WHOLE),
    Row("ReduceMeshExecutor", 6, WHOLE),
    Row("ScatterMeshExecutor", 6, SLOT, 16 * COUNT * UNIT),
    Row("GatherMeshExecutor", 6, SLOT, 16 * COUNT * UNIT),
)
"""HCCL has no scratch for scatter in graph mode, where the root's input is exported instead; gather
is ours.
"""

GRAPH_ONLY = (
    Row("AllGatherMeshGraphExecutor", 6, SLOT, COUNT * UNIT),
    Row("ReduceScatterMeshGraphExecutor", 6, SLOT, 16 * COUNT * UNIT),
)
"""Blocks of an all-gather change places through scratch, in HCCL through the caller's input."""


def asked(
    name: str,
    topology: Topology,
    mode: Mode = Mode.OP_BASE,
    reduce: ReduceOp = ReduceOp.SUM,
    rank: int = 5,
) -> ResourceRequest:
    executor = getattr(hccl_executors, name)()
    op = filled(op_of(executor.op, COUNT, reduce=reduce, mode=mode), topology.size)
    op = with_levels(executor, op)
    request = executor.resources(op, RankView(np.array([rank]), op, topology, CCL))
    assert isinstance(request, ResourceRequest)
    return request


def a2(servers: int = 2, devices: int = 8) -> Topology:
    return topology_of(servers=servers, devices=devices)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.executor)
def test_op_base_mode(row: Row) -> None:
    request = asked(row.executor, a2())
    assert (request.sub_streams, request.notify_count) == (row.subs, 2 * row.subs)
    assert (request.max_count, request.scratch_bytes) == (row.loop, 0)
    assert [plane.level for plane in request.planes] == ["level0", "level1"]
    assert request.planes[0].pattern == "mesh"
    assert all(plane.input_mem is plane.output_mem is None for plane in request.planes)


@pytest.mark.parametrize("row", TABLE + GRAPH_ONLY, ids=lambda row: row.executor)
def test_graph_mode(row: Row) -> None:
    request = asked(row.executor, a2(), Mode.GRAPH)
    assert (request.sub_streams, request.notify_count) == (row.subs, 2 * row.subs)
    assert request.scratch_bytes == row.scratch
    exported = {plane.output_mem for plane in request.planes}
    assert exported == {Buffer.SCRATCH if row.scratch > COUNT * UNIT else None}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("AllReduceMeshExecutor", 1),
        ("ReduceMeshExecutor", 1),
        ("ReduceScatterMeshExecutor", 2 * 16),
    ],
)
def test_graph_mode_has_room_for_what_links_cannot_reduce(name: str, parts: int) -> None:
    """HCCL's table has no such row: it takes scratch of all the input for reduce_scatter only."""
    request = asked(name, a2(), Mode.GRAPH, ReduceOp.PROD)
    assert request.scratch_bytes == parts * COUNT * UNIT


@pytest.mark.parametrize(("devices", "subs"), [(1, 0), (2, 0), (3, 1), (4, 2)])
def test_small_meshes(devices: int, subs: int) -> None:
    assert asked("AllReduceMeshExecutor", a2(8, devices)).sub_streams == subs
    assert asked("AllReduceMixExecutor", a2(8, devices)).sub_streams == devices - 1


def test_a_broadcast_in_one_server_has_a_sub_stream_more_in_op_base_mode() -> None:
    assert asked("BroadCastMeshExecutor", a2(1)).sub_streams == 7
    assert asked("BroadCastMeshExecutor", a2(1), Mode.GRAPH).sub_streams == 6


def test_servers_of_several_superpods_are_one_plane() -> None:
    a3 = topology_of(superpods=2, servers=2, devices=4, preset="atlas-900-a3")
    planes = asked("AllReduceMeshExecutor", a3).planes
    assert [plane.level for plane in planes] == ["level0", "level12"]
