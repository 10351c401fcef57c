"""Ops of which one count says all amounts, those of a root too; and the barrier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import BARRIER_COUNT, OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators.base import Array, Operator, Variant, only_root, reduced, same
from hccl_py.operators.parts import refuse_others
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray


class AllReduce(Operator):
    """`count` elements in, `count` elements out."""

    facts = OPS["all_reduce"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the reduction for every rank."""
        return [reduced(op, inputs)] * len(inputs)


class AllGather(Operator):
    """`count` elements per rank in, `count` times ranks out."""

    facts = OPS["all_gather"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the inputs in rank order, for every rank."""
        return [np.concatenate(inputs)] * len(inputs)


class ReduceScatter(Operator):
    """`count` times ranks elements in, `count` elements out."""

    facts = OPS["reduce_scatter"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the reduction for rank r."""
        return list(np.split(reduced(op, inputs), len(inputs)))


class Broadcast(Operator):
    """`count` elements everywhere; HCCL has one buffer, which is both input and output in place."""

    facts = OPS["broadcast"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the root's input for every rank."""
        return [inputs[op.root or 0]] * len(inputs)


class Reduce(Operator):
    """`count` elements in, as many out; only the root's output has a meaning."""

    facts = OPS["reduce"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the reduction for the root; the others' outputs may hold anything."""
        outputs: list[Array | None] = [None] * len(inputs)
        outputs[op.root or 0] = reduced(op, inputs)
        return outputs


class Scatter(Operator):
    """`count` times ranks elements in at the root, `count` elements out everywhere."""

    facts = OPS["scatter"]

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input, at the root only, and output."""
        return only_root(ranks, op.root, op.size * ranks), same(op.size, ranks)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the root's input for rank r."""
        return list(np.split(inputs[op.root or 0], len(inputs)))


class Gather(Operator):
    """`count` elements per rank in, `count` times ranks out at the root."""

    facts = OPS["gather"]

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input, and output at the root only."""
        return same(op.size, ranks), only_root(ranks, op.root, op.size * ranks)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the inputs in rank order for the root, nothing for the others."""
        outputs: list[Array | None] = [np.zeros(0, inputs[0].dtype)] * len(inputs)
        outputs[op.root or 0] = np.concatenate(inputs)
        return outputs


class AllToAll(Operator):
    """`count` times ranks elements in, as many out."""

    facts = OPS["all_to_all"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse amounts that differ."""
        super().check(op, topology)
        refuse_others(op, "counts", "displs", "matrix")

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of all inputs for rank r."""
        parts = np.stack(inputs).reshape(len(inputs), len(inputs), -1)
        return [parts[:, rank].reshape(-1) for rank in range(len(inputs))]


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
