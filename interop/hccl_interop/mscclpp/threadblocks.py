"""From the operations of a threadblock to the tasks of its stream, and of its proxies.

A sum is held in registers while it is made: it is read there, added to, and then stored. What goes
over a port channel is done by a proxy of that channel: it takes requests in their order, and the
threadblock waits for it only where it flushes.
"""

from __future__ import annotations

from collections.abc import Iterator

from hccl_interop.common.places import copies_onto_itself
from hccl_interop.mscclpp.layout import PlanLayout
from hccl_interop.mscclpp.operations import FORMS
from hccl_interop.mscclpp.packets import PacketWrite, StepKey
from hccl_interop.mscclpp.places import PlanPlace
from hccl_interop.mscclpp.plan import PlanBlock
from hccl_interop.mscclpp.steps import PlanSlice, PlanStep
from hccl_interop.mscclpp.streams import START, LocalCell, PortProxy, RankStreams
from hccl_py.enums import TaskKind
from hccl_py.program.builder import TaskNote

_PAIRED = ("put", "pws", "pwsf", "get", "ppkt")
"""Operations whose k-th source goes to their k-th target."""


def write_block(streams: RankStreams, block: PlanBlock) -> None:
    """Write all tasks of a threadblock."""
    for position, step in enumerate(streams.layout.steps[streams.gpu.id, block.id]):
        writer = _StepWriter(streams, block, step, StepKey(streams.gpu.id, block.id, position))
        if FORMS[step.op.name].moves:
            writer.transfer()
        else:
            writer.synchronise()


_KINDS = {
    "local": (TaskKind.COPY, TaskKind.REDUCE),
    "read": (TaskKind.READ, TaskKind.READ_REDUCE),
    "write": (TaskKind.WRITE, TaskKind.WRITE_REDUCE),
}
"""Kinds of tasks that replace their target, and that add to it."""


