"""Operators: the legal parameters of an op, its memory per round, and its right result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OpFacts
from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, PerRank, values_of

Array = npt.NDArray[Any]

Variant = Callable[[OpParam, int], OpParam]
"""Fills in a call that has a count only: a root, or amounts that differ by rank."""

MAX_COUNT = 0x7FFFFFFFF
"""SYS_MAX_COUNT: elements that one call may move."""


class Operator(ABC):
    """One collective. Counts are elements of `OpParam.count`, sizes bytes. By default every rank
    has `count` elements in and as many out, or one slot of `count` per rank where the op's row in
    `hccl_py.call.ops` says so.
    """

    facts: ClassVar[OpFacts]

    @property
    def name(self) -> str:
        """The op's name."""
        return self.facts.name

    @property
    def reduces(self) -> bool:
        """True if the op takes a reduce op."""
        return self.facts.reduces

    @property
    def rooted(self) -> bool:
        """True if the op takes a root."""
        return self.facts.rooted

    @property
    def in_place(self) -> bool:
        """True if HCCL lets input and output be the same memory."""
        return self.facts.in_place

    def check(self, op: OpParam, topology: Topology) -> None:
        """Raise where HCCL would refuse the parameters; the error carries the HcclResult."""
        if self.reduces:
            check_reduction(op, topology)
        else:
            check_common(op, topology, topology.product.copy_types)
        if op.in_place and not self.in_place:
            raise ParameterError(
                f"{self.name} cannot work in place.", "Give it an output of its own."
            )
        if self.rooted and op.root is None:
            raise ParameterError(f"{self.name} needs a root.", "Name one of the ranks.")

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count of hccl_test's data size in bytes, rounded up."""
        return -(-size // (unit * (ranks if self.facts.has_slots else 1)))

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return the bytes of every rank's input and output, shape [ranks] each."""
        slots_in, slots_out = self.facts.slots_in, self.facts.slots_out
        return (
            same(op.size * (ranks if slots_in else 1), ranks),
            same(op.size * (ranks if slots_out else 1), ranks),
        )

    def data_size(self, op: OpParam, ranks: int) -> int:
        """Return hccl_test's data size: the larger one of a rank's input and output, in bytes."""
        return int(max(part.max() for part in self.user_bytes(op, ranks)))

    def bind(self, op: OpParam, rank: CallRank[Any, Any], start: int, count: int) -> None:
        """Set `rank.user_in` and `rank.user_out` for one round: a region, or one chunk per slot."""
        cut_in = slots if self.facts.slots_in else whole
        cut_out = slots if self.facts.slots_out else whole
        rank.user_in = cut_in(Buffer.USER_IN, op, rank.size, start, count)
        rank.user_out = cut_out(Buffer.USER_OUT, op, rank.size, start, count)

    @abstractmethod
    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return every rank's right output, flat, float sums and products in float64; None where
        any output is right.
        """

    def output_shape(self, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
        """Return the shape of one rank's output for an input of `shape`: slots are joined, and
        inputs cut, along the first axis.
        """
        if self.facts.slots_in == self.facts.slots_out:
            return shape
        if self.facts.slots_in:
            return (shape[0] // ranks, *shape[1:])
        return (ranks * shape[0], *shape[1:]) if shape else (ranks,)

    def variants(self) -> tuple[Variant, ...]:
        """Return the ways to fill in a call that has a count only, the usual one first."""
        if self.rooted:
            return tuple(_with_root(choose) for choose in _ROOTS)
        return (lambda op, ranks: op,)

    def bus_factor(self, ranks: int) -> float:
        """Return bus bandwidth divided by algorithm bandwidth."""
        return self.facts.bus_factor * (ranks - 1) / ranks if self.facts.bus_factor else 1.0

    def bandwidths(self, size: int, time_us: float, ranks: int) -> tuple[float, float]:
        """Return algorithm and bus bandwidth in GB/s, 10^9 bytes of data size per second and the
        bytes that each link carries for them; 0 for a call that takes no time.
        """
        algbw = size / time_us * 1e-3 if time_us else 0.0
        return algbw, algbw * self.bus_factor(ranks)


_ROOTS: tuple[Callable[[int], int], ...] = (
    lambda ranks: 0,
    lambda ranks: ranks // 2,
    lambda ranks: ranks - 1,
)


def _with_root(choose: Callable[[int], int]) -> Variant:
    return lambda op, ranks: replace(op, root=choose(ranks))


def same(size: int, ranks: int) -> IntArray:
    """Return `size` bytes for every rank."""
    return np.full(ranks, size, np.int64)


def only_root(ranks: int, root: int | None, size: int) -> IntArray:
    """Return `size` bytes for the root, by default rank 0, and 0 for every other rank."""
    sizes = np.zeros(ranks, np.int64)
    sizes[root or 0] = size
    return sizes


def lanes(rank: CallRank[Any, Any]) -> IntArray:
    """Return the ids of the batch's ranks."""
    return np.atleast_1d(np.asarray(values_of(rank.id), np.int64))


def whole(buffer: Buffer, op: OpParam, ranks: int, start: int, count: int) -> Region:
    """Return elements start .. start + count of a buffer that is one slot for all `ranks`."""
    return Region(buffer, start * op.unit, count * op.unit)


def slots(buffer: Buffer, op: OpParam, ranks: int, start: int, count: int) -> Chunks:
    """Return elements start .. start + count of each of `ranks` slots of `op.count` elements."""
    offsets = np.arange(ranks, dtype=np.int64) * op.size + start * op.unit
    return Chunks(buffer, offsets[None], np.full((1, ranks), count * op.unit, np.int64))


def divided(
    buffer: Buffer, op: OpParam, displs: IntArray, counts: IntArray, start: int, count: int
) -> Chunks:
    """Return a round's elements of parts of their own sizes, tables [lane or 1, part] in elements;
    parts that end earlier are cut shorter or empty.
    """
    sizes = np.clip(counts - start, 0, count)
    offsets = (displs + np.minimum(start, counts)) * op.unit
    row = PerRank.of(np.arange(len(counts), dtype=np.int64))
    return Chunks(buffer, offsets, sizes * op.unit, row)


UFUNCS = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
}


