"""AllGatherV: every rank gets the inputs of all ranks, which differ in size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer
from hccl_py.operators.base import Array, same
from hccl_py.operators.blocks import BlockOperator, bound_blocks
from hccl_py.operators.parts import blocks_of, end_of
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.values import IntArray


class AllGatherV(BlockOperator):
    """`counts[r]` elements in at rank r; they lie at `displs[r]` of everyone's output."""

    facts = OPS["all_gather_v"]

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        counts, displs = blocks_of(op, ranks)
        return counts * op.unit, same(end_of(counts, displs) * op.unit, ranks)

    def bind(self, op: OpParam, rank: CallRank[Region, Chunks], start: int, count: int) -> None:
        """Cut the input to a region of the rank's size and the output to one chunk per rank."""
        rank.user_in, rank.user_out = bound_blocks(
            op, rank, Buffer.USER_IN, Buffer.USER_OUT, start, count
        )

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return all inputs at their displacements; gaps stay zero."""
        counts, displs = blocks_of(op, len(inputs))
        whole = np.zeros(end_of(counts, displs), inputs[0].dtype)
        for block, displ in zip(inputs, displs.tolist(), strict=True):
            whole[displ : displ + block.size] = block
        return [whole] * len(inputs)
