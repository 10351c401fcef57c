"""ReduceScatterVMeshOpbaseExecutor: everybody adds to everybody's landing place."""

from hccl_executors.reduce_scatter.mesh_dma_elimination import DmaElimination

__all__ = ["ReduceScatterVMeshOpbaseExecutor"]


class ReduceScatterVMeshOpbaseExecutor(DmaElimination):
    """ReduceScatterV inside one full mesh, in op-base mode; blocks lie apart in user memory
    only.
    """

    op = "reduce_scatter_v"
