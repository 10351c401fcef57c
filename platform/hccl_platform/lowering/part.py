"""One rank's part of a program: what its streams do, one task after the other.

All that a process needs which owns this rank alone; the rows of other ranks are never made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hccl_platform.lowering.moves import Moves, Step, moves_of, steps_of
from hccl_py.enums import POST, WAIT, Buffer, TaskKind
from hccl_py.program.program import Program
from hccl_py.program.slots import atomic_slots, remote_slots
from hccl_py.program.tasks import expand

MOVE = int(TaskKind.COPY)
"""The kind of a Task that moves data, whichever way."""

USER_BUFFERS = (Buffer.USER_IN.spelling, Buffer.USER_OUT.spelling)


ORDER = "order between hosts"
"""The plane of notifies that no program has (lowering/orders.py)."""


class Task(NamedTuple):
    """MOVE with the number of a move, or POST or WAIT with a cell; and the task's place on its
    stream.
    """

    kind: int
    number: int
    place: int


class Cell(NamedTuple):
    """A notify by what is the same in all programs: who waits for it, who posts it, on which plane,
    and its number in the transport end. `plane` is empty between the streams of one rank.
    """

    waiter: int
    poster: int
    plane: str
    notify: int


@dataclass(frozen=True, eq=False)
class Part:
    """What one rank does in a program.

    `streams` has the tasks of every stream in order, less those that move nothing. `cells` says
    what the numbers of posts and waits mean. A slot is a buffer of a rank: slot = rank · buffers +
    buffer; `atomic` are the moves into slots that several ranks reduce into at once,
    `remote_user_slots` the callers' memory, of all ranks, that ranks other than its owner touch.
    `order` has the stream of every task in the order in which the rank recorded them; a part that
    goes by levels has none.
    """

    rank: int
    streams: tuple[tuple[Task, ...], ...]
    moves: Moves
    cells: dict[int, Cell]
    atomic: frozenset[int]
    remote_user_slots: frozenset[int]
    order: tuple[int, ...] = ()

    @property
    def recorded(self) -> Iterator[tuple[int, Task]]:
        """Every task with its stream, as recorded."""
        rest = [iter(stream) for stream in self.streams]
        return ((stream, next(rest[stream])) for stream in self.order)

    @cached_property
    def steps(self) -> list[Step]:
        """The moves as plain numbers."""
        return steps_of(self.moves)

    @cached_property
    def slots(self) -> list[int]:
        """The slots that the moves touch."""
        used: list[int] = np.unique(np.concatenate([self.moves.dst, self.moves.src])).tolist()
        return used

    @cached_property
    def written_slots(self) -> frozenset[int]:
        """The slots that the moves write."""
        return frozenset(np.unique(self.moves.dst).tolist())


def part_of(program: Program, rank: int) -> Part:
    """Return the part of one rank; OrchestrationError where a task leaves its buffers."""
    tasks = expand(program, [rank])
    moves = moves_of(program, np.arange(len(tasks), dtype=np.int64), tasks)
    numbers = {row: number for number, row in enumerate(moves.row.tolist())}
    streams: dict[int, list[Task]] = {}
    order: list[int] = []
    columns = tasks.kind.tolist(), tasks.stream.tolist(), tasks.cell.tolist(), tasks.index.tolist()
    for row, (kind, stream, cell, index) in enumerate(zip(*columns, strict=True)):
        if kind in (POST, WAIT):
            streams.setdefault(stream, []).append(Task(kind, cell, index))
            order.append(stream)
        elif row in numbers:
            streams.setdefault(stream, []).append(Task(MOVE, numbers[row], index))
            order.append(stream)
    used = {t.number for queue in streams.values() for t in queue if t.kind != MOVE}
    return Part(
        rank=rank,
        streams=tuple(tuple(streams.get(s, ())) for s in range(max(streams, default=-1) + 1)),
        moves=moves,
        cells={cell: cell_of(program, rank, cell) for cell in sorted(used)},
        atomic=atomic_moves(program, moves),
        remote_user_slots=remote_slots(program, USER_BUFFERS),
        order=tuple(order),
    )


def cell_of(program: Program, rank: int, number: int) -> Cell:
    """Return what a number of a post or wait of a rank means."""
    transports = program.transports
    if number >= transports.cells:
        return Cell(rank, rank, "", number - transports.cells)
    end, index = divmod(number, transports.stride)
    plane = transports.planes[int(transports.plane[end])]
    return Cell(int(transports.rank[end]), int(transports.peer[end]), plane, index)


def atomic_moves(program: Program, moves: Moves) -> frozenset[int]:
    """Return the numbers of the moves into slots that several ranks reduce into at once."""
    slots = atomic_slots(program)
    if not slots:
        return frozenset()
    is_there = np.isin(moves.dst, list(slots)) & moves.is_atomic
    return frozenset(np.flatnonzero(is_there).tolist())
