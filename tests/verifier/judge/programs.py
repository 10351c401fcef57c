"""Random programs of the JSON format: algorithms on two to four ranks, right as they are, and up to
three mistakes made in them.

An algorithm is a list of rounds, and a round a list of transfers, at most one for each ordered pair
of ranks. Every transfer has its own signals: the reader or the owner of the target says that it is
ready, the other side that the data has come.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

Document = dict[str, Any]
Slice = list[Any]
Rows = list[list[Any]]

ACK, DATA, DATA_ACK = 0, 1, 2
OPS = ("all_gather", "all_reduce", "broadcast", "all_to_all", "reduce_scatter")


@dataclass
class Transfer:
    """Data of `source`, to `target`; `adds` where it is added to what lies there."""

    source: int
    target: int
    src: Slice
    dst: Slice
    adds: bool = False


@dataclass
class Sketch:
    """A program while it is written: its links' kinds and directions, and every stream's tasks."""

    ranks: int
    random: Random
    with_streams: bool
    pushes: bool
    rdma: set[frozenset[int]]
    tasks: dict[int, dict[int, Rows]] = field(default_factory=dict)

    def main(self, rank: int) -> Rows:
        """Return the tasks of a rank's main stream."""
        return self.tasks.setdefault(rank, {}).setdefault(0, [])

    def copy(self, rank: int, src: Slice, dst: Slice, *, adds: bool = False) -> None:
        """Append a local copy or reduction to main."""
        self.main(rank).append([*(["reduce", "sum"] if adds else ["copy"]), src, dst])

    def round(self, transfers: list[Transfer]) -> None:
        """Append a round: on main, or on a sub stream for each peer."""
        for rank in range(self.ranks):
            parts: dict[int, tuple[Rows, Rows, Rows]] = {}
            for transfer in transfers:
                if rank in (transfer.source, transfer.target):
                    peer = transfer.source + transfer.target - rank
                    part = parts.setdefault(peer, ([], [], []))
                    for rows, added in zip(part, self._rows(rank, peer, transfer), strict=True):
                        rows.extend(added)
            if self.with_streams:
                self._fork(rank, {peer: [*a, *b, *c] for peer, (a, b, c) in parts.items()})
            else:
                for phase in range(3):
                    for part in parts.values():
                        self.main(rank).extend(part[phase])

    def _fork(self, rank: int, parts: dict[int, Rows]) -> None:
        streams = {peer: 1 + peer - (peer > rank) for peer in parts}
        main = self.main(rank)
        main.extend(["local_post", stream, 0] for stream in streams.values())
        for peer, rows in parts.items():
            stream = self.tasks[rank].setdefault(streams[peer], [])
            stream.extend([["local_wait", 0], *rows, ["local_post", 0, streams[peer]]])
        main.extend(["local_wait", stream] for stream in streams.values())

    def _rows(self, rank: int, peer: int, one: Transfer) -> tuple[Rows, Rows, Rows]:
        """Return one side of a transfer in three phases: ready, move, done."""
        is_rdma = frozenset((rank, peer)) in self.rdma
        reduce = ["sum"] if one.adds else []
        name = "_reduce" if one.adds else ""
        is_source = rank == one.source
        if self.pushes or is_rdma:
            if is_source:
                move = [f"write{name}", peer, *reduce, one.src, one.dst]
                last = [["wait", peer, DATA_ACK]] if is_rdma else []
                return [], [["wait", peer, ACK], move, ["post", peer, DATA]], last
            last = [["post", peer, DATA_ACK]] if is_rdma else []
            return [["post", peer, ACK]], [], [["wait", peer, DATA], *last]
        if is_source:
            return [["post", peer, ACK]], [], [["wait", peer, DATA]]
        move = [f"read{name}", peer, *reduce, one.src, one.dst]
        return [], [["wait", peer, ACK], move, ["post", peer, DATA]], []


