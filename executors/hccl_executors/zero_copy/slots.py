"""AllGather and ReduceScatter on registered user memory; see base.py.

Plain ones keep every rank's slot where it belongs, so that the ring in a server takes S·P pieces
for each device (S servers in each of P superpods). Those with an exchange give each device blocks
of S·P slots that lie side by side, which are other ranks', and put that right afterwards (in an
all-gather before) by one transfer of a slot (`exchange.py`).

Cost for slots of s bytes, n devices: level0 as base.py says, level1 (S-1)·P·s, level2 (P-1)·s, the
exchange s more.
"""

from __future__ import annotations

from hccl_executors.levels import GROUPED
from hccl_executors.rings.orders import JOINED
from hccl_executors.rings.places import sets
from hccl_executors.zero_copy.base import (
    RegisteredRings,
    all_gather_inside,
    like_hccl,
    outer_levels,
    planes_of,
    reduce_scatter_inside,
)
from hccl_executors.zero_copy.exchange import OwnerExchange, Owners
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import AnyRank, OpParam, PlaneRequest, RankView
from hccl_py.values import RankInt

_ALGORITHM = f"level0:ring;level1:NHR|NB|ring|{GROUPED};level2:NHR|NB|ring"


class _SlotRings(RegisteredRings):
    """Base of both ops: a slot for every rank, and one for each server in CCL buffers."""

    algorithm = _ALGORITHM

    def sub_streams(self, rank: RankView) -> int:
        """Two for a march, none for one ring."""
        return 2 if len(rank.rings) > 1 else 0


def _across(rank: AnyRank, ccl: Region, size: RankInt) -> Chunks:
    """Return a slot of this device of every server: all superpods of the first, of the second.."""
    servers = len(rank.topology.servers)
    return ccl.head(size * servers).split(servers, align=1)


def _place(rank: AnyRank) -> RankInt:
    """Return the index of this rank's slot among these."""
    return rank.level1.id * int(rank.level2.size) + rank.level2.id


def _run(op: OpParam, rank: AnyRank, slots: Chunks) -> None:
    """Run the op on both planes between servers, the outer one first in an all-gather."""
    pods = int(rank.level2.size)
    outer = outer_levels(op, rank)
    for level in reversed(outer) if op.name == "all_gather" else outer:
        if level.word in JOINED:
            members = _by_superpod(slots, pods)
        elif level.plane.name == "level2":
            members = slots.taken(rank.level1.id * pods, pods)
        else:
            members = slots.joined(pods)
        level.run(op.name, members)


def _by_superpod(slots: Chunks, pods: int) -> Chunks:
    """Return the same slots with all servers of the first superpod first."""
    servers = len(slots) // pods
    order = tuple(server * pods + pod for pod in range(pods) for server in range(servers))
    return slots.renumbered(order).taken(0, len(slots))


class AllGatherRingZerocopyExecutor(_SlotRings):
    """AllGather: rounds through all servers into the output, then the rings there."""

    op = "all_gather"
    fidelity = like_hccl("all_gather", "coll_all_gather_ring_zerocopy_executor")

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Gather between servers, then in the server."""
        if len(rank.topology.servers) == 1:
            rank.main.copy(rank.user_out[rank.id], rank.user_in)
        for start, size in self.rounds(op, rank, op.count):
            slots = _across(rank, rank.ccl_out, size)
            self.enter(rank, slots[_place(rank)], start)
            _run(op, rank, slots)
            for slot, owner in zip(slots, self.owners(rank), strict=True):
                rank.main.copy(rank.user_out[owner][start : start + size], slot)
        all_gather_inside(rank, self.blocks(rank, rank.user_out))

    def enter(self, rank: AnyRank, slot: Region, start: int) -> None:
        """Put what this rank begins with into its slot."""
        rank.main.copy(slot, rank.user_in[start : start + slot.size])

    def owners(self, rank: AnyRank) -> list[RankInt]:
        """Return the owners of the slots that this device has collected."""
        return _of_this_device(rank)

    def blocks(self, rank: AnyRank, slots: Chunks) -> Chunks:
        """Return the slots that each device of the server has collected."""
        return sets(slots, planes_of(rank), 0)


class AllGatherRingZerocopyExchangeExecutor(AllGatherRingZerocopyExecutor):
    """AllGather that begins with an exchange."""

    fidelity = like_hccl(
        "all_gather",
        "coll_all_gather_ring_zerocopy_exchange_executor",
        "coll_all_gather_ring_zerocopy_executor",
    )

    def outside(self, op: OpParam, rank: RankView) -> list[PlaneRequest]:
        """The exchange's, too."""
        return [*super().outside(op, rank), _for_exchange(rank)]

    def enter(self, rank: AnyRank, slot: Region, start: int) -> None:
        """Hand this rank's input to the rank that gathers it, and get the one that this rank
        gathers.
        """
        exchange = OwnerExchange(rank, Owners.of(rank.topology), to_owner=False)
        size, main = slot.size, rank.main
        source = rank.user_in[start : start + size]
        if not exchange.moves:
            main.copy(slot, source)
            return
        to, frm = exchange.to, exchange.frm
        staged = rank.ccl_in.head(size)
        if not to.is_near:
            main.copy(staged, source)
        exchange.begin()
        at = to.server * int(rank.level2.size) + to.pod
        exchange.send(staged, _across(rank, rank.ccl_out, size)[at])
        exchange.receive(source if frm.is_near else staged, slot)
        exchange.end()

    def owners(self, rank: AnyRank) -> list[RankInt]:
        """Slots side by side."""
        return _in_a_row(rank)

    def blocks(self, rank: AnyRank, slots: Chunks) -> Chunks:
        """Slots side by side."""
        return slots.joined(len(rank.topology.servers))


