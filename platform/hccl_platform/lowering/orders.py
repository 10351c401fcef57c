"""The order in which ranks go through a program whose ranks are on several hosts, and what in it
messages and the notifies of one host leave open.

A rank of host A may touch memory of a second rank of A, and post to a rank of host B, which then
sends to the second rank, or reads from it. In the program that post orders both accesses. Between
hosts it would be no message of the second rank, so nothing would tell it. `missing_orders` follows
what every rank knows of the others' tasks, finds accesses that conflict and are not known to be in
order, and has the first rank post to the second on their host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_platform.lowering.moves import Moves, moves_of
from hccl_platform.lowering.part import USER_BUFFERS
from hccl_py.enums import POST, WAIT
from hccl_py.program.levels import levels, transfers
from hccl_py.program.matching import shared_cells
from hccl_py.program.program import Program
from hccl_py.values import IntArray

_NEVER = -1


class Order(NamedTuple):
    """Rank `first` posts to rank `then` of its host, right after it has done the task in row
    `after`; `then` waits at that place.
    """

    first: int
    then: int
    after: int

    @property
    def ranks(self) -> tuple[int, int]:
        """Who takes part."""
        return self.first, self.then


@dataclass(frozen=True, eq=False)
class Walk:
    """All tasks in the order in which ranks go through them: `rows`, level by level, the messages
    of a level first.

    By row: `level`, `place` in the program's walk, whether it `crosses` hosts. `host` has the
    number of every rank's host; `landing` is a slot of no buffer.
    """

    rows: IntArray
    level: IntArray
    place: IntArray
    crosses: npt.NDArray[np.bool_]
    host: IntArray
    landing: int

    @staticmethod
    def of(program: Program, hosts: Sequence[int]) -> Walk:
        """Return the walk of a program; raises where it is not clean."""
        level, crosses = levels(program, hosts), transfers(program, hosts)
        place = np.empty(len(level), np.int64)
        place[program.linked.order] = np.arange(len(level))
        rows = np.lexsort((place, ~crosses, level))
        landing = program.ranks * len(program.buffers)
        return Walk(rows, level, place, crosses, np.asarray(hosts), landing)

    @property
    def levels(self) -> int:
        """Number of levels, that before the first message included."""
        return int(self.level.max(initial=0)) + 1

    def key(self, row: int) -> tuple[int, float]:
        """Return where a task is: its level and its place in it."""
        return int(self.level[row]), float(self.place[row])


def missing_orders(program: Program, walk: Walk) -> list[Order]:
    """Return the posts that have to be added, in the walk's order of finding."""
    if not walk.crosses.any() or len(np.unique(walk.host)) == program.ranks:
        return []  # all on one host, where notifies are as they were; or nobody shares memory
    knowledge = _Knowledge(program, walk)
    for at in range(len(walk.rows)):
        knowledge.take(at)
    return knowledge.orders


class _Knowledge:
    """What every rank knows of the others while all go through the walk.

    `known[r, x]` is the last place in the walk up to which rank r knows rank x to have come.
    """

    def __init__(self, program: Program, walk: Walk) -> None:
        self.orders: list[Order] = []
        tasks = program.tasks
        self._walk, self._post_of = walk, program.linked.post_of
        self._rank, self._kind = tasks.rank, tasks.kind
        self._stays = np.isin(tasks.kind, (POST, WAIT))
        self._stays[self._stays] = is_on_one_host(program, walk.host, tasks.cell[self._stays])
        if program.counts_posts:  # where several streams post, it is open what a wait takes
            self._stays &= ~np.isin(tasks.cell, shared_cells(program))
        self._known = np.full((program.ranks, program.ranks), _NEVER, np.int64)
        self._posted: dict[int, IntArray] = {}
        self._sent, self._level = self._known, _NEVER
        moves = moves_of(program, walk.rows)
        self._accesses = _Accesses(program, walk, moves)
        self._number = dict(zip(moves.row.tolist(), range(len(moves)), strict=True))
        self._moves, self._buffers = moves, len(program.buffers)

    def take(self, at: int) -> None:
        """Go one task further."""
        row = int(self._walk.rows[at])
        rank, number = int(self._rank[row]), self._number.get(row)
        if self._walk.crosses[row] and number is not None:
            self._take_message(at, number)
            return
        if self._kind[row] == WAIT and self._stays[row]:
            known = self._posted.pop(int(self._post_of[row]))
            np.maximum(self._known[rank], known, out=self._known[rank])
        self._known[rank, rank] = at
        if self._kind[row] == POST and self._stays[row]:
            self._posted[row] = self._known[rank].copy()
        if number is not None:
            self._touch(rank, 2 * number)
            self._touch(rank, 2 * number + 1)

    def _take_message(self, at: int, number: int) -> None:
        """A message tells its receiver all that its sender knew before the level."""
        level = int(self._walk.level[self._walk.rows[at]])
        if level != self._level:
            self._sent, self._level = self._known.copy(), level
        sender = int(self._moves.src[number]) // self._buffers
        receiver = int(self._moves.dst[number]) // self._buffers
        np.maximum(self._known[receiver], self._sent[sender], out=self._known[receiver])
        for side, rank in ((0, sender), (1, receiver)):
            self._known[rank, rank] = at
            self._touch(rank, 2 * number + side)

    def _touch(self, rank: int, access: int) -> None:
        """Find what is missing to order an access after earlier ones."""
        for other, earlier in self._accesses.conflicts(access, rank, self._known[rank]):
            self.orders.append(Order(other, rank, int(self._walk.rows[earlier])))
            self._known[rank, other] = max(self._known[rank, other], earlier)


