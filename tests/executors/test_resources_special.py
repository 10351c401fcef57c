"""What executors for one purpose request is what HCCL's request, and where not, why not."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_executors.all_gather.small_count import AllGatherSmallCount
from hccl_executors.all_gather_v.mesh import AllGatherVMeshExecutor
from hccl_executors.all_gather_v.mesh_opbase import AllGatherVMeshOpbaseExecutor
from hccl_executors.all_reduce.doubling import AllReduceDoubling
from hccl_executors.all_reduce.doubling_direct import AllReduceDoublingDirect
from hccl_executors.all_reduce.mesh_mid_count_loop import AllReduceMeshMidCountLoopExecutor
from hccl_executors.all_reduce.mesh_oneshot_loop import AllReduceMeshOneshotLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_loop import AllReduceMeshOpbaseLoopExecutor
from hccl_executors.all_reduce.mesh_small_count import AllReduceMeshSmallCountExecutor
from hccl_executors.all_reduce.order_preserved import AllReduceOrderPreservedExecutor
from hccl_executors.all_reduce.reduce_plus_bcast import AllReduceReducePlusBcast
from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_executors.flat_v import AllGatherVComm, ReduceScatterVComm
from hccl_executors.reduce_scatter.deter import ReduceScatterDeterExecutor
from hccl_executors.reduce_scatter.mesh_dma_elimination import (
    ReduceScatterMeshDmaEliminationExecutor,
)
from hccl_executors.reduce_scatter.order_preserved import ReduceScatterOrderPreservedExecutor
from hccl_executors.reduce_scatter_v.mesh import ReduceScatterVMeshExecutor
from hccl_executors.reduce_scatter_v.mesh_opbase import ReduceScatterVMeshOpbaseExecutor
from hccl_py.enums import Buffer, Mode
from hccl_py.executor import with_levels
from hccl_py.orchestration.rank import RankView
from hccl_py.resources import ResourceRequest
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
            AllReduceMeshSmallCountExecutor,
            AllReduceMeshMidCountLoopExecutor,
            AllReduceMeshOneshotLoopExecutor,
            ReduceScatterMeshDmaEliminationExecutor,
            ReduceScatterVMeshOpbaseExecutor,
        )
        for n in (2, 4, 8)
    ),
    *(Row(AllReduceMeshOpbaseLoopExecutor, n, n - 1, CCL * n) for n in (2, 4, 8)),
    Row(AllReduceMeshOneshotLoopExecutor, 8, 6, CCL, mode=GRAPH),
    Row(AllReduceMeshSmallCountExecutor, 5, 3, CCL, ROOM * 4, OUT, GRAPH),
    Row(AllReduceMeshSmallCountExecutor, 8, 6, CCL, mode=GRAPH),
    Row(AllReduceReducePlusBcast, 4, 0, CCL),
    Row(AllReduceReducePlusBcast, 4, 0, CCL, mode=GRAPH),
    Row(AllReduceDoubling, 4, 0, CCL),
    Row(AllReduceDoublingDirect, 4, 0, CCL),
    Row(ReduceScatterDeterExecutor, 4, 3, (CCL - 16384 * 4) // 4 // 3 // 16384 * 16384 * 4),
    Row(ReduceScatterDeterExecutor, 8, 7, (CCL - 16384 * 8) // 4 // 7 // 16384 * 16384 * 4),
    Row(AllGatherVMeshOpbaseExecutor, 8, 7, (CCL - 16384) // 128 * 128),
    Row(AllGatherVMeshExecutor, 8, 6, CCL, mode=GRAPH),
    Row(AllGatherVComm, 8, 0, CCL // 8),
    Row(ReduceScatterVComm, 8, 0, CCL // 8),
    Row(AllGatherSmallCount, 16, 3, CCL // 16 * 4),
    Row(AllGatherSmallCount, 10, 3, CCL // (4 * 10) * 4 * 2),
    Row(AllGatherSmallCount, 5, 3, CCL // 5),
    Row(AllGatherSmallCount, 16, 3, CCL // 16 * 4, mode=GRAPH),
    Row(BroadCastSmallCountExecutor, 16, 1, CCL),
    Row(BroadCastSmallCountExecutor, 16, 1, CCL, mode=GRAPH),
]

OTHERWISE = [
    # Raw data lands beside in graph mode where links cannot reduce: HCCL flags that as well.
    Row(AllReduceMeshOneshotLoopExecutor, 8, 6, CCL, 2 * SIZE, OUT, GRAPH, "int64"),
    Row(AllReduceMeshSmallCountExecutor, 8, 6, CCL, 2 * SIZE, OUT, GRAPH, "int64"),
    Row(AllReduceReducePlusBcast, 4, 0, CCL, 2 * SIZE, OUT, GRAPH, "int64"),
    # Chunks have to lie beside each other before they are reduced: not in the caller's input.
    Row(AllReduceMeshMidCountLoopExecutor, 8, 6, CCL, 7 * 512, OUT, GRAPH),
    # The partner reads a copy while the sum changes.
    Row(AllReduceDoubling, 4, 0, CCL, SIZE, OUT, GRAPH),
    # One chunk of everybody, each at a multiple of 128 bytes.
    Row(
        ReduceScatterDeterExecutor,
        8,
        6,
        (CCL - 16384 * 8) // 28 // 16384 * 65536,
        8 * ROOM,
        IN,
        GRAPH,
    ),
    # Without inline reduce CCL_In holds a chunk of everybody.
    Row(ReduceScatterMeshDmaEliminationExecutor, 8, 7, CCL // 8, dtype="int64"),
    # All blocks, c(1 + r mod 3) elements, each at a multiple of 128 bytes.
    Row(ReduceScatterVMeshExecutor, 4, 2, CCL, ROOM + 8064 + 12032 + ROOM, IN, GRAPH),
    Row(ReduceScatterVComm, 4, 0, CCL // 4, ROOM + 8064 + 12032 + ROOM, IN, GRAPH),
    # HCCL says nothing of what its order-preserving executors request.
    Row(AllReduceOrderPreservedExecutor, 8, 7, CCL),
    Row(AllReduceOrderPreservedExecutor, 8, 6, CCL, 8 * 512, OUT, GRAPH),
    Row(ReduceScatterOrderPreservedExecutor, 8, 7, CCL // 8),
    Row(ReduceScatterOrderPreservedExecutor, 8, 6, CCL // 8, 8 * ROOM, IN, GRAPH),
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


def test_deterministic_reduce_scatter_over_several_servers() -> None:
    topology = topology_of(servers=2, devices=8, preset="atlas-900-a3")
    request = requested(Row(ReduceScatterDeterExecutor, 16, 3, CCL), topology)
    assert request.sub_streams == 3
    assert request.max_count == CCL * 2 // 16 // 4
    assert request.scratch_bytes == 0
    assert [plane.level for plane in request.planes] == ["flat"]


def test_small_buffers_still_take_a_round() -> None:
    """HCCL's 16 KiB of every chunk do not fit 32 KiB; rounds of 128 bytes do."""
    row = Row(ReduceScatterDeterExecutor, 8, 7, 0)
    assert requested(row, topology_of(8), 32 << 10).max_count == (32 << 10) // 7 // 128 * 128 // 4


@pytest.mark.parametrize("row", [*AS_HCCL[:3], Row(AllGatherSmallCount, 1, 0, CCL)], ids=_named)
def test_one_rank_requests_no_stream(row: Row) -> None:
    request = requested(row, topology_of(1))
    assert (request.sub_streams, request.scratch_bytes) == (0, 0)
