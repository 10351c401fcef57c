"""One kind of task for all ranks of a batch."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, TypeVar

from hccl_py.enums import TaskKind
from hccl_py.values import IntArray, PerRank, RankInt

T = TypeVar("T", bound=Hashable)

ONE_STEP, ONE_SUM = 1, 2
"""Values of Instruction.joined beside 0."""


class Instruction(NamedTuple):
    """The next task of every rank of a batch on one of its streams; columns that differ by rank are
    formulas.

    The source or the destination of a data task lies in the memory of `peer` where the kind says
    so. Sizes and offsets are bytes. A field that does not apply is -1 (buffers, cell, end, peer,
    dtype, reduce) or 0.

    The duration of a kernel is one number, or a formula over an array of them, which the task view
    and files have as one instruction for each of the numbers.

    `size` is the length of both sides, unless `dst_size` states another one for the destination:
    then `size` is the source's. No recording does that, but files can, and it is a mistake.

    `joined` says that a data task and the one right before it on its stream are one step of a
    kernel. ONE_STEP: it reads every element once, to receive, reduce and send; this changes times
    alone. ONE_SUM: both add to the same bytes, in fp32, and the last task of a chain rounds.
    """

    kind: TaskKind
    stream: int
    label: int = -1
    line: int = -1
    round: int = 0
    cell: RankInt = -1
    end: RankInt = -1
    peer: RankInt = -1
    src_buffer: int = -1
    src_offset: RankInt = 0
    dst_buffer: int = -1
    dst_offset: RankInt = 0
    size: RankInt = 0
    dtype: int = -1
    reduce: int = -1
    duration_us: float | PerRank = 0.0
    dst_size: int = -1
    joined: int = 0


class Texts(dict[T, int]):
    """Labels or source lines with their numbers, in the order of their first use."""

    def __missing__(self, text: T) -> int:
        return self.setdefault(text, len(self))


class Batch(NamedTuple):
    """Ranks that run the same instructions; the k-th value of a column belongs to `ranks[k]`."""

    ranks: IntArray
    instructions: tuple[Instruction, ...]

    @property
    def tasks(self) -> int:
        """The number of tasks of all ranks together."""
        return len(self.ranks) * len(self.instructions)


COLUMNS = ("cell", "end", "peer", "src_offset", "dst_offset", "size")
"""The fields of an Instruction that may differ by rank."""
