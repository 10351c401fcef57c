"""Barrier: no rank goes on before all ranks have come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import BARRIER_COUNT, OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators.all_reduce import AllReduce
from hccl_py.operators.base import Array, Variant
from hccl_py.topology.topology import Topology


class Barrier(AllReduce):
    """HCCL's AllReduce of 8 fp32 elements on internal buffers, with its executors and tag; on an
    Ascend 950 news alone.
    """

    facts = OPS["barrier"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse anything but a sum of 8 fp32 elements."""
        super().check(op, topology)
        given = (op.count, op.dtype, op.reduce)
        if op.count and given != (BARRIER_COUNT, DataType.FP32, ReduceOp.SUM):
            raise ParameterError(
                f"barrier communicates a sum of {BARRIER_COUNT} fp32 elements, nothing else.",
                "Leave size, data type and reduce op out.",
            )

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return 8 for any size."""
        return BARRIER_COUNT

    def variants(self) -> tuple[Variant, ...]:
        """Return the one call of the op, which ignores the count."""
        return (lambda op, ranks: replace(op, count=BARRIER_COUNT),)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return None for every rank: a barrier has no result, only its all-reduce has."""
        return [None] * len(inputs)
