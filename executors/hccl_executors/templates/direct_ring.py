"""Rings inside a server, from and to user memory: a helper stream of each moves data meanwhile.

    ring 0:  0 → 1 → 2 → 3 → 0      all of every slot, on main, helped by sub 0

With two rings, ring 0 is on sub 0, helped by sub 1, and ring 1 on main, helped by sub 2; neither
waits for the other. In every step a ring lets the right neighbour have a slot, then lines up with
its helper, and takes a slot from the left neighbour, while the helper moves data between user
memory and the exported memory. The last step ends in user memory itself. All links are SDMA.

p - 1 steps over p ranks and a barrier: all-gather and reduce-scatter cost pα + (p-1)/p·n(β [+ γ]).

A scatter from user memory (`helped_scatter`) wakes the helper in every step, where it fetches at
the root what goes next; without a helper (`direct_scatter`) it is a ring's, ended in user memory.

Source: of cann-hcomm (b5f3e5b) all_gather_ring_concurrent_direct.cc,
all_gather_ring_direct.cc, reduce_scatter_ring_concurrent_direct.cc,
scatter_ring_concurrent_direct.cc, scatter_ring_direct.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hccl_executors.templates.double_ring import parts_of_rings
from hccl_executors.templates.ring import ring_barrier, ring_scatter
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.region import pieces
from hccl_py.plugins.executor import AnyRank


def direct_all_gather(
    rank: AnyRank, rings: Sequence[Plane], work: Chunks, out: Chunks, source: Region | None = None
) -> None:
    """Leave all slots in `out`; member i of level0 starts with slot i of `work`, exported memory at
    the same place of every rank, or with `source`, its own slot elsewhere.
    """
    places = parts_of_rings(rings, work)
    ends = places if out is work else parts_of_rings(rings, out)
    sources = [None] * len(rings) if source is None else source.split(len(rings))
    with _helped(rank, rings) as helped:
        for number, ring in enumerate(helped):
            ring.all_gather(places[number], ends[number], sources[number])


def direct_reduce_scatter(
    rank: AnyRank, rings: Sequence[Plane], inputs: Chunks, work: Chunks, out: Region | None = None
) -> None:
    """Reduce slot i of all `inputs` at member i of level0: in `out`, or in slot i of `work`,
    exported memory at the same place of every rank. `inputs` are left as they are, or are `work`.
    """
    places = parts_of_rings(rings, work)
    sources = places if inputs is work else parts_of_rings(rings, inputs)
    ends = [None] * len(rings) if out is None else out.split(len(rings))
    with _helped(rank, rings) as helped:
        for number, ring in enumerate(helped):
            ring.reduce_scatter(sources[number], places[number], ends[number])


def direct_scatter(
    rank: AnyRank, rings: Sequence[Plane], work: Chunks, out: Region, root: int
) -> None:
    """Leave slot i of `work` at member `root` of level0 in `out` of member i. No helpers."""
    with rank.fork(len(rings) - 1) as subs:
        streams, parts = (*subs, rank.main), parts_of_rings(rings, work)
        for stream, ring, part, end in zip(
            streams, rings, parts, out.split(len(rings)), strict=True
        ):
            ring_scatter(stream, ring, part, ring.order.index(root), end)


def helped_scatter(rank: AnyRank, ring: Plane, inputs: Chunks, work: Chunks, root: int) -> None:
    """Leave slot i of the `inputs` of member `root` of level0 in slot i of `work` of member i."""
    order = ring.order
    sources, places = inputs.renumbered(order), work.renumbered(order)
    HelpedRing(rank, ring, rank.main, 0).scatter(sources, places, order.index(root))


@contextmanager
def _helped(rank: AnyRank, rings: Sequence[Plane]) -> Iterator[list[HelpedRing]]:
    """Yield the rings with their streams; main runs the last one and waits for the others."""
    first = len(rings) - 1
    with rank.fork(first) as subs:
        streams = (*subs, rank.main)
        yield [
            HelpedRing(rank, ring, stream, first + number)
            for number, (ring, stream) in enumerate(zip(rings, streams, strict=True))
        ]


class HelpedRing:
    """A ring, the stream that goes round it, and the sub stream `number`, which helps that. Slots
    are numbered as the ring goes.
    """

    def __init__(self, rank: AnyRank, ring: Plane, lead: Stream, number: int) -> None:
        self.rank, self.ring, self.lead, self.number = rank, ring, lead, number
        self.steps = int(ring.size) - 1

    def all_gather(self, work: Chunks, out: Chunks, source: Region | None) -> None:
        """Go round; the helper delivers what was received in the step before, unless `out` is
        `work`.
        """
        ring, lead, moves = self.ring, self.lead, out is not work
        if source is not None:
            lead.copy(work[ring.id], source)
        if not self.steps:
            if moves:
                lead.copy(out[ring.id], work[ring.id])
            return
        helper = self._wake()
        for step in lead.steps("direct all-gather", self.steps):
            mine, theirs = (ring.id - step) % ring.size, (ring.id - 1 - step) % ring.size
            into = pieces((out if step == self.steps - 1 else work)[theirs])
            ends, held = pieces(out[mine]), pieces(work[mine])
            self._announce()
            for i, place in enumerate(pieces(work[theirs])):
                self._line_up(helper)
                if moves:
                    helper.copy(ends[i], held[i])
                lead.copy(into[i], ring.left.remote(place))
        self._join()
        ring_barrier(lead, ring)

    def all_gather_alone(self, work: Chunks, out: Chunks, source: Region) -> None:
        """Go round without a helper: the ring's stream delivers before every step."""
        ring, lead, moves = self.ring, self.lead, out is not work
        lead.copy(work[ring.id], source)
        if not self.steps and moves:
            lead.copy(out[ring.id], work[ring.id])
        for step in lead.steps("direct all-gather", self.steps):
            mine, theirs = (ring.id - step) % ring.size, (ring.id - 1 - step) % ring.size
            if moves:
                lead.copy(out[mine], work[mine])
            self._announce()
            into = (out if step == self.steps - 1 else work)[theirs]
            lead.copy(into, ring.left.remote(pieces(work[theirs])[0]))
        ring_barrier(lead, ring)

    def reduce_scatter(self, inputs: Chunks, work: Chunks, out: Region | None) -> None:
        """Go round; the helper fetches what the next step receives into."""
        ring, lead = self.ring, self.lead

        def into(step: int) -> list[Region]:
            last = out is not None and step == self.steps - 1
            return [out] if last and out is not None else places(step)

        def places(step: int) -> list[Region]:
            return pieces(work[(ring.id - 2 - step) % ring.size])

        def fetch(stream: Stream, step: int, i: int) -> None:
            if inputs is work:
                return
            source = pieces(inputs[(ring.id - 2 - step) % ring.size])[i]
            stream.copy(into(step)[i], source)

        if not self.steps:
            lead.copy(work[ring.id] if out is None else out, inputs[ring.id])
            return
        for i in range(len(places(0))):  # what is received first, and what is sent first
            helper = self._wake()
            fetch(lead, 0, i)
            fetch(helper, -1, i)
            self._join()
        helper = self._wake()
        for step in lead.steps("direct reduce-scatter", self.steps):
            self._announce()
            landed = []
            for i, place in enumerate(places(step)):
                self._line_up(helper)
                theirs = ring.left.remote(place)
                if ring.left.inline_reduce:
                    lead.reduce(into(step)[i], theirs)
                else:
                    landed.append(self.rank.landing(place))
                    lead.copy(landed[i], theirs)
                if step < self.steps - 1:
                    fetch(helper, step + 1, i)
            for i, beside in enumerate(landed):
                lead.reduce(into(step)[i], beside)
        self._join()
        ring_barrier(lead, ring)

    def scatter(self, inputs: Chunks, work: Chunks, root: int) -> None:
        """Go round; the helper fetches at the root what goes next."""
        ring, lead, p = self.ring, self.lead, self.steps + 1
        distance = int((ring.id - root) % p)
        if not self.steps:
            lead.copy(work[ring.id], inputs[ring.id])
            return
        if not distance:
            self._wake().copy(work[(root - 1) % p], inputs[(root - 1) % p])
            self._join()
        for step in lead.steps("direct scatter", self.steps):
            helper = self._wake()
            receives, sends = 0 < distance <= step + 1, distance <= step
            if receives:
                ring.left.tx_ack(lead)
            if sends:
                ring.right.rx_ack(lead)
                ring.right.tx_data_signal(lead)
            if receives:
                slot = work[(ring.id - 2 - step) % p]
                ring.left.rx_data_signal(lead)
                lead.copy(slot, ring.left.remote(slot))
            if not distance:
                following = (root - 2 - step) % p
                helper.copy(work[following], inputs[following])
            self._join()
        ring_barrier(lead, ring)

    def _announce(self) -> None:
        """Take turns with the neighbours: there is room here, and data for the right one."""
        self.ring.left.tx_ack(self.lead)
        self.ring.right.rx_ack(self.lead)
        self.ring.right.tx_data_signal(self.lead)
        self.ring.left.rx_data_signal(self.lead)

    def _line_up(self, helper: Stream) -> None:
        """Let both streams begin together what they do next."""
        ready, go = self.rank.notifies[self.number], self.rank.notifies[self._go]
        helper.post(ready)
        self.lead.wait(ready)
        self.lead.post(go)
        helper.wait(go)

    @property
    def _go(self) -> int:
        return len(self.rank.subs) + self.number

    def _wake(self) -> Stream:
        return self.rank.wake(self.number, by=self.lead)

    def _join(self) -> None:
        self.rank.join(self.number, to=self.lead)
