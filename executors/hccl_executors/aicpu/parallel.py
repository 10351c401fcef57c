"""Executors of two templates at a time: a row names the op's machinery and its source."""

from __future__ import annotations

from typing import Any

from hccl_executors.aicpu.seats import board_axes, has_boards
from hccl_executors.aicpu.two_axes import TwoAxes
from hccl_executors.aicpu.two_axes_blocks import (
    TwoAxesAllGather,
    TwoAxesReduceScatter,
    TwoAxesScatter,
)
from hccl_executors.aicpu.two_axes_pieces import TwoAxesAllReduce, TwoAxesBroadcast, TwoAxesReduce
from hccl_executors.aicpu.two_axes_pipeline import PipelinedAllGather
from hccl_executors.sources import SCATTER_NHR, like_ascend950, over_tree
from hccl_py.plugins.executor import Topology, Unsuitable


def _files(op: str, name: str) -> Any:
    return like_ascend950(f"{op}/executor/{name}")


class OnBoards(TwoAxes):
    """The axes of a UBX server: the mesh of a board, and the Clos network across boards."""

    cluster = "ascend950-ubx"
    axes = staticmethod(board_axes)

    def has_axes(self, topology: Topology) -> bool | Unsuitable:
        return has_boards(topology)


class AicpuAllGatherParallelMeshNHR(TwoAxesAllGather):
    """AllGather over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("all_gather", "ins_v2_all_gather_parallel_executor")


class AicpuReduceScatterParallelMeshNHR(TwoAxesReduceScatter):
    """ReduceScatter over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("reduce_scatter", "ins_reduce_scatter_parallel_executor")


class AicpuScatterParallelMeshNHR(TwoAxesScatter):
    """Scatter over servers, in a mesh inside and by NHR between them."""

    fidelity = over_tree(_files("scatter", "ins_v2_scatter_parallel_executor"), SCATTER_NHR)


class AicpuAllReduceParallelMeshNHR(TwoAxesAllReduce):
    """AllReduce over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("all_reduce", "ins_v2_all_reduce_parallel_executor")


class AicpuReduceParallelMeshNHR(TwoAxesReduce):
    """Reduce over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("reduce", "reduce_parallel_executor")


class AicpuBroadcastParallelMeshNHR(TwoAxesBroadcast):
    """Broadcast over servers, in a mesh inside and by NHR between them."""

    fidelity = over_tree(_files("broadcast", "ins_v2_broadcast_parallel_executor"), SCATTER_NHR)


class InsAllGatherParallelMesh1DNHRMultiJetty(OnBoards, AicpuAllGatherParallelMeshNHR):
    """AllGather over the boards of a UBX server."""


class AicpuAllGatherPipeLineUBX(OnBoards, PipelinedAllGather):
    """AllGather of large data over the boards of a UBX server."""

    fidelity = _files("all_gather", "ins_v2_all_gather_omnipipe_executor")


class InsReduceScatterParallelMesh1DNHRUBX(OnBoards, AicpuReduceScatterParallelMeshNHR):
    """ReduceScatter over the boards of a UBX server."""


class InsScatterParallelMesh1DNHRUBX(OnBoards, AicpuScatterParallelMeshNHR):
    """Scatter over the boards of a UBX server."""


class InsAllReduceParallelRSAGUBX(OnBoards, AicpuAllReduceParallelMeshNHR):
    """AllReduce over the boards of a UBX server."""


class ReduceParallelMesh1DNHRUBX(OnBoards, AicpuReduceParallelMeshNHR):
    """Reduce over the boards of a UBX server."""


class InsBroadcastParallelMesh1DNHRUBX(OnBoards, AicpuBroadcastParallelMeshNHR):
    """Broadcast over the boards of a UBX server."""
