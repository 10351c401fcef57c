"""The stream of the job on which a node is issued.

Kernels go to the stream that they name, or to `compute`, `cpu`, `memory`, `storage`. Traces of
other tools name no stream of a group on which all ranks agree. So every group gets one, and groups
that share no rank share a stream: the groups of one kind of parallelism are side by side. Messages
have streams of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hccl_interop.chakra.values import (
    Collective,
    NodeType,
    RankFile,
    Trace,
    TraceMessage,
    TraceNode,
)
from hccl_py.documents.checks import defect

Comm: TypeAlias = str | tuple[int, int, int]
"""A group by its name, or the messages of a source to a destination, of one tag where that
matters, else -1."""

MAX_STREAMS = 2048
"""Of a job: one for every rank that a rank of a large one exchanges messages with."""

_KERNELS = {
    NodeType.MEM_LOAD_NODE: "memory",
    NodeType.MEM_STORE_NODE: "memory",
    NodeType.STORAGE_NODE: "storage",
    NodeType.BATCH_NODE: "storage",
    NodeType.CHECKPOINT_NODE: "storage",
}


def is_issued(node: TraceNode) -> bool:
    """True for a node with a task: metadata has none, nor have calls without data."""
    if node.call is None:
        return node.type not in (NodeType.METADATA_NODE, NodeType.INVALID_NODE)
    is_barrier = isinstance(node.call, Collective) and node.call.op == "barrier"
    return node.call.size > 0 or is_barrier


def comm_of(trace: Trace, node: TraceNode) -> Comm | None:
    """Return the group or message pair of a node; None for a kernel."""
    call = node.call
    if isinstance(call, TraceMessage):
        pair = call.source, call.destination
        return (*pair, -1 if trace.is_in_order[pair] else call.tag)
    return None if call is None else call.group


def members_of(trace: Trace, comm: Comm) -> tuple[int, ...]:
    """Return the ranks of a group or message pair, in its order."""
    return trace.groups[comm].ranks if isinstance(comm, str) else comm[:2]


class TraceStreams:
    """The streams of a trace's job: `names`, and the stream of every node."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._of_comm = {} if trace.streams else _streams_of_comms(trace)
        self.names = trace.streams or self._made_names()
        if len(self.names) > MAX_STREAMS:
            found, hint = f"{len(self.names)}", "Let kernels share streams; devices have some tens."
            raise defect("$", f"at most {MAX_STREAMS} streams", found, hint)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def of(self, rank: RankFile) -> tuple[int, ...]:
        """Return the stream of every node of a rank, -1 for a node without a task."""
        return tuple(self._number(node) if is_issued(node) else -1 for node in rank.nodes)

    def _number(self, node: TraceNode) -> int:
        if not self._trace.streams:
            return self._numbers[self._name(node)]
        if node.stream is None or node.stream >= len(self.names):
            found = "none" if node.stream is None else str(node.stream)
            expected = f"one of the {len(self.names)} streams that GlobalMetadata names"
            raise defect(f"node {node.id}: stream", expected, found, "Count from 0.")
        return node.stream

    def _name(self, node: TraceNode) -> str:
        comm = comm_of(self._trace, node)
        if comm is not None:
            return self._of_comm[comm]
        if node.stream is not None and node.type is NodeType.COMP_NODE:
            return f"stream {node.stream}"
        return _KERNELS.get(node.type, "cpu" if node.on_cpu else "compute")

    def _made_names(self) -> tuple[str, ...]:
        nodes = (node for rank in self._trace.ranks for node in rank.nodes if is_issued(node))
        return tuple(sorted(set(map(self._name, nodes)), key=_place)) or ("compute",)


_ORDER = ("compute", "stream", "cpu", "memory", "storage", "comm", "p2p")


def _place(name: str) -> tuple[int, int]:
    word, _, number = name.partition(" ")
    return _ORDER.index(word), int(number or 0)


def _streams_of_comms(trace: Trace) -> dict[Comm, str]:
    """Return a stream for every group and message pair; no two of one rank share one."""
    first: dict[Comm, int] = {}
    for rank in trace.ranks:
        for position, node in enumerate(rank.nodes):
            comm = comm_of(trace, node) if is_issued(node) else None
            if comm is not None:
                first[comm] = min(position, first.get(comm, position))
    taken: dict[tuple[bool, int], set[int]] = {}
    found: dict[Comm, str] = {}
    for comm in sorted(first, key=lambda comm: (first[comm], members_of(trace, comm))):
        is_group = isinstance(comm, str)
        used = [taken.setdefault((is_group, rank), set()) for rank in members_of(trace, comm)]
        number = _free(used)
        for numbers in used:
            numbers.add(number)
        word = "comm" if is_group else "p2p"
        found[comm] = f"{word} {number + 1}" if number else word
    return found


def _free(used: Iterable[set[int]]) -> int:
    """Return the first number that is in none of the sets."""
    all_used = set().union(*used)
    return next(number for number in range(len(all_used) + 1) if number not in all_used)
