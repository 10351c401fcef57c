"""AllGather and ReduceScatter on registered user memory over several superpods, in a pipeline.

Superpods are a ring. What one of them has goes on to the next on a sub stream of its own, while
main works on the block before, of S·n slots, inside the superpod:

    all_gather       main: exchange, level1, out, level0       sub: the next slot comes
    reduce_scatter   main: level0, in, level1, exchange, sum   sub: the last sum goes on

In step k a superpod p gathers the block of superpod p - k, and adds to that of superpod p - 1 - k,
so that the last one is its own. The rings in a server take a block as a whole, with the last round
in an all-gather, with the first one in a reduce-scatter.

Cost for slots of s bytes, n devices, S servers in each of P superpods: P times the march of N = nSs
and, beside it, (P-1)·s between superpods.
"""

from __future__ import annotations

from abc import abstractmethod

from hccl_executors.levels import LEVELS
from hccl_executors.outer_levels import OuterLevel
from hccl_executors.templates.ring import ring_barrier
from hccl_executors.zero_copy.base import (
    RegisteredRings,
    all_gather_inside,
    like_hccl,
    reduce_scatter_inside,
)
from hccl_executors.zero_copy.exchange import OwnerExchange, Owners, receive, send
from hccl_py.orchestration import Chunks, Link, Region, Stream
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
    OpParam,
    PlaneRequest,
    RankView,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import RankInt


class _ZeroCopyPipeline(RegisteredRings):
    """Base of both ops."""

    algorithm = "level0:ring;level1:NHR|NB|ring;level2:pipeline"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs several superpods, too."""
        return super().suits(op, topology) and require(
            (len(topology.superpods) > 1, "needs several superpods")
        )

    def sub_streams(self, rank: RankView) -> int:
        """Two for a march, and the last one for the ring of superpods."""
        return 3 if len(rank.rings) > 1 else 1

    def outside(self, op: OpParam, rank: RankView) -> list[PlaneRequest]:
        """Links between servers, the ring of superpods, and an exchange in each."""
        exchange = Owners.of(rank.topology, by_pod=True).request()
        found = [PlaneRequest("level2", "ring"), exchange]
        if rank.level1.size > 1:
            peers = LEVELS[op.name][op.level1].peers(rank.level1)
            found.insert(0, PlaneRequest("level1", peers))
        return found

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        rounds = list(self.rounds(op, rank, op.count))
        for number, (start, size) in enumerate(rounds):
            ends = (number == 0, number == len(rounds) - 1)
            self.run(_ZeroCopyRound(op, rank, start, size, *ends))

    @abstractmethod
    def run(self, turn: _ZeroCopyRound) -> None:
        """Record a round."""


class _ZeroCopyRound:
    """A round as a rank sees it: the bytes `start` to `start + size` of every slot."""

    def __init__(
        self, op: OpParam, rank: AnyRank, start: int, size: int, first: bool, last: bool
    ) -> None:
        self.op, self.rank, self.main = op, rank, rank.main
        self.start, self.size, self.is_first, self.is_last = start, size, first, last
        self.servers, self.pods = int(rank.level1.size), int(rank.level2.size)
        self.width = self.servers * int(rank.level0.size)
        self.far = len(rank.subs) - 1

    def slot(self, slots: Chunks, block: RankInt, device: RankInt, server: RankInt) -> Region:
        """Return the round's part of a slot of a superpod's block, which are in the order of the
        devices that collect them.
        """
        return self.cut(slots[block * self.width + device * self.servers + server])

    def cut(self, region: Region) -> Region:
        """Return the round's part."""
        return region[self.start : self.start + self.size]

    def block(self, slots: Chunks, block: RankInt) -> Chunks:
        """Return all of a superpod's slots, together for each device that collects them."""
        return slots.taken(block * self.width, self.width).joined(self.servers)

    def between(self, slots: Chunks) -> None:
        """Run the op between servers."""
        if self.servers > 1:
            plane, word = self.rank.level1, self.op.level1
            OuterLevel(self.main, plane, word, meeting=True).run(self.op.name, slots)


