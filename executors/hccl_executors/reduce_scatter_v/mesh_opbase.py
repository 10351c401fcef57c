"""ReduceScatterVMeshOpbaseExecutor: everybody adds to everybody's landing place."""

from hccl_executors.reduce_scatter.mesh_dma_elimination import DmaElimination
from hccl_executors.sources import hccl_executor
from hccl_py.fidelity import ours, same

__all__ = ["ReduceScatterVMeshOpbaseExecutor"]


class ReduceScatterVMeshOpbaseExecutor(DmaElimination):
    """ReduceScatterV inside one full mesh, in op-base mode; blocks lie apart in user memory
    only.
    """

    op = "reduce_scatter_v"
    fidelity = same(
        hccl_executor("coll_reduce_scatter_v/coll_reduce_scatter_v_mesh_opbase_executor.cc"),
    ).with_cases({"local_reduce": ours("HCCL's is for links that reduce on their way only.")})
