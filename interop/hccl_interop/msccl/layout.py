"""The layout that ranks of an imported program share: connections and their FIFOs, places of data,
and its cuts into passes, messages and slices.
"""

from __future__ import annotations

from dataclasses import dataclass

from hccl_interop.common.meaning import MscclCall
from hccl_interop.common.places import copies_onto_itself
from hccl_interop.msccl.algorithm import Connection, Local, XmlAlgorithm, XmlStep
from hccl_interop.msccl.protocols import PROTOCOLS, ChunkLoop, MessagePart, Protocol, Signals
from hccl_py.errors import ParameterError
from hccl_py.program.builder import BufferSlice
from hccl_py.program.limits import MAX_NUMBER

BUFFERS = {"i": "IN", "o": "OUT", "s": "SCRATCH"}
"""The buffers of a program by MSCCL's letters."""

FIFO = "FIFO"
"""The buffer in which a rank receives."""

MAX_TASKS = 1 << 18
"""Tasks of a program up to which all passes are written out."""

MAX_TIMED = 1 << 20
"""Tasks of the passes that stand for all others."""


@dataclass
class Fifo:
    """A connection's place in the receiver's memory, the messages of both ends in one pass, and the
    number of its link in the builder.
    """

    link: int = -1
    sent: int = 0
    received: int = 0
    slot_bytes: int = 0
    base: int = 0

    def slots(self, most: int, passes: int) -> int:
        """Return the number of slots that are ever used."""
        return min(most, max(self.sent, self.received) * passes)


class CallLayout:
    """The layout of a call. Without `keeps_own`, copies that a call in place makes onto themselves
    are left out.
    """

    def __init__(self, algorithm: XmlAlgorithm, call: MscclCall, *, keeps_own: bool) -> None:
        self.algorithm, self.call, self._keeps_own = algorithm, call, keeps_own
        self.protocol: Protocol = PROTOCOLS[algorithm.protocol]
        self.loop = ChunkLoop.of(self.protocol, call.chunk, call.op.unit)
        self.fifos = self._fifos()
        largest = max((fifo.slot_bytes for fifo in self.fifos.values()), default=0)
        self.signals = Signals(self.protocol.slots, len(self.slices(largest)))
        self.fifo_bytes = self._laid_out()

    def slices(self, size: int) -> list[tuple[int, int]]:
        """Return offset and length of the slices of a message, in bytes: as small as `slice_bytes`,
        where there are no more than `slices` then.
        """
        unit, call = self.call.op.unit, self.call
        each = call.slice_bytes or (1 if call.slices else size)
        if call.slices:
            each = max(each, -(-size // call.slices) + unit - 1)
        each = max(each // unit * unit, unit)
        return [(at, min(each, size - at)) for at in range(0, size, each)] or [(0, size)]

    def _fifos(self) -> dict[Connection, Fifo]:
        ends: list[tuple[Connection, bool, XmlStep]] = []
        for gpu, block, _, step in self.algorithm.steps():
            if step.form.sends:
                ends.append((gpu.outgoing(block), True, step))
            if step.form.receives:
                ends.append((gpu.incoming(block), False, step))
        names = sorted({end[0] for end in ends}, key=lambda c: (c.channel, c.sender, c.receiver))
        fifos = {name: Fifo() for name in names}
        largest = self.loop.part(0)[1]
        for name, is_sent, step in ends:
            fifo = fifos[name]
            pieces = list(self.loop.pieces(step.cnt))
            fifo.sent += len(pieces) * is_sent
            fifo.received += len(pieces) * (not is_sent)
            most = max((piece.chunks for piece in pieces), default=0)
            fifo.slot_bytes = max(fifo.slot_bytes, most * largest)
        return fifos

    def check_size(self, most: int) -> None:
        """Refuse calls that are too large to be written out, before they are."""
        if not self.fits(most):
            passes = self.loop.passes
            raise ParameterError(
                f"{self.algorithm.source(self.algorithm.line)}: {passes} passes of the algorithm "
                f"make some {self._tasks:,} tasks, at most {most:,} are written out.",
                "Give a smaller -b: every pass does the same on other bytes.",
            )

    def fits(self, most: int) -> bool:
        """Return True if all passes can be written out, in some `most` tasks."""
        waits = max(
            (
                sum(step.depid >= 0 for step in block.steps)
                for gpu in self.algorithm.gpus
                for block in gpu.blocks
            ),
            default=0,
        )
        return self._tasks <= most and (waits + 1) * self.loop.passes < MAX_NUMBER

    @property
    def _tasks(self) -> int:
        """The number of tasks of all passes, about."""
        steps = sum(
            2 * (step.depid >= 0) + self._per_message(step) * -(-step.cnt // self.loop.at_once)
            for *_, step in self.algorithm.steps()
        )
        return steps * self.loop.passes

    def _per_message(self, step: XmlStep) -> int:
        """Return the tasks of a message of a step at the most: credits, and signals and moves of
        every slice.
        """
        form = step.form
        if not (form.receives or form.sends):
            return step.type != "nop"
        signals = form.receives + form.sends
        moves = form.reduces + form.sends + (form.receives and form.dst)
        return signals + (signals + moves) * self.signals.slices

    def _laid_out(self) -> list[int]:
        """Put the FIFOs of every rank one behind the other; return the bytes of all of them."""
        ends = [0] * self.algorithm.ranks
        for name, fifo in self.fifos.items():
            fifo.base = ends[name.receiver]
            slots = fifo.slots(self.protocol.slots, self.loop.passes)
            ends[name.receiver] += slots * fifo.slot_bytes
        return ends

    def memory(self, local: Local, piece: MessagePart, number: int | None) -> BufferSlice:
        """Return the slice of a piece: in pass `number`, or over whole chunks."""
        begin, size = (0, self.call.chunk) if number is None else self.loop.part(number)
        first = (local.offset + piece.first) * self.call.chunk + begin
        return BUFFERS[local.buffer], first, size * piece.chunks

    def drops(self, rank: int, src: BufferSlice, dst: BufferSlice) -> bool:
        """Return True for a copy onto itself that is left out."""
        return not self._keeps_own and copies_onto_itself(self.call.op, rank, src, dst)