def random_program(seed: int) -> Document:
    """Return a program, with no mistake in every fourth, and with up to three in the others."""
    random = Random(seed)
    ranks, op, size = random.randint(2, 4), random.choice(OPS), random.choice((1, 3, 8))
    pairs = [frozenset((a, b)) for a in range(ranks) for b in range(a)]
    kinds = random.choice(("sdma", "rdma", "mixed"))
    rdma = {p for p in pairs if kinds == "rdma" or (kinds == "mixed" and random.random() < 0.5)}
    sketch = Sketch(ranks, random, random.random() < 0.4, random.random() < 0.5, rdma)
    in_place: bool | str = False
    if op in ("all_gather", "all_reduce", "reduce_scatter") and random.random() < 0.2:
        in_place = random.choice((True, "start"))
    algorithm = random.choice(ALGORITHMS[op])
    algorithm(sketch, size)
    document = _document(sketch, op, size, in_place)
    if random.random() < 0.15:
        document["notifies"] = "counting"
    if random.random() < 0.15:
        document["alternating"] = ["CCL"]
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        _break(document, random)
    return document


def _document(sketch: Sketch, op: str, size: int, in_place: bool | str) -> Document:
    n, whole = sketch.ranks, size * sketch.ranks
    inputs = {"all_gather": size, "broadcast": size}.get(op, whole)
    outputs = {"reduce_scatter": size, "broadcast": size}.get(op, whole)
    count = whole if op == "all_reduce" else size
    buffers = {"IN": inputs, "OUT": outputs, "CCL": 2 * whole}
    parts = ["IN", "OUT", "CCL"]
    return {
        "format": "hccl-py.program/1",
        "op": {
            **{"name": op, "dtype": "uint8", "count": count, "in_place": in_place},
            "reduce": "sum" if "reduce" in op else None,
            "root": 0 if op == "broadcast" else None,
        },
        "ranks": n,
        "links": [
            {
                **{"id": k, "ranks": sorted(pair), "notifies": 3, "plane": "flat"},
                "kind": "rdma" if pair in sketch.rdma else "sdma",
                "exports": {str(rank): parts for rank in sorted(pair)},
            }
            for k, pair in enumerate(frozenset((a, b)) for a in range(n) for b in range(a))
        ],
        "buffers": {str(rank): dict(buffers) for rank in range(n)},
        "tasks": {
            str(rank): {str(stream): rows for stream, rows in streams.items() if rows}
            for rank, streams in sketch.tasks.items()
        },
    }


def _slot(buffer: str, place: int, size: int) -> Slice:
    return [buffer, place * size, size]


def _gather_staged(sketch: Sketch, size: int) -> None:
    everywhere = range(sketch.ranks)
    for rank in everywhere:
        sketch.copy(rank, _slot("IN", 0, size), _slot("CCL", rank, size))
        sketch.copy(rank, _slot("IN", 0, size), _slot("OUT", rank, size))
    sketch.round(
        [
            Transfer(a, b, _slot("CCL", a, size), _slot("OUT", a, size))
            for a in everywhere
            for b in everywhere
            if a != b
        ]
    )


def _gather_ring(sketch: Sketch, size: int) -> None:
    n = sketch.ranks
    for rank in range(n):
        sketch.copy(rank, _slot("IN", 0, size), _slot("CCL", rank, size))
    for step in range(n - 1):
        slots = [(rank - step) % n for rank in range(n)]
        sketch.round(
            [
                Transfer(r, (r + 1) % n, _slot("CCL", slots[r], size), _slot("CCL", slots[r], size))
                for r in range(n)
            ]
        )
    for rank in range(n):
        sketch.copy(rank, _slot("CCL", 0, n * size), _slot("OUT", 0, n * size))


def _reduce_mesh(sketch: Sketch, size: int, *, gathers: bool) -> None:
    """Sum slots in CCL, as they arrive or in turn, and gather them where all ranks need all."""
    n = sketch.ranks
    for rank in range(n):
        sketch.copy(rank, _slot("IN", 0, n * size), _slot("CCL", 0, n * size))
    if sketch.random.random() < 0.5:
        shifts = [[shift] for shift in range(1, n)]
    else:
        shifts = [list(range(1, n))]
    for group in shifts:
        transfers = []
        for shift in group:
            for rank in range(n):
                to = (rank + shift) % n
                place = n + to if len(group) == 1 else to
                src, dst = _slot("IN", to, size), _slot("CCL", place, size)
                transfers.append(Transfer(rank, to, src, dst, adds=len(group) > 1))
        sketch.round(transfers)
        for rank in range(n) if len(group) == 1 else ():
            landed, slot = _slot("CCL", n + rank, size), _slot("CCL", rank, size)
            sketch.copy(rank, landed, slot, adds=True)
    if gathers:
        every = [(a, b) for a in range(n) for b in range(n) if a != b]
        slots = [_slot("CCL", rank, size) for rank in range(n)]
        sketch.round([Transfer(a, b, slots[a], _slot("OUT", a, size)) for a, b in every])
    for rank in range(n):
        place = rank if gathers else 0
        sketch.copy(rank, _slot("CCL", rank, size), _slot("OUT", place, size))


