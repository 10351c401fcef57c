"""For every class of findings an executor that shows it, and the same one put right.

`Example(True)` and `Example(False)` differ in one detail. Most are a full mesh on the main stream:

    stage    copy my input to CCL_Out, and to its place in the output
    tell     Ack to every peer: my CCL_Out is ready
    take     from each peer: wait for its Ack, read, DataSignal: I have read yours
    finish   wait for every peer's DataSignal
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hccl_py.enums import Buffer, DataType, Mode, ReduceOp
from hccl_py.executor import OpParam, PlaneRequest, RankView, ResourceRequest, Topology
from hccl_py.orchestration import Link, Region
from hccl_py.topology.presets import DEFAULT_PRESET
from hccl_py.values import RankInt
from hccl_py.verifier import Call, Cases, Options

__all__ = ["EXECUTORS", "Gather"]

AnyRank = Any
COUNT = 256
CASES: dict[str, Any] = {
    "ranks": (4,),
    "topology": DEFAULT_PRESET,
    "counts": (COUNT,),
    "dtypes": (DataType.FP32,),
    "reduce_ops": (ReduceOp.SUM,),
    "modes": (Mode.OP_BASE,),
    "in_place": False,
}


def cases(**changes: Any) -> Cases:
    """Return one call of 4 ranks, or another one."""
    return Cases(**(CASES | changes))


class Gather:
    """A mesh all-gather on main; `wrong` is for those that break it."""

    op = "all_gather"
    algorithm = "level0:mesh"
    cases = cases()
    options = Options()

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        staged = self.stage(rank)
        self.tell(rank)
        for peer, link in rank.flat.others():
            self.take(rank, peer, link, staged)
        self.finish(rank)

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        return staged

    def tell(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.tx_ack(rank.main)

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        link.rx_ack(rank.main)
        self.read(rank, peer, link, staged)
        link.tx_data_signal(rank.main)

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        rank.main.copy(rank.user_out[peer], link.remote(staged))

    def finish(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.rx_data_signal(rank.main)


class ConcurrentOps(Gather):
    """The caller runs the op on a second stream that does not wait for the first."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__(wrong)
        self.options = Options(calls=(Call(0), Call(1, after=() if wrong else (0,))))


class Reduce(Gather):
    """The same as an all-reduce: what is read is added to the own input."""

    op = "all_reduce"

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out, rank.user_in)
        return staged

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        rank.main.reduce(rank.user_out, link.remote(staged))


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


class NotifyIndexOutOfRange(Gather):
    """One extra notify was requested, and the second one is used."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=1),))

    def tell(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.post(rank.main, int(self.wrong))
            link.tx_ack(rank.main)

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        link.wait(rank.main, int(self.wrong))
        super().take(rank, peer, link, staged)


class UndeclaredChannel(Gather):
    """A ring has no links to the ranks beyond the neighbours."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "ring" if self.wrong else "mesh"),))


class UndeclaredStream(Gather):
    """One sub stream was requested, and two are woken."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=1)

    def finish(self, rank: AnyRank) -> None:
        with rank.fork(2 if self.wrong else 1) as (sub, *_):
            for _, link in rank.flat.others():
                link.rx_data_signal(sub)


class ResourceMismatch(Gather):
    """Rank 0 asks for another notify for each of its transports, the others do not."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        extra = 1 if self.wrong and rank.id == 0 else 0
        return ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=extra),))


class ResourceExceeded(Gather):
    """More notifies than a device has."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        notifies = 8192 - 3 * 2 + self.wrong
        return ResourceRequest((PlaneRequest("flat", "mesh"),), notifies=notifies)


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


class ResourceUnused(Forked):
    """Scratch that nobody uses."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        planes = (PlaneRequest("flat", "mesh"),)
        return ResourceRequest(planes, sub_streams=1, scratch_bytes=64 * self.wrong)


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


class InplaceClobber(Gather):
    """The own part is copied after the others' have come, or before."""

    cases = cases(in_place=True)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        staged = rank.ccl_out.head(op.size)
        rank.main.copy(staged, rank.user_in)
        if not self.wrong:
            rank.main.copy(rank.user_out[rank.id], rank.user_in)
        self.tell(rank)
        for peer, link in rank.flat.others():
            self.take(rank, peer, link, staged)
        self.finish(rank)
        if self.wrong:
            rank.main.copy(rank.user_out[rank.id], rank.user_in)


class OutOfBounds(Gather):
    """A region that an author makes by hand ends behind the output."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        whole, shift = 4 * staged.size, 64 * self.wrong
        into = Region(Buffer.USER_OUT, peer * staged.size + shift, staged.size)
        assert whole == 4 * rank.user_out[peer].size
        rank.main.copy(into, link.remote(staged))


class RemoteNotExported(Gather):
    """Reads the peer's input itself, which only an own request exports."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        memory = None if self.wrong else Buffer.USER_IN
        return ResourceRequest((PlaneRequest("flat", "mesh", input_mem=memory),))

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        rank.main.copy(rank.user_out[peer], link.remote(rank.user_in))


class TransferTooLarge(Gather):
    """More than 4 GiB in one task, or just as much."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__(wrong)
        self.cases = cases(ranks=(1,), counts=((1 << 30) + wrong,))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        rank.main.copy(rank.user_out[0], rank.user_in)


class UnsupportedInlineReduce(Reduce):
    """No DMA engine multiplies."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__(wrong)
        self.cases = cases(reduce_ops=(ReduceOp.PROD if wrong else ReduceOp.MAX,))


