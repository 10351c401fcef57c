"""What all_gather_v and reduce_scatter_v share: one block per rank, each of its own size."""

from __future__ import annotations

from typing import Any

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import Buffer
from hccl_py.operators.base import Operator, Variant, divided, lanes
from hccl_py.operators.parts import blocks_of, check_blocks, spread_blocks
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.topology.topology import Topology
from hccl_py.values import PerRank


class BlockOperator(Operator):
    """`counts[r]` elements belong to rank r; in the buffer with all blocks they begin at
    `displs[r]`.
    """

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


def bound_blocks(
    op: OpParam, rank: CallRank[Any, Any], own: Buffer, every: Buffer, start: int, count: int
) -> tuple[Region, Chunks]:
    """Return a round's elements of a rank's own block, alone in one buffer, and of all blocks in
    the other.
    """
    counts, displs = blocks_of(op, rank.size)
    mine = counts[lanes(rank)]
    size = np.clip(mine - start, 0, count) * op.unit
    offset = np.minimum(start, mine) * op.unit
    region = Region(own, PerRank.of(offset), PerRank.of(size))
    return region, divided(every, op, displs[None], counts[None], start, count)
