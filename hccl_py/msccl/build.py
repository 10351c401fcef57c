"""From an algorithm to a program, as the runtime runs it.

    GPU            rank
    threadblock    sub stream k + 1 of the k-th threadblock; main forks and joins all of them
    connection     link with a FIFO of k slots in the receiver's buffer FIFO, two notifies for each
    send           wait until the slot is free, write into it, post it to the receiver
    receive        wait until the slot is full, take what is in it, post it to the sender (a credit)
    depid, deps    a notify of its own, posted when the other threadblock's step is over

The receiver gives the first credits when it starts, and as many in all as the sender sends
messages: so nothing is left over where both ends agree, and what is left over shows where they do
not.

A dependency is monotonic, it holds as soon as the other threadblock has *reached* the step; only
steps with hasdep="1" say that they have. So the post stands behind the first such step.

Chunks larger than a slot take several passes (`protocols.py`), which are written out one after the
other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hccl_py.enums import InPlace
from hccl_py.errors import ParameterError
from hccl_py.formats.checks import MAX_NUMBER
from hccl_py.formats.json_read import from_value
from hccl_py.formats.models import FORMAT
from hccl_py.formats.op import op_object
from hccl_py.msccl.algorithm import Connection, Gpu, Local, ThreadBlock, XmlAlgorithm, XmlStep
from hccl_py.msccl.operation import MscclCall
from hccl_py.msccl.places import Edges, Place, Role, TaskQueue
from hccl_py.msccl.protocols import PROTOCOLS, ChunkLoop, MessagePart, Protocol
from hccl_py.operators import make_operator
from hccl_py.ops import OPS
from hccl_py.program.program import Program

__all__ = ["BUFFERS", "FIFO", "ImportedTasks", "build"]

BUFFERS = {"i": "IN", "o": "OUT", "s": "SCRATCH"}
"""The buffers of a program by MSCCL's letters."""

FIFO = "FIFO"
"""The buffer in which a rank receives."""

MAX_TASKS = 1 << 18

_Task = list[Any]


@dataclass(frozen=True)
class ImportedTasks:
    """A program, and what each task comes from: `places[rank, stream]` in the stream's order."""

    program: Program
    places: Mapping[tuple[int, int], Sequence[Place]]


def build(algorithm: XmlAlgorithm, call: MscclCall, *, keeps_own: bool = True) -> ImportedTasks:
    """Return the program of a call.

    The algorithm has no defects of structure (`checks.py`). ParameterError where the program would
    be too large. Without `keeps_own`, copies that a call in place makes onto themselves are left
    out: they change nothing, and are in nobody's way.
    """
    builder = _Builder(algorithm, call, keeps_own=keeps_own)
    tasks: dict[str, dict[str, list[_Task]]] = {}
    places: dict[tuple[int, int], Sequence[Place]] = {}
    for gpu in algorithm.gpus:
        streams = builder.streams(gpu)
        tasks[str(gpu.id)] = {str(stream): queue.tasks for stream, queue in streams.items()}
        places |= {(gpu.id, stream): queue.places for stream, queue in streams.items()}
    return ImportedTasks(from_value(builder.document(tasks), algorithm.file), places)


@dataclass
class _Fifo:
    """A connection's place in the receiver's memory, and what both ends do in one pass."""

    link: int
    sent: int = 0
    received: int = 0
    slot_bytes: int = 0
    base: int = 0

    def slots(self, most: int, passes: int) -> int:
        """Return how many slots are ever used."""
        return min(most, max(self.sent, self.received) * passes)