class _StepWriter:
    """Writes the tasks of one step."""

    def __init__(
        self, streams: RankStreams, block: PlanBlock, step: PlanStep, key: StepKey
    ) -> None:
        self._streams, self._block, self._step, self._key = streams, block, step, key
        self._layout: PlanLayout = streams.layout
        self._rank, self._stream = streams.gpu.id, 1 + block.id
        self._note = TaskNote(FORMS[step.op.name].words, self._layout.plan.source(step.op.line))
        self._moved = False

    def _place(self, what: str = "") -> PlanPlace:
        return PlanPlace(self._block, self._step, what)

    def synchronise(self) -> None:
        """Write the tasks by which threadblocks and ranks wait for each other."""
        op, streams = self._step.op, self._streams
        if op.name == "barrier":
            self._barrier()
        for number in op.semaphores:
            change = streams.wait if op.name == "sem_acquire" else streams.post
            place = self._place(f"semaphore {number}")
            change(self._stream, streams.semaphores[number], place, self._note)
        if op.channel_type in FORMS[op.name].types:
            for channel in op.channels:
                self._channel(channel)

    def _barrier(self) -> None:
        """Meet the others: the first threadblock lets them go."""
        op, streams = self._step.op, self._streams
        place, cells = self._place(f"barrier {op.barrier}"), streams.barriers[op.barrier]
        first, *others = cells
        if self._block.id != first:
            streams.post(self._stream, cells[first], place, self._note)
            streams.wait(self._stream, cells[self._block.id], place, self._note)
            return
        for _ in others:
            streams.wait(self._stream, cells[first], place, self._note)
        for other in others:
            streams.post(self._stream, cells[other], place, self._note)

    def _channel(self, channel: int) -> None:
        op = self._step.op
        if op.name == "flush":
            self._flush(channel)
        elif op.name in ("wait", "rlxwait"):
            self._signal(self._stream, channel, waits=True)
        elif op.channel_type == "port":
            self._signal(self._asked(channel).stream, channel)
        else:
            self._signal(self._stream, channel)

    def _signal(self, stream: int, channel: int, *, waits: bool = False) -> None:
        kind, gpu = self._step.op.channel_type, self._streams.gpu
        link = self._layout.of_channel(gpu, self._block, kind, channel)
        number, peer = self._block.channels[kind][channel], gpu.peer(self._block, kind, channel)
        place = self._place(f"{kind} channel {number} with rank {peer}")
        queue = self._streams.queues[stream].at(place)
        (queue.wait if waits else queue.post)(link, 0, self._note)

    def _asked(self, channel: int) -> PortProxy:
        """Return the proxy of a channel, asked for something."""
        proxy = self._streams.proxy(self._block.id, channel)
        proxy.is_late = True
        cell, place = LocalCell(proxy.stream, START), self._place("the request")
        self._streams.post(self._stream, cell, place, self._note)
        self._streams.wait(proxy.stream, cell, place, self._note)
        return proxy

    def _flush(self, channel: int) -> None:
        proxy, place = self._asked(channel), self._place("the flush")
        self._streams.post(proxy.stream, proxy.flushed, place, self._note)
        self._streams.wait(self._stream, proxy.flushed, place, self._note)
        proxy.is_open = proxy.is_late = False

    # Data

    def transfer(self) -> None:
        """Write the tasks that move data; packets are waited for first."""
        op = self._step.op
        for write in self._layout.flags.writers.get(self._key, ()):
            self._await_packets(write)
        if FORMS[op.name].reduces:
            self._reduce()
        elif op.channel_type == "port":
            self._send_by_proxies()
        else:
            for src, dst in self._pairs():
                self._move(self._stream, src, dst)
                self._announce(self._stream, dst)

    def _await_packets(self, write: PacketWrite) -> None:
        there = write.step
        what = f"packets of threadblock {there.block} of GPU {there.rank}"
        if there.rank == self._rank:
            cell = self._streams.flags[write, self._key]
            self._streams.wait(self._stream, cell, self._place(what), self._note)
            return
        link = self._layout.between(there.rank, self._rank)
        queue = self._streams.queues[self._stream].at(self._place(what))
        queue.wait(link, self._layout.notify[write, self._key], self._note)

    def _announce(self, stream: int, dst: PlanSlice) -> None:
        """Post to all operations that wait for packets of this write."""
        if dst not in self._step.packets:
            return
        self._moved = False
        write = PacketWrite(self._key, self._step.packets.index(dst))
        for reader in self._layout.flags.readers.get(write, ()):
            place = self._place(f"packets for threadblock {reader.block} of GPU {reader.rank}")
            if reader.rank == self._rank:
                self._streams.post(stream, self._streams.flags[write, reader], place, self._note)
                continue
            link = self._layout.between(self._rank, reader.rank)
            queue = self._streams.queues[stream].at(place)
            queue.post(link, self._layout.notify[write, reader], self._note)

    def _pairs(self) -> Iterator[tuple[PlanSlice, PlanSlice]]:
        """Yield pairs of source and target."""
        step = self._step
        if step.op.name in _PAIRED:
            yield from zip(step.src, step.dst, strict=True)
        else:
            yield from ((step.src[0], dst) for dst in step.dst)

    def _reduce(self) -> None:
        """Make a sum in registers, and store it."""
        first, *others = self._step.src
        held = self._layout.register(self._rank, self._block.id)._replace(size=first.size)
        self._move(self._stream, first, held)
        for other in others:
            self._move(self._stream, other, held, adds=True)
        for dst in self._step.dst:
            self._move(self._stream, held, dst)
            self._announce(self._stream, dst)

    def _send_by_proxies(self) -> None:
        op = self._step.op
        for number, (src, dst) in enumerate(self._pairs()):
            channel = op.channels[number]
            proxy = self._asked(channel)
            proxy.is_open = True
            self._moved = False
            self._move(proxy.stream, src, dst)
            self._announce(proxy.stream, dst)
            if op.name in ("pws", "pwsf"):
                self._signal(proxy.stream, channel)
        if op.name == "pwsf":
            for channel in op.channels[: len(self._step.dst)]:
                self._flush(channel)

    def _move(self, stream: int, src: PlanSlice, dst: PlanSlice, *, adds: bool = False) -> None:
        """Write a task that copies bytes, or adds them; an operation's are one step of a kernel."""
        sides = src[1:], dst[1:]
        own = src.rank == dst.rank
        if own and (src == dst or copies_onto_itself(self._layout.call.op, self._rank, *sides)):
            return
        if not dst.size:
            return
        far = next((s.rank for s in (src, dst) if s.rank != self._rank), None)
        plain, adding = _KINDS["local" if far is None else "write" if dst.rank == far else "read"]
        link = None if far is None else self._layout.between(self._rank, far)
        self._streams.queues[stream].at(self._place()).move(
            adding if adds else plain, *sides, self._note, link=link, joined=self._moved
        )
        self._moved = True
