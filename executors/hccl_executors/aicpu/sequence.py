"""Executors of one level after the other: a row names the op's machinery and its source."""

from __future__ import annotations

from typing import Any

from hccl_executors.aicpu.in_turn_blocks import (
    InTurnAllGather,
    InTurnAllGatherOverPods,
    InTurnReduceScatter,
    InTurnScatter,
)
from hccl_executors.aicpu.in_turn_pieces import (
    InTurnAllReduce,
    InTurnAllReduceInPod,
    InTurnBroadcast,
    InTurnReduce,
)
from hccl_executors.aicpu.on_aicpu import BesideClos
from hccl_executors.sources import SCATTER_NHR, like_ascend950, over_tree
from hccl_py.plugins.executor import Topology, Unsuitable


def _files(path: str) -> Any:
    return like_ascend950(path)


class AicpuAllReduceSoleMeshConcur(BesideClos, InTurnAllReduceInPod):
    """AllReduce of large data in a server with a Clos network beside its mesh: one level."""

    algorithm = "level0:mesh"
    on_the_way = False
    fidelity = _files("all_reduce/executor/ins_v2_all_reduce_two_shot_sole_executor")

    def has_levels(self, topology: Topology) -> bool | Unsuitable:
        return True


class AicpuAllGatherSequenceMeshConcurNHRNHR(InTurnAllGatherOverPods):
    """AllGather over superpods."""

    fidelity = _files("all_gather/executor/ins_v2_all_gather_sequence_executor_3level")


class AicpuAllReduceSequenceMeshConcurNHRNHR(InTurnAllReduce):
    """AllReduce over superpods."""

    fidelity = _files("all_reduce/executor/ins_v2_all_reduce_sequence_executor_aicpu_3level")


class AicpuReduceScatterSequenceMeshConcurNHRNHR(InTurnReduceScatter):
    """ReduceScatter over superpods."""

    fidelity = _files("reduce_scatter/executor/ins_v2_reduce_scatter_sequence_executor_3level")


class AicpuReduceSequenceMesh1DNHRNHR(InTurnReduce):
    """Reduce over superpods."""

    fidelity = _files("reduce/executor/reduce_sequence_executor_aicpu_3level")


class AicpuBroadcastSequenceMesh1dNHRNHR(InTurnBroadcast):
    """Broadcast over superpods."""

    fidelity = over_tree(
        _files("broadcast/executor/ins_v2_broadcast_sequence_executor_aicpu_3level"), SCATTER_NHR
    )


class AicpuScatterSequenceMeshConcurNHRNHR(InTurnScatter):
    """Scatter over superpods."""

    fidelity = over_tree(
        _files("scatter/executor/scatter_sequence_aicpu_executor_3level"), SCATTER_NHR
    )


class AicpuAllGatherSequenceMeshConcurNHR(InTurnAllGather):
    """AllGather of large data over the servers of a superpod."""

    algorithm = "level0:mesh;level1:NHR"
    in_pod = True
    fidelity = _files("all_gather/executor/ins_v2_all_gather_sequence_executor_aicpu")


class AicpuReduceScatterSequenceMeshConcurNHR(InTurnReduceScatter):
    """ReduceScatter of large data over the servers of a superpod."""

    algorithm = "level0:mesh;level1:NHR"
    in_pod = True
    fidelity = _files("reduce_scatter/executor/ins_v2_reduce_scatter_sequence_executor_aicpu")


class AicpuAllReduceSequenceMeshConcurNHR(InTurnAllReduceInPod):
    """AllReduce of very large data over the servers of a superpod."""

    algorithm = "level0:mesh;level1:NHR"
    fidelity = _files("all_reduce/executor/ins_v2_all_reduce_sequence_executor_aicpu")
