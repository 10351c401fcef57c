"""Summation trees: which rank's value enters a sum where, and the type that each hop rounds to.

A leaf is a rank's input. A node reduces two parts in one data type; a node of more parts adds all
but the first one in the order in which they arrive, and a node of one part rounds it: a sum that
was made in fp32. Two trees are equal if they are the same up to
the order of the two operands of a node: IEEE 754 demands that a + b and b + a have the same bits
(only which of two NaNs is handed on may differ). Trees are compared by digest, so that they may
come from programs of different releases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators.base import UFUNCS

Array = npt.NDArray[Any]

SIGNS = {ReduceOp.SUM: "+", ReduceOp.PROD: "*", ReduceOp.MAX: "max", ReduceOp.MIN: "min"}


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class SumTree:
    """A rank's input (`rank`), or `parts` reduced in `dtype`: what lay there, and what came to it.
    One part is rounded to `dtype`.

    More than two parts are added in the order of arrival; `is_fixed` is false where that is so here
    or below. `depth` counts the hops on the longest way from an input.
    """

    digest: bytes
    rank: int = -1
    parts: tuple[SumTree, ...] = ()
    dtype: DataType | None = None
    reduce: ReduceOp | None = None
    is_fixed: bool = True
    depth: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SumTree) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<SumTree {self.formula()}>"

    @property
    def short(self) -> str:
        """The first letters of the digest, by which reports name a tree."""
        return self.digest.hex()[:8]

    def nodes(self) -> list[SumTree]:
        """Return this tree and all below it, parts before their sums, each tree once."""
        found: dict[bytes, SumTree] = {}
        waiting: list[tuple[SumTree, bool]] = [(self, False)]
        while waiting:
            tree, is_open = waiting.pop()
            if is_open:
                found.setdefault(tree.digest, tree)
            elif tree.digest not in found:
                waiting.append((tree, True))
                waiting += [(part, False) for part in reversed(tree.parts)]
        return list(found.values())

    def leaves(self) -> Iterator[int]:
        """Yield the ranks in the order in which their values stand in the tree."""
        waiting = [self]
        while waiting:
            tree = waiting.pop()
            if tree.parts:
                waiting += reversed(tree.parts)
            else:
                yield tree.rank

    def formula(self) -> str:
        """Return `((0 + 1) + 2)`; `{...}` holds what is added in the order of arrival."""
        texts: dict[bytes, str] = {}
        for tree in self.nodes():
            parts = [texts[part.digest] for part in tree.parts]
            sign = f" {SIGNS[tree.reduce]} " if tree.reduce is not None else ""
            if not parts:
                texts[tree.digest] = str(tree.rank)
            elif tree.reduce is None and tree.dtype is not None:
                texts[tree.digest] = f"{tree.dtype.value}{parts[0]}"
            elif len(parts) == 2:
                texts[tree.digest] = f"({parts[0]}{sign}{parts[1]})"
            else:
                texts[tree.digest] = f"({parts[0]}{sign}{{{', '.join(parts[1:])}}})"
        return texts[self.digest]

    def value(self, inputs: Array, turn: int = 0) -> Array:
        """Reduce `inputs`, [ranks, n] of the op's data type, as the tree does, rounding at each
        hop; `turn` turns the order in which parts arrive.
        """
        found: dict[bytes, Array] = {}
        with np.errstate(all="ignore"):
            for tree in self.nodes():
                found[tree.digest] = _reduced(tree, inputs, found, turn)
        return found[self.digest]


def _reduced(tree: SumTree, inputs: Array, found: Mapping[bytes, Array], turn: int) -> Array:
    if not tree.parts:
        value: Array = inputs[tree.rank]
        return value
    assert tree.dtype is not None
    typed = tree.dtype.numpy
    total, *others = (found[part.digest].astype(typed) for part in tree.parts)
    if tree.reduce is None:
        return total
    ufunc = UFUNCS[tree.reduce]
    turn %= len(others)
    for other in others[turn:] + others[:turn]:
        total = ufunc(total, other).astype(typed)
    return total


def _input(rank: int) -> SumTree:
    return SumTree(hashlib.sha256(f"rank {rank}".encode()).digest(), rank=rank)


class Forest:
    """Trees of one program, each made once."""

    def __init__(self, ranks: int) -> None:
        self._made: dict[bytes, SumTree] = {}
        self._known: dict[tuple[object, ...], SumTree] = {}
        self.inputs = [self._kept(_input(r)) for r in range(ranks)]

    def sum(self, parts: tuple[SumTree, ...], dtype: DataType, reduce: ReduceOp) -> SumTree:
        """Return the tree that reduces parts, all but the first two in the order of arrival."""
        key = (*map(id, parts), dtype, reduce)
        if key not in self._known:
            self._known[key] = self._sum(parts, dtype, reduce)
        return self._known[key]

    def rounded(self, tree: SumTree, dtype: DataType) -> SumTree:
        """Return the tree that rounds another one to a data type."""
        digest = hashlib.sha256(dtype.value.encode() + tree.digest).digest()
        return self._kept(SumTree(digest, -1, (tree,), dtype, None, tree.is_fixed, tree.depth + 1))

    def _sum(self, parts: tuple[SumTree, ...], dtype: DataType, reduce: ReduceOp) -> SumTree:
        how = f"{dtype.value} {reduce.spelling} {len(parts)}".encode()
        first, others = parts[0].digest, sorted(part.digest for part in parts[1:])
        keys = [first, *others] if len(parts) > 2 else sorted([first, *others])
        digest = hashlib.sha256(b"|".join([how, *keys])).digest()
        if digest in self._made:
            return self._made[digest]
        is_fixed = len(parts) == 2 and all(part.is_fixed for part in parts)
        depth = 1 + max(part.depth for part in parts)
        return self._kept(SumTree(digest, -1, parts, dtype, reduce, is_fixed, depth))

    def _kept(self, tree: SumTree) -> SumTree:
        return self._made.setdefault(tree.digest, tree)
