"""RunAlltoAllVFor310PExecutor: four dies of Atlas 300I Duo, second dies by way of the first."""

from __future__ import annotations

from typing import NamedTuple

from hccl_executors.all_to_all.layout import UserParts, layout_of
from hccl_executors.sources import like_april
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Buffer
from hccl_py.orchestration import Region, Stream
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import IntArray, PerRank, RankInt, values_of

RANKS = 4
ALIGN = 128
"""A part keeps its place in the output within so many bytes."""


class RunAlltoAllVFor310PExecutor(BaseExecutor):
    """AlltoAll, AlltoAllV and AlltoAllVC between the four dies of two cards.

    Rank 0 and 2 are first dies, 1 and 3 their second ones. A second die talks to its first one
    only, a first die to the other one, too; what goes between second dies, or across, is handed on.
    After every rank has staged what goes first, in four steps, where a first die m has its second
    die s, and M with S are the other card:

        step   m reads from s   m reads from M   s reads from m
        1      s → S            M → s            m → s
        2      s → M            S → s            M → s
        3      s → m            S → m            S → s
        4                       M → m

    m reads from M on its first sub stream, from s on its second; s has one. Data goes in pieces
    of almost half a CCL buffer, in graph mode, too.
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh"
    fidelity = like_april(
        "310P/coll_all_to_all_v_for_310p_executor", "temp_alltoallv/alltoallv_for_310p"
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """HCCL's template knows four ranks."""
        return require(
            (topology.size == RANKS, f"is for {RANKS} ranks, not {topology.size}"),
            (not topology.has_rdma, "reads from peers, which needs SDMA links between all ranks"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Two sub streams of a first die, one of a second."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh", Buffer.CCL_IN, Buffer.CCL_OUT),),
            sub_streams=1 if rank.id % 2 else 2,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        user, most = layout_of(op, rank.size), rank.ccl_bytes // 2 // ALIGN * ALIGN - ALIGN
        run = _second_die if rank.id % 2 else _first_die
        pieces = -(-int(user.sends.sizes.max()) // most)
        for number in rank.main.steps("piece", pieces):
            run(rank, _DiePiece.of(rank, user, number * most, most))


class _DiePiece(NamedTuple):
    """One piece of every part, and where it lies in the two buffers: in the first or the second
    half, of `half` bytes, as far from its beginning as `shift` says, by sender and receiver.
    """

    rank: AnyRank
    user: UserParts
    shift: IntArray
    half: int

    @staticmethod
    def of(rank: AnyRank, user: UserParts, start: int, most: int) -> _DiePiece:
        shift = (user.receives.offsets.T + start) % ALIGN
        cut = UserParts(*(table.piece(start, most) for table in user))
        return _DiePiece(rank, cut, shift, most + ALIGN)

    def at(self, src: RankInt, dst: RankInt, buffer: Buffer, half: int) -> Region:
        """Return the place of the part from one rank for another in a half of a buffer."""
        begin = half * self.half
        place = values_of(src), values_of(dst)
        size = PerRank.of(self.user.sends.sizes[place])
        return Region(buffer, PerRank.of(self.shift[place] + begin), size)

    def stage(self, dst: RankInt, buffer: Buffer, half: int = 0) -> None:
        """Copy this rank's part for another to a buffer."""
        me = self.rank.id
        self.rank.main.copy(self.at(me, dst, buffer, half), self.user.sends.at(me, dst))

    def output(self, src: RankInt) -> Region:
        """Return the place of the part from a rank in the output."""
        return self.user.receives.at(self.rank.id, src)

    def keep(self) -> None:
        """Copy the rank's own part."""
        me = self.rank.id
        self.rank.main.copy(self.output(me), self.user.sends.at(me, me))


def _first_die(rank: AnyRank, piece: _DiePiece) -> None:
    me, second = rank.id, rank.id + 1
    other, far = (rank.id + 2) % RANKS, (rank.id + 3) % RANKS
    staged, handed_on = Buffer.CCL_IN, Buffer.CCL_OUT
    piece.stage(second, staged)
    piece.stage(far, staged, 1)
    with rank.fork() as (across, beside):
        _read(
            beside,
            rank,
            second,
            piece.at(second, far, handed_on, 1),
            piece.at(second, far, staged, 0),
        )
        _read(
            across,
            rank,
            other,
            piece.at(other, second, handed_on, 0),
            piece.at(other, second, staged, 1),
        )
    with rank.fork() as (across, beside):
        _read(
            beside,
            rank,
            second,
            piece.at(second, other, staged, 1),
            piece.at(second, other, handed_on, 0),
        )
        _read(
            across,
            rank,
            other,
            piece.at(far, second, staged, 0),
            piece.at(far, second, handed_on, 1),
        )
    with rank.fork() as (across, beside):
        piece.stage(other, handed_on)
        _read(beside, rank, second, piece.output(second), piece.at(second, me, staged, 0))
        _read(across, rank, other, piece.output(far), piece.at(far, me, staged, 1))
    with rank.fork() as (across, _):
        piece.keep()
        _read(across, rank, other, piece.output(other), piece.at(other, me, handed_on, 0))


def _second_die(rank: AnyRank, piece: _DiePiece) -> None:
    me, first = rank.id, rank.id - 1
    far, other = (rank.id + 1) % RANKS, (rank.id + 2) % RANKS
    staged, handed_on = Buffer.CCL_IN, Buffer.CCL_OUT
    piece.stage(other, staged)
    with rank.fork() as (stream,):
        piece.stage(far, handed_on)
        _read(stream, rank, first, piece.output(first), piece.at(first, me, staged, 0))
    with rank.fork() as (stream,):
        piece.stage(first, staged)
        _read(stream, rank, first, piece.output(far), piece.at(far, me, handed_on, 0))
    with rank.fork() as (stream,):
        _read(stream, rank, first, piece.output(other), piece.at(other, me, staged, 0))
    with rank.fork():
        piece.keep()


def _read(stream: Stream, rank: AnyRank, peer: RankInt, into: Region, there: Region) -> None:
    """Read from a peer, which reads from this rank."""
    link = rank.flat[peer]
    link.tx_ack(stream)
    link.rx_ack(stream)
    stream.copy(into, link.remote(there))
    link.tx_data_signal(stream)
    link.rx_data_signal(stream)