class ReduceScatterRingZerocopyExecutor(_SlotRings):
    """ReduceScatter: the rings in the input, then rounds through all servers."""

    op = "reduce_scatter"
    fidelity = like_hccl("reduce_scatter", "coll_reduce_scatter_ring_zerocopy_executor")

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Reduce in the server, then between servers."""
        reduce_scatter_inside(rank, self.blocks(rank, rank.user_in), op.unit)
        if len(rank.topology.servers) == 1:
            rank.main.copy(rank.user_out, rank.user_in[rank.id])
        for start, size in self.rounds(op, rank, op.count):
            slots = _across(rank, rank.ccl_in, size)
            for slot, owner in zip(slots, self.owners(rank), strict=True):
                rank.main.copy(slot, rank.user_in[owner][start : start + size])
            _run(op, rank, slots)
            self.leave(rank, slots[_place(rank)], start)

    def leave(self, rank: AnyRank, slot: Region, start: int) -> None:
        """Bring what this rank has reduced to its owner."""
        rank.main.copy(rank.user_out[start : start + slot.size], slot)

    def owners(self, rank: AnyRank) -> list[RankInt]:
        """Return the owners of the slots that this device reduces."""
        return _of_this_device(rank)

    def blocks(self, rank: AnyRank, slots: Chunks) -> Chunks:
        """Return the slots that each device of the server reduces."""
        return sets(slots, planes_of(rank), 0)


class ReduceScatterRingZerocopyExchangeExecutor(ReduceScatterRingZerocopyExecutor):
    """ReduceScatter that ends with an exchange; not in place, because a round begins in the input
    where the output of another one may lie.
    """

    in_place = False
    fidelity = like_hccl(
        "reduce_scatter",
        "coll_reduce_scatter_ring_zerocopy_exchange_executor",
        "coll_reduce_scatter_ring_zerocopy_executor",
    )

    def outside(self, op: OpParam, rank: RankView) -> list[PlaneRequest]:
        """The exchange's, too."""
        return [*super().outside(op, rank), _for_exchange(rank)]

    def leave(self, rank: AnyRank, slot: Region, start: int) -> None:
        """Hand what this rank has reduced to its owner, and get its own."""
        exchange = OwnerExchange(rank, Owners.of(rank.topology), to_owner=True)
        size, main = slot.size, rank.main
        out, staged = rank.user_out[start : start + size], rank.ccl_out.head(size)
        if not exchange.moves:
            main.copy(staged, slot)
            main.copy(out, staged)
            return
        to, frm = exchange.to, exchange.frm
        near = rank.user_in[0].head(size)
        if to.is_near:
            main.copy(near, slot)
        exchange.begin()
        exchange.send(slot, staged)
        if frm.is_near:
            exchange.receive(near, out)
        else:
            at = frm.server * int(rank.level2.size) + frm.pod
            exchange.receive(_across(rank, rank.ccl_in, size)[at], staged)
        exchange.end()
        if not frm.is_near:
            main.copy(out, staged)

    def owners(self, rank: AnyRank) -> list[RankInt]:
        """Slots side by side."""
        return _in_a_row(rank)

    def blocks(self, rank: AnyRank, slots: Chunks) -> Chunks:
        """Slots side by side."""
        return slots.joined(len(rank.topology.servers))


def _for_exchange(rank: RankView) -> PlaneRequest:
    """Return the transports of an exchange among all ranks: all are RDMA's where some are."""
    return Owners.of(rank.topology).request(rdma=rank.topology.has_rdma)


def _of_this_device(rank: AnyRank) -> list[RankInt]:
    """Return the ranks of this device in all servers, in the order of `_across`."""
    n, servers, pods = (int(plane.size) for plane in planes_of(rank))
    return [(p * servers + s) * n + rank.level0.id for s in range(servers) for p in range(pods)]


def _in_a_row(rank: AnyRank) -> list[RankInt]:
    """Return as many ranks that follow each other, for every device its own."""
    servers = len(rank.topology.servers)
    return [rank.level0.id * servers + i for i in range(servers)]
