"""Executors with rings in the servers of an Atlas 800 (model 9000) or A2, held against models.

impl/coll_executor of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm: the orders of
four rings coll_comm_executor.cc:1636; a ring on each stream and the last one on main.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity import rings, trees
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.streams import sliced
from tests.executors.fidelity.superpods import Executor, Grid
from tests.executors.fidelity.transports import Event, Slice, landed
from tests.recording import op_of, recorded

ORDERS = (
    (0, 1, 2, 6, 5, 4, 7, 3),
    (0, 3, 7, 4, 5, 6, 2, 1),
    (0, 2, 3, 1, 5, 7, 6, 4),
    (0, 4, 6, 7, 5, 1, 3, 2),
)
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
NAMES = {
    "AllGatherRingExecutor": "all_gather",
    "ReduceScatterRingExecutor": "reduce_scatter",
    "AllReduceRingExecutor": "all_reduce",
    "BroadCastRingExecutor": "broadcast",
    "ReduceRingPlusHd": "reduce",
    "ScatterRingExecutor": "scatter",
}
SLOTTED = ("all_gather", "reduce_scatter", "scatter")


class OnServers(Executor):
    """Two levels, without helpers. Between servers all ops run rings, a broadcast NHR; what has not
    the same number in `joined` is linked by RDMA.
    """

    joined: bool | Sequence[int] = True

    @property
    def sub_streams(self) -> int:
        """CalcStreamNum: one for every ring but main's."""
        return self.grid.rings - 1

    @property
    def orders(self) -> list[list[int]]:
        """As many as the server has."""
        if self.grid.rings == 1:
            return super().orders
        return [[self.server[device] for device in order] for order in ORDERS]

    def own_slots(self) -> list[list[Slice]]:
        """The slots of this server's devices."""
        return [[Slice(rank * self.size, self.size)] for rank in self.server]

    def blocks(self) -> list[Slice]:
        """The slots of every server."""
        each = self.grid.devices * self.size
        return [Slice(s * each, each) for s in range(self.grid.servers)]

    def all_gather(self, form: str = "") -> None:
        """coll_all_gather/coll_all_gather_ring_executor.cc, KernelRun."""
        self.plain(rings.ring_all_gather, self.places(self.own_slots()))
        self.me.run(rings.ring_all_gather, self.level1, rdma=self.joined, slices=self.blocks())

    def reduce_scatter(self, form: str = "") -> None:
        """coll_reduce_scatter/coll_reduce_scatter_ring_executor.cc, KernelRun."""
        self.me.run(rings.ring_reduce_scatter, self.level1, rdma=self.joined, slices=self.blocks())
        torn = not self.inline and self.size % 32 != 0
        self.plain(rings.ring_reduce_scatter, self.places(self.own_slots(), [torn]))

    def all_reduce(self, form: str = "") -> None:
        """coll_all_reduce/coll_all_reduce_ring_executor.cc, KernelRun."""
        parts = self.parts()
        places = self.places([[part] for part in parts])
        self.plain(rings.ring_reduce_scatter, places)
        mine = parts[self.d]
        between = sliced(mine.size, self.grid.servers, mine.offset)
        self.me.run(rings.ring_all_reduce, self.level1, rdma=self.joined, slices=between)
        self.plain(rings.ring_all_gather, places)

    def broadcast(self, form: str = "") -> None:
        """coll_broadcast/coll_broadcast_ring_executor.cc:64 KernelRun; all servers scatter, from
        their first device where GetRankByUserRank finds no root.
        """
        parts = self.parts()
        places = self.places([[part] for part in parts])
        root = self.root if self.root in self.server else self.server[0]
        self.plain(rings.ring_scatter, places, root=root)
        one_shot, (_, server, _) = trees.nhr_broadcast_one_shot, self.root_place
        self.me.run(one_shot, self.level1, rdma=self.joined, whole=parts[self.d], root=server)
        self.plain(rings.ring_all_gather, places)

    def reduce(self, form: str = "") -> None:
        """coll_reduce/coll_reduce_ring_plus_hd_executor.cc:71 KernelRun; MultiRingGather,
        coll_comm_executor.cc:986, leaves out rings without data that are not main's.
        """
        parts = self.parts()
        places = self.places([[part] for part in parts])
        self.plain(rings.ring_reduce_scatter, places)
        _, server, _ = self.root_place
        ring = rings.ring_reduce
        self.me.run(ring, self.level1, rdma=self.joined, whole=parts[self.d], root=server)
        if self.root not in self.server:
            return
        others = range(self.grid.rings - 1)
        self.me.start(others)
        for q, way in enumerate(self.ways):
            slices, at = [part for (part,) in places[q]], way.order.index(self.root)
            if way.lead == 0 or slices[0].size:
                template = rings.ring_gather
                self.me.run_on(way.lead, template, way.order, rdma=False, slices=slices, root=at)
        self.me.finish(others)

    def scatter(self, form: str = "") -> None:
        """coll_scatter/coll_scatter_ring_executor.cc:43 KernelRun: one ring, on main."""
        _, server, device = self.root_place
        if self.d == device:
            blocks = self.blocks()
            self.me.run(
                rings.ring_scatter, self.level1, rdma=self.joined, slices=blocks, root=server
            )
        order = self.orders[0]
        slices = [Slice(rank * self.size, self.size) for rank in order]
        at = order.index(self.server[device])
        self.me.run_on(0, rings.ring_scatter, order, rdma=False, slices=slices, root=at)


