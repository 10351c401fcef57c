"""AllGatherSmallCount: every block is first put where halving-doubling can gather whole ranges.

The number of ranks is p = q·2^k, q odd. Block b goes to the member whose CCL_Out is to hold it
first; from then on what a rank has is always one range, in the order of the output:

    place     one write each: block b to member (b mod q, renumbered as in NHR; b div q, its k bits
              reversed) of q groups of 2^k neighbours
    NHR       between the groups: q blocks each
    doubling  k - 2 steps: in step s with the member whose number differs in bit k - 1 - s
    mesh      the last two doublings at once: every rank takes a quarter from each of three
              neighbours, straight to the output, so that CCL_Out holds a quarter only

With k = 1 the last doubling alone goes to the output, with k = 0 a local copy does; in graph mode
all blocks lie in the output from the start, and every doubling is a step like the others.

Cost for p ranks and n bytes in all: (k + ⌈log2 q⌉)α + n/2·β with k of at least 2, twice the bytes
and one step more with less, where p is more than 2; local copies are not counted. Source:
all_gather_hd_stage.cc and coll_all_gather_small_count_executor.cc of cann-hcomm (b5f3e5b).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hccl_executors.sources import like_april
from hccl_executors.templates.nhr import nhr_all_gather, nhr_order
from hccl_py.orchestration import Chunks, Link, Region, Stream
from hccl_py.orchestration.subplane import Subplane
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import IntArray, PerRank, RankInt, values_of


class Factors(NamedTuple):
    """p = odd·2^bits ranks, of which the last `direct` doublings go straight to the output."""

    odd: int
    bits: int
    direct: int

    @staticmethod
    def of(ranks: int, mode: Mode) -> Factors:
        """Take the powers of two out of a number of ranks."""
        power = ranks & -ranks
        bits = power.bit_length() - 1
        return Factors(ranks // power, bits, 0 if mode is Mode.GRAPH else min(bits, 2))

    @property
    def group(self) -> int:
        """Ranks of a group, 2^bits."""
        return 1 << self.bits

    @property
    def staged(self) -> int:
        """Blocks that lie in CCL_Out before they go to the output."""
        return self.odd << self.bits - self.direct

    def reversed(self, member: IntArray) -> IntArray:
        """Return numbers below 2^bits with their bits in the other order."""
        found = np.zeros_like(member)
        for bit in range(self.bits):
            found |= (member >> bit & 1) << (self.bits - 1 - bit)
        return found

    def homes(self) -> IntArray:
        """Return the rank that is to hold each block first."""
        block = np.arange(self.odd * self.group)
        place = np.argsort(np.array(nhr_order(self.odd)))
        found: IntArray = place[block % self.odd] * self.group + self.reversed(block // self.odd)
        return found


class AllGatherSmallCount(BaseExecutor):
    """AllGather of small data over SDMA links, servers of a superpod included.

    Three sub streams, as HCCL requests them for any number of ranks; two notifies each. A round
    takes as many blocks as CCL_Out holds of a quarter of them, half where p is no multiple of four,
    all where it is odd.
    """

    op = "all_gather"
    algorithm = "level0:NA;level1:hd_stage"
    fidelity = like_april("coll_all_gather_small_count_executor", "all_gather_hd_stage")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((not topology.has_rdma, "reads from peers: SDMA links only"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to all peers, and three sub streams."""
        factors = Factors.of(rank.size, Mode.OP_BASE)
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),) if rank.size > 1 else (),
            sub_streams=3 if rank.size > 1 else 0,
            max_count=rank.ccl_bytes // (op.unit * rank.size) << factors.direct,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Place, gather stage by stage, deliver."""
        stages = _Stages(op, rank)
        stages.place()
        stages.between_groups()
        stages.double()
        stages.finish()


