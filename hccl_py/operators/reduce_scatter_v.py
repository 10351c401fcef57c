"""ReduceScatterV: every rank gets its part of the reduction of all inputs; parts differ in size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, Variant, divided, lanes, reduced, same
from hccl_py.operators.parts import blocks_of, check_blocks, end_of, spread_blocks
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, PerRank

__all__ = ["ReduceScatterV"]


class ReduceScatterV(Operator):
    """Part r, `counts[r]` elements at `displs[r]` of every input, reduced, goes to rank r."""

    name = "reduce_scatter_v"
    reduces = True
    in_place = False

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse illegal amounts too, prod, and int64 on A2."""
        super().check(op, topology)
        check_blocks(op, topology.size)
        product = topology.product
        if op.reduce is ReduceOp.PROD:
            raise NotSupportedError(
                f"{op.name} on {product.title} does not take prod.", "It takes sum, max and min."
            )
        if op.dtype is DataType.INT64 and product.device == "910B":
            raise NotSupportedError(
                f"{op.name} on {product.title} does not take int64.", "Use int32 or fp32."
            )

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count whose usual amounts, c(1 + r mod 3), fill `size` bytes, rounded up."""
        return -(-size // (sum(1 + rank % 3 for rank in range(ranks)) * unit))

    def variants(self) -> tuple[Variant, ...]:
        """Return amounts that grow and repeat, some that are empty, and blocks with gaps."""
        return spread_blocks()

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        counts, displs = blocks_of(op, ranks)
        return same(end_of(counts, displs) * op.unit, ranks), counts * op.unit

    def bind(self, op: OpParam, rank: Rank[Chunks, Region], start: int, count: int) -> None:
        """Cut the input to one chunk per rank and the output to a region of the rank's size."""
        counts, displs = blocks_of(op, rank.size)
        mine = counts[lanes(rank)]
        size = np.clip(mine - start, 0, count) * op.unit
        offset = np.minimum(start, mine) * op.unit
        rank.user_in = divided(Buffer.USER_IN, op, displs[None], counts[None], start, count)
        rank.user_out = Region(Buffer.USER_OUT, PerRank.of(offset), PerRank.of(size))

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the reduction for rank r."""
        counts, displs = blocks_of(op, len(inputs))
        total = reduced(op, inputs)
        blocks = zip(displs.tolist(), counts.tolist(), strict=True)
        return [total[displ : displ + count] for displ, count in blocks]

    def bus_factor(self, ranks: int) -> float:
        """Return (p - 1) / p."""
        return (ranks - 1) / ranks
