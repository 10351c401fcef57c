"""Comparison of a recorded project for the CCU with the program that it was exported from.

Kernels have other streams and signals than the program. What both must have in common is every
move, with its bytes at both sides, and the order of moves: a move that ends before another one in
every run of the program must do so in every run of the kernels. Kernels may have more order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hccl_interop.cpp.export.memory import Zone
from hccl_interop.cpp.export.same import ComparedQueues
from hccl_py.enums import POST, TaskKind
from hccl_py.program.matching import match
from hccl_py.program.program import Program

_Move: TypeAlias = tuple[int, str, tuple[Any, ...]]


@dataclass(frozen=True)
class _OrderedMoves:
    """Moves in an order in which they can happen, and those before each, as bits of a number."""

    moves: list[_Move]
    before: list[int]


def first_lost(program: Program, recorded: Program, zones: Sequence[Zone]) -> str | None:
    """Return the first move or order that a recording lacks, in one sentence; None where there is
    none.
    """
    if program.ranks != recorded.ranks:
        return f"{program.ranks} ranks, recorded {recorded.ranks}"
    mine = _ordered(program, {zone.buffer: zone.offset for zone in zones})
    theirs = _ordered(recorded, {"CCL": 0})
    counts, found = Counter(mine.moves), Counter(theirs.moves)
    for move in (*mine.moves, *theirs.moves):
        if counts[move] != found[move]:
            return f"{_text(move)} is there {counts[move]} times, recorded {found[move]} times"
    return _first_unordered(mine, theirs)


def _first_unordered(mine: _OrderedMoves, theirs: _OrderedMoves) -> str | None:
    places: dict[_Move, list[int]] = defaultdict(list)
    for place, move in enumerate(theirs.moves):
        places[move].append(place)
    turn = {move: iter(found) for move, found in places.items()}
    place_of = [next(turn[move]) for move in mine.moves]
    for number, before in enumerate(mine.before):
        for other in _bits(before):
            if not theirs.before[place_of[number]] >> place_of[other] & 1:
                return (
                    f"{_text(mine.moves[other])} ends before {_text(mine.moves[number])} begins, "
                    "and need not in the recording"
                )
    return None


def _ordered(program: Program, places: dict[str, int]) -> _OrderedMoves:
    """Return the moves of a program; those before a task are those before the task on its stream,
    and before the post that it waits for.
    """
    read = ComparedQueues(program, places, threads_before=0)
    tasks, linked = program.tasks, match(program)
    rank, stream, kind, size = (
        column.tolist() for column in (tasks.rank, tasks.stream, tasks.kind, tasks.size)
    )
    post_of = linked.post_of.tolist()
    behind: dict[tuple[int, int], int] = defaultdict(int)
    posted: dict[int, int] = {}
    moves: list[_Move] = []
    before: list[int] = []
    for row in linked.order.tolist():
        queue = rank[row], stream[row]
        if post_of[row] >= 0:
            behind[queue] |= posted[post_of[row]]
        elif kind[row] == POST:
            posted[row] = behind[queue]
        elif TaskKind(kind[row]).moves_data and size[row]:
            task = read.data(TaskKind(kind[row]), row)
            before.append(behind[queue])
            behind[queue] |= 1 << len(moves)
            moves.append((rank[row], task.kind, task.numbers))
    return _OrderedMoves(moves, before)


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _text(move: _Move) -> str:
    rank, kind, numbers = move
    peer, size, (source, source_at), (target, target_at), *_ = numbers
    far = f" with rank {peer}" if peer != -1 else ""
    return (
        f"rank {rank}'s {kind}{far} of {size} bytes from {source}[{source_at}] to "
        f"{target}[{target_at}]"
    )
