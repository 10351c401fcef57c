"""What all ranks of a plan's program have in common: links, notifies and buffers.

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
from hccl_py.formats.checks import MAX_NAMES
from hccl_py.program.transports import OWN_NOTIFIES

REGISTERS = "REGISTERS"
"""Where an operation holds a sum before it stores it, a part for every threadblock."""


@dataclass
class _Link:
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
        self.reduce = call.op.reduce.spelling if call.op.reduce else "sum"
        self._links: list[_Link] = []
        self._of_channel: dict[tuple[int, str, int], _Link] = {}
        self._of_pair: dict[tuple[int, int], _Link] = {}
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

    def _made(self, one: int, other: int, plane: str) -> _Link:
        pair = (min(one, other), max(one, other))
        link = _Link(len(self._links), pair, plane)
        self._links.append(link)
        self._of_pair.setdefault(pair, link)
        return link

    def of_channel(self, gpu: PlanGpu, block: PlanBlock, kind: str, channel: int) -> int:
        """Return the link of a threadblock's channel."""
        return self._of_channel[gpu.id, kind, block.channels[kind][channel]].id

    def between(self, one: int, other: int) -> int:
        """Return the link over which data goes that no channel carries."""
        return self._between(one, other).id

    def _between(self, one: int, other: int) -> _Link:
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
        """Let links export what tasks of the peer touch."""
        for (rank, _), listed in self.steps.items():
            for step in listed:
                for found in (*step.src, *step.dst):
                    if found.rank != rank:
                        self._between(rank, found.rank).exports[found.rank].add(found.buffer)
        for link in self._links:
            link.exports |= self._of_pair[link.ranks].exports

    def register(self, rank: int, block: int) -> PlanSlice:
        """Return where a threadblock holds sums."""
        return self._registers[rank, block]

    def links(self) -> list[dict[str, object]]:
        """Return the links of a program file."""
        return [
            {
                "id": link.id,
                "ranks": list(link.ranks),
                "kind": "sdma",
                "notifies": link.notifies,
                "plane": link.plane,
                "exports": {str(rank): sorted(link.exports[rank]) for rank in link.ranks},
            }
            for link in self._links
        ]

    def notify_names(self) -> list[str]:
        """Return what the first notifies of links are called."""
        most = max((link.notifies for link in self._links), default=1)
        names = ["signal", *(f"notify {k}" for k in range(1, OWN_NOTIFIES))]
        return [*names, *(f"packets {k}" for k in range(most - OWN_NOTIFIES))][:MAX_NAMES]

    def buffers(self) -> dict[str, dict[str, int]]:
        """Return the bytes of every rank's buffers."""
        used = {
            found.buffer
            for listed in self.steps.values()
            for step in listed
            for found in (*step.src, *step.dst)
        }
        found = {}
        for gpu, sizes in zip(self.plan.gpus, self.call.sizes, strict=True):
            buffers = {"IN": sizes.inputs, "OUT": sizes.outputs}
            buffers |= {SCRATCH: sizes.scratch} if SCRATCH in used else {}
            buffers |= {PACKETS: sizes.scratch // 2} if PACKETS in used else {}
            held = [slice_ for (rank, _), slice_ in self._registers.items() if rank == gpu.id]
            if any(slice_.size for slice_ in self._registers.values()):
                buffers[REGISTERS] = max((slice_.stop for slice_ in held), default=0)
            found[str(gpu.id)] = buffers
        return found

    def alternating(self) -> list[str]:
        """Return the buffers of which a call has the half that the call before it has not."""
        used = next(iter(self.buffers().values()))
        return [name for name in (SCRATCH, PACKETS) if self.plan.double and name in used]


def _laid_out(steps: Mapping[tuple[int, int], list[PlanStep]]) -> dict[tuple[int, int], PlanSlice]:
    """Return where every threadblock holds sums, as large as its operations need them."""
    ends: dict[int, int] = defaultdict(int)
    found = {}
    for (rank, block), listed in steps.items():
        held = (s.src[0].size for s in listed if FORMS[s.op.name].reduces)
        found[rank, block] = PlanSlice(rank, REGISTERS, ends[rank], max(held, default=0))
        ends[rank] = found[rank, block].stop
    return found
