"""Variants for small data: few steps, whole messages."""

from contest_all_reduce.common import TwoServers, Work, even, tree
from hccl_py.orchestration import Chunks, Layout, Region
from hccl_py.plugins.executor import OpParam


class OneThread(TwoServers):
    """v4: the main stream reads the whole message of every rank in the server, in the order of the
    ranks, then the sum of the other server.
    """

    workers = -1

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> Chunks:
        return layout.slots("messages", n + 1, count * unit)

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, mesh, pair = rank.main, rank.level0, rank.level1
        n = int(mesh.size)
        slots = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        main.copy(slots[mesh.id], rank.user_in)
        for p in range(n):
            if mesh.id != p:
                with mesh[p].handshake(main):
                    main.copy(slots[p], mesh[p].remote(slots[p]))
        for p in range(1, n):
            main.reduce(slots[0], slots[p])
        with pair.right.handshake(main):
            main.copy(slots[n], pair.right.remote(slots[0]))
        total = slots[n * pair.id]
        main.reduce(total, slots[n - n * pair.id])
        main.copy(rank.user_out, total)


class Halving(TwoServers):
    """v7: recursive halving in the server, one exchange across, recursive doubling."""

    workers = -1
    inline = halves = True

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> tuple[Region, Region]:
        return layout.slot("sums", count * unit), layout.slot("result", count * unit)

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, mesh, cross, n = rank.main, rank.level0, rank.level1.right, int(rank.level0.size)
        work, result = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        sums, parts = even(work, n, op), even(result, n, op)
        masks = [1 << k for k in range(n.bit_length() - 1)]
        main.copy(work, rank.user_in)
        for k in reversed(masks):
            link, kept = mesh[mesh.id ^ k], sums.series(mesh.id // k * k, 1, k)
            with main.phase(f"halve {k}"), link.handshake(main):
                main.reduce(kept, [link.remote(region) for region in kept])
        main.copy(parts[mesh.id], sums[mesh.id])
        with main.phase("cross"), cross.handshake(main):
            main.reduce(parts[mesh.id], cross.remote(sums[mesh.id]))
        for k in masks:
            peer = mesh.id ^ k
            link, theirs = mesh[peer], parts.series(peer // k * k, 1, k)
            with main.phase(f"double {k}"), link.handshake(main):
                main.copy(theirs, [link.remote(region) for region in theirs])
        main.copy(rank.user_out, result)


class TwoAxesOnce(TwoServers):
    """v10 at 512 KiB: A (a third) from all mesh peers beside B from across, then swapped."""

    workers = 1

    def slots(self, layout: Layout, count: int, unit: int, n: int) -> Chunks:
        return layout.slots("messages", n + 2, count * unit)

    def orchestrate(self, op: OpParam, rank: Work) -> None:
        main, n = rank.main, int(rank.level0.size)
        slots = self.slots(Layout(rank.ccl_in), rank.count, op.unit, n)
        cut = rank.count // 3 * op.unit
        a, b = [slot[:cut] for slot in slots], [slot[cut:] for slot in slots]
        main.copy(slots[0], rank.user_in)
        self.both(rank, b[n + 1], b[0], a[1:n], a[0])
        tree(rank, [*a[1:n], a[0]])
        main.reduce(b[n + 1], b[0])
        self.both(rank, a[n], a[1], b[1:n], b[n + 1])
        main.reduce(a[1], a[n])
        tree(rank, [*b[1:n], b[n + 1]])
        main.copy(rank.user_out, slots[1])

    def both(self, rank: Work, far: Region, given: Region, near: list[Region], own: Region) -> None:
        """Read `given` across into `far`, beside `own` of all mesh peers into `near`."""
        cross, worker = rank.level1.right, rank.wake(rank.level0.size - 1)
        with cross.handshake(worker):
            worker.copy(far, cross.remote(given))
        with rank.level0.fork() as members:
            for (sub, _, link), into in zip(members, near, strict=True):
                with link.handshake(sub):
                    sub.copy(into, link.remote(own))
        rank.join(worker)
