"""The order of a program by its definition: every path, every pair of accesses, byte by byte.

Far too slow for anything but small programs, and written without looking at how the verifier does
it: reachability as bit sets, accesses as sets of bytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from hccl_py.enums import LinkKind, TaskKind
from hccl_py.program.program import Program
from hccl_py.verifier.analysis.unrolled import Unrolled

INLINE = (TaskKind.READ_REDUCE, TaskKind.WRITE_REDUCE, TaskKind.RDMA_WRITE_REDUCE)
Byte = tuple[int, str, int]


@dataclass(frozen=True)
class Access:
    """Bytes that a node touches: `how` is read, write, add or rdma add. Two of the last kind are in
    need of an order.
    """

    node: int
    how: str
    bytes: frozenset[Byte]


class Naive:
    """Bit sets of what is over before each node runs, and before its effect is in memory."""

    def __init__(self, run: Unrolled) -> None:
        self.run, self.program = run, run.program
        self.issued: dict[int, int] = {}
        self.arrived: dict[int, int] = {}
        self.before_wait: dict[int, int] = {}
        self.unordered: set[tuple[int, int]] = set()
        last: dict[int, int] = {}
        conns: dict[int, list[int]] = defaultdict(list)
        for node in run.order.tolist():
            queue = int(run.queue[node])
            known = self.issued[last[queue]] | 1 << (2 * last[queue]) if queue in last else 0
            if run.kind[node] == TaskKind.NOTIFY_WAIT:
                self.before_wait[node] = known
                post = int(run.post_of[node])
                known |= self.arrived[post] | 1 << (2 * post + 1)
            self.issued[node] = known
            arrived = known | 1 << (2 * node)
            if node in self.issues:
                end = int(self.program.tasks.end[node % run.rows])
                for other in conns[end]:
                    if known >> (2 * other) & 1:
                        arrived |= self.arrived[other] | 1 << (2 * other + 1)
                if conns[end] and not known >> (2 * conns[end][-1]) & 1:
                    self.unordered.add((conns[end][-1], node))
                conns[end].append(node)
            self.arrived[node] = arrived
            last[queue] = node

    @cached_property
    def issues(self) -> frozenset[int]:
        """The nodes that go through an RDMA connection: writes, and posts to the other end."""
        goes = (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE, TaskKind.NOTIFY_POST)
        tasks, kinds = self.program.tasks, self.program.transports.kind.tolist()
        rdma = [
            kind in goes and end >= 0 and kinds[end] == LinkKind.RDMA
            for kind, end in zip(tasks.kind.tolist(), tasks.end.tolist(), strict=True)
        ]
        count = self.run.rows * self.run.copies
        return frozenset(node for node in range(count) if rdma[node % self.run.rows])

    def is_before(self, one: int, other: int) -> bool:
        """Whether the effect of a node is in memory before another node's effect begins."""
        bit = 2 * one + 1 if one in self.issues else 2 * one
        known = self.arrived[other] if other in self.issues else self.issued[other]
        return bool(known >> bit & 1)

    def is_issued_before(self, one: int, other: int) -> bool:
        """Whether a node goes through an RDMA connection and another knows that it was issued."""
        known = self.arrived[other] if other in self.issues else self.issued[other]
        return one in self.issues and bool(known >> (2 * one) & 1)

    @cached_property
    def written(self) -> dict[int, frozenset[Byte]]:
        """The bytes that data tasks and callers write."""
        found: dict[int, frozenset[Byte]] = {}
        for access in self.accesses:
            if access.how != "read":
                found[access.node] = found.get(access.node, frozenset()) | access.bytes
        return found

    def is_implied(self, wait: int) -> bool:
        """Whether the waits around one, in a row with it, bring what it brings, without it."""
        post = int(self.run.post_of[wait])
        bit = 2 * post + 1 if post in self.issues else 2 * post
        if self.before_wait[wait] >> bit & 1:
            return True
        first, stop = self.run.first[self.run.queue[wait]], self.run.first[self.run.queue[wait] + 1]
        for at in range(int(first + self.run.place[wait]) + 1, int(stop)):
            other = int(self.run.nodes[at])
            if self.run.kind[other] != TaskKind.NOTIFY_WAIT or other not in self.before_wait:
                break
            brings = int(self.run.post_of[other])
            known = self.arrived[brings] | 1 << (2 * brings + 1)
            if known >> bit & 1:
                return True
        return False

    @cached_property
    def accesses(self) -> list[Access]:
        found = []
        for node in self.run.order.tolist():
            call = self.run.call(node)
            if call is not None:
                for name in ("IN", "OUT"):
                    found.append(Access(node, "write", self._buffer(call[0], name)))
            elif self.run.kind[node] <= TaskKind.RDMA_WRITE_REDUCE:
                src, dst = sides(self.program, node % self.run.rows)
                kind = TaskKind(int(self.run.kind[node]))
                atomic = "rdma add" if kind == TaskKind.RDMA_WRITE_REDUCE else "add"
                found.append(Access(node, "read", frozenset(src)))
                found.append(Access(node, atomic if kind in INLINE else "write", frozenset(dst)))
        return found

    def _buffer(self, rank: int, name: str) -> frozenset[Byte]:
        number = self.program.buffers.index(name)
        size = int(self.program.buffer_sizes[rank, number])
        return frozenset((rank, name, k) for k in range(size))

    def races(self) -> dict[Byte, set[tuple[int, int]]]:
        """Return, by byte, the pairs of nodes (smaller first) that touch it in no order."""
        found: dict[Byte, set[tuple[int, int]]] = defaultdict(set)
        for one, other in combinations(self.accesses, 2):
            ways = {one.how, other.how}
            if ways in ({"read"}, {"add"}, {"add", "rdma add"}) or one.node == other.node:
                continue
            shared = one.bytes & other.bytes
            if not shared or self.is_before(one.node, other.node):
                continue
            if not self.is_before(other.node, one.node):
                for byte in shared:
                    found[byte].add((min(one.node, other.node), max(one.node, other.node)))
        return found


