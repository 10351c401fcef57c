"""A program as the host issues it: in the linked order, so that every post is recorded before its
wait is issued.

Tasks of one stream that follow each other are a *segment*. torch's reductions are not atomic, so
those into one place from several streams wait for each other, in the order of issue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hccl_platform.device.reductions import Reduce, reduction
from hccl_platform.lowering.moves import COPY, Moves, moves_of
from hccl_platform.lowering.part import MOVE, USER_BUFFERS
from hccl_py.enums import POST, WAIT, DataType, ReduceOp
from hccl_py.program.ends import check_ends
from hccl_py.program.program import Program


class Action(NamedTuple):
    """A task: MOVE with the number of its ranges, or POST or WAIT with the row of the post."""

    kind: int
    number: int
    row: int


class Ranges(NamedTuple):
    """A move: slots with start and stop in bytes, and how it reduces, None for a copy."""

    dst: int
    start: int
    stop: int
    src: int
    low: int
    high: int
    reduce: Reduce | None


class Segment(NamedTuple):
    """Tasks that are issued one after the other on a stream of a rank."""

    rank: int
    stream: int
    actions: list[Action]


@dataclass(eq=False)
class IssueOrder:
    """What is known of a program before its runs.

    `crossing` are the posts that are waited for on another device. `behind` has, for a move, those
    that its reduction must come after, and `signals` says of those whether somebody on another
    device waits for them.
    """

    executor: str
    buffers: tuple[str, ...]
    ranges: list[Ranges]
    segments: list[Segment]
    queues: list[tuple[int, int]]
    crossing: frozenset[int]
    behind: dict[int, tuple[int, ...]]
    signals: dict[int, bool]
    used: list[int]
    written: frozenset[int]

    @property
    def written_user_slots(self) -> list[int]:
        """Slots of the caller's memory that moves write."""
        names = self.buffers
        return [slot for slot in sorted(self.written) if names[slot % len(names)] in USER_BUFFERS]


def issue_order(program: Program, place: Sequence[int]) -> IssueOrder:
    """Prepare a program whose rank r is on device `place[r]`; raises where it cannot end well, or
    where a rank could leave its main stream too early.
    """
    check_ends(program)
    tasks, linked = program.tasks, program.linked
    order = linked.order.astype(np.int64)
    moves = moves_of(program, order)
    number_of = dict(zip(moves.row.tolist(), range(len(moves)), strict=True))
    rank, stream, kind = tasks.rank.tolist(), tasks.stream.tolist(), tasks.kind.tolist()
    segments: list[Segment] = []
    crossing = set()
    for row in order.tolist():
        if kind[row] == WAIT:
            post = int(linked.post_of[row])
            if place[rank[post]] != place[rank[row]]:
                crossing.add(post)
            action = Action(WAIT, post, row)
        elif kind[row] == POST:
            action = Action(POST, row, row)
        elif row in number_of:
            action = Action(MOVE, number_of[row], row)
        else:
            continue  # moves nothing
        if not segments or segments[-1][:2] != (rank[row], stream[row]):
            segments.append(Segment(rank[row], stream[row], []))
        segments[-1].actions.append(action)
    behind, signals = _in_turn(moves, rank, stream, place)
    touched = np.unique(np.concatenate([moves.dst, moves.src]))
    return IssueOrder(
        executor=program.executor,
        buffers=program.buffers,
        ranges=_ranges(moves),
        segments=segments,
        queues=sorted({(segment.rank, segment.stream) for segment in segments}),
        crossing=frozenset(crossing),
        behind=behind,
        signals=signals,
        used=touched.tolist(),
        written=frozenset(np.unique(moves.dst).tolist()),
    )


def _ranges(moves: Moves) -> list[Ranges]:
    reduces = [
        None if op == COPY else reduction(ReduceOp(op), DataType.from_number(dtype))
        for op, dtype in zip(moves.op.tolist(), moves.dtype.tolist(), strict=True)
    ]
    columns = (
        *(moves.dst, moves.dst_offset, moves.dst_offset + moves.size),
        *(moves.src, moves.src_offset, moves.src_offset + moves.size),
    )
    rows = zip(*(column.tolist() for column in columns), reduces, strict=True)
    return [Ranges(*row) for row in rows]


def _in_turn(
    moves: Moves, rank: list[int], stream: list[int], place: Sequence[int]
) -> tuple[dict[int, tuple[int, ...]], dict[int, bool]]:
    """Let reductions that hardware makes atomic wait for earlier ones of other streams into the
    same bytes; of each byte the last one is known.
    """
    last: dict[int, list[tuple[int, int, int]]] = {}
    behind: dict[int, tuple[int, ...]] = {}
    signals: dict[int, bool] = {}
    for number in np.flatnonzero(moves.is_atomic).tolist():
        slot, start = int(moves.dst[number]), int(moves.dst_offset[number])
        stop, row = start + int(moves.size[number]), int(moves.row[number])
        mine = rank[row], stream[row]
        there = last.setdefault(slot, [])
        meeting = [entry for entry in there if entry[0] < stop and start < entry[1]]
        for _, _, other in meeting:
            before = int(moves.row[other])
            if (rank[before], stream[before]) != mine:
                behind[number] = (*behind.get(number, ()), other)
                far = place[rank[before]] != place[mine[0]]
                signals[other] = signals.get(other, False) or far
        rest = [
            (low, high, other)
            for begin, end, other in there
            for low, high in _without(begin, end, start, stop)
        ]
        last[slot] = [*rest, (start, stop, number)]
    return {k: tuple(dict.fromkeys(v)) for k, v in behind.items()}, signals


def _without(begin: int, end: int, start: int, stop: int) -> list[tuple[int, int]]:
    """Return what is left of begin .. end without start .. stop."""
    pieces = (begin, min(end, start)), (max(begin, stop), end)
    return [(low, high) for low, high in pieces if low < high]
