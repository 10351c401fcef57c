"""AllGatherV: every rank gets the inputs of all ranks, which differ in size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, Variant, divided, lanes, same
from hccl_py.operators.parts import blocks_of, check_blocks, end_of, spread_blocks
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, PerRank

__all__ = ["AllGatherV"]


class AllGatherV(Operator):
    """`counts[r]` elements in at rank r; they lie at `displs[r]` of everyone's output."""

    name = "all_gather_v"
    in_place = False

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse illegal amounts too."""
        super().check(op, topology)
        check_blocks(op, topology.size)

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count whose usual amounts, c(1 + r mod 3), gather `size` bytes, rounded up."""
        return -(-size // (sum(1 + rank % 3 for rank in range(ranks)) * unit))

    def variants(self) -> tuple[Variant, ...]:
        """Return amounts that grow and repeat, some that are empty, and blocks with gaps."""
        return spread_blocks()

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        counts, displs = blocks_of(op, ranks)
        return counts * op.unit, same(end_of(counts, displs) * op.unit, ranks)

    def bind(self, op: OpParam, rank: Rank[Region, Chunks], start: int, count: int) -> None:
        """Cut the input to a region of the rank's size and the output to one chunk per rank."""
        counts, displs = blocks_of(op, rank.size)
        mine = counts[lanes(rank)]
        size = np.clip(mine - start, 0, count) * op.unit
        offset = np.minimum(start, mine) * op.unit
        rank.user_in = Region(Buffer.USER_IN, PerRank.of(offset), PerRank.of(size))
        rank.user_out = divided(Buffer.USER_OUT, op, displs[None], counts[None], start, count)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return all inputs at their displacements; gaps stay zero."""
        counts, displs = blocks_of(op, len(inputs))
        whole = np.zeros(end_of(counts, displs), inputs[0].dtype)
        for block, displ in zip(inputs, displs.tolist(), strict=True):
            whole[displ : displ + block.size] = block
        return [whole] * len(inputs)

    def bus_factor(self, ranks: int) -> float:
        """Return (p - 1) / p."""
        return (ranks - 1) / ranks
