"""HCCL's rings of blocks over uneven servers of Atlas A3 (ARS), written from its sources.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm/impl/
coll_executor, one superpod each: blocks and rings coll_native_executor_base.cc:128-215 and :797,
streams coll_comm_executor.cc:210-390 and :870-1090, and of the executors that ARS is made from
all_gather_ring_for_910_93_executor.cc:285-440, reduce_scatter_ring_for_910_93_executor.cc:590-760,
all_reduce_ring_for_910_93_executor.cc:218-590.
"""

from collections.abc import Callable, Sequence

from tests.executors.fidelity.rings import ring_all_gather, ring_reduce_scatter
from tests.executors.fidelity.transports import Event, Part, Slice

Streams = list[list[Event]]
Level1 = Callable[[Part, list[Slice]], None]


class OnBlocks:
    """A rank in a block of `size`, among `ranks`; two rings have a sub stream."""

    def __init__(self, rank: int, ranks: int, size: int) -> None:
        self.rank, self.ranks, self.size = rank, ranks, size
        self.place, self.start = rank % size, rank // size * size
        self.streams: Streams = [[] for _ in range(2 if size > 2 else 1)]
        across = range(self.place, ranks, size)
        self.between = Part(self.streams[0], across, rank, rdma=False)

    def around(self, template: Callable[..., None], slots: Sequence[Sequence[Slice]]) -> None:
        """Run a ring's template: both rings at once where there are two, the first on the sub."""
        members = [self.start + place for place in range(self.size)]
        forward = list(range(self.size))
        if self.size == 1:
            return
        if self.size == 2:
            template(Part(self.streams[0], members, self.rank, rdma=False), slots)
            return
        main, sub = self.streams
        main.append(("post", 1, 0))
        sub.append(("wait", 1, 0))
        for half, order in enumerate((forward, [0, *forward[:0:-1]])):
            stream = main if half else sub
            ring = Part(stream, [members[i] for i in order], self.rank, rdma=False)
            template(ring, [[_half(slot, half) for slot in slots[i]] for i in order])
        sub.append(("post", 0, 0))
        main.append(("wait", 0, 0))

    def across(self, template: Level1, slots: list[Slice]) -> None:
        """Run a template between blocks; templates of one rank copy, at most."""
        if self.between.size > 1:
            template(self.between, slots)

    def sets(self, size: int) -> list[list[Slice]]:
        """What a place of the block stands for: its slot and those of its place in all blocks."""
        return [
            [Slice(rank * size, size) for rank in range(place, self.ranks, self.size)]
            for place in range(self.size)
        ]


def _half(slot: Slice, number: int) -> Slice:
    """coll_comm_executor.cc:2094: a slot's part for one of two rings, a multiple of 128 bytes."""
    first = -(-slot.size // 2 // 128) * 128
    return Slice(slot.offset + first, slot.size - first) if number else Slice(slot.offset, first)


def all_gather(me: OnBlocks, size: int, level1: Level1) -> None:
    """Between blocks, then around."""
    me.across(level1, [Slice(rank * size, size) for rank in me.between.ranks])
    me.around(ring_all_gather, me.sets(size))


def reduce_scatter(me: OnBlocks, size: int, level1: Level1) -> None:
    """Around, then between blocks."""
    me.around(ring_reduce_scatter, me.sets(size))
    me.across(level1, [Slice(rank * size, size) for rank in me.between.ranks])


def all_reduce(me: OnBlocks, size: int, level1: Level1) -> None:
    """Around, the sum of a slot between blocks, and around again; `size` is that of a slot."""
    slots = [[Slice(place * size, size)] for place in range(me.size)]
    me.around(ring_reduce_scatter, slots)
    me.across(level1, slots[me.place])
    me.around(ring_all_gather, slots)