def check(name: str, preset: str, grid: Grid, mode: Mode, count: int) -> None:
    """Compare every stream of every rank, for one root."""
    op = NAMES[name]
    assert KINDS[name] == "same"
    root = grid.size * 2 // 3 if op in ("broadcast", "reduce", "scatter") else None
    word = "NHR" if op == "broadcast" else "ring"
    call = replace(op_of(op, count, mode=mode), level1=word, root=root)
    topology = Topology(PRESETS[preset], (grid.devices,) * grid.servers)
    program = recorded(name, call, topology, 1 << 20)
    for rank in range(grid.size):
        model = OnServers(rank, grid, 4 * count, op_base=mode is Mode.OP_BASE, root=root or 0)
        getattr(model, op)()
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        wanted = model.me.streams
        if not topology.product.reduces_over_rdma(call.dtype, call.reduce):
            ours, wanted = ([landed(s) for s in streams] for streams in (ours, wanted))
        assert ours == wanted, f"rank {rank} of {grid}"


def _unreduced(event: Event) -> Event:
    """The same, and what SDMA cannot reduce is read: component/reducer.cc:140."""
    kind, *rest = event
    return (kind.removesuffix("_reduce"), *rest)


@pytest.mark.parametrize("name", NAMES)
def test_four_rings_of_a_server(name: str) -> None:
    parts = 4 if NAMES[name] in SLOTTED else 32
    check(name, "atlas-800-9000", Grid(1, 1, 8, 4), Mode.OP_BASE, 32 * parts)


@pytest.mark.parametrize("servers", [1, 2])
def test_the_last_ring_takes_what_would_be_torn(servers: int) -> None:
    """Ranks that reduce themselves cut slots of whole 32 bytes alone."""
    name, grid = "ReduceScatterRingExecutor", Grid(1, servers, 8, 4)
    topology = Topology(PRESETS["atlas-800-9000"], (8,) * servers)
    for count in (1, 67, 128):
        call = replace(op_of("reduce_scatter", count, "int64"), level1="ring")
        program = recorded(name, call, topology, 1 << 20)
        for rank in range(grid.size):
            model = OnServers(rank, grid, 8 * count, op_base=True)
            model.inline = False
            model.reduce_scatter()
            wanted = [[_unreduced(event) for event in stream] for stream in model.me.streams]
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(program.streams)] == wanted


@pytest.mark.parametrize("name", NAMES)
def test_rings_of_two_servers(name: str) -> None:
    """Uneven cuts, rings without data among them. Between servers a 910A's links do not reduce, and
    data is added where it has landed.
    """
    count = 70 if NAMES[name] in SLOTTED else 8 * 70 - 37
    mode = Mode.OP_BASE if NAMES[name] == "reduce_scatter" else Mode.GRAPH
    check(name, "atlas-800-9000", Grid(1, 2, 8, 4), mode, count)
    check(name, "atlas-800t-a2", Grid(1, 2, 3, 1), Mode.OP_BASE, count)


@pytest.mark.sweep
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", NAMES)
def test_rings_of_many_sizes(name: str, mode: Mode) -> None:
    for servers, count in ((1, 29), (1, 1000), (3, 70), (3, 4096)):
        check(name, "atlas-800-9000", Grid(1, servers, 8, 4), mode, count)
        for devices in (1, 2, 5):
            check(name, "atlas-800t-a2", Grid(1, servers, devices, 1), mode, count)


def _rings(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Uneven cuts; on A2 where HCCL_ALGO asks for a ring in the servers."""
    form, op = form_of(at), NAMES[name]
    in_fours = at.product.device == "910A" and form.devices == 8
    grid = Grid(1, form.servers, form.devices, 4 if in_fours else 1)
    count = 70 if op in SLOTTED else at.size * 70 - 37
    root = at.size * 2 // 3 if op in ("broadcast", "reduce", "scatter") else None
    word = "NHR" if op == "broadcast" else "ring"

    def streams(rank: int) -> list[list[Event]]:
        model = OnServers(rank, grid, 4 * count, op_base=mode is Mode.OP_BASE, root=root or 0)
        model.joined = form.joined
        getattr(model, op)()
        return model.me.streams

    yield Held(replace(op_of(op, count, mode=mode), level1=word, root=root), streams)


HELD: Holders = dict.fromkeys(NAMES, _rings)
