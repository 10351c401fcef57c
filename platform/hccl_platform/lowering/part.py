"""One rank's part of a program: the tasks of its streams, one after the other.

A process that owns one rank needs no more: the task rows of other ranks are never made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hccl_platform.lowering.memory import USER_BUFFERS
from hccl_platform.lowering.moves import Moves, moves_of
from hccl_py.enums import POST, WAIT, TaskKind
from hccl_py.program.program import Program
from hccl_py.program.slots import atomic_slots, remote_slots
from hccl_py.program.tasks import expand

MOVE = int(TaskKind.COPY)
"""The kind of a Task that copies or reduces."""

ORDER = "order between hosts"
"""The plane of notifies that are added to a program (lowering/orders.py)."""


class Task(NamedTuple):
    """A task of a rank: MOVE with the number of a move, or POST or WAIT with the number of a cell.
    `place` is its position on its stream.
    """

    kind: int
    number: int
    place: int


class Cell(NamedTuple):
    """A notify by properties that are the same in all programs: the rank that waits for it, the
    rank that posts it, the plane, its number in the transport end, and the `turn` of that end among
    those of the plane that join the two. `plane` is empty between the streams of one rank.
    """

    waiter: int
    poster: int
    plane: str
    notify: int
    turn: int = 0


@dataclass(frozen=True, eq=False)
class RankPart:
    """The part of a program that one rank runs.

    `streams` has the tasks of every stream in order, without tasks that move nothing. `cells` has
    the cell of every number in a post or wait. `atomic` has the moves into slots that several ranks
    reduce into at once, `remote_user_slots` the user memory, of all ranks, that ranks other than
    its owner access. `order` has the stream of every task in the order of recording; a part that
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
        """Every task with its stream, in the order of recording."""
        rest = [iter(stream) for stream in self.streams]
        return ((stream, next(rest[stream])) for stream in self.order)


def part_of(program: Program, rank: int) -> RankPart:
    """Return the part of one rank; OrchestrationError if a task leaves its buffers."""
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
    return RankPart(
        rank=rank,
        streams=tuple(tuple(streams.get(s, ())) for s in range(max(streams, default=-1) + 1)),
        moves=moves,
        cells={cell: cell_of(program, rank, cell) for cell in sorted(used)},
        atomic=atomic_moves(program, moves),
        remote_user_slots=remote_slots(program, USER_BUFFERS),
        order=tuple(order),
    )


def cell_of(program: Program, rank: int, number: int) -> Cell:
    """Return the cell that a post or wait of a rank names by a number."""
    transports = program.transports
    if number >= transports.cells:
        return Cell(rank, rank, "", number - transports.cells)
    end, index = divmod(number, transports.stride)
    plane = transports.planes[int(transports.plane[end])]
    ends = int(transports.rank[end]), int(transports.peer[end])
    return Cell(*ends, plane, index, int(transports.turns[end]))


def atomic_moves(program: Program, moves: Moves) -> frozenset[int]:
    """Return the numbers of the moves into slots that several ranks reduce into at once."""
    slots = atomic_slots(program)
    if not slots:
        return frozenset()
    is_there = np.isin(moves.dst, list(slots)) & moves.is_atomic
    return frozenset(np.flatnonzero(is_there).tolist())
