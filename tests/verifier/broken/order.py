"""What is in no order, or never happens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hccl_py.enums import DataType
from hccl_py.orchestration import Link, Region
from hccl_py.plugins.executor import OpParam, PlaneRequest, RankView, ResourceRequest
from hccl_py.values import RankInt
from hccl_py.verifier import Call, Options
from tests.verifier.broken.mesh import AnyRank, Gather, Reduce, cases


class ConcurrentOps(Gather):
    """The caller runs the op on a second stream that does not wait for the first."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__(wrong)
        self.options = Options(calls=(Call(0), Call(1, after=() if wrong else (0,))))


class WaitWithoutPost(Gather):
    """The last rank forgets its neighbour on the right."""

    def tell(self, rank: AnyRank) -> None:
        for distance in range(2 if self.wrong and rank.id == 3 else 1, rank.size):
            rank.flat[(rank.id + distance) % rank.size].tx_ack(rank.main)


class UnmatchedPost(Gather):
    """Rank 2 does not wait until rank 0 has read."""

    def finish(self, rank: AnyRank) -> None:
        for distance in range(1, rank.size):
            if not (self.wrong and rank.id == 2 and distance == 2):
                rank.flat[(rank.id + distance) % rank.size].rx_data_signal(rank.main)


class DeadlockCycle(Gather):
    """Everyone waits for its left neighbour before it tells anyone; rank 0 need not."""

    def tell(self, rank: AnyRank) -> None:
        first = self.wrong or rank.id > 0
        if first:
            rank.flat.left.rx_ack(rank.main)
        super().tell(rank)
        if not first:
            rank.flat.left.rx_ack(rank.main)

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        if link is not rank.flat.left:
            link.rx_ack(rank.main)
        self.read(rank, peer, link, staged)
        link.tx_data_signal(rank.main)


class NotifyOverrun(Gather):
    """Ack says both `mine is ready` and `I have read yours`."""

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        link.rx_ack(rank.main)
        self.read(rank, peer, link, staged)
        (link.tx_ack if self.wrong else link.tx_data_signal)(rank.main)

    def finish(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            (link.rx_ack if self.wrong else link.rx_data_signal)(rank.main)


class Push(Gather):
    """An all-gather of two servers: each writes into the other's CCL_Out."""

    cases = cases(ranks=(), servers=2, devices=1)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=2)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        other, main = rank.flat.right, rank.main
        staged, landed = rank.ccl_in.head(op.size), rank.ccl_out.head(op.size)
        main.copy(staged, rank.user_in)
        main.copy(rank.user_out[rank.id], rank.user_in)
        other.tx_ack(main)
        other.rx_ack(main)
        self.send(rank, other.remote(landed), staged)
        other.tx_data_signal(main)
        other.rx_data_signal(main)
        main.copy(rank.user_out[other.peer], landed)
        other.tx_data_ack(main)
        self.end(rank, other, staged)

    def send(self, rank: AnyRank, there: Region, here: Region) -> None:
        with rank.fork() as (sub, _):
            sub.copy(there, here)

    def end(self, rank: AnyRank, other: Link, staged: Region) -> None:
        other.rx_data_ack(rank.main)


class ConnectionUnordered(Push):
    """Two sub streams write halves over the same connection, or one writes both."""

    def send(self, rank: AnyRank, there: Region, here: Region) -> None:
        half = here.size // 2
        with rank.fork() as subs:
            subs[0].copy(there.head(half), here.head(half))
            subs[int(self.wrong)].copy(there[half:], here[half:])


class RdmaSourceReuse(Push):
    """What was sent is overwritten before the DataAck, or after it."""

    def end(self, rank: AnyRank, other: Link, staged: Region) -> None:
        if not self.wrong:
            other.rx_data_ack(rank.main)
        rank.main.copy(staged, rank.ccl_out.head(staged.size))
        if self.wrong:
            other.rx_data_ack(rank.main)


class SilentRank(Gather):
    """The last rank leaves."""

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        if not (self.wrong and rank.id == rank.size - 1):
            super().orchestrate(op, rank)


class Forked(Gather):
    """The own part of the output is copied on a sub stream."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=1)

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        sub, (done, wake) = rank.subs[0], rank.notifies
        self.work(rank, sub, wake, done)
        return staged

    def work(self, rank: AnyRank, sub: Any, wake: Any, done: Any) -> None:
        if not (self.wrong and isinstance(self, StreamNotStarted)):
            rank.main.post(wake)
            sub.wait(wake)
        sub.copy(rank.user_out[rank.id], rank.user_in)
        if not (self.wrong and isinstance(self, StreamNotJoined)):
            sub.post(done)
            rank.main.wait(done)


class StreamNotStarted(Forked):
    """The sub stream does not wait for main."""


class StreamNotJoined(Forked):
    """Main does not wait for the sub stream."""


class RaceRw(Gather):
    """Reads before it waits."""

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        if not self.wrong:
            link.rx_ack(rank.main)
        self.read(rank, peer, link, staged)
        if self.wrong:
            link.rx_ack(rank.main)
        link.tx_data_signal(rank.main)


class Spread(Gather, ABC):
    """Everyone writes its input to all peers, into one slot of their CCL_In."""

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        size, main = op.size, rank.main
        for _, link in rank.flat.others():
            link.tx_ack(main)
        for _, link in rank.flat.others():
            link.rx_ack(main)
            main.copy(link.remote(self.slot(rank, rank.id, size)), rank.user_in)
            link.tx_data_signal(main)
        main.copy(rank.user_out[rank.id], rank.user_in)
        for peer, link in rank.flat.others():
            link.rx_data_signal(main)
            main.copy(rank.user_out[peer], self.slot(rank, peer, size))

    @abstractmethod
    def slot(self, rank: AnyRank, number: RankInt, size: int) -> Region: ...


class RaceWw(Spread):
    """All peers write into the first slot, or each into its own."""

    def slot(self, rank: AnyRank, number: RankInt, size: int) -> Region:
        first: Region = rank.ccl_in.head(size)
        slots = rank.ccl_in.head(rank.size * size).split(rank.size)
        return first if self.wrong else slots[number]


class ReduceOrderNondet(Reduce):
    """All peers add to the own CCL_Out as they come; of integers the order does not matter."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__(wrong)
        self.cases = cases(dtypes=(DataType.FP32 if wrong else DataType.INT32,))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        main, total = rank.main, rank.ccl_out.head(op.size)
        main.copy(total, rank.user_in)
        self.tell(rank)
        for _, link in rank.flat.others():
            link.rx_ack(main)
            main.reduce(link.remote(total), rank.user_in)
            link.tx_data_signal(main)
        self.finish(rank)
        main.copy(rank.user_out, total)


class RedundantSync(Gather):
    """Waits for a later post first, which says what the Ack says, and more."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=int(self.wrong)),))

    def tell(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.tx_ack(rank.main)
            if self.wrong:
                link.post(rank.main, 0)

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        if self.wrong:
            link.wait(rank.main, 0)
        super().take(rank, peer, link, staged)
