"""The order in which the ranks of several hosts go through a program, and the posts that this order
needs besides the program's own.

Messages order the two ranks that exchange them, notifies the ranks of one host. Memory of a third
rank can fall between the two: a rank of host A writes to the memory of a second rank of A and posts
to a rank of host B, which then sends to the second rank, or reads from it. The program orders both
accesses by that post; but a post to another host is no message that the second rank receives, so
the second rank does not know about it. `missing_orders` tracks which tasks of the others every rank
knows to be done, finds conflicting accesses whose order is unknown, and has the first rank post to
the second on their host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_platform.lowering.memory import USER_BUFFERS
from hccl_platform.lowering.moves import Moves, moves_of
from hccl_py.enums import POST, WAIT
from hccl_py.program.levels import levels, transfers
from hccl_py.program.matching import shared_cells
from hccl_py.program.program import Program
from hccl_py.values import IntArray

_NEVER = -1


class Order(NamedTuple):
    """A post from rank `first` to rank `then` of its host, right after `first` has done the task in
    row `after`; `then` waits at the same place of the walk.
    """

    first: int
    then: int
    after: int


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
        """Return the walk of a program.

        DeadlockError or OrchestrationError if the program cannot end well.
        """
        level, crosses = levels(program, hosts), transfers(program, hosts)
        place = np.empty(len(level), np.int64)
        place[program.linked.order] = np.arange(len(level))
        rows = np.lexsort((place, ~crosses, level))
        landing = program.ranks * len(program.buffers)
        return Walk(rows, level, place, crosses, np.asarray(hosts), landing)

    @property
    def levels(self) -> int:
        """The number of levels, including the one before the first message."""
        return int(self.level.max(initial=0)) + 1

    def key(self, row: int) -> tuple[int, float]:
        """Return the level of a task and its place in the level."""
        return int(self.level[row]), float(self.place[row])


def missing_orders(program: Program, walk: Walk) -> list[Order]:
    """Return the posts that have to be added, in the order of the walk.

    Cost: tasks × ranks for the clocks, and per access the earlier accesses of its slot.
    """
    if not walk.crosses.any() or len(np.unique(walk.host)) == program.ranks:
        return []  # one host, whose notifies order everything; or no host with two ranks
    # Invariant: after position `at` of the walk, every pair of conflicting accesses so far is
    # ordered by a message, a notify, or one of `knowledge.orders`.
    knowledge = _Knowledge(program, walk)
    for at in range(len(walk.rows)):
        knowledge.take(at)
    return knowledge.orders


class _Knowledge:
    """Vector clocks of all ranks, while these go through the walk together.

    `_known[r, x]` is the last position of the walk up to which rank r knows rank x to be done;
    `_posted` has by row of a post the poster's clock then, `_sent` all clocks before the messages
    of `_level`.
    """

    def __init__(self, program: Program, walk: Walk) -> None:
        self.orders: list[Order] = []
        tasks = program.tasks
        self._walk, self._post_of = walk, program.linked.post_of
        self._rank, self._kind = tasks.rank, tasks.kind
        self._stays = np.isin(tasks.kind, (POST, WAIT))
        self._stays[self._stays] = is_on_one_host(program, walk.host, tasks.cell[self._stays])
        if program.counts_posts:  # a wait may take the post of any of several streams
            self._stays &= ~np.isin(tasks.cell, shared_cells(program))
        self._known = np.full((program.ranks, program.ranks), _NEVER, np.int64)
        self._posted: dict[int, IntArray] = {}
        self._sent, self._level = self._known, _NEVER
        moves = moves_of(program, walk.rows)
        self._accesses = _Accesses(program, walk, moves)
        self._number = dict(zip(moves.row.tolist(), range(len(moves)), strict=True))
        self._moves, self._buffers = moves, len(program.buffers)

    def take(self, at: int) -> None:
        """Advance the clocks by the task at position `at` of the walk."""
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
        """Give the receiver of a message the clock that its sender had before the level."""
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
        """Add the posts that order an access after conflicting earlier ones."""
        for other, earlier in self._accesses.conflicts(access, rank, self._known[rank]):
            self.orders.append(Order(other, rank, int(self._walk.rows[earlier])))
            self._known[rank, other] = max(self._known[rank, other], earlier)


class _Accesses:
    """All accesses slot by slot, in the walk's order: move k reads as access 2k, writes as 2k + 1.

    Columns are in that order: `_rank` has the rank that accesses, `_at` the position in the walk,
    `_start` and `_stop` bytes, `_adds` marks atomic reductions. By number of the access: `_place`
    is its row in the columns, `_first` the first row of its slot.
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
        """Return the ranks that have conflicting accesses at positions not in `known`, each with
        the last such position.
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
    """Return a mask of the notifies between two ranks of one host. Notifies between the streams of
    one rank are not among them: the walk orders those tasks already.
    """
    transports = program.transports
    found = cells < transports.cells
    end = cells[found] // transports.stride
    found[found] = host[transports.rank[end]] == host[transports.peer[end]]
    return found


def _side(
    program: Program, slots: IntArray, offsets: IntArray, sizes: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return slots, starts and stops of one side of all moves. In calls in place, IN and OUT of a
    rank count as one slot, and every access covers all of it: there are several ways to share it.
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
