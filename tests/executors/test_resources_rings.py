"""The resources of ring and pipeline executors: those of HCCL's own, row by row."""

from dataclasses import replace
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from hccl_executors import graph_pipelines, inference, pipelines, stars
from hccl_executors.rings import blocks, concurrent, semi, servers, superpods
from hccl_py.enums import Buffer, Mode, ReduceOp
from hccl_py.orchestration.rank import RankView
from hccl_py.plugins.executor import Executor, ResourceRequest, Topology, with_levels
from hccl_py.topology import PRESETS, topology_of
from tests.executors.calls import executors_of
from tests.recording import filled, op_of

CCL = 1 << 20
COUNT = 1000
UNIT = 4
RANKS = 16

A2 = topology_of(servers=2, devices=8)
TRAINING = topology_of(servers=2, devices=8, preset="atlas-800-9000")
DIES = topology_of(servers=4, devices=4, preset="atlas-900-a3")
SINGLE_RING = Topology(PRESETS["atlas-900-a3"], (1,) * RANKS)
ONE_DIE_EACH = Topology.placed(
    PRESETS["atlas-900-a3"], np.repeat(range(4), 4), np.tile([0, 2, 4, 6], 4)
)

MODULES = (servers, superpods, concurrent, semi, pipelines, graph_pipelines, inference, stars)
EXECUTORS: dict[str, type[Executor]] = {cls.__name__: cls for cls in executors_of(*MODULES)}


def names_of(module: ModuleType) -> tuple[str, ...]:
    """Return the names of the executors that are written in a module."""
    return tuple(executor.__name__ for executor in executors_of(module))


SUPERPODS = names_of(superpods)

SLOT = CCL // (RANKS * UNIT)
PACKED = CCL // RANKS // 128 * 128 // UNIT
WHOLE = CCL // UNIT
SLOTS = RANKS * COUNT * UNIT


class Row(NamedTuple):
    """What one of 16 ranks asks for, for 1000 elements of fp32."""

    executor: str
    topology: Topology
    op_base: int
    """Sub streams."""
    graph: int
    loop: int
    """Most elements of one round in op-base mode."""
    scratch: int = 0
    """Bytes in graph mode."""


def rows(topology: Topology, subs: tuple[int, int], *names: str) -> list[Row]:
    """Return rows alike but for what the op asks for."""
    found = []
    for name in names:
        op = str(EXECUTORS[name].op)
        slotted = op in ("all_gather", "reduce_scatter", "scatter")
        scratch = SLOTS if op in ("reduce_scatter", "scatter") else 0
        found.append(Row(name, topology, *subs, SLOT if slotted else WHOLE, scratch))
    return found


SERVER_ROWS = names_of(servers)
HELPED = (
    "AllReduceRingFor91093Executor",
    "AllGatherRingFor91093Executor",
    "ReduceScatterRingFor91093Executor",
    "BroadCastRingFor91093Executor",
    "ReduceRingFor91093Executor",
)
ALIGNED = (
    "AlignedAllReduceDoubleRingFor91093Executor",
    "AlignedAllGatherDoubleRingFor91093Executor",
    "AlignedReduceScatterDoubleRingFor91093Executor",
    "AllReduceFastDoubleRingFor91093Executor",
    "ReduceScatterFastDoubleRingFor91093Executor",
)

TABLE = (
    *rows(A2, (0, 0), *SERVER_ROWS),
    *rows(TRAINING, (3, 3), *SERVER_ROWS),
    *rows(DIES, (3, 1), *HELPED, *ALIGNED),
    *rows(ONE_DIE_EACH, (1, 0), *HELPED),
    *rows(DIES, (1, 1), "ScatterRingFor91093Executor", *names_of(concurrent)),
    *rows(ONE_DIE_EACH, (0, 0), "ScatterRingFor91093Executor"),
    *(row._replace(loop=min(row.loop, WHOLE)) for row in rows(A2, (0, 0), *names_of(inference))),
)
"""HCCL has no scratch for scatter in graph mode, where the root's input is exported instead. The
concurrent rings are ours.
"""


