"""Run programs of the JSON format on real bytes, in any order that hardware could take.

Written from docs/program_files.md and docs/verifier.md alone, with the standard library: it shares
no code with the product, whose verdicts it judges. What it knows:

- streams run their tasks in order; a wait takes its notify, which holds one bit or counts posts;
- a transfer over SDMA moves or adds its bytes at once; a local reduction reads, then writes;
- over RDMA a write and a post join the queue of their connection, which delivers them in order,
  later, and reads the source when it delivers;
- the caller of each rank works on main: it fills IN, runs the tasks, takes OUT, spoils both;
- calls come back to back on the same notifies and memory; buffers that alternate come in pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Document = dict[str, Any]
Place = tuple[int, str, int, int]
"""A slice: rank, buffer, offset, length."""

Pick = Callable[[list[int]], int]
"""Picks one of the actors that can move: streams first, then connections."""

_REMOTE = {"read": 0, "read_reduce": 0, "write": 1, "write_reduce": 1}
"""The side of a transfer that lies at the peer, by the task's name."""


class Wrong(Exception):
    """The program goes wrong in this order; the message says how."""


class Task:
    """A task of a stream, with its link and its slices resolved."""

    def __init__(self, machine: Machine, rank: int, stream: int, row: list[Any]) -> None:
        self.rank = rank
        note = row[-1] if isinstance(row[-1], dict) else {}
        name, *rest = [part for part in row if part is not note]
        self.kind = name.replace("_reduce", "") if name != "reduce" else "copy"
        self.adds = name.endswith("reduce")
        self.link: Link | None = None
        if name in (*_REMOTE, "post", "wait"):
            self.link = machine.link(rank, rest.pop(0))
        if self.adds:
            rest.pop(0)
        self.notify: tuple[Any, ...] = ()
        self.src = self.dst = (rank, "", 0, 0)
        if name in ("post", "wait"):
            assert self.link is not None
            owner = self.link.other(rank) if name == "post" else rank
            self.notify = (self.link.id, owner, rest[0])
        elif name == "local_post":
            self.kind, self.notify = "post", ("local", rank, *rest)
        elif name == "local_wait":
            self.kind, self.notify = "wait", ("local", rank, note.get("owner", stream), *rest)
        elif name != "compute":
            peer = rank if self.link is None else self.link.other(rank)
            owners = [peer if _REMOTE.get(name) == side else rank for side in (0, 1)]
            self.src, self.dst = ((owner, *part) for owner, part in zip(owners, rest, strict=True))
            machine.check(self)

    @property
    def is_queued(self) -> bool:
        """True for what joins the queue of an RDMA connection."""
        return self.link is not None and self.link.is_rdma and self.kind in ("write", "post")


class Link:
    """A link between two ranks, and the buffers that each side shows to the other."""

    def __init__(self, name: object, ranks: list[int], kind: str, shown: Document) -> None:
        self.id, self.ranks, self.is_rdma = name, ranks, kind == "rdma"
        self.shown = {rank: set(shown.get(str(rank), ())) for rank in ranks}

    def other(self, rank: int) -> int:
        """Return the rank at the other side."""
        return self.ranks[self.ranks[0] == rank]


