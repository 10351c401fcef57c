"""Program files that are right, to be broken at one place: a full mesh for any op, task by task.

A flow is what an op means, range by range: bytes of one rank's input that belong somewhere in an
output. Several flows into one range are a reduction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hccl_py.formats import from_json
from hccl_py.program.program import Program
from hccl_py.verifier import Options, Report, verify_program

Task = list[Any]

RANKS = 4
ACK, DATA_SIGNAL, DATA_ACK = 0, 1, 2


class Flow(NamedTuple):
    """`size` bytes from `offset` of IN of `source` belong at `start` of OUT of `rank`."""

    source: int
    offset: int
    rank: int
    start: int
    size: int


@dataclass
class Sketch:
    """A document that is still being written; `at(rank, stream)` are tasks to change."""

    document: dict[str, Any]
    tasks: dict[tuple[int, int], list[Task]] = field(default_factory=dict)

    def at(self, rank: int, stream: int = 0) -> list[Task]:
        """Return the tasks of a stream, to be changed in place."""
        return self.tasks.setdefault((rank, stream), [])

    def put(self, rank: int, *tasks: Task, stream: int = 0) -> None:
        """Append tasks to a stream."""
        self.at(rank, stream).extend(tasks)

    def find(self, rank: int, *head: Any, stream: int = 0) -> int:
        """Return the position of the first task that begins so."""
        tasks = self.at(rank, stream)
        return next(k for k, task in enumerate(tasks) if task[: len(head)] == list(head))

    def drop(self, rank: int, *head: Any, stream: int = 0) -> None:
        """Leave out the first task that begins so."""
        del self.at(rank, stream)[self.find(rank, *head, stream=stream)]

    def move(self, rank: int, head: Sequence[Any], to: int) -> None:
        """Move the first task that begins so to another position of main."""
        tasks = self.at(rank)
        tasks.insert(to, tasks.pop(self.find(rank, *head)))

    def each(self, change: Callable[[Task], Task]) -> None:
        """Change every task."""
        for tasks in self.tasks.values():
            tasks[:] = map(change, tasks)

    def text(self) -> str:
        """Return the file."""
        tasks: dict[str, dict[str, list[Task]]] = {}
        for (rank, stream), listed in sorted(self.tasks.items()):
            if listed:
                tasks.setdefault(str(rank), {})[str(stream)] = listed
        return json.dumps({**self.document, "tasks": tasks})

    def program(self) -> Program:
        """Return the program of the file."""
        return from_json(self.text())

    def report(self, **options: Any) -> Report:
        """Verify the program."""
        return verify_program(self.program(), Options(**options))


def sketch(op: dict[str, Any], ranks: int, sizes: dict[str, int], link: str = "sdma") -> Sketch:
    """Return a document without tasks; every rank has buffers of the same sizes."""
    return Sketch(
        {
            "format": "hccl-py.program/1",
            "op": op,
            "ranks": ranks,
            "link": link,
            "exported": ["CCL"],
            "buffers": {str(rank): dict(sizes) for rank in range(ranks)},
        }
    )


def _sizes(flows: Sequence[Flow]) -> dict[str, int]:
    into = max((flow.offset + flow.size for flow in flows), default=0)
    return {"IN": into, "OUT": max((flow.start + flow.size for flow in flows), default=0)}


def mesh(op: dict[str, Any], flows: Sequence[Flow], ranks: int = RANKS) -> Sketch:
    """Stage every input in CCL; then each rank takes what it needs from each peer in turn.

    Ack says `my CCL is ready`, DataSignal `I have read yours`. Own data comes first; what comes
    into the same range later is reduced, in the order of the flows.
    """
    sizes = _sizes(flows)
    drawn = sketch(op, ranks, {**sizes, "CCL": sizes["IN"]})
    links = _links(flows, op, ranks)
    for rank in range(ranks):
        mine = [flow for flow in flows if flow.rank == rank]
        if any(flow.source == rank for flow in flows):
            drawn.put(rank, ["copy", ["IN", 0, sizes["IN"]], ["CCL", 0, sizes["IN"]]])
        for flow in mine:
            if flow.source == rank:
                drawn.put(rank, ["copy", *_ends(flow, "IN")])
        for peer in _others(rank, ranks):
            if (rank, peer) in links:
                drawn.put(rank, ["post", peer, ACK])
        for peer in _others(rank, ranks):
            if (peer, rank) not in links:
                continue
            drawn.put(rank, ["wait", peer, ACK])
            for flow in mine:
                if flow.source == peer:
                    drawn.put(rank, [*_verb(op, "read", flow, peer, mine), *_ends(flow, "CCL")])
            drawn.put(rank, ["post", peer, DATA_SIGNAL])
        for peer in _others(rank, ranks):
            if (rank, peer) in links:
                drawn.put(rank, ["wait", peer, DATA_SIGNAL])
    return drawn


def pushed(op: dict[str, Any], flows: Sequence[Flow], ranks: int = RANKS) -> Sketch:
    """The same over RDMA: each rank writes into the peer's CCL, into a slot of its own.

    Ack says `you may write to me`, DataSignal `it is there`, DataAck `I know`.
    """
    sizes = _sizes(flows)
    drawn = sketch(op, ranks, {**sizes, "CCL": sizes["OUT"] * ranks}, "rdma")
    links = _links(flows, op, ranks)
    for rank in range(ranks):
        mine = [flow for flow in flows if flow.rank == rank]
        for flow in mine:
            if flow.source == rank:
                drawn.put(rank, ["copy", *_ends(flow, "IN")])
        for peer in _others(rank, ranks):
            if (peer, rank) in links:
                drawn.put(rank, ["post", peer, ACK])
        for peer in _others(rank, ranks):
            if (rank, peer) not in links:
                continue
            drawn.put(rank, ["wait", peer, ACK])
            for flow in flows:
                if (flow.source, flow.rank) == (rank, peer):
                    place = rank * sizes["OUT"] + flow.start
                    src = ["IN", flow.offset, flow.size]
                    drawn.put(rank, ["write", peer, src, ["CCL", place, flow.size]])
            drawn.put(rank, ["post", peer, DATA_SIGNAL])
        for peer in _others(rank, ranks):
            if (peer, rank) not in links:
                continue
            drawn.put(rank, ["wait", peer, DATA_SIGNAL])
            for flow in mine:
                if flow.source == peer:
                    slot = ["CCL", peer * sizes["OUT"] + flow.start, flow.size]
                    out = ["OUT", flow.start, flow.size]
                    drawn.put(rank, [*_verb(op, "", flow, peer, mine), slot, out])
            drawn.put(rank, ["post", peer, DATA_ACK])
        for peer in _others(rank, ranks):
            if (rank, peer) in links:
                drawn.put(rank, ["wait", peer, DATA_ACK])
    return drawn


def _links(flows: Sequence[Flow], op: dict[str, Any], ranks: int) -> set[tuple[int, int]]:
    """Return (source, rank) for which data goes; in a barrier everyone hears from everyone."""
    if op["name"] == "barrier":
        return {(a, b) for a in range(ranks) for b in range(ranks) if a != b}
    return {(flow.source, flow.rank) for flow in flows if flow.source != flow.rank}


def _others(rank: int, ranks: int) -> list[int]:
    return [(rank + distance) % ranks for distance in range(1, ranks)]


def _ends(flow: Flow, buffer: str) -> list[list[Any]]:
    return [[buffer, flow.offset, flow.size], ["OUT", flow.start, flow.size]]


def _verb(op: dict[str, Any], verb: str, flow: Flow, peer: int, mine: list[Flow]) -> Task:
    """Return how a flow arrives: the first one into a range is copied, the others are reduced."""
    own = any(f.start == flow.start and f.source == flow.rank for f in mine)
    reduces = own and op.get("reduce") is not None
    if not verb:
        return ["reduce", op["reduce"]] if reduces else ["copy"]
    return [f"{verb}_reduce", peer, op["reduce"]] if reduces else [verb, peer]


SIZE = 64

ALL_GATHER = {"name": "all_gather", "dtype": "uint8", "count": SIZE}
ALL_REDUCE = {"name": "all_reduce", "dtype": "fp32", "count": SIZE // 4, "reduce": "sum"}


def all_gather() -> Sketch:
    """Return a mesh all-gather of 4 ranks, 64 bytes each.

    Rank r's main: 0 and 1 copies of its input to CCL and OUT; 2 to 4 Acks to r+1, r+2 and r+3;
    from 5 on wait, read and DataSignal for each of them; 14 to 16 waits for theirs.
    """
    ranks = range(RANKS)
    return mesh(ALL_GATHER, [Flow(s, 0, r, s * SIZE, SIZE) for r in ranks for s in ranks])


def all_reduce(**changes: Any) -> Sketch:
    """Return a mesh all-reduce of 4 ranks, 64 bytes each; tasks as in `all_gather`."""
    ranks = range(RANKS)
    return mesh(ALL_REDUCE | changes, [Flow(s, 0, r, 0, SIZE) for r in ranks for s in ranks])
