"""HCCL's small all-gather of A3, written from its source, as one rank runs it.

The file is libochao-huawei/hcomm @ 8958adb, src/legacy/ascend910/algorithm/base/alg_template/
temp_all_gather/all_gather_hd_stage.cc; main and three sub streams, whatever the ranks.
"""

from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import Link, Part, Slice
from tests.executors.fidelity.trees import nhr_all_gather

SUBS = 3
RESULT_MAP = (0, 2, 1, 3)


class Stages:
    """A rank of `ranks`, each with `size` bytes; in graph mode outputMem_ is the output."""

    def __init__(self, rank: int, ranks: int, size: int, *, graph: bool) -> None:
        self.me, self.rank, self.ranks, self.size = Worker(rank, SUBS), rank, ranks, size
        lowest = ranks & -ranks
        self.power_steps, self.odd = lowest.bit_length() - 1, ranks // lowest
        self.final_steps = 0 if graph else min(self.power_steps, 2)
        self.power = 1 << self.power_steps
        self.staged = ranks >> self.final_steps

    def link(self, stream: int, peer: int) -> Link:
        """links[peer], used by a stream."""
        return Link(self.me.streams[stream], peer, rdma=False)

    def reversed(self, index: int) -> int:
        """:170 ReverseId."""
        found = 0
        for i in range(self.power_steps):
            found += (index >> i & 1) << (self.power_steps - i - 1)
        return found

    def run(self) -> None:
        """:196 RunAllGatherStage."""
        self.pre_copy()
        if self.odd > 1:
            self.no_power()
        if self.power_steps > self.final_steps:
            self.doubling()
        if self.final_steps == 2:
            self.last_two()
        elif self.final_steps == 1:
            self.last_one()

    def pre_copy(self) -> None:
        """:234 RunPreCopy."""
        mapped = rank_mapping(self.odd)
        back = [mapped.index(i) for i in range(self.odd)]
        group, index = divmod(self.rank, self.power)
        source = self.reversed(index) * self.odd + mapped[group]
        group, index = divmod(self.rank, self.odd)
        target = back[index] * self.power + self.reversed(group)
        if self.rank in (source, target):
            return
        here, there = self.link(0, source), self.link(0, target)
        here.tx_ack()
        there.rx_ack()
        there.move("write", 0, self.rank % self.staged * self.size, self.size)
        there.tx_data_signal()
        here.rx_data_signal()

    def no_power(self) -> None:
        """:283 RunAllGatherNoPower: NHR, whose slices travel merged."""
        index = self.rank % self.power
        start = self.reversed(index) * self.odd % self.staged * self.size
        ranks = [i * self.power + index for i in range(self.odd)]
        slices = [Slice(start + i * self.size, self.size) for i in range(self.odd)]
        part = Part(self.me.streams[0], ranks, self.rank, rdma=False)
        nhr_all_gather(part, slices, merge=True)

    def doubling(self) -> None:
        """:339 RunAllGatherPower, :180 PrepareSliceData, :321 RunBetweenStep."""
        group, index = divmod(self.rank, self.power)
        turned, count = self.reversed(index), self.power_steps - self.final_steps
        block = self.odd * self.size
        for step in range(count):
            peer = group * self.power + (index ^ 1 << (self.power_steps - 1 - step))
            link, width = self.link(0, peer), 1 << step
            if step == 0:
                link.tx_ack()
                link.rx_ack()
            place = (turned ^ width) // width * width * block % (self.staged * self.size)
            link.move("read", place, place, width * block)
            if step == count - 1:
                link.tx_data_signal()
                link.rx_data_signal()
                break
            following = group * self.power + (index ^ 1 << (self.power_steps - 2 - step))
            self.me.start([0])
            by_sub = self.link(1, peer)
            by_sub.tx_data_signal()
            by_sub.rx_data_signal()
            link = self.link(0, following)
            link.tx_ack()
            link.rx_ack()
            self.me.finish([0])

    def last_two(self) -> None:
        """:378 RunAllGatherLastTwo."""
        first, quarter = self.rank // 4 * 4, self.ranks * self.size // 4
        peers = [first + (self.rank - distance) % 4 for distance in (1, 2, 3)]
        self.me.start([0, 1])
        for stream, peer in zip((1, 2, 0), peers, strict=True):
            link = self.link(stream, peer)
            link.tx_ack()
            link.rx_ack()
        self.me.finish([0, 1])
        self.me.start(range(SUBS))
        for stream, peer in zip((1, 2, 3), peers, strict=True):
            link = self.link(stream, peer)
            link.move("read", 0, quarter * RESULT_MAP[peer % 4], quarter)
            link.tx_data_signal()
            link.rx_data_signal()
        self.me.finish(range(SUBS))

    def last_one(self) -> None:
        """:434 RunAllGatherLastOne."""
        half, peer = self.ranks * self.size // 2, self.rank ^ 1
        link = self.link(0, peer)
        link.tx_ack()
        link.rx_ack()
        self.me.start([0])
        self.link(1, peer).move("read", 0, half * (1 - self.rank % 2), half)
        self.me.finish([0])
        link.tx_data_signal()
        link.rx_data_signal()


def rank_mapping(ranks: int) -> list[int]:
    """:40 GetRankMapping: every step puts the even places of each part before the odd ones."""
    tree, length = list(range(ranks)), ranks
    for step in range((ranks - 1).bit_length()):
        if (ranks - 1 + (1 << step)) // (1 << (step + 1)) <= 1:
            break
        moved, is_odd = [0] * ranks, False
        for start in range(0, ranks, length):
            end = min(start + length, ranks)
            for i in range(start, end):
                offset = i - start
                half = offset // 2 if offset % 2 == 0 else (offset + length) // 2
                moved[start + half] = tree[i]
            is_odd |= bool((end - start) & 1)
        tree = moved
        if is_odd:
            break
        length >>= 1
    return [tree.index(i) for i in range(ranks)]