def reduced(op: OpParam, inputs: Sequence[Array]) -> Array:
    """Return the reduction in rank order; integers wrap as in their type, floats are summed in
    float64.
    """
    assert op.reduce is not None
    total = inputs[0].astype(np.float64) if op.dtype.is_float else inputs[0].copy()
    for other in inputs[1:]:
        total = UFUNCS[op.reduce](total, other.astype(total.dtype))
    return total


def check_common(op: OpParam, topology: Topology, types: frozenset[DataType]) -> None:
    """Check the demands of every op: count in range, data type of the product, root a rank."""
    for count in (op.count, op.extent):
        if count < 0 or count > MAX_COUNT:
            raise ParameterError(
                f"{op.name} has a count of {count}.", f"Counts go from 0 to {MAX_COUNT}."
            )
    if op.dtype not in types:
        raise NotSupportedError(
            f"{op.name} on {topology.product.title} does not take {op.dtype.value}.",
            f"It takes {_format(types)}.",
        )
    if op.root is not None and not 0 <= op.root < topology.size:
        raise ParameterError(
            f"Root {op.root} of {op.name} is not a rank.",
            f"The communicator has ranks 0 to {topology.size - 1}.",
        )


def check_reduction(op: OpParam, topology: Topology) -> None:
    """Check the reduce op, and that the product can do it with this data type."""
    if op.reduce is None:
        raise ParameterError(
            f"{op.name} needs a reduce op.", did_you_mean("", [o.spelling for o in ReduceOp])
        )
    product = topology.product
    check_common(op, topology, product.reduce_types)
    if (op.dtype, op.reduce) not in product.reductions:
        types = frozenset(dtype for dtype, known in product.reductions if known is op.reduce)
        raise NotSupportedError(
            f"{op.name} on {product.title} does not take {op.reduce.spelling} "
            f"with {op.dtype.value}.",
            f"{op.reduce.spelling} takes {_format(types)}.",
        )


@cache
def _format(types: frozenset[DataType]) -> str:
    return ", ".join(t.value for t in DataType if t in types)