class AllGatherRingZerocopyPipelineExecutor(_ZeroCopyPipeline):
    """AllGather; a slot of the superpod before comes while one is gathered."""

    op = "all_gather"
    fidelity = like_hccl("all_gather", "coll_all_gather_ring_zerocopy_pipeline_executor")

    def most(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """Two slots in CCL_In, and one of every server in CCL_Out."""
        slots = max(2, len(rank.topology.servers) // len(rank.topology.superpods))
        return rank.ccl_bytes // slots // SLICE_ALIGN * SLICE_ALIGN // op.unit

    def run(self, turn: _ZeroCopyRound) -> None:
        """Superpod after superpod, backwards from one's own."""
        rank = turn.rank
        two = rank.ccl_in.head(2 * turn.size).split(2, align=1)
        turn.main.copy(two[0], turn.cut(rank.user_in))
        for step in turn.main.steps("superpod", turn.pods):
            block, goes_on = (rank.level2.id - step) % turn.pods, step < turn.pods - 1
            here, there = two[step % 2], two[1 - step % 2]
            far = rank.wake(turn.far) if goes_on else None
            self._gather(turn, block, here)
            if turn.is_last:
                all_gather_inside(rank, turn.block(rank.user_out, block))
            if far is not None:
                _to_next_superpod(rank, far, here, there, here, there)
                rank.join(turn.far)

    def _gather(self, turn: _ZeroCopyRound, block: RankInt, here: Region) -> None:
        rank, out, device = turn.rank, turn.rank.user_out, turn.rank.level0.id
        slots = rank.ccl_out.head(turn.servers * turn.size).split(turn.servers, align=1)
        self._enter(turn, block, here, slots)
        turn.between(slots)
        for server, slot in enumerate(slots):
            turn.main.copy(turn.slot(out, block, device, server), slot)

    def _enter(self, turn: _ZeroCopyRound, block: RankInt, here: Region, slots: Chunks) -> None:
        """Exchange what came to this superpod; neighbours fetch it from the output."""
        rank, out = turn.rank, turn.rank.user_out
        exchange = OwnerExchange(rank, Owners.of(rank.topology, by_pod=True), to_owner=False)
        mine = slots[rank.level1.id]
        if not exchange.moves:
            turn.main.copy(mine, here)
            return
        to, frm = exchange.to, exchange.frm
        if to.is_near:
            turn.main.copy(turn.slot(out, block, rank.level0.id, 0), here)
        exchange.begin()
        exchange.send(here, slots[to.server])
        theirs = turn.slot(out, block, frm.device, 0) if frm.is_near else here
        exchange.receive(theirs, mine)
        exchange.end()


class ReduceScatterRingZerocopyExchangePipelineExecutor(_ZeroCopyPipeline):
    """ReduceScatter; the sum of a block goes to the next superpod while another one is reduced. Not
    in place, because neighbours fetch from the input the data that others have in the output.
    """

    op = "reduce_scatter"
    algorithm = "level0:ring;level1:ring|NHR|NB;level2:pipeline"
    in_place = False
    fidelity = like_hccl(
        "reduce_scatter", "coll_reduce_scatter_ring_zerocopy_exchange_pipeline_executor"
    )

    def run(self, turn: _ZeroCopyRound) -> None:
        """Superpod after superpod, backwards to one's own."""
        rank, pods, servers = turn.rank, turn.pods, turn.servers
        count = pods * servers
        ins, outs = (
            ccl.head(count * turn.size).split(count, align=1) for ccl in (rank.ccl_in, rank.ccl_out)
        )
        for step in turn.main.steps("superpod", pods):
            block, before = ((rank.level2.id - back - step) % pods for back in (1, 0))
            if turn.is_first:
                reduce_scatter_inside(rank, turn.block(rank.user_in, block), turn.op.unit)
            self._reduce(turn, block, ins.taken(block * servers, servers), outs[block * servers])
            if step:
                rank.join(turn.far)
                turn.main.reduce(outs[block * servers], ins[before * servers])
            if step < pods - 1:
                far, coming = rank.wake(turn.far), (block - 1) % pods
                there, theirs = ins[before * servers], outs[coming * servers]
                mine, into = outs[block * servers], ins[block * servers]
                _to_next_superpod(rank, far, mine, there, theirs, into)
                ring_barrier(far, rank.level2)
        turn.main.copy(turn.cut(rank.user_out), outs[rank.level2.id * servers])

    def _reduce(self, turn: _ZeroCopyRound, block: RankInt, slots: Chunks, out: Region) -> None:
        rank, device = turn.rank, turn.rank.level0.id
        for server, slot in enumerate(slots):
            turn.main.copy(slot, turn.slot(rank.user_in, block, device, server))
        turn.between(slots)
        self._leave(turn, block, slots, out)

    def _leave(self, turn: _ZeroCopyRound, block: RankInt, slots: Chunks, out: Region) -> None:
        """Exchange what this superpod has reduced; neighbours fetch it from the input's beginning
        of a slot, and by way of the output.
        """
        rank, me = turn.rank, turn.rank.level1.id
        exchange = OwnerExchange(rank, Owners.of(rank.topology, by_pod=True), to_owner=True)
        mine = slots[me]
        if not exchange.moves:
            turn.main.copy(out, mine)
            return
        to, frm, places = exchange.to, exchange.frm, rank.user_in
        if to.is_near:
            at = block * turn.width + rank.level0.id * turn.servers + me
            turn.main.copy(places[at].head(turn.size), mine)
        exchange.begin()
        exchange.send(mine, out)
        if frm.is_near:
            at = block * turn.width + frm.device * turn.servers + frm.server
            exchange.receive(places[at].head(turn.size), turn.cut(rank.user_out))
        else:
            exchange.receive(slots[frm.server], out)
            _acknowledge(turn.main, frm.link)
        if not to.is_near:
            _acknowledged(turn.main, to.link)
        exchange.end()
        if frm.is_near:
            turn.main.copy(out, turn.cut(rank.user_out))


def _to_next_superpod(
    rank: AnyRank, stream: Stream, mine: Region, there: Region, theirs: Region, into: Region
) -> None:
    """Send `mine` to the same device of the next superpod, where its place is `there`; receive what
    the one before has in `theirs`.
    """
    before, behind = rank.level2.left, rank.level2.right
    before.tx_ack(stream)
    behind.rx_ack(stream)
    send(stream, behind, mine, there)
    receive(stream, before, theirs, into)
    _acknowledge(stream, before)
    _acknowledged(stream, behind)


def _acknowledge(stream: Stream, frm: Link) -> None:
    """HCCL's PostFinAck, which SDMA does without."""
    if frm.rdma:
        frm.tx_data_ack(stream)


def _acknowledged(stream: Stream, to: Link) -> None:
    """HCCL's WaitFinAck."""
    if to.rdma:
        to.rx_data_ack(stream)
