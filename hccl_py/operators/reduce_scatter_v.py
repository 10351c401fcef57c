"""ReduceScatterV: every rank gets its part of the reduction of all inputs; parts differ in size."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.operators.base import Array, reduced, same
from hccl_py.operators.blocks import BlockOperator, bound_blocks
from hccl_py.operators.parts import blocks_of, end_of
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray


class ReduceScatterV(BlockOperator):
    """Part r, `counts[r]` elements at `displs[r]` of every input, reduced, goes to rank r."""

    facts = OPS["reduce_scatter_v"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse prod too, and int64 on A2."""
        super().check(op, topology)
        product = topology.product
        if op.reduce is ReduceOp.PROD:
            raise NotSupportedError(
                f"{op.name} on {product.title} does not take prod.", "It takes sum, max and min."
            )
        if op.dtype is DataType.INT64 and product.device == "910B":
            raise NotSupportedError(
                f"{op.name} on {product.title} does not take int64.", "Use int32 or fp32."
            )

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        counts, displs = blocks_of(op, ranks)
        return same(end_of(counts, displs) * op.unit, ranks), counts * op.unit

    def bind(self, op: OpParam, rank: CallRank[Chunks, Region], start: int, count: int) -> None:
        """Cut the input to one chunk per rank and the output to a region of the rank's size."""
        rank.user_out, rank.user_in = bound_blocks(
            op, rank, Buffer.USER_OUT, Buffer.USER_IN, start, count
        )

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the reduction for rank r."""
        counts, displs = blocks_of(op, len(inputs))
        total = reduced(op, inputs)
        blocks = zip(displs.tolist(), counts.tolist(), strict=True)
        return [total[displ : displ + count] for displ, count in blocks]