class _Builder:
    """What all ranks have in common: connections, their FIFOs, how data is cut."""

    def __init__(self, algorithm: XmlAlgorithm, call: MscclCall, *, keeps_own: bool) -> None:
        self.algorithm, self.call, self._keeps_own = algorithm, call, keeps_own
        self.protocol: Protocol = PROTOCOLS[algorithm.protocol]
        self.loop = ChunkLoop.of(self.protocol, call.chunk, call.op.unit)
        self.reduce = call.op.reduce.spelling if call.op.reduce else "sum"
        self.fifos = self._fifos()
        self._check_size()
        self.fifo_bytes = self._laid_out()

    def _fifos(self) -> dict[Connection, _Fifo]:
        ends: list[tuple[Connection, bool, XmlStep]] = []
        for gpu, block, _, step in self.algorithm.steps():
            if step.form.sends:
                ends.append((gpu.outgoing(block), True, step))
            if step.form.receives:
                ends.append((gpu.incoming(block), False, step))
        names = sorted({end[0] for end in ends}, key=lambda c: (c.channel, c.sender, c.receiver))
        fifos = {name: _Fifo(link) for link, name in enumerate(names)}
        largest = self.loop.part(0)[1]
        for name, is_sent, step in ends:
            fifo = fifos[name]
            pieces = list(self.loop.pieces(step.cnt))
            fifo.sent += len(pieces) * is_sent
            fifo.received += len(pieces) * (not is_sent)
            most = max((piece.chunks for piece in pieces), default=0)
            fifo.slot_bytes = max(fifo.slot_bytes, most * largest)
        return fifos

    def _check_size(self) -> None:
        """Refuse what is too large to be written out, before it is."""
        steps = sum(
            2 + 6 * -(-step.cnt // self.loop.at_once) for *_, step in self.algorithm.steps()
        )
        waits = max(
            (
                sum(step.depid >= 0 for step in block.steps)
                for gpu in self.algorithm.gpus
                for block in gpu.blocks
            ),
            default=0,
        )
        passes = self.loop.passes
        if steps * passes > MAX_TASKS or (waits + 1) * passes >= MAX_NUMBER:
            raise ParameterError(
                f"{self.algorithm.source(self.algorithm.line)}: {passes} passes of the algorithm "
                f"make some {steps * passes:,} tasks, at most {MAX_TASKS:,} are written out.",
                "Give a smaller -b: every pass does the same on other bytes.",
            )

    def _laid_out(self) -> list[int]:
        """Put the FIFOs of every rank one behind the other; return the bytes of all of them."""
        ends = [0] * self.algorithm.ranks
        for name, fifo in self.fifos.items():
            fifo.base = ends[name.receiver]
            slots = fifo.slots(self.protocol.slots, self.loop.passes)
            ends[name.receiver] += slots * fifo.slot_bytes
        return ends

    def streams(self, gpu: Gpu) -> dict[int, TaskQueue]:
        """Return the streams of a rank."""
        main = TaskQueue()
        for source, target, line in gpu.copies:
            note: dict[str, object] = {"label": "copy", "source": self.algorithm.source(line)}
            src, dst = (
                self.memory(Local(*side), MessagePart(0, 1), None)
                for side in (("i", source), ("o", target))
            )
            if not self.is_own(gpu.id, src, dst):
                main.add(Place(Role.MOVE), note, "copy", src, dst)
        for stream in range(1, len(gpu.blocks) + 1):
            main.add(Place(Role.FORK), None, "local_post", stream, 0)
        for stream in range(1, len(gpu.blocks) + 1):
            main.add(Place(Role.FORK), None, "local_wait", stream - 1)
        edges = Edges(gpu)
        found = {0: main}
        for number, block in enumerate(gpu.blocks):
            found[number + 1] = _BlockWriter(self, gpu, block, number + 1, edges).queue()
        return found

    def memory(self, local: Local, piece: MessagePart, number: int | None) -> list[object]:
        """Return the slice of a piece: in one pass, or over whole chunks."""
        begin, size = (0, self.call.chunk) if number is None else self.loop.part(number)
        first = (local.offset + piece.first) * self.call.chunk + begin
        return [BUFFERS[local.buffer], first, size * piece.chunks]

    def is_own(self, rank: int, src: list[Any], dst: list[Any]) -> bool:
        """Whether a copy in place onto itself is to be left out."""
        if self._keeps_own or not self.call.op.in_place:
            return False
        begins = {"IN": 0, "OUT": 0}
        own_slot = OPS[self.call.op.name].own_slot
        if self.call.op.in_place == InPlace.SLOT and own_slot:
            begins["IN" if own_slot > 0 else "OUT"] = rank * self.call.op.size
        if src[0] not in begins or dst[0] not in begins:
            return False
        return bool(begins[src[0]] + src[1] == begins[dst[0]] + dst[1])

    def document(self, tasks: dict[str, dict[str, list[_Task]]]) -> dict[str, object]:
        """Return the document of a program file."""
        algorithm = self.algorithm
        title = f"MSCCL {algorithm.protocol}, {algorithm.chunks} chunks"
        if algorithm.inplace and algorithm.outofplace:
            title += ", also in place"
        return {
            "format": FORMAT,
            "executor": f"{title}: {algorithm.name}" if algorithm.name else title,
            "op": json.loads(json.dumps(op_object(self.call.op))),
            "ranks": algorithm.ranks,
            "rounds": self.loop.passes,
            "protocol": algorithm.protocol,
            "buffers": self._buffers(),
            "notify_names": self.protocol.notify_names,
            "links": [
                {
                    "id": fifo.link,
                    "ranks": [name.sender, name.receiver],
                    "kind": "sdma",
                    "notifies": self.protocol.notifies(
                        fifo.slots(self.protocol.slots, self.loop.passes)
                    ),
                    "plane": f"channel {name.channel}",
                    "exports": {str(name.receiver): [FIFO]},
                }
                for name, fifo in self.fifos.items()
            ],
            "tasks": tasks,
        }

    def _buffers(self) -> dict[str, dict[str, int]]:
        algorithm, op = self.algorithm, self.call.op
        inputs, outputs = make_operator(op.name).user_bytes(op, algorithm.ranks)
        scratch = any(gpu.s_chunks for gpu in algorithm.gpus) or any(
            (step.form.src and step.src.buffer == "s") or (step.form.dst and step.dst.buffer == "s")
            for *_, step in algorithm.steps()
        )
        found = {}
        for gpu in algorithm.gpus:
            rank = gpu.id
            sizes = {"IN": int(inputs[rank]), "OUT": int(outputs[rank])}
            sizes |= {"SCRATCH": gpu.s_chunks * self.call.chunk} if scratch else {}
            sizes |= {FIFO: self.fifo_bytes[rank]} if self.fifos else {}
            found[str(rank)] = sizes
        return found


class _BlockWriter:
    """Writes the stream of one threadblock."""

    def __init__(
        self, builder: _Builder, gpu: Gpu, block: ThreadBlock, stream: int, edges: Edges
    ) -> None:
        self._builder, self._block, self._stream, self._edges = builder, block, stream, edges
        self._rank = gpu.id
        self._counts = {b.id: len(edges.waits[b.id]) for b in gpu.blocks}
        self._waits_of = {number + 1: len(edges.waits[b.id]) for number, b in enumerate(gpu.blocks)}
        self._queue = TaskQueue()
        self._sent = self._received = 0
        self._outgoing = gpu.outgoing(block) if block.send >= 0 else None
        self._incoming = gpu.incoming(block) if block.recv >= 0 else None
        self._to, self._from = (
            None if name is None else builder.fifos.get(name)
            for name in (self._outgoing, self._incoming)
        )

    def queue(self) -> TaskQueue:
        """Return all tasks."""
        self._queue.add(Place(Role.FORK, self._block), None, "local_wait", 0)
        if self._from is not None and any(s.form.receives for s in self._block.steps):
            for number in range(min(self._builder.protocol.slots, self._credits)):
                self._credit(-1, number, None)
        for number in range(self._builder.loop.passes):
            for position, step in enumerate(self._block.steps):
                self._step(number, position, step)
        self._queue.add(Place(Role.FORK, self._block), None, "local_post", 0, self._stream - 1)
        return self._queue

    @property
    def _credits(self) -> int:
        """The credits that the sender takes in all."""
        assert self._from is not None
        return self._from.sent * self._builder.loop.passes

    def _step(self, number: int, position: int, step: XmlStep) -> None:
        label = step.form.label
        note: dict[str, object] = {
            "label": label,
            "source": self._builder.algorithm.source(step.line),
        }
        if number:
            note["round"] = number
        place = Place(Role.DEPENDENCY, self._block, position)
        wait = self._edges.waits[self._block.id].get(position)
        if wait is not None:
            index = 1 + number * self._counts[self._block.id] + wait
            self._queue.add(place, note, "local_wait", index)
        if step.type != "nop":
            for piece in self._builder.loop.pieces(step.cnt):
                self._piece(number, position, step, piece, note)
        for stream, wait in self._edges.posts[self._block.id].get(position, ()):
            index = 1 + number * self._waits_of[stream] + wait
            self._queue.add(place, note, "local_post", stream, index)

    def _piece(
        self, number: int, position: int, step: XmlStep, piece: MessagePart, note: dict[str, object]
    ) -> None:
        form = step.form
        if form.receives:
            self._signal(Role.DATA, "wait", position, self._received, note)
        if form.sends:
            self._signal(Role.CREDIT, "wait", position, self._sent, note, outgoing=True)
        place = self._message(Role.MOVE, position, outgoing=not form.receives)
        for task in self._moves(number, step, piece):
            if task[0] != "copy" or not self._builder.is_own(self._rank, task[1], task[2]):
                self._queue.add(place, note, *task)
        if form.sends:
            self._signal(Role.DATA, "post", position, self._sent, note, outgoing=True)
            self._sent += 1
        if form.receives:
            following = self._received + self._builder.protocol.slots
            if following < self._credits:
                self._credit(position, following, note)
            self._received += 1

    def _moves(self, number: int, step: XmlStep, piece: MessagePart) -> Iterator[_Task]:
        """Yield what moves data: out of the incoming slot, into memory and the outgoing slot."""
        form = step.form
        src = self._builder.memory(step.src, piece, number) if form.src else None
        dst = self._builder.memory(step.dst, piece, number) if form.dst else None
        size = self._builder.loop.part(number)[1] * piece.chunks
        slot = self._slot(self._from, self._received, size) if form.receives else None
        op, sent = self._builder.reduce, src
        if slot is None:
            if dst is not None:
                yield ["reduce", op, src, dst] if form.reduces else ["copy", src, dst]
        elif form.reduces and src == dst:
            yield ["reduce", op, slot, dst]
            sent = dst
        else:
            sent = slot
            if form.reduces:
                yield ["reduce", op, src, slot]
            if dst is not None:
                yield ["copy", slot, dst]
        if form.sends:
            assert self._to is not None
            target = self._slot(self._to, self._sent, size)
            yield ["write", f"link:{self._to.link}", sent, target]

    def _slot(self, fifo: _Fifo | None, number: int, size: int) -> list[object]:
        assert fifo is not None
        slot = number % self._builder.protocol.slots
        return [FIFO, fifo.base + slot * fifo.slot_bytes, size]

    def _credit(self, position: int, number: int, note: dict[str, object] | None) -> None:
        """Let the sender send message `number`."""
        self._signal(Role.CREDIT, "post", position, number, note)

    def _signal(
        self,
        role: Role,
        task: str,
        position: int,
        number: int,
        note: dict[str, object] | None,
        *,
        outgoing: bool = False,
    ) -> None:
        fifo = self._to if outgoing else self._from
        assert fifo is not None
        protocol = self._builder.protocol
        slot = number % protocol.slots
        is_credit = role is Role.CREDIT
        index = protocol.credit_notify(slot) if is_credit else protocol.data_notify(slot)
        place = Place(
            role, self._block, position, self._outgoing if outgoing else self._incoming, number
        )
        self._queue.add(place, note, task, f"link:{fifo.link}", index)

    def _message(self, role: Role, position: int, *, outgoing: bool) -> Place:
        """Return the place of what moves data; a local step has no message."""
        form = self._block.steps[position].form
        if not (form.sends or form.receives):
            return Place(role, self._block, position)
        name = self._outgoing if outgoing else self._incoming
        number = self._sent if outgoing else self._received
        return Place(role, self._block, position, name, number)
