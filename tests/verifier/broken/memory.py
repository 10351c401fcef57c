"""Slices that are wrong whatever is in them, and memory that nobody wrote."""

from __future__ import annotations

from hccl_py.enums import Buffer, ReduceOp
from hccl_py.orchestration import Link, Region
from hccl_py.plugins.executor import OpParam
from hccl_py.values import RankInt
from tests.verifier.broken.mesh import COUNT, AnyRank, Gather, Reduce, cases


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
