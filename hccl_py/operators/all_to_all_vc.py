"""AllToAllVC: as AllToAllV, with one matrix of amounts that every rank knows, packed."""

from __future__ import annotations

from dataclasses import replace

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.all_to_all_v import AllToAllV, mixed_amounts, sparse_amounts
from hccl_py.operators.base import Operator, Variant
from hccl_py.operators.parts import check_numbers, refuse_others
from hccl_py.topology.topology import Topology


class AllToAllVC(AllToAllV):
    """`matrix[i][j]` elements go from rank i to rank j; parts lie packed in rank order."""

    facts = OPS["all_to_all_vc"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse a matrix that is not ranks x ranks, and displacements."""
        Operator.check(self, op, topology)
        refuse_others(op, "counts", "displs")
        check_numbers(op, "matrix", op.matrix, (topology.size, topology.size))

    def variants(self) -> tuple[Variant, ...]:
        """Return amounts that differ by pair, and some that are empty."""
        return (
            lambda op, ranks: replace(op, matrix=mixed_amounts(op.count, ranks)),
            lambda op, ranks: replace(op, matrix=sparse_amounts(op.count, ranks)),
        )
