"""The cases that are held against SimGrid, and how to write one as a file that replay.py reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hccl_executors
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.clocks.durations import Durations
from hccl_py.clocks.links import Links
from hccl_py.enums import Buffer, DataType, ReduceOp, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import PlaneRequest, Rank, RankView, ResourceRequest, ops_of
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, Stragglers
from hccl_py.simulator.tasks import TaskCosts
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import Network
from hccl_py.topology.networks.network import Bools


class EverybodyAtOnce:
    """An all-to-all with a stream for every peer: contention that no executor of HCCL's makes."""

    op = ALL_TO_ALL
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A link and a stream for each peer; everybody has a slot in the CCL buffers."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),),
            sub_streams=rank.size - 1,
            max_count=self._slot(rank) // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Chunks]) -> None:
        """Copy every part to a slot and let SDMA read it, or push it."""
        slot = self._slot(rank)
        with rank.flat.fork() as sides:
            rank.main.copy(rank.user_out[rank.id], rank.user_in[rank.id])
            for sub, peer, link in sides:
                sent, received = rank.user_in[peer], rank.user_out[peer]
                here = Region(Buffer.CCL_IN, peer * slot, sent.size)
                landed = Region(Buffer.CCL_OUT, peer * slot, received.size)
                sub.copy(here, sent)
                link.tx_ack(sub)
                link.rx_ack(sub)
                if link.rdma:
                    sub.copy(link.remote(Region(Buffer.CCL_OUT, rank.id * slot, sent.size)), here)
                else:
                    there = Region(Buffer.CCL_IN, rank.id * slot, received.size)
                    sub.copy(received, link.remote(there))
                link.tx_data_signal(sub)
                link.rx_data_signal(sub)
                if link.rdma:
                    sub.copy(received, landed)
                    link.tx_data_ack(sub)
                    link.rx_data_ack(sub)

    def _slot(self, rank: RankView | Rank[Any, Any]) -> int:
        return rank.ccl_bytes // rank.size // 128 * 128


EXECUTORS = {cls.__name__: cls for cls in (*hccl_executors.EXECUTORS, EverybodyAtOnce)}


