"""all_gather_v and reduce_scatter_v: one block per rank, each of its own size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.operators.base import Array, Operator, Variant, divided, lanes, reduced, same
from hccl_py.operators.parts import blocks_of, check_blocks, end_of, spread_blocks
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Region
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, PerRank


class BlockOperator(Operator):
    """`counts[r]` elements belong to rank r, which has them alone in one buffer. In the other one,
    the input or the output of every rank, the blocks of all ranks begin at `displs`.
    """

    blocks_in_input: ClassVar[bool]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse illegal amounts too."""
        super().check(op, topology)
        check_blocks(op, topology.size)

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count whose usual amounts, c(1 + r mod 3), fill `size` bytes, rounded up."""
        return -(-size // (sum(1 + rank % 3 for rank in range(ranks)) * unit))

    def variants(self) -> tuple[Variant, ...]:
        """Return amounts that grow and repeat, some that are empty, and blocks with gaps."""
        return spread_blocks()

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        counts, displs = blocks_of(op, ranks)
        own, blocks = counts * op.unit, same(end_of(counts, displs) * op.unit, ranks)
        return (blocks, own) if self.blocks_in_input else (own, blocks)

    def bind(self, op: OpParam, rank: CallRank[Any, Any], start: int, count: int) -> None:
        """Cut the rank's own block to a region, and all blocks to one chunk per rank."""
        own, other = Buffer.USER_IN, Buffer.USER_OUT
        if self.blocks_in_input:
            own, other = other, own
        counts, displs = blocks_of(op, rank.size)
        mine = counts[lanes(rank)]
        size = np.clip(mine - start, 0, count) * op.unit
        offset = np.minimum(start, mine) * op.unit
        region = Region(own, PerRank.of(offset), PerRank.of(size))
        blocks = divided(other, op, displs[None], counts[None], start, count)
        parts = (blocks, region) if self.blocks_in_input else (region, blocks)
        rank.user_in, rank.user_out = parts


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


class AllGatherV(BlockOperator):
    """`counts[r]` elements in at rank r; they lie at `displs[r]` of everyone's output."""

    facts = OPS["all_gather_v"]
    blocks_in_input = False

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return all inputs at their displacements; gaps stay zero."""
        counts, displs = blocks_of(op, len(inputs))
        whole = np.zeros(end_of(counts, displs), inputs[0].dtype)
        for block, displ in zip(inputs, displs.tolist(), strict=True):
            whole[displ : displ + block.size] = block
        return [whole] * len(inputs)
