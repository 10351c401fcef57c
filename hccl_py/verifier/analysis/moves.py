"""The tasks that move data, as columns: the owner, buffer and bytes of each side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.describe import ranges_of
from hccl_py.values import IntArray
from hccl_py.verifier.finding import MemoryRange
from hccl_py.verifier.subject import Subject

Mask = npt.NDArray[np.bool_]

_BLOCK = 1 << 16


class SideColumns(NamedTuple):
    """Source or destination of tasks: bytes start .. start + size of a buffer of a rank."""

    owner: IntArray
    buffer: IntArray
    start: IntArray
    size: IntArray


class MoveColumns:
    """Columns of data tasks, looked up when first used; `rows` are those of the task view."""

    def __init__(self, subject: Subject, rows: IntArray) -> None:
        self.subject = subject
        self.tasks = subject.tasks
        self.table = subject.tasks.table
        self.rows = rows
        self.instruction = self.tasks.instruction[rows]

    @cached_property
    def kind(self) -> npt.NDArray[np.int8]:
        """TaskKind of every task."""
        return self.table.kind[self.instruction]

    @cached_property
    def reads_remote(self) -> Mask:
        """True where the source lies at the peer."""
        return _kinds("reads_remote")[self.kind]

    @cached_property
    def writes_remote(self) -> Mask:
        """True where the destination lies at the peer."""
        return _kinds("writes_remote")[self.kind]

    @cached_property
    def reduces(self) -> Mask:
        """True where the task adds to its destination."""
        return _kinds("reduces")[self.kind]

    @cached_property
    def moves_bytes(self) -> Mask:
        """True where a task has bytes to move: one of 0 bytes touches nothing."""
        return (self.src.size > 0) | (self.dst.size > 0)

    @cached_property
    def src(self) -> SideColumns:
        """The sources."""
        size, buffer = self.tasks.size[self.rows], self.table.src_buffer[self.instruction]
        owner = self._owner(self.reads_remote)
        return SideColumns(owner, buffer.astype(np.int64), self.tasks.src_offset[self.rows], size)

    @cached_property
    def dst(self) -> SideColumns:
        """The destinations."""
        size, buffer = self.tasks.dst_size[self.rows], self.table.dst_buffer[self.instruction]
        owner = self._owner(self.writes_remote)
        return SideColumns(owner, buffer.astype(np.int64), self.tasks.dst_offset[self.rows], size)

    def _owner(self, remote: Mask) -> IntArray:
        return np.where(remote, self.tasks.peer[self.rows], self.tasks.rank[self.rows])


def moves_of(subject: Subject) -> Iterator[MoveColumns]:
    """Yield the data tasks in blocks of rows: columns of all at once would fill the memory."""
    tasks = subject.tasks
    for start in range(0, len(tasks), _BLOCK):
        block = tasks.instruction[start : start + _BLOCK]
        rows = start + np.flatnonzero(tasks.table.moves_data[block])
        if len(rows):
            yield MoveColumns(subject, rows)


def rows_where(subject: Subject, is_wrong: Callable[[MoveColumns], Mask]) -> IntArray:
    """Return the rows of the data tasks that a test picks."""
    found = [moves.rows[is_wrong(moves)] for moves in moves_of(subject)]
    return np.concatenate([np.zeros(0, np.int64), *found])


def memory_at(subject: Subject, row: int) -> tuple[MemoryRange, MemoryRange]:
    """Return source and destination of one data task."""
    names = subject.program.buffers
    source, target = (
        MemoryRange(memory.rank, names[memory.buffer], memory.start, memory.stop)
        for memory in ranges_of(subject.program, row)
    )
    return source, target


@cache
def _kinds(member: str) -> Mask:
    """Return a property of TaskKind, by kind."""
    return np.array([getattr(kind, member) for kind in TaskKind])
