"""What executors for one purpose request is what HCCL's request, and where not, why not."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_executors.all_gather.small_count import AllGatherSmallCount
from hccl_executors.all_gather_v.mesh import (
    AllGatherVMeshExecutor,
    AllGatherVMeshGraphExecutor,
    AllGatherVMeshOpbaseExecutor,
)
from hccl_executors.all_reduce.doubling import AllReduceDoubling
from hccl_executors.all_reduce.doubling_direct import AllReduceDoublingDirect
from hccl_executors.all_reduce.mesh_mid_count_loop import AllReduceMeshMidCountLoopExecutor
from hccl_executors.all_reduce.mesh_oneshot_loop import AllReduceMeshOneshotLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_loop import AllReduceMeshOpbaseLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_small_count import (
    AllReduceMeshOpbaseSmallCountDeterministicExecutor,
)
from hccl_executors.all_reduce.mesh_small_count import AllReduceMeshSmallCountExecutor
from hccl_executors.all_reduce.order_preserved import AllReduceOrderPreservedExecutor
from hccl_executors.all_reduce.reduce_plus_bcast import AllReduceReducePlusBcast
from hccl_executors.all_reduce.small_count_for_910 import AllReduceSmallCountFor910
from hccl_executors.broadcast.plus_broadcast import BroadcastPlusBroadcast
from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_executors.flat_v import AllGatherVComm, ReduceScatterVComm
from hccl_executors.inference import AllGatherSlimRingFor310PExecutor, ReduceScatterSlimRing
from hccl_executors.mid_counts import (
    AllGatherMidCountFor91093Executor,
    AllReduceMidCountFor91093Executor,
    BroadcastMidCountFor91093Executor,
)
from hccl_executors.reduce_scatter.deter import ReduceScatterDeterExecutor
from hccl_executors.reduce_scatter.mesh_dma_elimination import (
    ReduceScatterMeshDmaEliminationExecutor,
)
from hccl_executors.reduce_scatter.mesh_opbase_small_count import (
    ReduceScatterMeshOpbaseSmallCountDeterministicExecutor,
)
from hccl_executors.reduce_scatter.order_preserved import ReduceScatterOrderPreservedExecutor
from hccl_executors.reduce_scatter_v.mesh import ReduceScatterVMeshExecutor
from hccl_executors.reduce_scatter_v.mesh_opbase import ReduceScatterVMeshOpbaseExecutor
from hccl_py.enums import Buffer, Mode
from hccl_py.orchestration.rank import RankView
from hccl_py.plugins.executor import with_levels
from hccl_py.plugins.resources import ResourceRequest
from hccl_py.topology import Topology, topology_of
from tests.recording import filled, op_of

CCL = 200 << 20
COUNT = 1000
SIZE = 4 * COUNT
ROOM = 4096
"""SIZE, rounded up to 128 bytes."""

OWN = (None, None)
"""CCL_In and CCL_Out in op-base mode, the input and the output in graph mode: O and G."""

OUT = (Buffer.USER_OUT, Buffer.SCRATCH)
IN = (Buffer.USER_IN, Buffer.SCRATCH)
CCLS, BOTH = (Buffer.CCL_IN, Buffer.CCL_OUT), (Buffer.SCRATCH, Buffer.SCRATCH)


class Row(NamedTuple):
    """What one rank of `ranks` requests for 1000 elements each of fp32, or of another type."""

    executor: Any
    ranks: int
    subs: int
    max_bytes: int
    scratch: int = 0
    memories: tuple[Buffer | None, Buffer | None] = OWN
    mode: Mode = Mode.OP_BASE
    dtype: str = "fp32"


GRAPH = Mode.GRAPH

AS_HCCL = [
    *(
        Row(executor, n, n - 1, CCL)
        for executor in (
            AllReduceMeshMidCountLoopExecutor,
            AllReduceMeshOneshotLoopExecutor,
            ReduceScatterMeshDmaEliminationExecutor,
            ReduceScatterVMeshOpbaseExecutor,
        )
        for n in (2, 4, 8)
    ),
    *(Row(AllReduceMeshOpbaseLoopExecutor, n, n - 1, CCL * n) for n in (2, 4, 8)),
    Row(AllReduceMeshOneshotLoopExecutor, 8, 6, CCL, mode=GRAPH),
    Row(AllReduceMeshMidCountLoopExecutor, 8, 6, CCL, mode=GRAPH),
    *(Row(AllReduceMeshSmallCountExecutor, n, n - 1, CCL) for n in (2, 5, 8)),
    *(Row(AllReduceMeshSmallCountExecutor, n, n - 2, CCL, mode=GRAPH) for n in (2, 5, 8)),
    Row(AllReduceReducePlusBcast, 4, 0, CCL),
    Row(AllReduceReducePlusBcast, 4, 0, CCL, mode=GRAPH),
    Row(BroadcastPlusBroadcast, 4, 0, CCL),
    Row(BroadcastPlusBroadcast, 4, 0, CCL, mode=GRAPH),
    Row(AllReduceDoubling, 4, 0, CCL),
    Row(AllReduceDoublingDirect, 4, 0, CCL),
    *(Row(AllReduceSmallCountFor910, 8, 0, CCL, dtype=dtype) for dtype in ("int32", "int64")),
    Row(ReduceScatterDeterExecutor, 5, 4, (CCL - 16384 * 5) // 4 // 4 // 16384 * 16384 * 4),
    Row(
        ReduceScatterDeterExecutor,
        8,
        6,
        (CCL - 16384 * 8) // 28 // 16384 * 65536,
        8 * SIZE,
        IN,
        GRAPH,
    ),
    *(
        Row(executor, 6, 0, CCL // 6 // 128 * 128)
        for executor in (AllGatherSlimRingFor310PExecutor, ReduceScatterSlimRing)
    ),
    Row(AllGatherVMeshOpbaseExecutor, 8, 7, (CCL - 16384) // 128 * 128),
    Row(AllGatherVMeshExecutor, 8, 6, CCL, mode=GRAPH),
    Row(AllGatherVMeshGraphExecutor, 8, 6, CCL, mode=GRAPH),
    Row(AllGatherVComm, 8, 0, CCL // 8),
    Row(ReduceScatterVComm, 8, 0, CCL // 8),
    Row(AllGatherSmallCount, 16, 3, CCL // 16 * 4),
    Row(AllGatherSmallCount, 10, 3, CCL // (4 * 10) * 4 * 2),
    Row(AllGatherSmallCount, 5, 3, CCL // 5),
    Row(AllGatherSmallCount, 16, 3, CCL // 16 * 4, mode=GRAPH),
    Row(BroadCastSmallCountExecutor, 16, 1, CCL, memories=(Buffer.CCL_IN, Buffer.CCL_IN)),
    Row(
        BroadCastSmallCountExecutor,
        16,
        1,
        CCL,
        3 * SIZE,
        (Buffer.USER_OUT, Buffer.USER_OUT),
        GRAPH,
    ),
]

OTHERWISE = [
    # Raw data lands beside in graph mode where links cannot reduce: HCCL flags that as well.
    Row(AllReduceReducePlusBcast, 4, 0, CCL, 2 * SIZE, OUT, GRAPH, "int64"),
    # 63 places of 64 bytes do not fit 4 000 bytes of output.
    Row(AllReduceMeshMidCountLoopExecutor, 64, 62, CCL, SIZE + 64 * 4, IN, GRAPH),
    # The partner reads a copy while the sum changes.
    Row(AllReduceDoubling, 4, 0, CCL, SIZE, OUT, GRAPH),
    # HCCL takes 2/p of a buffer, in bytes, for elements.
    Row(ReduceScatterDeterExecutor, 4, 3, CCL * 2 // 4),
    Row(ReduceScatterDeterExecutor, 8, 7, CCL * 2 // 8),
    # Without inline reduce CCL_In holds a chunk of everybody.
    Row(ReduceScatterMeshDmaEliminationExecutor, 8, 7, CCL // 8, dtype="int64"),
    # All blocks, c(1 + r mod 3) elements, each at a multiple of 128 bytes.
    Row(ReduceScatterVMeshExecutor, 4, 2, CCL, ROOM + 8064 + 12032 + ROOM, IN, GRAPH),
    Row(ReduceScatterVComm, 4, 0, CCL // 4, ROOM + 8064 + 12032 + ROOM, IN, GRAPH),
    # Seven streams write, four add; in graph mode HCCL has scratch for reduce-scatters only.
    Row(AllReduceOrderPreservedExecutor, 8, 11, CCL, memories=CCLS),
    Row(AllReduceOrderPreservedExecutor, 8, 11, CCL, 2 * 8 * 512, BOTH, GRAPH),
    Row(AllReduceOrderPreservedExecutor, 2, 2, CCL, memories=CCLS),
    Row(ReduceScatterOrderPreservedExecutor, 8, 11, CCL // 8, memories=CCLS),
    Row(ReduceScatterOrderPreservedExecutor, 8, 11, CCL // 8, 8 * 4000, IN, GRAPH),
]


def requested(row: Row, topology: Topology, ccl_bytes: int = CCL) -> ResourceRequest:
    executor = row.executor()
    op = with_levels(
        executor,
        filled(op_of(executor.op, COUNT, row.dtype, mode=row.mode), topology.size),
    )
    request: ResourceRequest = executor.resources(
        op, RankView(np.arange(topology.size), op, topology, ccl_bytes)
    )
    return request


def _named(row: Row) -> str:
    return f"{row.executor.__name__}-{row.ranks}-{row.mode.value}-{row.dtype}"


@pytest.mark.parametrize("row", AS_HCCL + OTHERWISE, ids=_named)
def test_requests(row: Row) -> None:
    request = requested(row, topology_of(row.ranks, preset="mesh"))
    unit = op_of("all_reduce", dtype=row.dtype).unit
    assert request.sub_streams == row.subs
    assert request.notify_count == 2 * row.subs
    assert request.max_count == row.max_bytes // unit
    assert request.scratch_bytes == row.scratch
    assert {(plane.input_mem, plane.output_mem) for plane in request.planes} == {row.memories}


@pytest.mark.parametrize(
    ("preset", "ranks", "mode", "subs", "slots", "scratch"),
    [
        ("atlas-800t-a2", 2, GRAPH, 0, 1, 0),
        ("atlas-800t-a2", 5, Mode.OP_BASE, 4, 4, 0),
        ("atlas-800t-a2", 5, GRAPH, 3, 4, 4),
        ("atlas-800t-a2", 8, Mode.OP_BASE, 7, 1, 0),
        ("atlas-900-a3", 8, Mode.OP_BASE, 7, 3, 0),
        ("atlas-900-a3", 8, GRAPH, 6, 3, 3),
        ("atlas-900-a3", 10, GRAPH, 8, 4, 4),
        ("atlas-900-a3", 16, GRAPH, 14, 4, 4),
    ],
)
def test_small_all_reduce_in_a_fixed_order(
    preset: str, ranks: int, mode: Mode, subs: int, slots: int, scratch: int
) -> None:
    """A2: p - 1 inputs in scratch from 3 to 7 ranks; A3: ⌊log2(2p - 1)⌋. CCL_Out has as many in
    op-base mode, of which HCCL does not take rounds.
    """
    op = replace(op_of("all_reduce", COUNT, mode=mode), deterministic=True)
    topology = topology_of(ranks, preset=preset)
    view = RankView(np.arange(ranks), op, topology, CCL)
    request = AllReduceMeshSmallCountExecutor().resources(op, view)
    assert request.sub_streams == subs
    assert request.scratch_bytes == scratch * SIZE
    assert request.max_count == CCL // slots // 4
    memories = {(plane.input_mem, plane.output_mem) for plane in request.planes}
    assert memories == {IN if scratch else OWN}


@pytest.mark.parametrize("executor", [AllGatherSlimRingFor310PExecutor, ReduceScatterSlimRing])
def test_slim_rings_have_notifies_for_eight_ranks(executor: Any) -> None:
    request = requested(Row(executor, 0, 0, CCL), topology_of(3, preset="300i-duo"))
    assert [plane.extra_notifies for plane in request.planes] == [8]
    refused = executor().suits(op_of(executor.op), topology_of(9, preset="mesh"))
    assert refused.reason == "has a notify for every step: 8 ranks, there are 9"


@pytest.mark.parametrize(
    ("servers", "devices", "subs", "parts"),
    [(2, 8, 0, 1), (3, 3, 2, 2), (4, 6, 5, 5), (2, 2, 0, 1), (5, 1, 0, 1)],
)
def test_small_all_reduce_over_several_servers(
    servers: int, devices: int, subs: int, parts: int
) -> None:
    """Where devices are no power of two, one collects from all others: a stream for each."""
    row = Row(AllReduceMeshOpbaseSmallCountDeterministicExecutor, 0, subs, CCL)
    request = requested(row, topology_of(servers=servers, devices=devices))
    assert request.sub_streams == subs
    assert request.max_count == CCL // parts // 4
    assert request.scratch_bytes == 0


@pytest.mark.parametrize(
    ("servers", "devices", "subs"), [(2, 8, 1), (3, 6, 0), (2, 2, 1), (5, 1, 1)]
)
def test_small_reduce_scatter_over_several_servers(servers: int, devices: int, subs: int) -> None:
    row = Row(ReduceScatterMeshOpbaseSmallCountDeterministicExecutor, 0, subs, CCL)
    request = requested(row, topology_of(servers=servers, devices=devices))
    assert request.sub_streams == subs
    assert request.max_count == CCL // (4 * servers * devices)
    assert request.scratch_bytes == 0


@pytest.mark.parametrize(
    ("executor", "ccl", "elements"),
    [
        (AllReduceMidCountFor91093Executor, CCL, CCL // 16384 // 4 * 16384),
        (AllReduceMidCountFor91093Executor, 60_000, 15_000),
        (AllGatherMidCountFor91093Executor, CCL, CCL // 12 // 16384 // 4 * 16384),
        (BroadcastMidCountFor91093Executor, CCL + 5000, CCL // 4),
    ],
)
def test_middle_counts_over_superpods(executor: Any, ccl: int, elements: int) -> None:
    topology = topology_of(superpods=3, servers=2, devices=2, preset="atlas-900-a3")
    request = requested(Row(executor, 0, 0, CCL), topology, ccl)
    assert (request.sub_streams, request.scratch_bytes) == (0, 0)
    assert request.max_count == elements
    flat, pods = request.planes
    assert (flat.level, pods.level, pods.pattern) == ("flat", "level2", "nhr")
    assert flat.pattern(5, 12) == [4, 6, 7]  # type: ignore[operator]


def test_deterministic_reduce_scatter_over_several_servers() -> None:
    topology = topology_of(servers=2, devices=8, preset="atlas-900-a3")
    request = requested(Row(ReduceScatterDeterExecutor, 16, 3, CCL), topology)
    assert request.sub_streams == 3
    assert request.max_count == CCL * 2 // 16 // 4
    assert request.scratch_bytes == 0
    assert [plane.level for plane in request.planes] == ["flat"]


def test_small_buffers_still_take_a_round() -> None:
    """HCCL's 16 KiB of every chunk do not fit 32 KiB; rounds of 128 bytes do."""
    row = Row(ReduceScatterDeterExecutor, 7, 6, 0)
    assert requested(row, topology_of(7), 32 << 10).max_count == (32 << 10) // 6 // 128 * 128 // 4


@pytest.mark.parametrize("row", [*AS_HCCL[:3], Row(AllGatherSmallCount, 1, 0, CCL)], ids=_named)
def test_one_rank_requests_no_stream(row: Row) -> None:
    request = requested(row, topology_of(1))
    assert (request.sub_streams, request.scratch_bytes) == (0, 0)
