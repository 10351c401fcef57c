"""One rank's script for a program whose ranks are on several hosts: messages and tasks in turn.

    level 1    messages to and from other hosts, all at once    then tasks on this host
    level 2    messages                                         then tasks
    ...

A transfer between hosts becomes a message, whichever end issues it in the program. Its level is
the number of such transfers on the longest chain that ends in it. All ranks go through their levels
in order, and through the tasks of a level in the order of the program's walk. So no rank waits for
a later task: the rank that is furthest behind in (level, walk) can always go on.

No notify crosses hosts: a message orders its two ends, and no other rank depends on that order,
except for memory that a third rank of the host accesses; `orders.py` adds posts for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hccl_platform.lowering.memory import USER_BUFFERS
from hccl_platform.lowering.moves import COPY, Moves, moves_of
from hccl_platform.lowering.orders import Order, Walk, is_on_one_host, missing_orders
from hccl_platform.lowering.part import MOVE, ORDER, Cell, RankPart, Task, atomic_moves, cell_of
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


class SlotRange(NamedTuple):
    """A range of bytes of a slot."""

    slot: int
    start: int
    stop: int


class HostMessage(NamedTuple):
    """A message to or from a rank of another host: one range as it is, or a packet of small ones.

    The first message of a program between two ranks, in each direction, `opens`: it is a packet,
    perhaps an empty one, with room for the identity of the call.
    """

    peer: int
    ranges: tuple[SlotRange, ...]
    is_packet: bool
    opens: bool

    @property
    def size(self) -> int:
        """Bytes of its ranges."""
        return sum(part.stop - part.start for part in self.ranges)


class LevelExchange(NamedTuple):
    """The messages of a level; both ends of a pair list theirs in the same order."""

    sends: tuple[HostMessage, ...]
    receives: tuple[HostMessage, ...]


@dataclass(frozen=True, eq=False)
class Script:
    """The steps of one rank: exchange k, then the tasks `part.streams[k]`, for every k.

    Data to be reduced on arrival is received in slot `landing` of `landing_bytes`, which is behind
    the program's slots.
    """

    part: RankPart
    exchanges: tuple[LevelExchange, ...]
    landing: int
    landing_bytes: int

    @property
    def slots(self) -> list[int]:
        """The slots of the program that the script reads or writes."""
        both = [m for e in self.exchanges for m in (*e.sends, *e.receives)]
        used = {r.slot for m in both for r in m.ranges} | set(self.part.moves.slots)
        return sorted(used - {self.landing})


def script_of(program: Program, rank: int, hosts: Sequence[int]) -> Script:
    """Return the script of one rank; `hosts` has the number of every rank's host.

    DeadlockError or OrchestrationError if the program cannot end well, or a task leaves its
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
    orders = [o for o in missing_orders(program, walk) if rank in (o.first, o.then)]
    part = _part(program, rank, moves, _notifies(program, rows, walk), orders, walk)
    return Script(part, exchanges, program.ranks * buffers, landing_bytes)


def _landing(moves: Moves, walk: Walk, landing: int) -> tuple[Moves, int]:
    """Let reductions on arrival read the landing slot; return the moves and that slot's bytes."""
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
) -> RankPart:
    """Return the tasks on this host, the tasks of a level as one stream, in the walk's order."""
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
    return RankPart(
        rank=rank,
        streams=tuple(map(tuple, streams)),
        moves=moves,
        cells=cells,
        atomic=atomic_moves(program, moves),
        remote_user_slots=remote_slots(program, USER_BUFFERS) if shares else frozenset(),
    )


def _exchanges(rank: int, buffers: int, moves: Moves, walk: Walk) -> tuple[LevelExchange, ...]:
    """Return the messages of every level."""
    sends: list[tuple[int, int, SlotRange]] = []
    receives: list[tuple[int, int, SlotRange]] = []
    landed = [0] * walk.levels
    rows = zip(walk.level[moves.row].tolist(), moves.op.tolist(), moves.steps, strict=True)
    for level, op, (dst, start, stop, src, low, high, *_) in rows:
        if src // buffers == rank:
            sends.append((level, dst // buffers, SlotRange(src, low, high)))
        elif op == COPY:
            receives.append((level, src // buffers, SlotRange(dst, start, stop)))
        else:
            at = landed[level]
            landed[level] += -(-(stop - start) // _ALIGN) * _ALIGN
            landing = SlotRange(walk.landing, at, at + stop - start)
            receives.append((level, src // buffers, landing))
    pairs = zip(messages_of(walk.levels, sends), messages_of(walk.levels, receives), strict=True)
    return tuple(LevelExchange(*pair) for pair in pairs)


def messages_of(
    levels: int, pieces: Iterable[tuple[int, int, SlotRange]]
) -> list[tuple[HostMessage, ...]]:
    """Return the messages of every level in one direction; `pieces` has the level, the peer and the
    range of everything that travels, in order.
    """
    by_level: list[dict[int, list[SlotRange]]] = [{} for _ in range(levels)]
    for level, peer, piece in pieces:
        by_level[level].setdefault(peer, []).append(piece)
    found, opened = [], set[int]()
    for ranges_of in by_level:
        of_level: list[HostMessage] = []
        for peer, ranges in ranges_of.items():
            of_level += _messages_of_peer(peer, ranges, opens=peer not in opened)
        opened |= ranges_of.keys()
        found.append(tuple(of_level))
    return found


def _messages_of_peer(
    peer: int, ranges: Sequence[SlotRange], *, opens: bool
) -> Iterator[HostMessage]:
    """Yield packets of small ranges, then large ranges as they are, the largest in pieces."""
    packets: list[list[SlotRange]] = [[]]
    whole: list[SlotRange] = []
    room = PACKET
    for part in ranges:
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
    for number, packet in enumerate(packets):
        is_opening = opens and number == 0
        if packet or is_opening:
            yield HostMessage(peer, tuple(packet), is_packet=True, opens=is_opening)
    for part in whole:
        yield HostMessage(peer, (part,), is_packet=False, opens=False)