def uneven(ranks: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Return the number of elements from each rank to each, drawn from 1 to `most`."""
    drawn = np.random.default_rng(17).integers(1, most + 1, (ranks, ranks))
    return tuple(tuple(row) for row in drawn.tolist())


@dataclass(frozen=True)
class Case:
    """One call on one topology: `kib` per rank, `over` replaces fields of the product's costs,
    `even` makes the blocks of a v-op the same, `most` gives all_to_all_v a table of `uneven` ones.
    """

    name: str
    executor: str
    topology: dict[str, Any]
    kib: int = 256
    op: str = ""
    level1: str = ""
    over: dict[str, Any] = field(default_factory=dict)
    slow: tuple[str, ...] = ()
    variant: int = 0
    even: bool = False
    most: int = 0

    def place(self) -> Topology:
        """Return the topology."""
        return topology_of(**self.topology)

    def cost(self) -> CostModel:
        """Return the cost model."""
        product = self.place().product.name
        model = CostModel.of("study" if product in MODELS else product).model_dump()
        return CostModel.model_validate(model | MODELS.get(product, {}) | self.over)

    def program(self) -> Program:
        """Record the call."""
        topology, cls = self.place(), EXECUTORS[self.executor]
        name = self.op or ops_of(cls())[0]
        operator = make_operator(name)
        reduce = ReduceOp.SUM if operator.reduces else None
        op = OpParam(name, self.kib << 8, DataType.FP32, reduce, level1=self.level1)
        if self.even:
            op = replace(op, counts=(op.count,) * topology.size)
        elif self.most:
            op = replace(op, counts=uneven(topology.size, self.most))
        else:
            op = operator.variants()[self.variant](op, topology.size)
        return record(cls(), op, topology, operator, 200 << 20)


MODELS: dict[str, dict[str, Any]] = {
    "atlas-800t-a2": {},
    "atlas-900-a3": {"hccs": {"alpha_us": 10.0, "gbps": 18.3, "ports": 7}},
    "ascend950": {
        "hccs": {"alpha_us": 0.0, "gbps": 50.0},
        "roce": {"alpha_us": 0.0, "gbps": 400.0},
        **dict.fromkeys(("copy_gbps", "reduce_gbps", "memory_gbps"), 1000.0),
        **dict.fromkeys(("task_us", "post_us", "wait_us"), 1.0),
    },
}
"""What differs from the model of networks for study, by product: what SimGrid was told, whatever
is measured of the products since.
"""

A2, A2_OF_4 = {"servers": 2, "devices": 8}, {"servers": 4, "devices": 4}
A3_PODS = {"superpods": 2, "servers": 2, "devices": 4, "preset": "atlas-900-a3"}
DUO = {"servers": 2, "devices": 4, "preset": "300i-duo"}
NINE_THOUSAND = {"ranks": 8, "preset": "atlas-800-9000"}
TORUS, TORUS_3D = {"preset": "torus:4x4"}, {"preset": "torus:2x3x4"}
FAT_TREE = {"preset": "fat-tree:4"}
THIN_TREE = {"preset": "fat-tree:4,oversubscription=2"}
THINNER_TREE = {"preset": "fat-tree:4,oversubscription=4"}
DRAGONFLY = {"preset": "dragonfly:2,2,1"}
CUBE = {"preset": "hypercube:4"}
PLANES = {"preset": str(Path(__file__).parent / "planes.json")}
UNEVEN_PLANES = {"preset": str(Path(__file__).parent / "uneven_planes.json")}
SLOW_PLANES = {"preset": str(Path(__file__).parent / "slow_planes.json")}
RSV = "ReduceScatterVDeterExecutor"
FULL, DIRECT = "RunAlltoAllVFullMesh", "RunAlltoAllDirectFullmesh"
ALL_PAIRS = "EverybodyAtOnce"

CASES = (
    Case("incast of 7 by RoCE", "GatherStar", {"servers": 8, "devices": 1}),
    Case("incast of 15 by RoCE", "GatherStar", {"servers": 16, "devices": 1}, kib=64),
    Case("incast of 15 on a torus", "GatherMeshExecutor", TORUS),
    Case("scatter from one RoCE port", "ScatterStar", {"servers": 8, "devices": 1}),
    Case("broadcast from one rank of a torus", "BroadCastMeshExecutor", TORUS),
    Case("RoCE ports shared by 8 peers", ALL_PAIRS, A2),
    Case("the same with little data", ALL_PAIRS, A2, kib=1),
    Case("reduce-scatter over shared RoCE ports", RSV, A2_OF_4, even=True),
    Case("the same between superpods", RSV, A3_PODS, kib=64, even=True),
    Case("PCIe shared, ring", "AllReduceComm", {"ranks": 4, "preset": "300i-duo"}, kib=4096),
    Case("PCIe shared, everybody at once", DIRECT, {"ranks": 4, "preset": "300i-duo"}),
    Case("PCIe and RoCE, all-reduce", "AllReduceMixExecutor", DUO),
    Case("8p server, routes by way of others", DIRECT, NINE_THOUSAND),
    Case("8p server, reduce-scatter", "ReduceScatterMeshExecutor", NINE_THOUSAND, 1024),
    Case("A3 switch ports", DIRECT, {"ranks": 16, "preset": "atlas-900-a3"}),
    Case(
        "A3 switch with two ports a die",
        DIRECT,
        {"ranks": 16, "preset": "atlas-900-a3"},
        over={"hccs": {"alpha_us": 10, "gbps": 18.3, "ports": 2}},
    ),
    Case("ring all-reduce on a torus", "AllReduceComm", TORUS, kib=4096),
    Case("NHR all-reduce on a torus", "AllReduceComm", TORUS, kib=4096, level1="NHR"),
    Case("pairwise all-to-all on a torus", FULL, TORUS),
    Case("all-to-all on a torus, everybody at once", DIRECT, TORUS),
    Case("pairwise all-to-all on a torus of 8 x 8", FULL, {"preset": "torus:8x8"}, kib=64),
    Case("pairwise all-to-all on a torus of 2 x 3 x 4", FULL, TORUS_3D),
    Case("all-to-all on a fat-tree", FULL, FAT_TREE),
    Case("all-to-all on a fat-tree, everybody at once", DIRECT, FAT_TREE),
    Case("all-to-all on a fat-tree, half the links up", FULL, THIN_TREE),
    Case("half the links up, everybody at once", DIRECT, THIN_TREE),
    Case("all-to-all on a fat-tree, a quarter of the links up", FULL, THINNER_TREE),
    Case("NHR all-reduce on a thin fat-tree", "AllReduceComm", THIN_TREE, 4096, level1="NHR"),
    Case("pairwise all-to-all on a dragonfly", FULL, DRAGONFLY),
    Case("all-to-all on a dragonfly, everybody at once", DIRECT, DRAGONFLY),
    Case("ring all-reduce on a hypercube", "AllReduceComm", CUBE, 4096),
    Case("pairwise all-to-all on a hypercube", FULL, CUBE),
    Case("all-reduce on A2 servers, mesh and NHR", "AllReduceMeshExecutor", A2, 4096, level1="NHR"),
    Case("all-reduce on A2 servers, mixed", "AllReduceMixExecutor", A2, 4096),
    Case("uneven all-gather on a torus", "AllGatherVComm", TORUS),
    Case("uneven all-to-all on a fat-tree", FULL, THIN_TREE, op="all_to_all_v"),
    Case("uneven all-to-all on A2 servers", ALL_PAIRS, A2, op="all_to_all_vc"),
    Case("uneven reduce-scatter on A2 servers", RSV, A2_OF_4),
    Case("a slow link of a torus", FULL, TORUS, slow=("link=5-6:4x",)),
    Case("a slow rank and a slow link", DIRECT, TORUS, slow=("rank=3:3x", "link=0-1:2x")),
    Case(
        "copies and reductions that share memory",
        RSV,
        {"ranks": 8},
        1024,
        even=True,
        over={"memory_gbps": 500.0, "copy_gbps": 400.0, "reduce_gbps": 300.0},
    ),
    Case(
        "tasks and notifies that cost time",
        DIRECT,
        THIN_TREE,
        over={"task_us": 1.5, "notify_us": 0.7},
    ),
    Case(
        "posts and waits that take their stream's time",
        DIRECT,
        THIN_TREE,
        over={"post_us": 0.4, "wait_us": 0.3, "task_us": 1.5},
    ),
    Case(
        "local notifies apart from those between ranks",
        ALL_PAIRS,
        A2,
        over={"notify_us": 0.5, "local_notify_us": 2.5},
    ),
    Case(
        "reductions that overlap their transfers",
        "AllReduceComm",
        TORUS,
        4096,
        level1="NHR",
        over={"inline_reductions": "longest", "reduce_gbps": 12.0},
    ),
    Case(
        "peers that share memory",
        ALL_PAIRS,
        A2,
        over={"memory_users": "all", "memory_gbps": 60.0, "copy_gbps": 40.0},
    ),
    Case(
        "peers that share memory with reductions",
        RSV,
        {"ranks": 8},
        1024,
        over={"memory_users": "all", "memory_gbps": 80.0, "copy_gbps": 50.0, "reduce_gbps": 30.0},
    ),
    Case("chance", DIRECT, THIN_TREE, over={"jitter": 0.3, "task_us": 1.5, "post_us": 0.4}),
    Case("chance over RoCE ports", ALL_PAIRS, A2, over={"jitter": 0.3, "jitter_seed": 7}),
    Case(
        "ports that links of an Ascend 950 share",
        ALL_PAIRS,
        {"servers": 2, "devices": 8, "preset": "ascend950"},
        4096,
        over={
            "shared_ports": [
                {"links": ["hccs", "roce"], "gbps": 180},
                {"links": ["hccs"], "gbps": 120},
            ]
        },
    ),
    Case(
        "ports of nodes in a file",
        DIRECT,
        {"preset": str(Path(__file__).parent / "ports.json")},
        1024,
    ),
    Case("data sprayed over four planes", ALL_PAIRS, PLANES, 1024),
    Case("uneven data sprayed over four planes", DIRECT, PLANES, op="all_to_all_v"),
    Case("broadcast from one rank over four planes", "BroadCastMeshExecutor", PLANES),
    Case("reduce-scatter over four planes", RSV, PLANES, 1024),
    Case("NHR all-reduce over four planes", "AllReduceComm", PLANES, 4096, level1="NHR"),
    Case("data sprayed by weight over uneven planes", ALL_PAIRS, UNEVEN_PLANES, 1024),
    Case("uneven data by weight over uneven planes", DIRECT, UNEVEN_PLANES, op="all_to_all_v"),
    Case("planes that reach two leaves slowly", ALL_PAIRS, SLOW_PLANES, 1024),
    Case("the same, uneven data", DIRECT, SLOW_PLANES, op="all_to_all_v"),
    Case("the same, NHR all-reduce", "AllReduceComm", SLOW_PLANES, 4096, level1="NHR"),
    Case(
        "Ascend 950, all at once",
        ALL_PAIRS,
        {"servers": 2, "devices": 8, "preset": "ascend950"},
        4096,
        over={"jitter": 0.1, "local_notify_us": 0.5, "memory_users": "all"},
    ),
)


def exported(case: Case) -> dict[str, Any]:
    """Return links (bytes a µs), routes (bytes a µs of a flow alone, links by number) and the tasks
    of every stream.

    ["post", number, latency, connection or -1]   ["wait", number of the post]   ["delay", µs]
    ["flow", bytes, route]                        ["write", bytes, route, connection]

    Data that is spread has lists of bytes and of routes in the place of one.
    """
    program, topology = case.program(), case.place()
    writer = _Writer(program, topology, case.cost(), Stragglers.parse(case.slow))
    queues = queues_of(program)
    streams = [
        [task for row in queues.rows[first:last].tolist() for task in writer.tasks_of(row)]
        for first, last in zip(queues.first[:-1], queues.first[1:], strict=True)
    ]
    routes = sorted(writer.routes, key=writer.routes.__getitem__)
    return {
        "links": [writer.capacity(link) for link in writer.links],
        "routes": routes,
        "streams": [tasks for tasks in streams if tasks],
    }


class _Writer:
    """Says each task for itself; what walks and kernels make of programs is not looked at."""

    def __init__(
        self, program: Program, topology: Topology, cost: CostModel, slow: Stragglers
    ) -> None:
        self.program, self.cost = program, cost
        self.links_of = Links(topology, cost, slow)
        self.costs = TaskCosts.of(program, Durations(program, topology, cost, slow))
        self.links: dict[int, int] = {}
        self.routes: dict[tuple[float, tuple[int, ...]], int] = {}

    def capacity(self, link: int) -> float:
        """Return bytes a µs."""
        return float(self.links_of.capacities(np.array([link]))[0]) * 1e3

    def tasks_of(self, row: int) -> list[list[Any]]:
        """Return the SimGrid tasks of a row: a delay before a flow, or one task."""
        tasks, costs = self.program.tasks, self.costs
        kind, over = TaskKind(int(tasks.kind[row])), int(costs.connection[row])
        on_stream, after = float(costs.on_stream[row]), float(costs.after[row])
        if kind == TaskKind.NOTIFY_WAIT:
            wait = ["wait", int(self.program.linked.post_of[row])]
            return [wait, ["delay", on_stream]] if on_stream else [wait]
        if kind == TaskKind.NOTIFY_POST:
            post = ["post", row, after, over]
            return [["delay", on_stream], post] if on_stream else [post]
        task_us = float(costs.task_us[row]) if over >= 0 or on_stream else 0.0
        alone = after if over >= 0 else on_stream - task_us
        ways = self.ways_of(row, kind) if alone > 0 else ()
        if not any(way.links for way in ways):
            return [["delay", on_stream]] if on_stream else []
        size = int(tasks.size[row])
        parts = [way.share * size for way in ways]
        rates = [float(f"{part / alone:.12g}") for part in parts]
        keys = [(rate, way.links) for rate, way in zip(rates, ways, strict=True)]
        routes = [self.routes.setdefault(key, len(self.routes)) for key in keys]
        flow = [size, routes[0]] if len(routes) == 1 else [[round(part) for part in parts], routes]
        before = [["delay", task_us]] if task_us else []
        return [*before, ["write", *flow, over] if over >= 0 else ["flow", *flow]]

    def ways_of(self, row: int, kind: TaskKind) -> tuple[Way, ...]:
        """Return each way that a task's data takes, without links that never fill."""
        tasks, network = self.program.tasks, self.links_of.network
        if kind == TaskKind.COMPUTE:
            return ()
        rank, peer = int(tasks.rank[row]), int(tasks.peer[row])
        if kind in (TaskKind.COPY, TaskKind.REDUCE):
            node = network.rank_nodes[[rank]]
            ways = [Way(tuple(network.number(node, node).tolist()), 1.0)]
        else:
            pair = (peer, rank) if kind.reads_remote else (rank, peer)
            is_rdma = self.program.transports.is_rdma[tasks.end[row : row + 1]]
            ways = ways_of(network, *pair, is_rdma)
            if self.cost.memory_users == "all":
                both = network.rank_nodes[list(pair)]
                memory = tuple(network.number(both, both).tolist())
                ways = [way._replace(links=way.links + memory) for way in ways]
        return tuple(way._replace(links=self._numbered(way.links)) for way in ways)

    def _numbered(self, links: tuple[int, ...]) -> tuple[int, ...]:
        finite = [link for link in links if np.isfinite(self.capacity(link))]
        return tuple(self.links.setdefault(link, len(self.links)) for link in finite)


class Way(NamedTuple):
    """The links of one way of a pair's data, and the share of the data that goes over it."""

    links: tuple[int, ...]
    share: float


def ways_of(network: Network, source: int, target: int, is_rdma: Bools) -> list[Way]:
    """Return every way of a pair: a node hands data on by the shares of its links, and a switch
    never lets through less than its links.
    """
    found = network.routes(np.array([source]), np.array([target]), is_rdma)
    if found.share is None:
        return [Way(tuple(found.link.tolist()), 1.0)]
    heads, tails = (ends.tolist() for ends in network.ends(found.link)[::-1])
    joined = list(zip(tails, heads, found.share.tolist(), strict=True))
    begin, end = network.rank_nodes[[source, target]].tolist()
    open_ways, finished = [([begin], 1.0)], []
    while open_ways:
        longer = []
        for way, share in open_ways:
            onward = [(head, part) for tail, head, part in joined if tail == way[-1]]
            whole = sum(part for _, part in onward)
            longer += [([*way, head], share * part / whole) for head, part in onward]
        finished += [one for one in longer if one[0][-1] == end]
        open_ways = [one for one in longer if one[0][-1] != end]
    ways = [
        Way(tuple(network.number(np.array(way[:-1]), np.array(way[1:])).tolist()), share)
        for way, share in finished
    ]
    used: Counter[int] = Counter()
    for found_way in ways:
        used.update(dict.fromkeys(found_way.links, found_way.share))
    shares = dict(zip(found.link.tolist(), found.share.tolist(), strict=True))
    assert used.keys() == shares.keys()
    assert all(abs(used[link] - shares[link]) < 1e-12 for link in used)
    return ways