def sides(program: Program, row: int) -> tuple[list[Byte], list[Byte]]:
    """Return the bytes of source and destination of a data task, in order."""
    tasks, at = program.tasks, int(program.tasks.instruction[row])
    kind, size = TaskKind(int(tasks.kind[row])), int(tasks.size[row])
    rank, peer = int(tasks.rank[row]), int(tasks.peer[row])
    result = []
    for side, remote in (("src", kind.reads_remote), ("dst", kind.writes_remote)):
        name = program.buffers[int(getattr(tasks.table, f"{side}_buffer")[at])]
        start = int(getattr(tasks, f"{side}_offset")[row])
        result.append([(peer if remote else rank, name, start + k) for k in range(size)])
    return result[0], result[1]


def contents(program: Program, order: list[int]) -> dict[Byte, Counter[Byte] | None]:
    """Return what every byte holds after the tasks have run in this order; None for garbage."""
    held: dict[Byte, Counter[Byte] | None] = {}
    for rank in range(program.ranks):
        for k in range(int(program.buffer_sizes[rank, program.buffers.index("IN")])):
            held[rank, "IN", k] = Counter([(rank, "IN", k)])
    for row in order:
        kind = TaskKind(int(program.tasks.kind[row]))
        if kind > TaskKind.RDMA_WRITE_REDUCE:
            continue
        src, dst = sides(program, row)
        overlap = set(src) & set(dst) and (src != dst or kind.reduces)
        values = [held.get(byte) for byte in src]
        for byte, value in zip(dst, values, strict=True):
            if overlap or value is None:
                held[byte] = None
            elif kind.reduces:
                old = held.get(byte)
                held[byte] = None if old is None else old + value
            else:
                held[byte] = value
    return held
