"""The parameters of one call of a collective, the same for all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from hccl_py.enums import DataType, InPlace, Mode, ReduceOp

Numbers: TypeAlias = tuple[int, ...]
Table: TypeAlias = tuple[Numbers, ...]
Counts: TypeAlias = Numbers | Table
"""Elements of every rank, or a row of elements for every rank."""

LEVELS = ("level0", "level1", "level2")
"""The members of a call that hold a word of HCCL_ALGO."""


@dataclass(frozen=True)
class OpParam:
    """HCCL's OpParam: the parameters that all ranks agree on.

    `count` counts elements as the op's API does: all_gather what each rank sends, all_reduce the
    whole buffer. Where amounts differ by rank, other members have them, in elements, for all N
    ranks at once; `()` stands for the default:

        all_gather_v, reduce_scatter_v
            counts[N]: the part of each rank. displs[N]: where its part begins in the buffer that
            holds all parts; by default packed in rank order.
        all_to_all_v
            counts[N][N]: row i has what rank i sends to each rank. displs[N][N]: row i says where
            in its input that begins; displs[N][2N]: the same, then where in its output the part
            from each rank begins. By default both are packed in rank order.
        all_to_all_vc
            matrix[N][N]: as the counts of all_to_all_v; always packed.
        send_recv
            pairs ((src, dst), ...): who sends `count` elements to whom; by default every rank r
            to (r + 1) mod N.
        batch_send_recv
            pairs ((src, dst) or (src, dst, count), ...): the same with a count of its own where it
            is not `count`. At each end, what it sends and what it receives lie packed in the order
            of the list.

    `level0`, `level1` and `level2` are the algorithms inside servers, between servers and between
    superpods, in HCCL_ALGO's words, for executors that leave the choice; selection sets them.
    `deterministic` asks for sums whose bits do not depend on timing; executors that could do either
    way look at it. `in_place` says that IN and OUT share memory, in one of the ways of `InPlace`
    or, where true, in any.
    """

    name: str
    count: int
    dtype: DataType
    reduce: ReduceOp | None = None
    root: int | None = None
    mode: Mode = Mode.OP_BASE
    in_place: bool | InPlace = False
    counts: Numbers | Table = ()
    displs: Numbers | Table = ()
    matrix: Table = ()
    pairs: Table = ()
    level0: str = ""
    level1: str = ""
    level2: str = ""
    deterministic: bool = False

    @property
    def words(self) -> dict[str, str]:
        """The algorithm names of the levels that have one."""
        return {level: word for level in LEVELS if (word := getattr(self, level))}

    def with_words(self, words: Mapping[str, str]) -> OpParam:
        """Return the call with these algorithm names for levels, and none for the others."""
        level0, level1, level2 = (words.get(level, "") for level in LEVELS)
        return replace(self, level0=level0, level1=level1, level2=level2)

    @property
    def unit(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Bytes of `count` elements: the bytes per rank that selection looks at."""
        return self.count * self.unit

    @cached_property
    def extent(self) -> int:
        """Elements of the largest part, which rounds cut: `count`, unless parts differ in size."""
        if self.pairs:
            return max(pair[2] if len(pair) > 2 else self.count for pair in self.pairs)
        parts = self.matrix or self.counts
        if not parts:
            return self.count
        return max(max(row, default=0) if isinstance(row, tuple) else row for row in parts)
