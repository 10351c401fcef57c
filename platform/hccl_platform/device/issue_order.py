"""A program as the host issues it: in the linked order, so that every post is recorded before its
wait is issued.

Consecutive tasks of one stream are a *segment*. torch's reductions are not atomic, so reductions
into one place from several streams wait for each other, in the order of issue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hccl_platform.device.reductions import Reduce, reduction
from hccl_platform.lowering.moves import COPY, Moves, moves_of
from hccl_platform.lowering.part import MOVE
from hccl_py.enums import POST, WAIT, DataType, ReduceOp
from hccl_py.program.ends import check_ends
from hccl_py.program.program import Program


class Action(NamedTuple):
    """A task in `row`: MOVE with the number of its ranges, POST or WAIT with the post's row."""

    kind: int
    number: int
    row: int


class Ranges(NamedTuple):
    """A move: slots with start and stop in bytes, and its reduction, None for a copy."""

    dst: int
    start: int
    stop: int
    src: int
    low: int
    high: int
    reduce: Reduce | None


class StreamSegment(NamedTuple):
    """Consecutive tasks on a stream of a rank."""

    rank: int
    stream: int
    actions: list[Action]


@dataclass(eq=False)
class IssueOrder:
    """A program prepared for its runs.

    `crossing` has the posts with a wait on another device. `behind` has for a move the moves that
    its reduction must come after, and `signals` for each of these whether a stream on another
    device waits for it.
    """

    buffers: int
    ranges: list[Ranges]
    segments: list[StreamSegment]
    queues: list[tuple[int, int]]
    crossing: frozenset[int]
    behind: dict[int, tuple[int, ...]]
    signals: dict[int, bool]
    used: list[int]
    written: frozenset[int]


def issue_order(program: Program, place: Sequence[int]) -> IssueOrder:
    """Prepare a program whose rank r is on device `place[r]`; raises if it cannot end well, or if a
    rank's main stream could end before its other streams.
    """
    check_ends(program)
    tasks, linked = program.tasks, program.linked
    order = linked.order.astype(np.int64)
    moves = moves_of(program, order)
    number_of = dict(zip(moves.row.tolist(), range(len(moves)), strict=True))
    rank, stream, kind = tasks.rank.tolist(), tasks.stream.tolist(), tasks.kind.tolist()
    segments: list[StreamSegment] = []
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
            segments.append(StreamSegment(rank[row], stream[row], []))
        segments[-1].actions.append(action)
    behind, signals = _in_turn(moves, rank, stream, place)
    return IssueOrder(
        buffers=len(program.buffers),
        ranges=_ranges(moves),
        segments=segments,
        queues=sorted({(segment.rank, segment.stream) for segment in segments}),
        crossing=frozenset(crossing),
        behind=behind,
        signals=signals,
        used=moves.slots,
        written=moves.written_slots,
    )


def _ranges(moves: Moves) -> list[Ranges]:
    reduces = [
        None if op == COPY else reduction(ReduceOp(op), DataType.from_number(dtype))
        for op, dtype in zip(moves.op.tolist(), moves.dtype.tolist(), strict=True)
    ]
    steps = zip(moves.steps, reduces, strict=True)
    return [
        Ranges(dst, start, stop, src, low, high, reduce)
        for (dst, start, stop, src, low, high, *_), reduce in steps
    ]


def _in_turn(
    moves: Moves, rank: list[int], stream: list[int], place: Sequence[int]
) -> tuple[dict[int, tuple[int, ...]], dict[int, bool]]:
    """Return `behind` and `signals` of an IssueOrder: atomic reductions wait for earlier ones of
    other streams into the same bytes. `last` has, by slot, ranges of bytes with the last reduction
    into them.
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
    """Return the ranges that are left of begin .. end without start .. stop."""
    pieces = (begin, min(end, start)), (max(begin, stop), end)
    return [(low, high) for low, high in pieces if low < high]
