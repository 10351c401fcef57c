"""Variants for large data: every rank adds one part of the message."""

from collections.abc import Callable
from typing import NamedTuple

from contest_all_reduce.common import TwoServers, Work, even, finish, tree
from hccl_py.orchestration import Chunks, Layout, Region
from hccl_py.plugins.executor import OpParam


def part_of(count: int, n: int, unit: int) -> int:
    """Bytes of the largest of n even parts."""
    return -(-count // n) * unit


class TwoSlots(TwoServers):
    """v6: two slots for the message; read my part of all, add it up, exchange, read all parts."""

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> tuple[Region, Region, Chunks]:
        part, work = part_of(count, n, unit), layout.slot("work", count * unit)
        second = layout.slot("second", max(count * unit, (n - 1) * (part + 127)))
        return work, second, Layout(second).slots("packed", n - 1, part)

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, mesh, pair, n = rank.main, rank.level0, rank.level1, int(rank.level0.size)
        work, second, packed = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        result = second.head(work.size)
        sums, parts = even(work, n, op), even(result, n, op)
        mine = sums[mesh.id]
        main.copy(work, rank.user_in)
        with main.phase("collect"), mesh.fork() as members:
            for slot, (sub, _, link) in zip(packed, members, strict=True):
                with link.handshake(sub):
                    sub.copy(slot.head(mine.size), link.remote(mine))
        tree(rank, [*(slot.head(mine.size) for slot in packed), mine])
        ours = packed[0].head(mine.size)
        with main.phase("cross"), pair.right.handshake(main):
            main.copy(mine, pair.right.remote(ours))
        if pair.id == 0:
            main.reduce(ours, mine)
            main.copy(mine, ours)
        else:
            main.reduce(mine, ours)
        with main.phase("gather"), mesh.fork() as members:
            main.copy(parts[mesh.id], mine)
            for sub, p, link in members:
                with link.handshake(sub):
                    sub.copy(parts[p], link.remote(sums[p]))
        main.copy(rank.user_out, result)


class Packed(TwoServers):
    """v8: push every part into a slot of its owner, add up, exchange, read all parts."""

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> Chunks:
        return layout.slots("packed", max(n - 1, 2), part_of(count, n, unit))

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, mesh, n = rank.main, rank.level0, int(rank.level0.size)
        slots = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        given, result = even(rank.user_in, n, op), even(rank.user_out, n, op)
        mine = result[mesh.id]
        main.copy(mine, given[mesh.id])
        with main.phase("push"), mesh.fork() as members:
            for slot, (sub, p, link) in zip(slots, members, strict=False):
                with link.handshake(sub):
                    sub.copy(link.remote(slot.head(given[p].size)), given[p])
        tree(rank, [*(slot.head(mine.size) for slot in list(slots)[: n - 1]), mine])
        finish(rank, slots, result)


class Striped(TwoServers):
    """v9: add to the owners' sums from afar, in as many rounds as there are peers, each peer at
    another stripe, with a barrier after each.
    """

    barrier = inline = True

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> Chunks:
        return layout.slots("sums", 2, part_of(count, n, unit))

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, mesh, n = rank.main, rank.level0, int(rank.level0.size)
        slots = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        given, result = even(rank.user_in, n, op), even(rank.user_out, n, op)
        main.copy(slots[0].head(given[mesh.id].size), given[mesh.id])
        mesh.barrier(main)
        for k in main.steps("stripe", n - 1):
            with mesh.fork() as members:
                for number, (sub, p, link) in enumerate(members):
                    into = even(slots[0].head(given[p].size), n - 1, op)
                    stripe = (number + k) % (n - 1)
                    sub.reduce(link.remote(into[stripe]), even(given[p], n - 1, op)[stripe])
            mesh.barrier(main)
        finish(rank, slots, result)


class Slots(NamedTuple):
    """The CCL buffer of TwoAxes: a part of A and its second lane, the half of B that the other
    server adds, and the one that this server adds. The last two reuse the former half.
    """

    a: Region
    lane_a: Region
    staged: Region
    b: Region
    half_a: Region
    lane_b: Region


class TwoAxes(TwoServers):
    """v10: A (a third) goes over the mesh while B goes across, and the other way round: two phases
    of reduce-scatter, two of all-gather. A worker of its own talks to the other server.
    """

    workers = 1
    barrier = inline = True
    lanes = 1
    meets = True  # in phase 3
    ends = True  # phase 4 with DataSignals

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> Slots:
        part_a, half_b = part_of(count // 3, n, unit), part_of(count - count // 3, 2, unit)
        half_a, part_b = part_of(count // 3, 2 * n, unit) + unit, part_of(half_b // unit, n, unit)
        a = layout.slot("a", part_a)
        lane_a = layout.slot("lane a", part_a * (self.lanes - 1))
        staged = layout.slot("staged", max(half_b, half_a + 127 + part_b))
        inner = Layout(staged)
        again = inner.slot("half of a", half_a), inner.slot("lane b", part_b)
        return Slots(a, lane_a, staged, layout.slot("b", half_b), *again)

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, mesh, pair, n = rank.main, rank.level0, rank.level1, int(rank.level0.size)
        cross, other, far = pair.right, 1 - pair.id, n - 1
        cut = rank.count // 3 * op.unit
        slots = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        in_a, out_a = even(rank.user_in[:cut], n, op), even(rank.user_out[:cut], n, op)
        in_b, out_b = even(rank.user_in[cut:], 2, op), even(rank.user_out[cut:], 2, op)
        a, b = slots.a.head(in_a[mesh.id].size), slots.b.head(in_b[pair.id].size)
        halves, parts = even(a, 2, op), even(b, n, op)
        main.copy(a, in_a[mesh.id])

        clos = rank.wake(far)
        with clos.phase("clos scatter B"):
            clos.copy(slots.staged.head(in_b[other].size), in_b[other])
            with cross.handshake(clos):
                clos.copy(b, cross.remote(slots.staged.head(b.size)))
            clos.reduce(b, in_b[pair.id])
        self.scatter(op, rank, in_a, (lambda p: slots.a.head(in_a[p].size)), slots.lane_a)
        rank.join(clos)

        rank.wake(far)
        with clos.phase("clos scatter A"):
            got = slots.half_a.head(halves[pair.id].size)
            with cross.handshake(clos):
                clos.copy(got, cross.remote(halves[pair.id]))
            clos.reduce(halves[pair.id], got)
        self.scatter(op, rank, parts, (lambda p: parts[p]), slots.lane_b)
        rank.join(clos)

        rank.wake(far)
        with clos.phase("clos gather A"), cross.handshake(clos):
            clos.copy(halves[other], cross.remote(halves[other]))
        with main.phase("mesh gather B"), mesh.fork() as members:
            for sub, p, link in members:
                with link.handshake(sub, ack=self.meets, signal=self.meets):
                    sub.copy(parts[p], link.remote(parts[p]))
        rank.join(clos)

        rank.wake(far)
        with clos.phase("clos gather B"), cross.handshake(clos, signal=self.ends):
            clos.copy(out_b[other], cross.remote(slots.b.head(out_b[other].size)))
        with main.phase("mesh gather A"), mesh.fork() as members:
            main.copy(out_a[mesh.id], a)
            main.copy(out_b[pair.id], b)
            for sub, p, link in members:
                with link.handshake(sub, signal=self.ends):
                    sub.copy(out_a[p], link.remote(slots.a.head(out_a[p].size)))
        rank.join(clos)

    def scatter(
        self, op: OpParam, rank: Work, given: Chunks, sum_at: Callable[..., Region], lane: Region
    ) -> None:
        """Add every part to its owner's sum by stripes, as many at once as there are lanes; the
        second lane begins with a plain write, and is added in the end.
        """
        main, mesh, n = rank.main, rank.level0, int(rank.level0.size)
        mesh.barrier(main)
        for first in range(0, n - 1, self.lanes):
            group = range(first, min(first + self.lanes, n - 1))
            with main.phase(f"stripes {[*group]}"), mesh.fork() as members:
                for number, (sub, p, link) in enumerate(members):
                    stripes = even(given[p], n - 1, op)
                    for k in group:
                        at = (number + k) % (n - 1)
                        is_first = k == first
                        whole = sum_at(p) if is_first else lane.head(given[p].size)
                        add = sub.copy if not is_first and first == 0 else sub.reduce
                        add(link.remote(even(whole, n - 1, op)[at]), stripes[at])
            mesh.barrier(main)
        if self.lanes > 1:
            main.reduce(sum_at(mesh.id), lane.head(given[mesh.id].size))
            mesh.barrier(main)


class TwoLanes(TwoAxes):
    """v11: two stripes at once, no handshake in phase 3, Acks only in phase 4. Right for one call;
    not for calls in a row, which may overrun the Acks.
    """

    lanes = 2
    least = 4
    meets = ends = False


class TwoLanesSafe(TwoLanes):
    """v11 that says when it has read: right call after call."""

    ends = True
