"""AllGatherVMeshExecutor: AllGatherVMeshGraphExecutor by the name that it had until 2025."""

from hccl_executors.all_gather_v.mesh_graph import AllGatherVMeshGraphExecutor
from hccl_executors.sources import hccl_executor
from hccl_py.fidelity import same

__all__ = ["AllGatherVMeshExecutor"]


class AllGatherVMeshExecutor(AllGatherVMeshGraphExecutor):
    """AllGatherV inside one full mesh, in graph mode."""

    fidelity = same(
        hccl_executor("coll_all_gather_v/coll_all_gather_v_mesh_graph_executor.cc"),
    )
