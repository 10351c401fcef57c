"""The verdict on two calls: whether the same elements get the same bits for all inputs.

Element e of a rank's output in one call is held against element e + `shift` of the same rank's in
the other, as far as both have it. Equal trees give equal bits for all inputs; trees that differ are
only said to differ where an input shows it (`bit_witness.py`). Where a sum is made in the order of
arrival, not even two runs of one call need to agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from hccl_py.enums import ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.numerics.element_trees import ElementTrees, order_matters
from hccl_py.numerics.sum_trees import SumTree
from hccl_py.values import IntArray


class Bits(Enum):
    """The bits of two calls: proved to be the same for all inputs, shown to differ, left to the
    order of arrival, or neither proved nor shown to differ.
    """

    SAME = "same"
    DIFFER = "differ"
    OPEN = "open"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TreePair:
    """Elements with a tree in one call and another in the other: how many, and the first of them
    (`element` counts in the first call).
    """

    one: SumTree
    other: SumTree
    elements: int
    rank: int
    element: int

    @property
    def bits(self) -> Bits:
        """The verdict on these elements, by their trees alone."""
        if not (self.one.is_fixed and self.other.is_fixed):
            return Bits.OPEN
        return Bits.SAME if self.one == self.other else Bits.DIFFER


@dataclass(frozen=True)
class Sameness:
    """The verdict on two calls, the number of elements that were held against each other, and the
    pairs of trees that they have.
    """

    bits: Bits
    reason: str
    elements: int
    pairs: tuple[TreePair, ...]

    @property
    def changed(self) -> tuple[TreePair, ...]:
        """The pairs whose bits are not the same."""
        return tuple(pair for pair in self.pairs if pair.bits is not Bits.SAME)


def same_trees(one: ElementTrees, other: ElementTrees, *, shift: int = 0) -> Sameness:
    """Hold the elements of two calls against each other.

    Raises ParameterError for calls that do not reduce the same way.
    """
    _check_alike(one, other)
    pairs = _pairs(one, other, shift)
    elements = sum(pair.elements for pair in pairs)
    if not elements:
        raise ParameterError(
            "The two calls have no element in common.", "Give a smaller shift, or other sizes."
        )
    if not order_matters(one.op):
        return Sameness(Bits.SAME, always_same(one), elements, ())
    found = {pair.bits for pair in pairs}
    if Bits.DIFFER in found:
        return Sameness(Bits.DIFFER, "their summation trees differ", elements, pairs)
    if Bits.OPEN in found:
        reason = "sums are made in the order of arrival, so that two runs of one call may differ"
        return Sameness(Bits.OPEN, reason, elements, pairs)
    return Sameness(Bits.SAME, "every element has the same summation tree", elements, pairs)


def always_same(trees: ElementTrees) -> str:
    """Return the reason why the order of a reduction does not change its result."""
    op = trees.op
    if op.reduce in (ReduceOp.MAX, ReduceOp.MIN):
        text = f"{op.reduce.spelling} picks one of its operands, in any order the same value"
        if op.dtype.is_float:
            text += "; only the sign of a zero and the payload of a NaN may be another operand's"
        return text
    return f"{op.dtype.value} wraps around, and such sums and products do not depend on the order"


def _check_alike(one: ElementTrees, other: ElementTrees) -> None:
    a, b = one.op, other.op
    for what, left, right in (
        ("data types", a.dtype.value, b.dtype.value),
        ("reductions", a.reduce, b.reduce),
        ("ops", a.name, b.name),
        ("numbers of ranks", one.ranks, other.ranks),
    ):
        if left != right:
            raise ParameterError(
                f"The two calls have different {what}: {_word(left)} and {_word(right)}.",
                "Their elements are sums of other values: compare calls that add the same.",
            )


def _word(value: object) -> str:
    return value.spelling if isinstance(value, ReduceOp) else str(value)


def _pairs(one: ElementTrees, other: ElementTrees, shift: int) -> tuple[TreePair, ...]:
    """Return the pairs of trees of elements that both calls have."""
    span = int(max(one.stop.max(initial=0), other.stop.max(initial=0)) + abs(shift)) + 1
    a_start, a_stop = one.rank * span + one.start, one.rank * span + one.stop
    b_start = other.rank * span + other.start - shift
    b_stop = other.rank * span + other.stop - shift
    cuts = np.unique(np.concatenate([a_start, a_stop, b_start, b_stop]))
    low, size = cuts[:-1], np.diff(cuts)
    a, in_a = _covering(a_start, a_stop, low)
    b, in_b = _covering(b_start, b_stop, low)
    kept = np.flatnonzero(in_a & in_b)
    low, size, a, b = low[kept], size[kept], a[kept], b[kept]
    keys = one.tree[a] * len(other.trees) + other.tree[b]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    counts = np.bincount(which.reshape(-1), weights=size.astype(np.float64)).astype(np.int64)
    return tuple(
        TreePair(
            one.trees[int(one.tree[a[at]])],
            other.trees[int(other.tree[b[at]])],
            int(count),
            *map(int, divmod(low[at], span)),
        )
        for at, count in sorted(zip(first.tolist(), counts.tolist(), strict=True))
    )


def _covering(
    start: IntArray, stop: IntArray, at: IntArray
) -> tuple[IntArray, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """Return by place the range that covers it, and whether one does; ranges are in order."""
    found = np.searchsorted(start, at, side="right") - 1
    return found, (found >= 0) & (at < stop[np.maximum(found, 0)])
