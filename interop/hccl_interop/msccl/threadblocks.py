"""From the steps of a threadblock to the tasks of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hccl_interop.common.places import PlacedStream
from hccl_interop.msccl.algorithm import Gpu, ThreadBlock, XmlStep
from hccl_interop.msccl.layout import FIFO, CallLayout, Fifo
from hccl_interop.msccl.places import Edges, Place, Role
from hccl_interop.msccl.protocols import MessagePart
from hccl_py.enums import TaskKind
from hccl_py.program.builder import BufferSlice, TaskNote
from hccl_py.program.builder.streams import NO_NOTE

_Move: TypeAlias = tuple[TaskKind, BufferSlice, BufferSlice]
"""A task that moves data, by kind, source and destination."""


class BlockWriter:
    """Writes the stream of one threadblock."""

    def __init__(
        self,
        layout: CallLayout,
        gpu: Gpu,
        block: ThreadBlock,
        stream: PlacedStream[Place],
        edges: Edges,
    ) -> None:
        self._layout, self._block, self._stream, self._edges = layout, block, stream, edges
        self._rank = gpu.id
        self._counts = {b.id: len(edges.waits[b.id]) for b in gpu.blocks}
        self._waits_of = {number + 1: len(edges.waits[b.id]) for number, b in enumerate(gpu.blocks)}
        self._sent = self._received = 0
        self._outgoing = gpu.outgoing(block) if block.send >= 0 else None
        self._incoming = gpu.incoming(block) if block.recv >= 0 else None
        self._to, self._from = (
            None if name is None else layout.fifos.get(name)
            for name in (self._outgoing, self._incoming)
        )

    def write(self) -> None:
        """Append all tasks of the threadblock."""
        fork = Place(Role.FORK, self._block)
        self._stream.at(fork).local_wait(0)
        if self._from is not None and any(s.form.receives for s in self._block.steps):
            for number in range(min(self._layout.protocol.slots, self._credits)):
                self._credit(-1, number, NO_NOTE)
        actions = list(self._block.actions())
        for number in range(self._layout.loop.passes):
            for action in actions:
                self._action(number, action)
        self._stream.at(fork).local_post(0, self._stream.stream.number - 1)

    @property
    def _credits(self) -> int:
        """The credits that the sender takes in all."""
        assert self._from is not None
        return self._from.sent * self._layout.loop.passes

    def _action(self, number: int, action: range) -> None:
        """Write steps that the runtime does at once: the first one waits for others, and the last
        one lets others go on.
        """
        first, last = action[0], action[-1]
        wait = self._edges.waits[self._block.id].get(first)
        if wait is not None:
            index = 1 + number * self._counts[self._block.id] + wait
            place = Place(Role.DEPENDENCY, self._block, first)
            self._stream.at(place).local_wait(index, self._note(number, first))
        head = self._block.steps[first]
        for piece in self._layout.loop.pieces(head.cnt) if head.type != "nop" else ():
            for position in action:
                self._piece(number, position, piece, goes_on=position > first)
        for stream, wait in self._edges.posts[self._block.id].get(last, ()):
            index = 1 + number * self._waits_of[stream] + wait
            place = Place(Role.DEPENDENCY, self._block, last)
            self._stream.at(place).local_post(stream, index, self._note(number, last))

    def _note(self, number: int, position: int) -> TaskNote:
        step = self._block.steps[position]
        return TaskNote(step.form.label, self._layout.algorithm.source(step.line), number)

    def _piece(self, number: int, position: int, piece: MessagePart, *, goes_on: bool) -> None:
        """Write what a step does with one message, slice after slice: what has come is sent on
        before the next slice is there. A step that `goes_on` is one with the step before.
        """
        step, note = self._block.steps[position], self._note(number, position)
        form, size = step.form, self._layout.loop.part(number)[1] * piece.chunks
        is_message = form.receives or form.sends
        slices = self._layout.slices(size) if is_message else [(0, size)]
        src = self._layout.memory(step.src, piece, number) if form.src else None
        dst = self._layout.memory(step.dst, piece, number) if form.dst else None
        for part, (begin, length) in enumerate(slices):
            if form.receives:
                self._signal(Role.DATA, position, self._received, note, part=part)
            if form.sends and not part:
                self._signal(Role.CREDIT, position, self._sent, note, outgoing=True)
            source, target = (_within(side, begin, length) for side in (src, dst))
            moves = self._moves(step, source, target, begin, length)
            self._move(position, moves, note, joined=goes_on)
            if form.sends:
                self._signal(Role.DATA, position, self._sent, note, outgoing=True, part=part)
        self._sent += form.sends
        if form.receives:
            following = self._received + self._layout.protocol.slots
            if following < self._credits:
                self._credit(position, following, note)
            self._received += 1

    def _move(self, position: int, moves: Iterator[_Move], note: TaskNote, *, joined: bool) -> None:
        """Write the tasks that move a slice: one step of a threadblock, or more of what is done at
        once with the step before.
        """
        receives = self._block.steps[position].form.receives
        place = self._place_of_move(position, outgoing=not receives)
        for kind, src, dst in moves:
            if kind is TaskKind.COPY and self._layout.drops(self._rank, src, dst):
                continue
            link = self._to.link if kind is TaskKind.WRITE and self._to else None
            self._stream.at(place).move(kind, src, dst, note, link=link, joined=joined)
            joined = True

    def _moves(
        self,
        step: XmlStep,
        src: BufferSlice | None,
        dst: BufferSlice | None,
        begin: int,
        length: int,
    ) -> Iterator[_Move]:
        """Yield the moves of a slice: out of the incoming slot, into memory and the outgoing slot.
        Only sends write.
        """
        form, sent = step.form, src
        slot = self._slot(self._from, self._received, begin, length) if form.receives else None
        if slot is None:
            if src is not None and dst is not None:
                yield (TaskKind.REDUCE if form.reduces else TaskKind.COPY), src, dst
        elif form.reduces and src == dst and dst is not None:
            yield TaskKind.REDUCE, slot, dst
            sent = dst
        else:
            sent = slot
            if form.reduces and src is not None:
                yield TaskKind.REDUCE, src, slot
            if dst is not None:
                yield TaskKind.COPY, slot, dst
        if form.sends and sent is not None:
            yield TaskKind.WRITE, sent, self._slot(self._to, self._sent, begin, length)

    def _slot(self, fifo: Fifo | None, number: int, begin: int, length: int) -> BufferSlice:
        assert fifo is not None
        slot = number % self._layout.protocol.slots
        return FIFO, fifo.base + slot * fifo.slot_bytes + begin, length

    def _credit(self, position: int, number: int, note: TaskNote) -> None:
        """Let the sender send message `number`."""
        self._signal(Role.CREDIT, position, number, note)

    def _signal(
        self,
        role: Role,
        position: int,
        number: int,
        note: TaskNote,
        *,
        outgoing: bool = False,
        part: int = 0,
    ) -> None:
        """Post or wait for a signal of message `number`: a sender waits for credits and posts data,
        a receiver the other way round.
        """
        fifo, connection = (self._to, self._outgoing) if outgoing else (self._from, self._incoming)
        assert fifo is not None
        signals, slot = self._layout.signals, number % self._layout.protocol.slots
        index = signals.credit(slot) if role is Role.CREDIT else signals.data(slot, part)
        stream = self._stream.at(Place(role, self._block, position, connection, number))
        signal = stream.post if (role is Role.DATA) == outgoing else stream.wait
        signal(fifo.link, index, note)

    def _place_of_move(self, position: int, *, outgoing: bool) -> Place:
        """Return the place of tasks that move data; a local step has no message."""
        form = self._block.steps[position].form
        if not (form.sends or form.receives):
            return Place(Role.MOVE, self._block, position)
        name = self._outgoing if outgoing else self._incoming
        number = self._sent if outgoing else self._received
        return Place(Role.MOVE, self._block, position, name, number)


def _within(side: BufferSlice | None, begin: int, length: int) -> BufferSlice | None:
    """Return a part of a slice."""
    return None if side is None else (side[0], side[1] + begin, length)