def _all_reduce(sketch: Sketch, size: int) -> None:
    _reduce_mesh(sketch, size, gathers=True)


def _reduce_scatter(sketch: Sketch, size: int) -> None:
    _reduce_mesh(sketch, size, gathers=False)


def _broadcast_star(sketch: Sketch, size: int) -> None:
    sketch.copy(0, _slot("IN", 0, size), _slot("CCL", 0, size))
    peers = range(1, sketch.ranks)
    sketch.round([Transfer(0, p, _slot("CCL", 0, size), _slot("OUT", 0, size)) for p in peers])


def _broadcast_chain(sketch: Sketch, size: int) -> None:
    for rank in range(sketch.ranks - 1):
        src = _slot("OUT" if rank else "IN", 0, size)
        sketch.round([Transfer(rank, rank + 1, src, _slot("OUT", 0, size))])


def _all_to_all(sketch: Sketch, size: int) -> None:
    n = sketch.ranks
    for rank in range(n):
        sketch.copy(rank, _slot("IN", rank, size), _slot("OUT", rank, size))
    every = [(a, b) for a in range(n) for b in range(n) if a != b]
    sketch.round([Transfer(a, b, _slot("IN", b, size), _slot("OUT", a, size)) for a, b in every])


ALGORITHMS: dict[str, tuple[Callable[[Sketch, int], None], ...]] = {
    "all_gather": (_gather_staged, _gather_ring),
    "all_reduce": (_all_reduce,),
    "broadcast": (_broadcast_star, _broadcast_chain),
    "all_to_all": (_all_to_all,),
    "reduce_scatter": (_reduce_scatter,),
}


def _break(document: Document, random: Random) -> None:
    """Make one mistake, at one rank or at all alike."""
    mistake = random.choice((_delete, _swap, _move, _repeat, _renumber, _shift))
    tasks = document["tasks"]
    busy = [
        (rank, stream) for rank, streams in tasks.items() for stream in streams if streams[stream]
    ]
    rank, stream = random.choice(busy)
    at, seed = random.randrange(len(tasks[rank][stream])), random.random()
    is_everywhere = random.random() < 0.25
    for one in tasks if is_everywhere else (rank,):
        rows = tasks[one].get(stream, [])
        if at < len(rows):
            mistake(document, one, rows, at, Random(seed))


def _delete(document: Document, rank: str, rows: Rows, at: int, random: Random) -> None:
    del rows[at]


def _swap(document: Document, rank: str, rows: Rows, at: int, random: Random) -> None:
    other = random.randrange(len(rows))
    rows[at], rows[other] = rows[other], rows[at]


def _move(document: Document, rank: str, rows: Rows, at: int, random: Random) -> None:
    """Move a task to another stream of its rank."""
    streams = document["tasks"][rank]
    target = random.choice([*streams.values()])
    row = rows.pop(at)
    target.insert(random.randint(0, len(target)), row)


def _repeat(document: Document, rank: str, rows: Rows, at: int, random: Random) -> None:
    rows.insert(random.randint(0, len(rows)), deepcopy(rows[at]))


def _renumber(document: Document, rank: str, rows: Rows, at: int, random: Random) -> None:
    """Let a post or a wait name another notify."""
    if rows[at][0] in ("post", "wait"):
        rows[at][2] = random.randrange(3)


def _shift(document: Document, rank: str, rows: Rows, at: int, random: Random) -> None:
    """Shift a slice, within its buffer."""
    slices = [part for part in rows[at] if isinstance(part, list)]
    if slices:
        place = random.choice(slices)
        room = document["buffers"][rank].get(place[0], 0) - place[2]
        place[1] = random.randint(0, max(room, 0))
