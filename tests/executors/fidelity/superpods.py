"""Executors with rings in the servers, written from HCCL's sources, as one rank runs them: A3's.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under impl/coll_executor of
src/algorithm. Between servers and superpods all ops run rings, a broadcast NHR, and all-gather,
reduce-scatter and all-reduce what they are told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.executors.fidelity import helped_rings as helped
from tests.executors.fidelity import rings as plain
from tests.executors.fidelity import trees
from tests.executors.fidelity.helped_rings import Double, Places
from tests.executors.fidelity.rings import Part
from tests.executors.fidelity.streams import Way, Worker, halves, orders, sliced
from tests.executors.fidelity.transports import Member, Slice, Template

NHR_ALLREDUCE_SMALL_SIZE = 256 * 1024


def _nhr_reduce_scatter(me: Member, slices: Sequence[Part]) -> None:
    """With its barrier over RDMA: coll_reduce_scatter_ring_for_910_93_executor.cc:772 of
    libochao-huawei/hcomm @ 8958adb.
    """
    trees.nhr_reduce_scatter(me, slices, meets=True)


def _nhr_all_reduce(me: Member, slices: Sequence[Slice]) -> None:
    """Likewise: coll_all_reduce_ring_for_910_93_executor.cc:447."""
    trees.nhr_all_reduce(me, slices, meets=True)


ALL_REDUCE: dict[str, tuple[Template, Template, Template]] = {
    "ring": (plain.ring_all_reduce, plain.ring_reduce_scatter, plain.ring_all_gather),
    "NHR": (_nhr_all_reduce, _nhr_reduce_scatter, trees.nhr_all_gather),
}
"""All-reduce of one plane, and the two halves of several."""


@dataclass(frozen=True)
class Grid:
    """Superpods of servers of devices, whose ranks are numbered in this order; `rings` a server."""

    pods: int
    servers: int
    devices: int
    rings: int

    @property
    def size(self) -> int:
        """All ranks."""
        return self.pods * self.servers * self.devices

    def rank(self, pod: int, server: int, device: int) -> int:
        """The number of a rank."""
        return (pod * self.servers + server) * self.devices + device


class Executor:
    """A rank of a call: its streams, its place, and what all executors have in common. `size` is
    that of the call's data, or of a slot.
    """

    def __init__(self, rank: int, grid: Grid, size: int, *, op_base: bool, root: int = 0) -> None:
        self.grid, self.size, self.op_base, self.root = grid, size, op_base, root
        self.word = "ring"  # of level1 and level2, but for broadcast, reduce and scatter
        self.inline = True  # whether links reduce on their way; for aligned reduce-scatters
        self.received = 0  # bytes of the output that earlier rounds have filled
        self.me = Worker(rank, self.sub_streams)
        server, self.d = divmod(rank, grid.devices)
        self.p, self.s = divmod(server, grid.servers)
        self.server = [grid.rank(self.p, self.s, d) for d in range(grid.devices)]
        self.level1 = [grid.rank(self.p, s, self.d) for s in range(grid.servers)]
        self.level2 = [grid.rank(p, self.s, self.d) for p in range(grid.pods)]

    @property
    def sub_streams(self) -> int:
        """CalcStreamNum: those of the rings."""
        return self.ring_subs

    @property
    def ring_subs(self) -> int:
        """One for every ring but main's, and in op-base mode a helper for each."""
        return self.grid.rings * (2 if self.op_base else 1) - 1

    @property
    def orders(self) -> list[list[int]]:
        """The ranks of a server, as each of its rings goes."""
        return orders(self.server, self.grid.rings)

    @property
    def ways(self) -> list[Way]:
        """The rings, with their streams: main has the last one. coll_comm_executor.cc:24
        GetSubStreamInfoOnOneRing.
        """
        last = self.grid.rings - 1
        streams = [*range(1, last + 1), 0]
        return [Way(self.me, o, streams[q], last + q) for q, o in enumerate(self.orders)]

    def places(
        self, slots: Sequence[Sequence[Slice]], torn: Sequence[bool] | None = None
    ) -> list[Places]:
        """What each ring takes of every device's slices, as the ring goes: PrepareMultiRingSlice of
        coll_comm_executor.cc:1802; of those of `torn` servers the last ring takes all.
        """
        uncut = torn or [False] * len(slots[0])

        def part_of(q: int, server: int, part: Slice) -> Slice:
            return self._parts_of(part, is_torn=uncut[server])[q]

        return [
            [[part_of(q, *one) for one in enumerate(slots[r - self.server[0]])] for r in order]
            for q, order in enumerate(self.orders)
        ]

    def _parts_of(self, part: Slice, *, is_torn: bool) -> list[Slice]:
        """MutliSegSlicePrepareAvoidCceRewrite, coll_comm_executor.cc:2054 of libochao-huawei/hcomm
        @ 8958adb.
        """
        rings = self.grid.rings
        if is_torn:
            return [*[Slice(part.offset, 0)] * (rings - 1), part]
        return halves(part, rings)

    def torn(self) -> list[bool]:
        """Whether slots of each server are no multiples of 32 bytes, where ranks reduce themselves:
        ReduceScatterRingSlicePrepare of coll_reduce_scatter_executor.cc:524, for blocks
        IsCceReduceAligned of coll_reduce_scatter_ring_for_910_93_executor.cc:426.
        """
        servers = zip(*self.slots(), strict=True)
        return [not self.inline and any(one.size % 32 for one in slots) for slots in servers]

    def slots(self, *, user: bool = False) -> list[list[Slice]]:
        """Every device's slots, superpod by superpod: FillMultiRingSlice of coll_reduce_scatter_
        ring_for_910_93_executor.cc:217, CalculateLevel2AllgatherSlice of all-gather's. Those of
        user memory are PrepareUserMemSlices'.
        """
        grid, slot = self.grid, self.user_slot if user else self.slot
        return [
            [slot(grid.rank(p, s, d)) for p in range(grid.pods) for s in range(grid.servers)]
            for d in range(grid.devices)
        ]

    def slot(self, rank: int) -> Slice:
        """A rank's slot of exported memory."""
        return Slice(rank * self.size, self.size)

    def user_slot(self, rank: int) -> Slice:
        """The same slot in user memory."""
        return self.slot(rank)

    def parts(self) -> list[Slice]:
        """The data's slices, one for each device."""
        return sliced(self.size, self.grid.devices)

    def each(self, run: Callable[[int, Way], None]) -> None:
        """MultiRing...: main starts the other rings and waits for them."""
        others = range(self.grid.rings - 1)
        self.me.start(others)
        for q, way in enumerate(self.ways):
            run(q, way)
        self.me.finish(others)

    def double(self) -> Double:
        """Both rings, aligned."""
        return Double(self.me, self.ways, self.ring_subs, inline=self.inline)

    def plain(self, template: Callable[..., None], places: Sequence[Places], **call: int) -> None:
        """A plain template on every ring; a root is a rank."""

        def run(q: int, way: Way) -> None:
            told = {name: way.order.index(rank) for name, rank in call.items()}
            slices = [p[0] if len(p) == 1 else p for p in places[q]]
            self.me.run_on(way.lead, template, way.order, rdma=False, slices=slices, **told)

        self.each(run)

    # ---- the steps inside a server ----

    def reduce_scatter_inside(
        self, places: Sequence[Places], form: str, outs: Sequence[int] | None
    ) -> None:
        """MultiRingReduceScatter of coll_comm_executor.cc:748, or DoubleRingReduceScatter."""
        if form == "serial":
            helped.serial_reduce_scatter(self.double(), places, outs, op_base=self.op_base)
        elif form == "aligned":
            helped.aligned_reduce_scatter(self.double(), places, outs, op_base=self.op_base)
        elif self.op_base:
            self.each(
                lambda q, way: helped.reduce_scatter_concurrent_direct(
                    way, places[q], None if outs is None else outs[q]
                )
            )
        else:
            self.plain(plain.ring_reduce_scatter, places)

    def all_gather_inside(
        self, places: Sequence[Places], form: str, users: Sequence[Places] | None = None
    ) -> None:
        """MultiRingAllGather of coll_comm_executor.cc:174, or DoubleRingAllGather."""
        ends = users or places
        if form:
            helped.aligned_all_gather(self.double(), places, ends if self.op_base else None)
        elif self.op_base:
            self.each(lambda q, way: helped.all_gather_concurrent_direct(way, places[q], ends[q]))
        else:
            self.plain(plain.ring_all_gather, places)

    # ---- the ops ----

    def all_gather(self, form: str) -> None:
        """coll_all_gather_ring_for_910_93_executor.cc:277 KernelRun."""
        ours = [self.slot(rank) for rank in self.level2]
        template = {"ring": plain.ring_all_gather, "NHR": trees.nhr_all_gather}[self.word]
        self.me.run(template, self.level2, rdma=True, slices=ours)
        self.me.run(template, self.level1, rdma=False, slices=self.sets())
        users = self.places(self.slots(user=True))
        self.all_gather_inside(self.places(self.slots()), form, users)

    def reduce_scatter(self, form: str) -> None:
        """coll_reduce_scatter_ring_for_910_93_executor.cc:572 KernelRun."""
        alone = self.grid.pods == self.grid.servers == 1
        own = Slice(self.received, self.slot(self.me.rank).size)
        torn = self.torn()
        offsets = [part.offset for part in self._parts_of(own, is_torn=torn[0])]
        outs = offsets if alone and self.op_base else None
        self.reduce_scatter_inside(self.places(self.slots(), torn), form, outs)
        template = {"ring": plain.ring_reduce_scatter, "NHR": _nhr_reduce_scatter}[self.word]
        self.me.run(template, self.level1, rdma=False, slices=self.sets())
        ours = [self.slot(rank) for rank in self.level2]
        self.me.run(template, self.level2, rdma=True, slices=ours)

    def sets(self) -> list[list[Slice]]:
        """What goes between servers together: one slot of every superpod."""
        grid = self.grid
        return [
            [self.slot(grid.rank(p, s, self.d)) for p in range(grid.pods)]
            for s in range(grid.servers)
        ]

    def all_reduce(self, form: str) -> None:
        """coll_all_reduce_ring_for_910_93_executor.cc:209 KernelRun."""
        me, grid, parts = self.me, self.grid, self.parts()
        places, mine = self.places([[part] for part in parts]), parts[self.d]
        self.reduce_scatter_inside(places, form, None)
        inner = sliced(mine.size, grid.servers, mine.offset)
        reduced, scattered, gathered = ALL_REDUCE[self.word]
        if grid.pods == 1 and self.word == "NHR" and mine.size <= NHR_ALLREDUCE_SMALL_SIZE:
            me.run(trees.nhr_all_reduce_one_shot, self.level1, rdma=False, whole=mine)
        elif grid.pods == 1:
            me.run(reduced, self.level1, rdma=False, slices=inner)
        else:
            me.run(scattered, self.level1, rdma=False, slices=inner)
            own = inner[self.s]
            outer = sliced(own.size, grid.pods, own.offset)
            me.run(reduced, self.level2, rdma=True, slices=outer)
            me.run(gathered, self.level1, rdma=False, slices=inner)
        self.all_gather_inside(places, form)

    def reduce(self, form: str) -> None:
        """coll_reduce_ring_for_910_93_executor.cc:101 KernelRun; GetRankByUserRank gives the first
        place of a plane where the root is in none.
        """
        me, grid, parts = self.me, self.grid, self.parts()
        places, mine = self.places([[part] for part in parts]), parts[self.d]
        pod, server, _ = self.root_place
        self.plain(plain.ring_reduce_scatter, places)
        if grid.pods == 1:
            me.run(plain.ring_reduce, self.level1, rdma=False, whole=mine, root=server)
        else:
            inner = sliced(mine.size, grid.servers, mine.offset)
            me.run(plain.ring_reduce_scatter, self.level1, rdma=False, slices=inner)
            me.run(plain.ring_reduce, self.level2, rdma=True, whole=inner[self.s], root=pod)
            at = server if self.p == pod else 0
            me.run(plain.ring_gather, self.level1, rdma=False, slices=inner, root=at)
        if self.root in self.server and grid.devices > 1:
            self.plain(plain.ring_gather, places, root=self.root)

    def broadcast(self, form: str) -> None:
        """coll_broadcast_ring_for_910_93_executor.cc:92 KernelRun, :365 DoubleRingScatter."""
        me, grid, parts = self.me, self.grid, self.parts()
        places, mine = self.places([[part] for part in parts]), parts[self.d]
        pod, server, _ = self.root_place
        root = self.root if self.root in self.server else self.server[0]
        if grid.rings > 1:
            helped.scatter_double_direct(self.double(), places, root)
        elif self.op_base:
            way = self.ways[0]
            helped.scatter_concurrent_direct(way, places[0], way.order.index(root))
        else:
            self.plain(plain.ring_scatter, places, root=root)
        if grid.pods == 1:
            one_shot = trees.nhr_broadcast_one_shot
            me.run(one_shot, self.level1, rdma=False, whole=mine, root=server)
        else:
            inner = sliced(mine.size, grid.servers, mine.offset)
            me.run(trees.nhr_scatter, self.level1, rdma=False, slices=inner, root=server)
            own = inner[self.s]
            outer = sliced(own.size, grid.pods, own.offset)
            me.run(trees.nhr_broadcast, self.level2, rdma=True, slices=outer, root=pod)
            me.run(trees.nhr_all_gather, self.level1, rdma=False, slices=inner)
        self.all_gather_inside(places, "")

    def scatter(self, form: str) -> None:
        """coll_scatter_ring_for_910_93_executor.cc:95 KernelRun."""
        me, grid, size = self.me, self.grid, self.size
        pod, server, device = self.root_place
        del me.streams[grid.rings :]  # :22 CalcStreamNum: a stream for each ring
        whole = grid.servers * grid.devices * size
        if (self.s, self.d) == (server, device):
            blocks = [Slice(p * whole, whole) for p in range(grid.pods)]
            me.run(plain.ring_scatter, self.level2, rdma=True, slices=blocks, root=pod)
        each, first = grid.devices * size, self.p * whole
        if self.d == device:
            blocks = [Slice(first + s * each, each) for s in range(grid.servers)]
            me.run(plain.ring_scatter, self.level1, rdma=False, slices=blocks, root=server)
        places = self.places([[Slice(rank * size, size)] for rank in self.server])
        root = self.server[device]
        outs = [part.offset for part in halves(Slice(0, size), grid.rings)]
        if self.op_base:
            self.each(
                lambda q, way: helped.scatter_direct(way, places[q], way.order.index(root), outs[q])
            )
        else:
            self.plain(plain.ring_scatter, places, root=root)

    @property
    def root_place(self) -> tuple[int, int, int]:
        """The root's superpod, server and device."""
        server, device = divmod(self.root, self.grid.devices)
        return (*divmod(server, self.grid.servers), device)
