"""AllGatherV: every rank gets the inputs of all ranks, which differ in size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array
from hccl_py.operators.blocks import BlockOperator
from hccl_py.operators.parts import blocks_of, end_of


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