class Machine:
    """All ranks of a program: links, memory and tasks."""

    def __init__(self, document: Document) -> None:
        self.document, self.op = document, document["op"]
        self.ranks: int = document["ranks"]
        self.counts = document.get("notifies", "one-bit") == "counting"
        self.alternating = set(document.get("alternating", ()))
        self._links = [
            Link(f"link:{one['id']}", one["ranks"], one["kind"], one.get("exports", {}))
            for one in document.get("links", ())
        ]
        self._pairs: dict[tuple[int, int], Link] = {}
        self.streams: list[tuple[int, int, list[Task]]] = []
        for rank in range(self.ranks):
            queues = {0: [], **{int(k): v for k, v in document["tasks"].get(str(rank), {}).items()}}
            for stream, rows in sorted(queues.items()):
                tasks = [Task(self, rank, stream, row) for row in rows]
                self.streams.append((rank, stream, tasks))

    def link(self, rank: int, name: object) -> Link:
        """Return the link that a task names, by its peer's rank or its id."""
        for link in self._links:
            if link.id == name or (rank in link.ranks and link.other(rank) == name):
                return link
        assert isinstance(name, int)
        pair = (min(rank, name), max(rank, name))
        shown = {str(one): self.document["exported"] for one in pair}
        return self._pairs.setdefault(pair, Link(pair, [*pair], self.document["link"], shown))

    def check(self, task: Task) -> None:
        """Refuse slices of different lengths, outside of their buffers or not shown to the peer."""
        if task.src[3] != task.dst[3]:
            raise Wrong("source and destination differ in length")
        for rank, buffer, offset, length in (task.src, task.dst):
            if offset + length > self.document["buffers"].get(str(rank), {}).get(buffer, 0):
                raise Wrong(f"a slice beyond {buffer} of rank {rank}")
            if rank != task.rank and (task.link is None or buffer not in task.link.shown[rank]):
                raise Wrong(f"{buffer} of rank {rank} is not exported")

    def places(self) -> Iterator[str]:
        """Yield the ways in which IN and OUT may share memory."""
        in_place = self.op.get("in_place", False)
        has_slot = self.op["name"] in ("all_gather", "reduce_scatter")
        if in_place in (True, "start"):
            yield "start"
        if in_place == "slot" or (in_place is True and has_slot):
            yield "slot"
        if not in_place:
            yield "apart"

    def run(self, pick: Pick, random: Random, place: str, calls: int) -> None:
        """Run some calls; raises Wrong where the program hangs, loses a post or a result."""
        Run(self, random, place).go(pick, calls)