class Unaligned(Gather):
    """CCL_Out is used from byte 4 on."""

    def stage(self, rank: AnyRank) -> Region:
        begin = 4 * self.wrong
        staged: Region = rank.ccl_out[begin : begin + rank.user_in.size]
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        return staged


class SelfOverlap(Gather):
    """Moves what is staged by less than its length, or by as much."""

    def finish(self, rank: AnyRank) -> None:
        super().finish(rank)
        size = COUNT * 4
        begin = size // 2 if self.wrong else size
        rank.main.copy(rank.ccl_out[begin : begin + size], rank.ccl_out.head(size))


class SliceLenMismatch(Gather):
    """Reads one element less than it has room for."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        theirs = link.remote(staged.head(staged.size - 4 * self.wrong))
        rank.main.copy(rank.user_out[peer], theirs)


class DtypeMismatch(Reduce):
    """Adds in two parts that are cut inside an element, or between two."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        cut, theirs = 6 if self.wrong else 8, link.remote(staged)
        rank.main.reduce(rank.user_out.head(cut), theirs.head(cut))
        rank.main.reduce(rank.user_out[cut:], theirs[cut:])


class ReadUndefined(Gather):
    """Does not stage its input."""

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        if not self.wrong:
            rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        return staged


class ReduceIntoUndefined(Reduce):
    """Does not put its own input into the output first."""

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        if not self.wrong:
            rank.main.copy(rank.user_out, rank.user_in)
        return staged


class OutputMissing(Gather):
    """Does not read from its right neighbour."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        if not (self.wrong and link is rank.flat.right):
            super().read(rank, peer, link, staged)


class WrongSource(Gather):
    """Puts what comes from its neighbours into each other's place."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        swap = self.wrong and link in (rank.flat.left, rank.flat.right)
        place = (rank.id * 2 - peer) % rank.size if swap else peer
        super().read(rank, place, link, staged)


class WrongOffset(Gather):
    """Reads halves in the wrong order."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        into, theirs = rank.user_out[peer].split(2), link.remote(staged).split(2)
        for k in range(2):
            rank.main.copy(into[k], theirs[1 - k if self.wrong else k])


class WrongReduceOp(Reduce):
    """Takes the maximum in a call that adds."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        op = ReduceOp.MAX if self.wrong else None
        rank.main.reduce(rank.user_out, link.remote(staged), op)


class MissingContribution(Reduce):
    """Copies what comes last over the sum."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        if self.wrong and link is rank.flat.right:
            rank.main.copy(rank.user_out, link.remote(staged))
        else:
            super().read(rank, peer, link, staged)


class DoubleContribution(Reduce):
    """Adds what its right neighbour has twice."""

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        for _ in range(2 if self.wrong and link is rank.flat.right else 1):
            super().read(rank, peer, link, staged)


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


class DeadTransfer(Gather):
    """Stages its input in the other CCL buffer, too."""

    def stage(self, rank: AnyRank) -> Region:
        if self.wrong:
            rank.main.copy(rank.ccl_in.head(rank.user_in.size), rank.user_in)
        return super().stage(rank)


EXECUTORS: dict[str, type[Gather]] = {
    "WAIT_WITHOUT_POST": WaitWithoutPost,
    "DEADLOCK_CYCLE": DeadlockCycle,
    "UNMATCHED_POST": UnmatchedPost,
    "NOTIFY_OVERRUN": NotifyOverrun,
    "NOTIFY_INDEX_OUT_OF_RANGE": NotifyIndexOutOfRange,
    "UNDECLARED_CHANNEL": UndeclaredChannel,
    "UNDECLARED_STREAM": UndeclaredStream,
    "RESOURCE_MISMATCH": ResourceMismatch,
    "RESOURCE_EXCEEDED": ResourceExceeded,
    "CONCURRENT_OPS": ConcurrentOps,
    "CONNECTION_UNORDERED": ConnectionUnordered,
    "SILENT_RANK": SilentRank,
    "STREAM_NOT_STARTED": StreamNotStarted,
    "STREAM_NOT_JOINED": StreamNotJoined,
    "RACE_RW": RaceRw,
    "RACE_WW": RaceWw,
    "RDMA_SOURCE_REUSE": RdmaSourceReuse,
    "INPLACE_CLOBBER": InplaceClobber,
    "OUT_OF_BOUNDS": OutOfBounds,
    "REMOTE_NOT_EXPORTED": RemoteNotExported,
    "TRANSFER_TOO_LARGE": TransferTooLarge,
    "UNSUPPORTED_INLINE_REDUCE": UnsupportedInlineReduce,
    "SELF_OVERLAP": SelfOverlap,
    "SLICE_LEN_MISMATCH": SliceLenMismatch,
    "DTYPE_MISMATCH": DtypeMismatch,
    "READ_UNDEFINED": ReadUndefined,
    "REDUCE_INTO_UNDEFINED": ReduceIntoUndefined,
    "OUTPUT_MISSING": OutputMissing,
    "WRONG_SOURCE": WrongSource,
    "WRONG_OFFSET": WrongOffset,
    "WRONG_REDUCE_OP": WrongReduceOp,
    "MISSING_CONTRIBUTION": MissingContribution,
    "DOUBLE_CONTRIBUTION": DoubleContribution,
    "REDUCE_ORDER_NONDET": ReduceOrderNondet,
    "RESOURCE_UNUSED": ResourceUnused,
    "UNALIGNED": Unaligned,
    "REDUNDANT_SYNC": RedundantSync,
    "DEAD_TRANSFER": DeadTransfer,
}
