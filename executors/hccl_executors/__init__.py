"""The algorithms that come with hccl-py, through the same door that plugins use."""

from hccl_executors.all_gather.comm import AllGatherComm
from hccl_executors.all_gather.mesh_opbase import AllGatherMeshOpbaseExecutor
from hccl_executors.all_reduce.comm import AllReduceComm
from hccl_executors.all_reduce.mesh_opbase_loop import AllReduceMeshOpbaseLoopExecutor

__all__ = ["EXECUTORS"]

EXECUTORS = (
    AllGatherMeshOpbaseExecutor,
    AllGatherComm,
    AllReduceMeshOpbaseLoopExecutor,
    AllReduceComm,
)