def asked(
    name: str,
    topology: Topology,
    mode: Mode = Mode.OP_BASE,
    reduce: ReduceOp = ReduceOp.SUM,
    ccl: int = CCL,
) -> ResourceRequest:
    executor = EXECUTORS[name]()
    op = filled(op_of(str(executor.op), COUNT, reduce=reduce, mode=mode), topology.size)
    op = with_levels(executor, op)
    request = executor.resources(op, RankView(np.array([0]), op, topology, ccl))
    assert isinstance(request, ResourceRequest)
    return request


def row_id(row: Row) -> str:
    return f"{row.executor}-{row.topology!r}"


@pytest.mark.parametrize("row", TABLE, ids=row_id)
def test_op_base_mode(row: Row) -> None:
    request = asked(row.executor, row.topology)
    assert (request.sub_streams, request.notify_count) == (row.op_base, 2 * row.op_base)
    assert (request.max_count, request.scratch_bytes) == (row.loop, 0)
    assert {(plane.input_mem, plane.output_mem) for plane in request.planes} == {(None, None)}


@pytest.mark.parametrize("row", TABLE, ids=row_id)
def test_graph_mode(row: Row) -> None:
    """Links that cannot reduce on their way (910A's over RDMA) need scratch to land in."""
    request = asked(row.executor, row.topology, Mode.GRAPH, ReduceOp.MAX)
    assert request.sub_streams == row.graph
    op = str(EXECUTORS[row.executor].op)
    lands = row.topology is TRAINING and op in ("all_reduce", "reduce", "reduce_scatter")
    alone = SLOTS if op == "reduce_scatter" else COUNT * UNIT
    assert request.scratch_bytes == row.scratch + (alone if lands else 0)
    memories = {(plane.input_mem, plane.output_mem) for plane in request.planes}
    own = Buffer.USER_IN if op in ("reduce_scatter", "scatter") else Buffer.USER_OUT
    assert memories == {(own, Buffer.SCRATCH) if request.scratch_bytes else (None, None)}


@pytest.mark.parametrize("row", TABLE, ids=row_id)
def test_planes(row: Row) -> None:
    planes = {plane.level for plane in asked(row.executor, row.topology).planes}
    if row.executor in names_of(inference):
        assert planes == {"flat"}
        return
    extra = {"level12"} if row.executor in names_of(concurrent) else set()
    assert planes == {*row.topology.rings, "level1", *extra}


def test_links_between_superpods() -> None:
    topology = Topology(PRESETS["atlas-900-a3"], (4,) * 4, (2, 2))
    for name in SUPERPODS:
        planes = {plane.level for plane in asked(name, topology).planes}
        assert planes == {"ring0", "ring1", "level1", "level2"}


@pytest.mark.parametrize(
    ("place", "level1", "subs", "peers"),
    [
        ((8, 4), "ring", 1, {0: [1, 3, 4, 8], 5: [1, 4, 6, 9]}),
        ((8, 4), "NHR", 0, {0: [1, 2, 4, 8, 10], 5: [1, 3, 4, 7, 9]}),
    ],
)
def test_rings_of_blocks(
    place: tuple[int, ...], level1: str, subs: int, peers: dict[int, list[int]]
) -> None:
    """Blocks of 4 with two rings and a ring between them, and of 2 with NHR."""
    topology = Topology(PRESETS["atlas-900-a3"], place)
    executor = blocks.AllGatherARSFor91093Executor()
    op = replace(with_levels(executor, op_of("all_gather", COUNT)), level1=level1)
    request = executor.resources(op, RankView(np.arange(12), op, topology, CCL))
    assert request.sub_streams == subs
    assert request.max_count == CCL // 12 // 128 * 128 // UNIT
    assert [plane.level for plane in request.planes] == [*("flat", "back")[: 1 + subs], "flat"]
    for rank, wanted in peers.items():
        flat = [plane for plane in request.planes if plane.level == "flat"]
        found = {peer for plane in flat for peer in plane.pattern(rank, 12)}  # type: ignore[operator]
        assert sorted(found) == wanted


