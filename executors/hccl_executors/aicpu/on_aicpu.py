"""The base of all executors of the Ascend 950's AI CPU."""

from __future__ import annotations

from typing import ClassVar

from hccl_py.plugins.executor import BaseExecutor, Mode, OpParam, Topology, Unsuitable, require

TRANSFER = 256 << 20
"""Bytes that one transfer takes at most (UB_MAX_DATA_SIZE)."""


class OnAicpu(BaseExecutor):
    """An executor of the Ascend 950. `on_the_way` says that links reduce."""

    op: str
    on_the_way: ClassVar[bool] = False

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        reduces = op.reduce is None or topology.reduces_inline(op.dtype, op.reduce)
        return require(
            (topology.product.device == "950", "is an executor of the Ascend 950"),
            (topology.size > 1, "exchanges data, which one rank does not"),
            (op.mode is Mode.OP_BASE, "op-base mode only"),
            (reduces or not self.on_the_way, "needs links that reduce this data type"),
        )


class BesideClos(OnAicpu):
    """An executor for one server in which a Clos network joins the devices of its mesh, too."""

    cluster = "ascend950-clos"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        alone = len(topology.servers) == 1 and topology.product.bus.lone_clos
        reason = "needs a single server with a Clos network beside its mesh"
        return require((alone, reason)) and super().suits(op, topology)
