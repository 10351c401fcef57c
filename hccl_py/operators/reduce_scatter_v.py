"""ReduceScatterV: every rank gets its part of the reduction of all inputs; parts differ in size."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.operators.base import Array, reduced
from hccl_py.operators.blocks import BlockOperator
from hccl_py.operators.parts import blocks_of
from hccl_py.topology.topology import Topology


class ReduceScatterV(BlockOperator):
    """Part r, `counts[r]` elements at `displs[r]` of every input, reduced, goes to rank r."""

    facts = OPS["reduce_scatter_v"]
    blocks_in_input = True

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse prod, too, and int64 on A2."""
        super().check(op, topology)
        product = topology.product
        if op.reduce is ReduceOp.PROD and topology.product.device != "950":
            raise NotSupportedError(
                f"{op.name} on {product.title} does not take prod.", "It takes sum, max and min."
            )
        if op.dtype is DataType.INT64 and product.device == "910B":
            raise NotSupportedError(
                f"{op.name} on {product.title} does not take int64.", "Use int32 or fp32."
            )

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the reduction for rank r."""
        counts, displs = blocks_of(op, len(inputs))
        total = reduced(op, inputs)
        blocks = zip(displs.tolist(), counts.tolist(), strict=True)
        return [total[displ : displ + count] for displ, count in blocks]
