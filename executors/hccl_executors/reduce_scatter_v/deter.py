"""ReduceScatterVDeterExecutor: ReduceScatterDeterExecutor with chunks that differ in size."""

from hccl_executors.reduce_scatter.deter import Deter

__all__ = ["ReduceScatterVDeterExecutor"]


class ReduceScatterVDeterExecutor(Deter):
    """ReduceScatterV whose sums do not depend on timing; HCCL has it for one server."""

    op = "reduce_scatter_v"
