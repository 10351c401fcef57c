"""Comparison of an exported project's recording with the program that it was exported from.

Stream s of the program is thread s + 1 of the recording, and must have the same tasks in the same
order, but for the handshake of the main thread with the caller's stream, and for tasks of the
program that move no bytes, which C++ does not record. Transfers of more than 256 MiB, which a
channel splits into work requests, count as one. Two tasks are the same if they agree in kind,
reduction, data type, bytes, in memory and offset of both sides (CCL_In, CCL_Out and scratch are
parts of the one HCCL buffer), in the notify, its owner or its end of a channel, and in the peer.
Channels are the same if they correspond in all tasks of both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from hccl_interop.cpp.export.memory import USER, Zone
from hccl_interop.cpp.export.notifies import notifies_of_threads
from hccl_py.enums import TaskKind
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program

_REQUEST = 256 << 20
"""Bytes of a full work request."""


class _ComparedTask(NamedTuple):
    """A task without the numbering of its program, but for `end`, a row of its transports."""

    kind: str
    numbers: tuple[Any, ...]
    end: int


def first_difference(program: Program, recorded: Program, zones: Sequence[Zone]) -> str | None:
    """Return the first difference in one sentence; None where there is none."""
    mine = ComparedQueues(program, {zone.buffer: zone.offset for zone in zones}, threads_before=0)
    theirs = ComparedQueues(recorded, {"CCL": 0}, threads_before=1)
    if program.ranks != recorded.ranks:
        return f"{program.ranks} ranks, recorded {recorded.ranks}"
    ends: dict[int, int] = {}
    for rank in range(program.ranks):
        for stream in range(max(program.streams, recorded.streams)):
            found = _differs(mine.tasks(rank, stream), theirs.tasks(rank, stream), ends)
            if found:
                return f"rank {rank}, stream {stream}, {found}"
    return _crossed(program, recorded, ends)


def _differs(
    mine: Sequence[_ComparedTask], theirs: Sequence[_ComparedTask], ends: dict[int, int]
) -> str:
    """Return the first difference in a stream, "" for none; `ends` collects the corresponding
    transport ends.
    """
    for k, (one, other) in enumerate(zip(mine, theirs, strict=False)):
        if one[:2] != other[:2]:
            return f"task {k}: {one.kind} {one.numbers}, recorded {other.kind} {other.numbers}"
        if ends.setdefault(one.end, other.end) != other.end:
            return f"task {k}: {one.kind} is recorded on another channel"
    if len(mine) != len(theirs):
        return f"{len(mine)} tasks, recorded {len(theirs)}"
    return ""


def _crossed(program: Program, recorded: Program, ends: dict[int, int]) -> str | None:
    """Return the first channel whose two ends are not one channel in the recording."""
    used = {end: other for end, other in ends.items() if end >= 0}
    if len(set(used.values())) != len(used):
        return "two channels are recorded as one"
    for end, other in used.items():
        far = int(program.transports.far[end])
        if used.get(far, other) != other and int(recorded.transports.far[other]) != used[far]:
            return (
                f"rank {program.transports.rank[end]}: a channel is recorded with another far end"
            )
    return None


def _joined(tasks: Iterator[_ComparedTask]) -> Iterator[_ComparedTask]:
    """Yield tasks, work requests of one transfer as one task."""
    last: _ComparedTask | None = None
    for task in tasks:
        whole = None if last is None else _continued(last, task)
        if last is not None and whole is None:
            yield last
        last = whole or task
    if last is not None:
        yield last


def _continued(last: _ComparedTask, task: _ComparedTask) -> _ComparedTask | None:
    """Return both as one transfer if the second continues a full work request."""
    if last.kind != task.kind or last.end != task.end or len(last.numbers) < 4:
        return None
    peer, size, src, dst, *reduction = last.numbers
    next_peer, more, next_src, next_dst, *next_reduction = task.numbers
    if size % _REQUEST or (peer, reduction) != (next_peer, next_reduction):
        return None
    for (name, offset), other in ((src, next_src), (dst, next_dst)):
        if other != (name, offset + size):
            return None
    return task._replace(numbers=(peer, size + more, src, dst, *reduction))


class ComparedQueues:
    """The tasks of a program, stream by stream."""

    def __init__(self, program: Program, places: dict[str, int], *, threads_before: int) -> None:
        self._program, self._places, self._before = program, places, threads_before
        self._queues = queues_of(program)
        self._columns = {name: column.tolist() for name, column in program.tasks.meaning().items()}

    @cached_property
    def _slots(self) -> list[tuple[int, int]]:
        return notifies_of_threads(self._program)

    def tasks(self, rank: int, stream: int) -> list[_ComparedTask]:
        """Return the tasks of a stream; none for a stream that the program lacks."""
        queue = stream + self._before
        if queue >= self._program.streams:
            return []
        at = rank * self._program.streams + queue
        first, last = self._queues.first[at], self._queues.first[at + 1]
        found = list(_joined(self._moved(self._queues.rows[first:last].tolist())))
        has_handshake = self._before and stream == 0
        return found[1:-1] if has_handshake else found

    def _moved(self, rows: Sequence[int]) -> Iterator[_ComparedTask]:
        for row in rows:
            kind = TaskKind(self._columns["kind"][row])
            if not kind.moves_data:
                yield self._notify(kind, row)
            elif self._columns["size"][row]:
                yield self.data(kind, row)

    def data(self, kind: TaskKind, row: int) -> _ComparedTask:
        """Return a task that moves data."""
        c = self._columns
        reduction = (c["reduce"][row], c["dtype"][row]) if kind.reduces else ()
        sides = (
            self._place(c[f"{side}_buffer"][row], c[f"{side}_offset"][row])
            for side in ("src", "dst")
        )
        numbers = (c["peer"][row], c["size"][row], *sides, *reduction)
        return _ComparedTask(kind.name, numbers, c["end"][row])

    def _place(self, buffer: int, offset: int) -> tuple[str, int]:
        name = self._program.buffers[buffer]
        if name in self._places:
            return "CCL", offset + self._places[name]
        # In place, input and output are one memory, and either name means it.
        return ("user" if self._program.op.in_place and name in USER else name), offset

    def _notify(self, kind: TaskKind, row: int) -> _ComparedTask:
        c, transports = self._columns, self._program.transports
        cell = c["cell"][row]
        if cell < transports.cells:
            end, index = divmod(cell, transports.stride)
            return _ComparedTask(
                kind.name, (c["peer"][row], index, int(transports.rank[end])), c["end"][row]
            )
        owner, index = self._slots[(cell - transports.cells) % len(self._slots)]
        return _ComparedTask(kind.name, ("thread", owner - self._before, index), -1)
