"""The layout that ranks of a plan's program share: links, notifies and buffers.

    channel         link between the two ranks whose k-th channels meet, with a notify at each end
    remote buffer   what the links between two ranks export
    packets         a notify for every write and every operation that waits for it

The k-th channel of a type from one rank to another meets the k-th one back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hccl_interop.mscclpp.call import PlanCall
from hccl_interop.mscclpp.operations import FORMS
from hccl_interop.mscclpp.packets import PacketFlags, PacketWrite, StepKey
from hccl_interop.mscclpp.plan import PlanBlock, PlanGpu
from hccl_interop.mscclpp.steps import PACKETS, SCRATCH, PlanSlice, PlanStep
from hccl_py.program.builder import ProgramBuilder
from hccl_py.program.limits import MAX_NAMES
from hccl_py.program.transports import OWN_NOTIFIES

REGISTERS = "REGISTERS"
"""Where an operation holds a sum before it stores it, a part for every threadblock."""


@dataclass
class _PlanLink:
    """A link: its ranks, the lower one first."""

    id: int
    ranks: tuple[int, int]
    plane: str
    notifies: int = 1
    exports: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))


class PlanLayout:
    """The layout of a call. `notify` has the notify of every write of packets to a peer and who
    waits for it.
    """

    def __init__(self, call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]) -> None:
        self.call, self.plan, self.steps = call, call.plan, steps
        self.flags = PacketFlags(steps)
        self._links: list[_PlanLink] = []
        self._of_channel: dict[tuple[int, str, int], _PlanLink] = {}
        self._of_pair: dict[tuple[int, int], _PlanLink] = {}
        for kind in ("memory", "port"):
            self._channels(kind)
        self._registers = _laid_out(steps)
        self.notify: dict[tuple[PacketWrite, StepKey], int] = {}
        self._number_packets()
        self._export()

    def _channels(self, kind: str) -> None:
        """Make the links of channels of a type, for two ranks as many as the one with more has."""
        numbers: list[dict[int, list[int]]] = [defaultdict(list) for _ in self.plan.gpus]
        for gpu in self.plan.gpus:
            for number, peer in enumerate(gpu.peers[kind]):
                numbers[gpu.id][peer].append(number)
        for rank, of_rank in enumerate(numbers):
            for peer, mine in sorted(of_rank.items()):
                theirs = numbers[peer].get(rank, [])
                if theirs and peer < rank:
                    continue
                for turn in range(max(len(mine), len(theirs))):
                    link = self._made(rank, peer, f"{kind} {turn}")
                    for end, found in ((rank, mine), (peer, theirs)):
                        if turn < len(found):
                            self._of_channel[end, kind, found[turn]] = link

    def _made(self, one: int, other: int, plane: str) -> _PlanLink:
        pair = (min(one, other), max(one, other))
        link = _PlanLink(len(self._links), pair, plane)
        self._links.append(link)
        self._of_pair.setdefault(pair, link)
        return link

    def of_channel(self, gpu: PlanGpu, block: PlanBlock, kind: str, channel: int) -> int:
        """Return the link of a threadblock's channel."""
        return self._of_channel[gpu.id, kind, block.channels[kind][channel]].id

    def between(self, one: int, other: int) -> int:
        """Return the link over which data goes that no channel carries."""
        return self._between(one, other).id

    def _between(self, one: int, other: int) -> _PlanLink:
        pair = (min(one, other), max(one, other))
        return self._of_pair.get(pair) or self._made(one, other, "memory")

    def _number_packets(self) -> None:
        """Give every write to a peer and who waits for it a notify of the peer's end."""
        used: dict[tuple[int, int], int] = defaultdict(lambda: OWN_NOTIFIES)
        for reader, writes in self.flags.writers.items():
            for write in writes:
                if write.step.rank != reader.rank:
                    link = self._between(write.step.rank, reader.rank)
                    number = used[link.id, reader.rank]
                    used[link.id, reader.rank] = number + 1
                    link.notifies = max(link.notifies, number + 1)
                    self.notify[write, reader] = number

    def _export(self) -> None:
        """Let links export the buffers that tasks of the peer touch."""
        for (rank, _), listed in self.steps.items():
            for step in listed:
                for found in (*step.src, *step.dst):
                    if found.rank != rank:
                        self._between(rank, found.rank).exports[found.rank].add(found.buffer)
        for link in self._links:
            link.exports |= self._of_pair[link.ranks].exports

    def register(self, rank: int, block: int) -> PlanSlice:
        """Return the registers in which a threadblock holds sums."""
        return self._registers[rank, block]

    def notify_names(self) -> list[str]:
        """Return the names of the first notifies of links."""
        most = max((link.notifies for link in self._links), default=1)
        names = ["signal", *(f"notify {k}" for k in range(1, OWN_NOTIFIES))]
        return [*names, *(f"packets {k}" for k in range(most - OWN_NOTIFIES))][:MAX_NAMES]

    def add_to(self, builder: ProgramBuilder) -> None:
        """Add all buffers and links to a builder, which numbers links as the layout does."""
        for name, sizes in self._buffers().items():
            builder.buffer(name, sizes)
        for link in self._links:
            exports = {rank: sorted(link.exports[rank]) for rank in link.ranks}
            builder.link(*link.ranks, plane=link.plane, notifies=link.notifies, exports=exports)

    def _buffers(self) -> dict[str, list[int]]:
        """Return the bytes of buffers by rank."""
        used = {
            found.buffer
            for listed in self.steps.values()
            for step in listed
            for found in (*step.src, *step.dst)
        }
        sizes = self.call.sizes
        buffers = {"IN": [of.inputs for of in sizes], "OUT": [of.outputs for of in sizes]}
        if SCRATCH in used:
            buffers[SCRATCH] = [of.scratch for of in sizes]
        if PACKETS in used:
            buffers[PACKETS] = [of.scratch // 2 for of in sizes]
        if any(held.size for held in self._registers.values()):
            ends = [0] * len(sizes)
            for (rank, _), held in self._registers.items():
                ends[rank] = max(ends[rank], held.stop)
            buffers[REGISTERS] = ends
        return buffers

    def alternating(self) -> tuple[str, ...]:
        """Return the buffers of which a call has the half that the call before it has not."""
        used = self._buffers()
        return tuple(name for name in (SCRATCH, PACKETS) if self.plan.double and name in used)


def _laid_out(steps: Mapping[tuple[int, int], list[PlanStep]]) -> dict[tuple[int, int], PlanSlice]:
    """Return the registers of every threadblock, as large as its operations need them."""
    ends: dict[int, int] = defaultdict(int)
    found = {}
    for (rank, block), listed in steps.items():
        held = (s.src[0].size for s in listed if FORMS[s.op.name].reduces)
        found[rank, block] = PlanSlice(rank, REGISTERS, ends[rank], max(held, default=0))
        ends[rank] = found[rank, block].stop
    return found
