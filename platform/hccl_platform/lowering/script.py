"""One rank's script for a program whose ranks are on several hosts: messages and tasks by turns.

    level 1    messages to and from other hosts, all at once    then tasks on this host
    level 2    messages                                         then tasks
    ...

A transfer between hosts becomes a message, whichever end issues it in the program. Its level is
the number of such transfers on the longest chain that ends in it. All ranks go through their levels
in order, and through the tasks of a level in the order of the program's walk. So nobody waits for
what comes later: whoever is behind in (level, walk) can always go on.

No notify crosses hosts: a message orders its two ends, and order between hosts matters to nobody
else, but for memory that a third rank of the host touches; `orders.py` finds what that takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hccl_platform.lowering.moves import COPY, Moves, moves_of
from hccl_platform.lowering.orders import Order, Walk, is_on_one_host, missing_orders
from hccl_platform.lowering.part import (
    MOVE,
    ORDER,
    USER_BUFFERS,
    Cell,
    Part,
    Task,
    atomic_moves,
    cell_of,
)
from hccl_py.enums import POST, WAIT
from hccl_py.program.program import Program
from hccl_py.program.slots import remote_slots
from hccl_py.values import IntArray

SMALL = 1 << 17
"""Bytes up to which a message shares a packet with others of its level and peer."""

PACKET = 1 << 18
"""Bytes that a packet has at most."""

LARGEST = 1 << 30
"""Bytes that a message has at most: larger ones are cut."""

_ALIGN = 64


class Range(NamedTuple):
    """Bytes of a slot."""

    slot: int
    start: int
    stop: int


class Message(NamedTuple):
    """What travels at once to or from a peer: one range as it is, or a packet of small ones.

    The first message of a program between two ranks, in each direction, `opens`: it is a packet,
    if only of nothing, and has room for what both must agree on.
    """

    peer: int
    ranges: tuple[Range, ...]
    is_packet: bool
    opens: bool

    @property
    def size(self) -> int:
        """Bytes of its ranges."""
        return sum(part.stop - part.start for part in self.ranges)


class Exchange(NamedTuple):
    """The messages of a level; both ends list those between them in the same order."""

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]


@dataclass(frozen=True, eq=False)
class Script:
    """What one rank does: exchange k, then the tasks `part.streams[k]`, for every k.

    What is reduced on arrival is received in slot `landing`, behind the program's slots, of
    `landing_bytes`.
    """

    part: Part
    exchanges: tuple[Exchange, ...]
    landing: int
    landing_bytes: int

    @property
    def slots(self) -> list[int]:
        """The slots of the program that are touched here."""
        both = [m for e in self.exchanges for m in (*e.sends, *e.receives)]
        used = {r.slot for m in both for r in m.ranges} | set(self.part.slots)
        return sorted(used - {self.landing})


def script_of(program: Program, rank: int, hosts: Sequence[int]) -> Script:
    """Return the script of one rank; `hosts` has the number of every rank's host.

    DeadlockError or OrchestrationError where the program is not clean, or a task leaves its
    buffers.
    """
    walk = Walk.of(program, hosts)
    tasks, buffers = program.tasks, len(program.buffers)
    is_mine = (tasks.rank[walk.rows] == rank) | (
        walk.crosses[walk.rows] & (tasks.peer[walk.rows] == rank)
    )
    rows = walk.rows[is_mine]
    moves = moves_of(program, rows)
    crosses, arrives = walk.crosses[moves.row], moves.dst // buffers == rank
    exchanges = _exchanges(rank, buffers, moves.taken(crosses), walk)
    moves, landing_bytes = _landing(
        moves.taken(~crosses | (arrives & (moves.op != COPY))), walk, program.ranks * buffers
    )
    orders = [order for order in missing_orders(program, walk) if rank in order.ranks]
    part = _part(program, rank, moves, _notifies(program, rows, walk), orders, walk)
    return Script(part, exchanges, program.ranks * buffers, landing_bytes)


def _landing(moves: Moves, walk: Walk, landing: int) -> tuple[Moves, int]:
    """Let what is reduced on arrival come from the landing slot; return also the bytes of that."""
    src, offset, most = moves.src.copy(), moves.src_offset.copy(), 0
    arrives = walk.crosses[moves.row]
    src[arrives] = landing
    level = walk.level[moves.row]
    for at in np.unique(level[arrives]).tolist():
        chosen = np.flatnonzero(arrives & (level == at))
        padded = -(-moves.size[chosen] // _ALIGN) * _ALIGN
        ends = np.cumsum(padded)
        offset[chosen] = ends - padded
        most = max(most, int(ends[-1]))
    return replace(moves, src=src, src_offset=offset), most


def _notifies(program: Program, rows: IntArray, walk: Walk) -> IntArray:
    """Return the posts and waits among these rows between two ranks of one host."""
    tasks = program.tasks
    rows = rows[np.isin(tasks.kind[rows], (POST, WAIT))]
    return rows[is_on_one_host(program, walk.host, tasks.cell[rows])]


def _part(
    program: Program,
    rank: int,
    moves: Moves,
    notifies: IntArray,
    orders: Sequence[Order],
    walk: Walk,
) -> Part:
    """Return all that is done on this host; a stream has the tasks of a level, in the walk's
    order.
    """
    tasks, shares = program.tasks, (walk.host == walk.host[rank]).sum() > 1
    items: list[tuple[int, float, Task]] = []
    for number, row in enumerate(moves.row.tolist()):
        items.append((*walk.key(row), Task(MOVE, number, int(tasks.index[row]))))
    kinds = tasks.kind[notifies].tolist()
    for row, kind in zip(notifies.tolist(), kinds, strict=True):
        task = Task(kind, int(tasks.cell[row]), int(tasks.index[row]))
        items.append((*walk.key(row), task))
    cells = {
        cell: cell_of(program, rank, cell) for cell in np.unique(tasks.cell[notifies]).tolist()
    }
    for order in orders:
        level, place = walk.key(order.after)
        number = program.cells + order.first * program.ranks + order.then
        cells[number] = Cell(order.then, order.first, ORDER, 0)
        task = Task(POST if order.first == rank else WAIT, number, -1)
        items.append((level, place + 0.5, task))
    streams: list[list[Task]] = [[] for _ in range(walk.levels)]
    for level, _, task in sorted(items):
        streams[level].append(task)
    return Part(
        rank=rank,
        streams=tuple(map(tuple, streams)),
        moves=moves,
        cells=cells,
        atomic=atomic_moves(program, moves),
        remote_user_slots=remote_slots(program, USER_BUFFERS) if shares else frozenset(),
    )


def _exchanges(rank: int, buffers: int, moves: Moves, walk: Walk) -> tuple[Exchange, ...]:
    """Return the messages of every level."""
    sends, receives = Side(walk.levels), Side(walk.levels)
    landed = [0] * walk.levels
    columns = zip(
        walk.level[moves.row].tolist(),
        moves.op.tolist(),
        moves.dst.tolist(),
        moves.dst_offset.tolist(),
        moves.src.tolist(),
        moves.src_offset.tolist(),
        moves.size.tolist(),
        strict=True,
    )
    for level, op, dst, dst_offset, src, src_offset, size in columns:
        if src // buffers == rank:
            sends.add(level, dst // buffers, Range(src, src_offset, src_offset + size))
        elif op == COPY:
            receives.add(level, src // buffers, Range(dst, dst_offset, dst_offset + size))
        else:
            start = landed[level]
            landed[level] += -(-size // _ALIGN) * _ALIGN
            receives.add(level, src // buffers, Range(walk.landing, start, start + size))
    pairs = zip(sends.messages(), receives.messages(), strict=True)
    return tuple(Exchange(*pair) for pair in pairs)


class Side:
    """What a rank sends, or what it receives, by level and peer."""

    def __init__(self, levels: int) -> None:
        self._ranges: list[dict[int, list[Range]]] = [{} for _ in range(levels)]
        self._open: set[int] = set()

    def add(self, level: int, peer: int, part: Range) -> None:
        """Add a range, after those of the same level and peer."""
        self._ranges[level].setdefault(peer, []).append(part)

    def messages(self) -> Iterator[tuple[Message, ...]]:
        """Yield the messages of every level."""
        for level in self._ranges:
            yield tuple(m for peer, parts in level.items() for m in self._of_peer(peer, parts))

    def _of_peer(self, peer: int, parts: Iterable[Range]) -> Iterator[Message]:
        """Small ranges share packets, large ones travel as they are, the largest in pieces."""
        packets: list[list[Range]] = [[]]
        whole: list[Range] = []
        room = PACKET
        for part in parts:
            size = part.stop - part.start
            if size > SMALL:
                starts = range(part.start, part.stop, LARGEST)
                whole += [part._replace(start=s, stop=min(s + LARGEST, part.stop)) for s in starts]
                continue
            if size > room:
                packets.append([])
                room = PACKET
            packets[-1].append(part)
            room -= size
        for packet in packets:
            opens = peer not in self._open
            self._open.add(peer)
            if packet or opens:
                yield Message(peer, tuple(packet), True, opens)
        for part in whole:
            yield Message(peer, (part,), False, False)
