"""The subject of every check: the program, the options, and the words to speak about both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from hccl_py.enums import InPlace, TaskKind
from hccl_py.program.describe import BUFFER_WORDS, format_action, format_line_of, format_place
from hccl_py.program.program import Call, Program
from hccl_py.topology.presets import Product
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.meaning import in_place_offsets
from hccl_py.verifier.classes import CLASSES, Severity
from hccl_py.verifier.finding import Finding, MemoryRange, TaskAt

T = TypeVar("T")

SHOWN = 8
"""Findings of one class at the same lines that are shown; the rest is counted."""


@dataclass(frozen=True)
class Options:
    """Options of a verification.

    `repeat` copies of the op run back to back on the same resources (three where buffers alternate
    and more than one is asked for), or `calls` on several streams of the caller. `in_place`
    verifies the call with IN and OUT in the same memory, too: in every layout that the op allows,
    or in the named one. `deterministic`, or an op that asks for it, makes REDUCE_ORDER_NONDET an
    error. `product` switches on the checks of a product's hardware.
    """

    repeat: int = 2
    in_place: bool | InPlace = False
    deterministic: bool = False
    product: Product | None = None
    calls: tuple[Call, ...] = ()


class Subject:
    """A program under verification. Task rows are those of the task view; copies count from 0."""

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.tasks = program.tasks

    @cached_property
    def queue_lengths(self) -> IntArray:
        """Tasks of each stream, shape [ranks, streams]."""
        tasks, streams = self.tasks, self.program.streams
        queue = tasks.rank.astype(np.int64) * streams + tasks.stream
        counts = np.bincount(queue, minlength=self.program.ranks * streams)
        return counts.reshape(self.program.ranks, streams)

    @cached_property
    def in_place(self) -> list[tuple[str, IntArray]]:
        """The layouts in which IN and OUT share memory: a name where there are several, and by rank
        the offset of OUT in IN, in bytes.
        """
        op, ranks = self.program.op, self.program.ranks
        asked = {op.in_place, self.options.in_place} - {False}
        layouts = dict(
            layout for in_place in asked for layout in in_place_offsets(op, ranks, in_place)
        )
        return list(layouts.items()) if len(layouts) > 1 else [("", x) for x in layouts.values()]

    @cached_property
    def posts_per_cell(self) -> IntArray:
        """The posts of each notify cell in one copy."""
        return self._per_cell(TaskKind.NOTIFY_POST)

    @cached_property
    def waits_per_cell(self) -> IntArray:
        """The waits of each notify cell in one copy."""
        return self._per_cell(TaskKind.NOTIFY_WAIT)

    def _per_cell(self, kind: TaskKind) -> IntArray:
        cells = self.tasks.cell[np.equal(self.tasks.kind, kind)]
        return np.bincount(cells, minlength=max(self.program.cells, 1))

    def beside(self, row: int, kind: TaskKind, surplus: IntArray) -> str:
        """Name a notify of the same transport that has a post or wait too many: often an index is
        wrong.
        """
        transports, cell = self.program.transports, int(self.tasks.cell[row])
        if cell >= transports.cells:
            return ""
        first = cell // transports.stride * transports.stride
        cells = self.tasks.cell
        here = (cells >= first) & (cells < first + transports.stride) & (cells != cell)
        rows = np.flatnonzero(here & np.equal(self.tasks.kind, kind))
        rows = rows[surplus[cells[rows]] > 0]
        if not len(rows):
            return ""
        other = int(rows[0])
        return f" {self.place(other)} {self.action(other)}: is that meant?"

    @property
    def stated_calls(self) -> tuple[Call, ...]:
        """The caller's streams and events for the copies, where they are stated."""
        return self.options.calls or self.program.calls

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the copies: as stated, otherwise back to back on one stream."""
        return self.stated_calls or (Call(),) * self._repeat

    @property
    def _repeat(self) -> int:
        """The number of copies back to back; where buffers alternate, the third meets the first."""
        asked = self.options.repeat
        return max(asked, 3) if asked > 1 and self.program.alternating else asked

    def at(self, row: int, copy: int = 0) -> TaskAt:
        """Return the coordinates of a task; the next copy of the op counts on."""
        rank, stream = int(self.tasks.rank[row]), self.stream(row)
        before = copy * int(self.queue_lengths[rank, stream])
        return TaskAt(rank, stream, int(self.tasks.index[row]) + before)

    def stream(self, row: int) -> int:
        """Return the stream of a task; 0 is main."""
        return int(self.tasks.table.stream[self.tasks.instruction[row]])

    def kind(self, row: int) -> TaskKind:
        """Return the kind of a task."""
        return TaskKind(int(self.tasks.table.kind[self.tasks.instruction[row]]))

    def source(self, row: int) -> str | None:
        """Return the author's line of a task as file:line."""
        return format_line_of(self.program, row) or None

    def place(self, row: int, copy: int = 0) -> str:
        """Return `rank r main task k`, with the copy of the op where it is not the first."""
        return format_place(self.program, row, copy)

    def action(self, row: int) -> str:
        """Return the action of a task in words."""
        return format_action(self.program, row, in_sentence=True)

    def words(self, memory: MemoryRange) -> str:
        """Return memory in the field's words."""
        name = BUFFER_WORDS.get(memory.buffer, memory.buffer)
        return f"rank {memory.rank}'s {name}[{memory.start}:{memory.stop}]"

    def finding(
        self,
        name: str,
        message: str,
        hint: str = "",
        *,
        rows: Iterable[tuple[int, int]] = (),
        memory: Iterable[MemoryRange] = (),
        ranks: Iterable[int] = (),
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding about tasks, given as (row, copy) with the culprit first; without
        `ranks` it concerns the ranks of its tasks and memory.
        """
        found, memory = tuple(rows), tuple(memory)
        tasks = tuple(self.at(row, copy) for row, copy in found)
        last = max((copy for _, copy in found), default=0)
        concerned = sorted(set(ranks) or {t.rank for t in tasks} | {m.rank for m in memory})
        return Finding(
            name=name,
            message=message,
            hint=hint,
            severity=CLASSES[name].severity if severity is None else severity,
            tasks=tasks,
            memory=memory,
            ranks=tuple(concerned),
            repeat=1 + last,
            between_calls=last > 0 and not self.stated_calls,
            source=self.source(found[0][0]) if found else None,
        )


def limited(
    items: Iterable[T], key: Callable[[T], object], make: Callable[[T], Finding]
) -> Iterator[Finding]:
    """Yield findings made of items, only the first few of those with the same key; the last of
    these counts the others.
    """
    groups: dict[object, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    for group in groups.values():
        yield from shortened(group, make)


def shortened(
    items: Sequence[T], make: Callable[[T], Finding], shown: int = SHOWN
) -> Iterator[Finding]:
    """Yield findings made of the first few items; the last one counts the others."""
    yield from map(make, items[: shown - 1])
    rest = items[shown:]
    for last in map(make, items[shown - 1 : shown]):
        yield last.followed_by(len(rest), lambda: map(make, rest)) if len(rest) else last