@pytest.mark.parametrize("name", SUPERPODS)
def test_helpers_are_requested_even_where_they_have_nothing_to_do(name: str) -> None:
    """As HCCL does: twice the rings in op-base mode, less main."""
    pairs = topology_of(servers=2, devices=4, preset="atlas-900-a3")
    helped = str(EXECUTORS[name].op) != "scatter"
    assert asked(name, pairs).sub_streams == (3 if helped else 1)
    if name in HELPED:
        assert asked(name, SINGLE_RING).sub_streams == 1


@pytest.mark.parametrize("name", names_of(semi))
def test_semi_rings(name: str) -> None:
    for devices in (2, 8, 16):
        request = asked(name, topology_of(devices, preset="atlas-900-a3"))
        assert [plane.level for plane in request.planes] == ["level0"]
        assert request.planes[0].pattern == "mesh"
        assert request.planes[0].extra_notifies == devices + 4
        assert (request.sub_streams, request.notifies) == (2, 2 * 2 + devices + 4)
        assert request.max_count == CCL // (devices * UNIT)
    assert asked(name, topology_of(1, preset="atlas-900-a3")) == ResourceRequest(
        planes=(), max_count=CCL // 128 * 128 // UNIT
    )


@pytest.mark.parametrize(
    ("name", "loop"),
    [
        ("AllGatherMeshOpbasePipelineExecutor", (CCL - 16384) // UNIT),
        ("AllReduceMeshOpbasePipelineExecutor", (CCL - 16384) // UNIT * RANKS),
        (
            "ReduceScatterMeshOpbasePipelineExecutor",
            (CCL // (3 * 16384) * 16384 - 16384) // UNIT,
        ),
        ("AllGatherVMeshOpbasePipelineExecutor", (CCL - 16384) // 128 * 128 // UNIT),
        (
            "ReduceScatterVMeshOpbasePipelineExecutor",
            (CCL // (3 * 16384) * 16384 - 16384) // UNIT,
        ),
    ],
)
def test_pipelines(name: str, loop: int) -> None:
    request = asked(name, A2)
    assert [(plane.level, plane.pattern) for plane in request.planes] == [
        ("level0", "mesh"),
        ("level1", "ring"),
    ]
    assert (request.sub_streams, request.notify_count, request.scratch_bytes) == (8, 16, 0)
    assert request.max_count == loop
    assert asked(name, topology_of(8)).sub_streams == 8


@pytest.mark.parametrize(
    ("name", "subs", "scratch"),
    [
        ("AllGatherMeshGraphPipelineExecutor", 8, 0),
        ("AllGatherVMeshGraphPipelineExecutor", 8, 0),
        ("ReduceScatterMeshGraphPipelineExecutor", 8, SLOTS),
        ("AllReduceMeshGraphPipelineExecutor", 7, COUNT * UNIT),
    ],
)
def test_pipelines_of_graph_mode(name: str, subs: int, scratch: int) -> None:
    """HCCL asks for no scratch: its sums overwrite the input."""
    request = asked(name, A2, Mode.GRAPH)
    assert [(plane.level, plane.pattern) for plane in request.planes] == [
        ("level0", "mesh"),
        ("level1", "ring"),
    ]
    assert (request.sub_streams, request.notify_count) == (subs, 2 * subs)
    assert request.scratch_bytes == scratch


def test_small_buffers_are_cut_in_three_without_room() -> None:
    request = asked("ReduceScatterMeshOpbasePipelineExecutor", A2, ccl=64 << 10)
    assert request.max_count == (64 << 10) // 3 // 128 * 128 // UNIT


@pytest.mark.parametrize("name", names_of(stars))
def test_stars(name: str) -> None:
    request = asked(name, A2)
    assert request.sub_streams == 0
    (plane,) = request.planes
    assert plane.level == "flat"
    assert callable(plane.pattern)
    assert sorted(plane.pattern(0, 4)) == [1, 2, 3]
    assert list(plane.pattern(3, 4)) == [0]
