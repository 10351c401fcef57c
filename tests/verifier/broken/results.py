"""Outputs that are not what the op computes, and data that nobody needs."""

from __future__ import annotations

from hccl_py.enums import ReduceOp
from hccl_py.orchestration import Link, Region
from hccl_py.values import RankInt
from tests.verifier.broken.mesh import AnyRank, Gather, Reduce


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


class DeadTransfer(Gather):
    """Stages its input in the other CCL buffer, too."""

    def stage(self, rank: AnyRank) -> Region:
        if self.wrong:
            rank.main.copy(rank.ccl_in.head(rank.user_in.size), rank.user_in)
        return super().stage(rank)
