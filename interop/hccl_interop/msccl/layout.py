"""What all ranks of an imported program have in common: connections and their FIFOs, where data
lies, and how it is cut into passes, messages and slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hccl_interop.msccl.algorithm import Connection, Local, XmlAlgorithm, XmlStep
from hccl_interop.msccl.operation import MscclCall
from hccl_interop.msccl.protocols import PROTOCOLS, ChunkLoop, MessagePart, Protocol, Signals
from hccl_py.call.ops import OPS
from hccl_py.enums import InPlace
from hccl_py.errors import ParameterError
from hccl_py.formats.checks import MAX_NUMBER

BUFFERS = {"i": "IN", "o": "OUT", "s": "SCRATCH"}
"""The buffers of a program by MSCCL's letters."""

FIFO = "FIFO"
"""The buffer in which a rank receives."""

MAX_TASKS = 1 << 18


@dataclass
class Fifo:
    """A connection's place in the receiver's memory, and what both ends do in one pass."""

    link: int
    sent: int = 0
    received: int = 0
    slot_bytes: int = 0
    base: int = 0

    def slots(self, most: int, passes: int) -> int:
        """Return how many slots are ever used."""
        return min(most, max(self.sent, self.received) * passes)


class CallLayout:
    """The layout of a call. Without `keeps_own`, copies that a call in place makes onto themselves
    are left out.
    """

    def __init__(self, algorithm: XmlAlgorithm, call: MscclCall, *, keeps_own: bool) -> None:
        self.algorithm, self.call, self._keeps_own = algorithm, call, keeps_own
        self.protocol: Protocol = PROTOCOLS[algorithm.protocol]
        self.loop = ChunkLoop.of(self.protocol, call.chunk, call.op.unit)
        self.reduce = call.op.reduce.spelling if call.op.reduce else "sum"
        self.fifos = self._fifos()
        largest = max((fifo.slot_bytes for fifo in self.fifos.values()), default=0)
        self.signals = Signals(self.protocol.slots, len(self.slices(largest)))
        self.fifo_bytes = self._laid_out()

    def slices(self, size: int) -> list[tuple[int, int]]:
        """Return where the slices of a message begin, and how long they are, in bytes."""
        unit = self.call.op.unit
        each = size if self.call.slice_bytes is None else self.call.slice_bytes // unit * unit
        each = max(each, unit)
        return [(at, min(each, size - at)) for at in range(0, size, each)] or [(0, size)]

    def _fifos(self) -> dict[Connection, Fifo]:
        ends: list[tuple[Connection, bool, XmlStep]] = []
        for gpu, block, _, step in self.algorithm.steps():
            if step.form.sends:
                ends.append((gpu.outgoing(block), True, step))
            if step.form.receives:
                ends.append((gpu.incoming(block), False, step))
        names = sorted({end[0] for end in ends}, key=lambda c: (c.channel, c.sender, c.receiver))
        fifos = {name: Fifo(link) for link, name in enumerate(names)}
        largest = self.loop.part(0)[1]
        for name, is_sent, step in ends:
            fifo = fifos[name]
            pieces = list(self.loop.pieces(step.cnt))
            fifo.sent += len(pieces) * is_sent
            fifo.received += len(pieces) * (not is_sent)
            most = max((piece.chunks for piece in pieces), default=0)
            fifo.slot_bytes = max(fifo.slot_bytes, most * largest)
        return fifos

    def check_size(self) -> None:
        """Refuse what is too large to be written out, before it is."""
        if not self.fits(MAX_TASKS):
            passes = self.loop.passes
            raise ParameterError(
                f"{self.algorithm.source(self.algorithm.line)}: {passes} passes of the algorithm "
                f"make some {self._tasks:,} tasks, at most {MAX_TASKS:,} are written out.",
                "Give a smaller -b: every pass does the same on other bytes.",
            )

    def fits(self, most: int) -> bool:
        """Whether all passes can be written out, in some `most` tasks."""
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
        """About as many tasks as all passes have."""
        message = 2 + 4 * self.signals.slices
        steps = sum(
            2 + message * -(-step.cnt // self.loop.at_once) for *_, step in self.algorithm.steps()
        )
        return steps * self.loop.passes

    def _laid_out(self) -> list[int]:
        """Put the FIFOs of every rank one behind the other; return the bytes of all of them."""
        ends = [0] * self.algorithm.ranks
        for name, fifo in self.fifos.items():
            fifo.base = ends[name.receiver]
            slots = fifo.slots(self.protocol.slots, self.loop.passes)
            ends[name.receiver] += slots * fifo.slot_bytes
        return ends

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