class _Accesses:
    """All accesses in the walk's order, slot by slot: what a move reads is access 2k, what it
    writes 2k + 1, for move k.
    """

    def __init__(self, program: Program, walk: Walk, moves: Moves) -> None:
        sides = (
            _side(program, moves.src, moves.src_offset, moves.size),
            _side(program, moves.dst, moves.dst_offset, moves.size),
        )
        slot, start, stop = (np.stack(pair, axis=1).ravel() for pair in zip(*sides, strict=True))
        owner = np.stack([moves.src, moves.dst], axis=1).ravel() // len(program.buffers)
        rank = np.repeat(program.tasks.rank[moves.row].astype(np.int64), 2)
        rank = np.where(np.repeat(walk.crosses[moves.row], 2), owner, rank)
        place = np.empty(len(walk.level), np.int64)
        place[walk.rows] = np.arange(len(walk.rows))
        order = np.argsort(slot, kind="stable")
        self._place = np.empty(len(order), np.int64)
        self._place[order] = np.arange(len(order))
        self._first = np.searchsorted(slot[order], slot).tolist()
        self._rank, self._at = rank[order], np.repeat(place[moves.row], 2)[order]
        self._start, self._stop = start[order], stop[order]
        writes = np.arange(len(order)) % 2 == 1
        self._writes = writes[order]
        self._adds = (writes & np.repeat(moves.is_atomic, 2))[order]
        shared = np.unique(np.stack([slot, rank]), axis=1)[0]
        self._is_shared = np.isin(slot, shared[1:][shared[1:] == shared[:-1]]).tolist()

    def conflicts(self, access: int, rank: int, known: IntArray) -> list[tuple[int, int]]:
        """Return ranks with the place of their last access that conflicts with this one and that
        is not known.
        """
        if not self._is_shared[access]:
            return []
        here = int(self._place[access])
        earlier = slice(self._first[access], here)
        who, at = self._rank[earlier], self._at[earlier]
        hits = (who != rank) & (at > known[who])
        if not hits.any():
            return []
        hits &= (self._start[earlier] < self._stop[here]) & (
            self._stop[earlier] > self._start[here]
        )
        if not self._writes[here]:
            hits &= self._writes[earlier]
        if self._adds[here]:
            hits &= ~self._adds[earlier]
        return [(int(x), int(at[hits & (who == x)].max())) for x in np.unique(who[hits])]


def is_on_one_host(program: Program, host: IntArray, cells: IntArray) -> npt.NDArray[np.bool_]:
    """Return for every notify whether it is between two ranks, both on one host. Those between the
    streams of a rank say nothing that the walk does not.
    """
    transports = program.transports
    found = cells < transports.cells
    end = cells[found] // transports.stride
    found[found] = host[transports.rank[end]] == host[transports.peer[end]]
    return found


def _side(
    program: Program, slots: IntArray, offsets: IntArray, sizes: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return slots, starts and stops. In place, IN and OUT of a rank share memory in one of several
    ways: they count as one slot, of which every access touches everything.
    """
    if not program.op.in_place:
        return slots, offsets, offsets + sizes
    buffers = len(program.buffers)
    user = [k for k, name in enumerate(program.buffers) if name in USER_BUFFERS]
    is_user = np.isin(slots % buffers, user)
    everything = np.iinfo(np.int64).max
    return (
        np.where(is_user, slots // buffers * buffers + min(user, default=0), slots),
        np.where(is_user, 0, offsets),
        np.where(is_user, everything, offsets + sizes),
    )