class _Stages:
    """A rank's part: its number in its group, with and without its bits reversed."""

    def __init__(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        self.op, self.rank, self.main, self.size = op, rank, rank.main, rank.user_in.size
        self.factors = Factors.of(rank.size, op.mode)
        self.member = rank.id % self.factors.group
        self.mirrored = PerRank.of(self.factors.reversed(values_of(self.member)))
        if op.mode is Mode.GRAPH:
            self.memory = rank.user_out.joined(rank.size)[0]
        else:
            self.memory = rank.ccl_out.head(self.factors.staged * self.size)

    def place(self) -> None:
        """Write the input to the rank that is to hold it first."""
        rank, homes = self.rank, self.factors.homes()
        home = PerRank.of(homes[values_of(rank.id)])
        slot = self._range(rank.id % self.factors.staged, 1)
        with self.main.phase("place"):
            if home == rank.id:
                self.main.copy(slot, rank.user_in)
                return
            here = rank.flat[PerRank.of(np.argsort(homes)[values_of(rank.id)])]
            there = rank.flat[home]
            here.tx_ack(self.main)  # you may write yours
            there.rx_ack(self.main)
            self.main.copy(there.remote(slot), rank.user_in)
            there.tx_data_signal(self.main)  # mine has come
            here.rx_data_signal(self.main)

    def between_groups(self) -> None:
        """Gather the blocks of the members with this number, by NHR."""
        odd, group = self.factors.odd, self.factors.group
        if odd == 1:
            return
        alike = [range(number, odd * group, group) for number in range(group)]
        blocks = self._range(self.mirrored * odd % self.factors.staged, odd)
        chunks = blocks.split(odd, align=1).renumbered(nhr_order(odd))
        nhr_all_gather(self.main, Subplane(self.rank.flat, alike), chunks)

    def double(self) -> None:
        """Double what this rank has by reading as much from a member of its group, step by step."""
        count = self.factors.bits - self.factors.direct
        for step in self.main.steps("doubling", count):
            link = self._across(step)
            if step == 0:
                link.tx_ack(self.main)  # what I have you may read
                link.rx_ack(self.main)
            first = values_of(self.mirrored) >> step << step ^ 1 << step
            width = self.factors.odd << step
            start = PerRank.of(first * self.factors.odd % self.factors.staged)
            theirs = self._range(start, width)
            self.main.copy(theirs, link.remote(theirs))
            if step == count - 1:
                link.tx_data_signal(self.main)
                link.rx_data_signal(self.main)
                return
            following = self._across(step + 1)
            with self.rank.fork(1) as (sub,):
                link.tx_data_signal(sub)  # I have read yours
                link.rx_data_signal(sub)
                following.tx_ack(self.main)
                following.rx_ack(self.main)

    def finish(self) -> None:
        """Bring what is staged to the output: the own part, and those of the neighbours."""
        ways: dict[int, Callable[[], None]] = {1: self._finish_pair, 2: self._finish_mesh}
        with self.main.phase("to the output"):
            if self.factors.direct:
                ways[self.factors.direct]()
            elif self.memory.buffer != self.rank.user_out.buffer:
                self._take(0, self.memory, self.main)

    def _finish_mesh(self) -> None:
        rank, main = self.rank, self.main
        first = rank.id - rank.id % 4
        near = [(rank.id - distance) % 4 for distance in (1, 2, 3)]
        links = [rank.flat[first + index] for index in near]
        with rank.fork(2) as subs:
            for stream, link in zip((*subs, main), links, strict=True):
                link.tx_ack(stream)  # you may read my quarter
                link.rx_ack(stream)
        main.copy(self.memory.head(0), self.memory.head(0))
        with rank.fork(3) as subs:
            self._take(_quarter(rank.id % 4), self.memory, main)
            for stream, index, link in zip(subs, near, links, strict=True):
                self._take(_quarter(index), link.remote(self.memory), stream)
                link.tx_data_signal(stream)  # I have read yours
                link.rx_data_signal(stream)
        main.copy(self.memory.head(0), self.memory.head(0))

    def _finish_pair(self) -> None:
        rank, main = self.rank, self.main
        other = (rank.id + 1) % 2
        link = rank.flat[rank.id - rank.id % 2 + other]
        main.copy(self.memory.head(0), self.memory.head(0))
        link.tx_ack(main)
        link.rx_ack(main)
        with rank.fork(1) as (sub,):
            self._take(rank.id % 2, self.memory, main)
            self._take(other, link.remote(self.memory), sub)
        link.tx_data_signal(main)
        link.rx_data_signal(main)

    def _take(self, part: RankInt, source: Region, stream: Stream) -> None:
        """Copy as many blocks as are staged to their part of the output: one range, or, where a
        call takes several rounds, block by block.
        """
        n = self.factors.staged
        blocks = self.rank.user_out.taken(part * n, n)
        if self.rank.user_in.size == self.op.size:
            stream.copy(blocks.joined(n), [source])
        else:
            stream.copy(blocks, source.split(n, align=1))

    def _range(self, first: RankInt, blocks: int) -> Region:
        return self.memory[first * self.size : (first + blocks) * self.size]

    def _across(self, step: int) -> Link:
        """Return the link to the member whose number differs in one bit, the highest one first."""
        rank = values_of(self.rank.id)
        return self.rank.flat[PerRank.of(rank ^ 1 << (self.factors.bits - 1 - step))]


def _quarter(index: RankInt) -> RankInt:
    """Return the quarter of the output that a neighbour has: its two bits reversed."""
    return index % 2 * 2 + index // 2