class Run:
    """One run: memory, notifies, the position of every stream, the queues of connections."""

    def __init__(self, machine: Machine, random: Random, place: str) -> None:
        self.machine, self.random = machine, random
        self.set: dict[tuple[Any, ...], int] = {}
        self.wires: dict[tuple[object, int], deque[tuple[Task, int]]] = {}
        self.memory: dict[tuple[int, str, int], tuple[bytearray, int]] = {}
        self.inputs: dict[tuple[int, int], bytes] = {}
        self.outputs: dict[tuple[int, int], bytes] = {}
        self.spoilt: dict[int, bytes] = {}
        for rank in range(machine.ranks):
            for buffer, size in machine.document["buffers"].get(str(rank), {}).items():
                for turn in range(2):
                    if turn and buffer not in machine.alternating:
                        self.memory[rank, buffer, 1] = self.memory[rank, buffer, 0]
                    else:
                        self.memory[rank, buffer, turn] = (bytearray(random.randbytes(size)), 0)
            if place != "apart":
                self._share(rank, place)

    def _share(self, rank: int, place: str) -> None:
        """Put IN and OUT of a rank into one memory."""
        sizes = self.machine.document["buffers"][str(rank)]
        small, large = sorted(("IN", "OUT"), key=lambda name: sizes.get(name, 0))
        start = rank * sizes.get(small, 0) if place == "slot" else 0
        whole = self.memory.get((rank, large, 0), (bytearray(), 0))[0]
        for turn in range(2):
            self.memory[rank, small, turn] = (whole, start)

    def _bytes(self, place: Place, call: int) -> tuple[bytearray, int, int]:
        rank, buffer, offset, length = place
        memory, start = self.memory[rank, buffer, call % 2]
        return memory, start + offset, start + offset + length

    def _of(self, rank: int, buffer: str, call: int) -> tuple[bytearray, int, int]:
        size = self.machine.document["buffers"].get(str(rank), {}).get(buffer, 0)
        return self._bytes((rank, buffer, 0, size), call) if size else (bytearray(), 0, 0)

    def moved(self, task: Task, call: int) -> bytes:
        """Return the bytes that a task writes: those of its source, or sums with its target's."""
        source, begin, end = self._bytes(task.src, call)
        target, first, last = self._bytes(task.dst, call)
        if not task.adds:
            return bytes(source[begin:end])
        pairs = zip(source[begin:end], target[first:last], strict=True)
        return bytes((a + b) % 256 for a, b in pairs)

    def move(self, task: Task, call: int, data: bytes | None = None) -> None:
        """Write the bytes of a task into its target."""
        target, first, last = self._bytes(task.dst, call)
        target[first:last] = self.moved(task, call) if data is None else data

    def post(self, notify: tuple[Any, ...]) -> None:
        """Set a notify, or count a post."""
        self.set[notify] = self.set.get(notify, 0) + 1
        if self.set[notify] > 1 and not self.machine.counts:
            raise Wrong(f"a post on notify {notify}, which is still set, is lost")

    def begin(self, rank: int, call: int) -> None:
        """Fill the input as the caller does, who alone may have touched it since the last call."""
        memory, first, last = self._of(rank, "OUT", call)
        if call and bytes(memory[first:last]) != self.spoilt[rank]:
            raise Wrong(f"OUT of rank {rank} is written between two calls")
        memory, first, last = self._of(rank, "IN", call)
        data = self.random.randbytes(last - first)
        memory[first:last] = data
        self.inputs[rank, call] = data

    def end(self, rank: int, call: int) -> None:
        """Take the output as the caller does, and spoil input and output."""
        memory, first, last = self._of(rank, "OUT", call)
        self.outputs[rank, call] = bytes(memory[first:last])
        for buffer in ("IN", "OUT"):
            memory, first, last = self._of(rank, buffer, call)
            memory[first:last] = self.random.randbytes(last - first)
        self.spoilt[rank] = bytes(memory[first:last])

    def go(self, pick: Pick, calls: int) -> None:
        """Let actors move, one at a time, until none can."""
        machine = self.machine
        wires = [
            (t.link.id, r) for r, _, ts in machine.streams for t in ts if t.is_queued and t.link
        ]
        self.wires = {wire: deque() for wire in dict.fromkeys(wires)}
        queues = [self._steps(*stream, calls) for stream in machine.streams]
        blocked: list[Any] = [next(queue, False) for queue in queues]
        lines = list(self.wires.values())
        while True:
            able = [
                actor
                for actor, notify in enumerate(blocked)
                if notify is not False and (notify is None or self.set.get(notify, 0))
            ]
            able += [len(queues) + k for k, line in enumerate(lines) if line]
            if not able:
                break
            actor = pick(able)
            if actor < len(queues):
                if blocked[actor] is not None:
                    self.set[blocked[actor]] -= 1
                blocked[actor] = next(queues[actor], False)
            else:
                self._deliver(lines[actor - len(queues)])
        if any(notify is not False for notify in blocked):
            raise Wrong(f"streams wait for ever: {[n for n in blocked if n is not False]}")
        if any(self.set.values()):
            raise Wrong(f"posts are left over: {[n for n, count in self.set.items() if count]}")
        for call in range(calls):
            self._judge(call)

    def _deliver(self, line: deque[tuple[Task, int]]) -> None:
        task, call = line.popleft()
        if task.kind == "post":
            self.post(task.notify)
        else:
            self.move(task, call)

    def _steps(self, rank: int, stream: int, tasks: list[Task], calls: int) -> Iterator[Any]:
        """Do the tasks of a stream; yield before each the notify that it waits for, or None."""
        for call in range(calls):
            if stream == 0:
                yield None
                self.begin(rank, call)
            for task in tasks:
                yield task.notify if task.kind == "wait" else None
                if task.is_queued and task.link is not None:
                    self.wires[task.link.id, rank].append((task, call))
                elif task.kind == "post":
                    self.post(task.notify)
                elif task.kind == "copy" and task.adds:
                    data = self.moved(task, call)
                    yield None
                    self.move(task, call, data)
                elif task.kind in ("copy", "read", "write"):
                    self.move(task, call)
            if stream == 0:
                yield None
                self.end(rank, call)

    def _judge(self, call: int) -> None:
        """Compare the outputs of a call with the op's definition."""
        op, ranks = self.machine.op, range(self.machine.ranks)
        data = [self.inputs[rank, call] for rank in ranks]
        size = op["count"]
        for rank in ranks:
            found = self.outputs[rank, call]
            if op["name"] == "all_gather":
                right = b"".join(data)
            elif op["name"] == "broadcast":
                right = data[op["root"]] if rank != op["root"] else found
            elif op["name"] == "all_to_all":
                right = b"".join(one[rank * size : (rank + 1) * size] for one in data)
            else:
                whole = bytes(sum(column) % 256 for column in zip(*data, strict=True))
                is_part = op["name"] == "reduce_scatter"
                right = whole[rank * size : (rank + 1) * size] if is_part else whole
            if found != right:
                raise Wrong(f"call {call}: the output of rank {rank} is wrong")
