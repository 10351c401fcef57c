"""Generated networks: what they are made of, their routes, and what is not understood."""

import json
import pickle
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py
from hccl_py.cli import main
from hccl_py.clocks.links import Links
from hccl_py.errors import ParameterError
from hccl_py.simulator import CostModel, Stragglers, simulate_tasks
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.topology.networks import Network, ProductNetwork, network_of
from hccl_py.topology.networks.network import NEAREST
from hccl_py.topology.networks.product import HCCS, ROCE
from tests.recording import op_of, recorded
from tests.simulator.costs import LINKS as COST
from tests.topology.networks import GENERATED, all_pairs, graph_of, network, paths_of


def no_rdma(pairs: int) -> np.ndarray:
    return np.zeros(pairs, np.bool_)


def path(found: Network, source: int, target: int) -> list[int]:
    routes = found.routes(np.array([source]), np.array([target]), no_rdma(1))
    return paths_of(found, routes)[0]


@pytest.mark.parametrize("spelling", GENERATED)
def test_routes_are_shortest_paths_over_links_that_exist(spelling: str) -> None:
    found = network(spelling)
    graph = graph_of(found)
    assert nx.is_strongly_connected(graph)
    if spelling.startswith("dragonfly:"):  # minimal: with as few links between groups as possible
        ports = found.ranks // spelling_sizes(spelling)[1]
        group = spelling_sizes(spelling)[0]
        for a, b in graph.edges:
            if (
                min(a, b) >= found.ranks
                and (a - found.ranks) // group != (b - found.ranks) // group
            ):
                graph.edges[a, b]["weight"] = 10
        assert found.nodes == found.ranks + ports
    source, target = all_pairs(found.ranks)
    routes = found.routes(source, target, no_rdma(len(source)))
    far = dict(nx.all_pairs_dijkstra_path_length(graph))
    for a, b, nodes in zip(source, target, paths_of(found, routes), strict=True):
        assert (nodes[0], nodes[-1]) == (a, b)
        assert all(pair in graph.edges for pair in pairwise(nodes))
        assert sum(graph.edges[pair].get("weight", 1) for pair in pairwise(nodes)) == far[a][b]


def spelling_sizes(spelling: str) -> list[int]:
    words = spelling.partition(":")[2].split(",")
    return [int(word) for word in words if "=" not in word]


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (2, 3, 4), (6,)])
def test_a_torus_is_a_closed_grid(sizes: tuple[int, ...]) -> None:
    graph = nx.grid_graph(sizes, periodic=True)  # its nodes have the first size last, as ours
    strides = np.cumprod([1, *sizes[:-1]])[::-1]
    numbered = {}
    for node in graph.nodes:
        place = node if isinstance(node, tuple) else (node,)
        numbered[node] = int((np.array(place) * strides).sum())
    wanted = nx.relabel_nodes(graph, numbered).to_directed()
    found = graph_of(network("torus:" + "x".join(map(str, sizes))))
    assert set(found.edges) == set(wanted.edges)


def test_a_torus_goes_the_shorter_way_and_upwards_where_both_are_equal() -> None:
    assert path(network("torus:4x4"), 0, 10) == [0, 1, 2, 6, 10]
    assert path(network("torus:4x4"), 10, 0) == [10, 11, 8, 12, 0]
    assert path(network("torus:5x5"), 0, 24) == [0, 4, 24]
    assert path(network("torus:2x2x2"), 0, 7) == [0, 1, 3, 7]


def test_a_hypercube_joins_what_differs_in_a_bit_and_goes_from_the_lowest() -> None:
    found = network("hypercube:4")
    assert set(graph_of(found).edges) == {
        (a, b) for a in range(16) for b in range(16) if (a ^ b).bit_count() == 1
    }
    assert path(found, 0b0000, 0b1101) == [0b0000, 0b0001, 0b0101, 0b1101]


@pytest.mark.parametrize("ports", [2, 4, 6])
def test_a_fat_tree_has_k_ports_at_every_switch(ports: int) -> None:
    found = network(f"fat-tree:{ports}")
    graph = graph_of(found)
    assert found.ranks == ports**3 // 4
    assert found.nodes - found.ranks == 5 * ports**2 // 4
    degrees = [degree for _, degree in graph.out_degree()]
    assert degrees == [1] * found.ranks + [ports] * (found.nodes - found.ranks)


@pytest.mark.parametrize("ports", [4, 6])
def test_shifts_on_a_fat_tree_never_share_a_link(ports: int) -> None:
    found = network(f"fat-tree:{ports}")
    source = np.arange(found.ranks)
    for shift in range(1, found.ranks):
        routes = found.routes(source, (source + shift) % found.ranks, no_rdma(found.ranks))
        assert len(np.unique(routes.link)) == len(routes.link)


@pytest.mark.parametrize("groups", [1, 2, 5, 9])
def test_a_dragonfly_has_one_link_between_every_two_groups(groups: int) -> None:
    for spelling, first, size in (("dragonfly:4,3,2", 0, 4), ("dragonfly-plus:2,3,4,2", 2, 4)):
        found = network(f"{spelling},groups={groups}")
        graph = graph_of(found)
        gates = found.ranks + first * groups + np.arange(groups * size).reshape(groups, size)
        for one, other in product(range(groups), repeat=2):
            links = [pair for pair in product(gates[one], gates[other]) if pair in graph.edges]
            assert one == other or len(links) == 1
        for group, gate in product(range(groups), range(size)):
            leaving = set(graph[gates[group, gate]]) & set(gates.flat) - set(gates[group])
            assert (groups - 1) // size <= len(leaving) <= 2


@given(data=st.data())
def test_routes_do_not_depend_on_what_else_is_asked_for(data: st.DataObject) -> None:
    found = network(data.draw(st.sampled_from([s for s in GENERATED if network(s).ranks > 1])))
    source, target = all_pairs(found.ranks)
    whole = paths_of(found, found.routes(source, target, no_rdma(len(source))))
    some = np.array(data.draw(st.lists(st.integers(0, len(source) - 1), max_size=8)), np.int64)
    routes = found.routes(source[some], target[some], no_rdma(len(some)))
    assert paths_of(found, routes) == [whole[k] for k in some]


def test_routes_of_65_536_ranks_are_computed_without_a_table() -> None:
    found = network("torus:32x32x64")
    source = np.arange(found.ranks)
    target = (source * 31 + 7) % found.ranks
    source, target = source[source != target], target[source != target]
    routes = found.routes(source, target, no_rdma(len(source)))
    sizes, strides = np.array([32, 32, 64]), np.array([1, 32, 1024])
    up = (target[:, None] // strides - source[:, None] // strides) % sizes
    assert (np.diff(routes.first) == np.minimum(up, sizes - up).sum(axis=1)).all()
    assert found.node("65535") == 65535


def test_rates_are_those_of_hccs_unless_stated() -> None:
    links = np.array([0 * 16 + 1, 1 * 16 + 1])
    cost = COST.model_copy(update={"hop_us": 0.5, "memory_gbps": 100.0})
    rates = network("torus:4x4").rates(links, cost)
    assert (rates.gbps.tolist(), rates.latency_us.tolist()) == ([1, 100], [0.5, 0])
    rates = network("torus:4x4,gbps=25,latency=0.1").rates(links, cost)
    assert (rates.gbps.tolist(), rates.latency_us.tolist()) == ([25, 100], [0.1, 0])
    free = CostModel.of("ring").model_copy(
        update={"hccs": COST.hccs.model_copy(update={"gbps": None})}
    )
    assert network("torus:4x4").rates(links, free).gbps.tolist() == [np.inf, np.inf]


def test_oversubscription_thins_the_links_between_switches() -> None:
    found = network("fat-tree:4,oversubscription=4,gbps=20")
    routes = found.routes(np.array([0]), np.array([15]), no_rdma(1))
    assert found.rates(routes.link, COST).gbps.tolist() == [20, 5, 5, 5, 5, 20]
    assert found.name == "fat-tree 4, oversubscription 4, 20 GB/s"


@given(data=st.data())
def test_a_subset_keeps_routes_and_nodes(data: st.DataObject) -> None:
    whole = topology_of(preset=data.draw(st.sampled_from(["torus:2x3x4", "fat-tree:4"])))
    ranks = data.draw(st.lists(st.integers(0, whole.size - 1), min_size=2, unique=True))
    part = whole.subset(ranks)
    found, old = network_of(part), network_of(whole)
    source, target = all_pairs(len(ranks))
    routes = found.routes(source, target, no_rdma(len(source)))
    at = np.array(ranks)
    assert (routes.link == old.routes(at[source], at[target], no_rdma(len(source))).link).all()
    assert found.rank_nodes.tolist() == ranks
    assert [found.node(str(rank)) for rank in range(len(ranks))] == ranks
    assert [found.node_name(node) for node in ranks] == list(map(str, range(len(ranks))))
    idle = sorted(set(range(whole.size)) - set(ranks))
    assert [found.node_name(node) for node in idle] == [f"({node})" for node in idle]
    assert [found.node(f"({node})") for node in idle] == idle
    assert found.nodes == old.nodes
    again = network_of(part.subset([1, 0]))
    assert [again.node_name(node) for node in (ranks[1], ranks[0])] == ["0", "1"]
    assert again.rank_nodes.tolist() == [ranks[1], ranks[0]]
    one, other = old.ends(routes.link)
    assert all(map(found.joins, one.tolist(), other.tolist()))
    assert found.rates(routes.link, COST).gbps.tolist() == [1] * len(routes.link)


@pytest.mark.parametrize("spelling", GENERATED)
def test_names_of_nodes(spelling: str) -> None:
    found = network(spelling)
    names = [found.node_name(node) for node in range(found.nodes)]
    assert len(set(names)) == found.nodes
    assert [found.node(name) for name in names] == list(range(found.nodes))
    with pytest.raises(ParameterError, match=f"no node '{found.nodes + 7}'") as error:
        found.node(str(found.nodes + 7))
    assert f"It has ranks 0 to {found.ranks - 1}" in error.value.hint


def test_names_of_switches() -> None:
    found = network("fat-tree:4")
    assert [found.node(name) for name in ("edge0", "agg0", "core0", "core3")] == [16, 24, 32, 35]
    with pytest.raises(ParameterError) as error:
        found.node("core4")
    assert error.value.message == "fat-tree 4 has no node 'core4'."
    assert error.value.hint == "It has ranks 0 to 15 and 20 switches, the last of them core3."


def test_what_the_topology_says() -> None:
    topology = topology_of(preset="torus:4x4")
    assert topology.description == "torus 4 x 4"
    assert (topology.servers, topology.level0, topology.has_mesh) == ((16,), "whole_ring", True)
    assert repr(topology) == "Topology('torus 4 x 4', routed, servers=(16,))"
    assert pickle.loads(pickle.dumps(topology)).description == "torus 4 x 4"
    assert isinstance(network_of(topology_of(4)), ProductNetwork)
    few = topology_of(5, preset="torus:4x4")
    assert (few.size, few.description) == (5, "torus 4 x 4")
    assert topology_of(16, preset="torus:4x4").size == 16
    assert topology.linked(inter_hccs=False, intra_roce=False).network is topology.network


def test_rings_run_on_a_torus() -> None:
    op = op_of("all_reduce", 16 << 10)
    line = recorded("AllReduceComm", op, topology_of(16, preset="ring"))
    ring = hccl_py.simulate(line, topology_of(16, preset="ring"), COST)
    torus = topology_of(preset="torus:4x4")
    program = recorded("AllReduceComm", op, torus)
    assert hccl_py.simulate(program, torus, COST).end_us.max() == ring.end_us.max()
    farther = topology_of(preset="torus:4x4,latency=0.5")
    assert hccl_py.simulate(program, farther, COST).end_us.max() > ring.end_us.max()
    thin = topology_of(preset="torus:4x4,gbps=0.5")
    slow = Stragglers.parse(["link=3-0:2x", "link=15-12:2x"])
    assert hccl_py.simulate(program, thin, COST).end_us.max() > ring.end_us.max()
    assert simulate_tasks(program, torus, COST, slow).end_us.max() > ring.end_us.max()


def test_latencies_of_routes_add_to_alpha() -> None:
    topology = topology_of(preset="fat-tree:4,latency=0.25")
    program = recorded("AllGatherComm", op_of("all_gather", 32), topology)
    transports = program.transports
    classes = Links(topology, COST).classes(transports)
    alpha = classes.alpha_us[classes.of_end]
    pairs = zip(transports.rank, transports.peer, alpha, strict=True)
    told = {(int(a), int(b)): float(one) for a, b, one in pairs}
    assert told[0, 1] == 1 + 2 * 0.25
    assert told[1, 2] == 1 + 4 * 0.25
    assert told[3, 4] == 1 + 6 * 0.25


def test_what_is_far_on_a_ring_passes_those_in_between() -> None:
    found = network_of(topology_of(6, preset="ring"))
    assert path(found, 0, 3) == [0, 1, 2, 3]
    assert path(found, 1, 5) == [1, 0, 5]
    assert not found.joins(0, 2)
    two = network_of(topology_of(servers=2, devices=5, preset="ring"))
    source, target = np.array([5, 4, 9]), np.array([7, 5, 5])
    routes = two.routes(source, target, np.array([False, True, False]))
    assert paths_of(two, routes) == [[5, 6, 7], [4, two.roce, 5], [9, 5]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        ("tours:4x4", "Topology 'tours:4x4' is unknown.\nDid you mean torus?"),
        ("", "Topology '' is unknown.\nKnown: 300i-duo"),
        ("a3", "Topology 'a3' is unknown.\nDid you mean atlas-900-a3?"),
        ("Ascend910_93", "Did you mean atlas-900-a3?"),
        ("310p", "Did you mean 300i-duo?"),
        (
            "torus",
            "sizes are not understood.\nWrite whole numbers from 1 to 65536, as in torus:4x4",
        ),
        ("torus:", "sizes are not understood"),
        ("torus:4x0", "sizes are not understood"),
        ("torus:4x-1", "sizes are not understood"),
        ("torus:4xx4", "sizes are not understood"),
        ("torus:4.0x4", "sizes are not understood"),
        ("torus:\N{ARABIC-INDIC DIGIT FOUR}", "sizes are not understood"),
        ("torus:99999999999999999999", "sizes are not understood"),
        ("torus:65536x65536x65536", "has 281474976710656 ranks.\nAt most 65536"),
        ("hypercube:17", "hypercube of 17 dimensions has 2.17 ranks.\nAt most 16"),
        ("hypercube:4x4", "as in hypercube:4"),
        ("fat-tree:3", "3 ports a switch.\nGive an even number"),
        ("fat-tree:66", "fat-tree:66 has 71874 ranks"),
        ("fat-tree:4,oversubscription=0.5", "oversubscription=0.5 is out of range.\nFrom 1"),
        ("fat-tree:4,groups=2", "no option 'groups'"),
        ("torus:4,gbps=0", "gbps=0 is out of range"),
        ("torus:4,gbps=fast", "gbps=fast is out of range"),
        ("torus:4,gbps=-1", "out of range"),
        ("torus:4,gbps=nan", "out of range"),
        ("torus:4,gbps=1,gbps=2", "has gbps twice"),
        ("torus:4,latencies=1", "Did you mean latency"),
        ("dragonfly:4,2", "as in dragonfly:4,2,2"),
        ("dragonfly:4,2,2,groups=10", "10 groups do not go with 4 x 2 links of a group to others"),
        ("dragonfly:4,2,2,groups=1.5", "1.5 groups do not go with"),
        ("dragonfly-plus:4,2,1,2,groups=4", "4 groups do not go with 1 x 2 links"),
        ("dragonfly-plus:1,1,65536,1,groups=40", "has 2621480 switches"),
    ],
)
def test_spellings_that_are_refused(spelling: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        topology_of(preset=spelling)


def test_numbers_that_do_not_go_with_a_network() -> None:
    with pytest.raises(ParameterError, match="torus:4x4 has 16 ranks, not 17"):
        topology_of(17, preset="torus:4x4")
    with pytest.raises(ParameterError, match=r"says where the ranks are\.\nLeave servers out"):
        topology_of(servers=2, preset="torus:4x4")
    with pytest.raises(ParameterError, match="'a2' is unknown"):
        topology_of(servers=2, preset="a2")


def test_the_commands_know_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    for entry in listed["networks"]:
        assert topology_of(preset=entry["name"]).network is not None
        assert set(entry["options"]) > {"gbps"}
    for entry in listed["clusters"]:
        assert topology_of(preset=entry["name"]).size == sum(entry["servers"])
    assert main(["list"]) == 0
    assert "\n  torus:4x4x4\n      a grid closed to rings" in capsys.readouterr().out
    call = ["run", "all_reduce", "-b", "1K", "-n", "1", "-w", "0", "--topology", "hypercube:2"]
    assert main(call) == 0
    assert "4 ranks: hypercube of 2 dimensions" in capsys.readouterr().out
    assert main([*call[:-1], "torus:4xx"]) == 2
    assert "sizes are not understood" in capsys.readouterr().err


def test_devices_of_a_grid_are_joined_along_rows_and_columns() -> None:
    """Devices 0, 1, 8 and 9 are two rows of two: 0 and 9 meet in the Clos network alone."""
    grid = Topology.placed(PRESETS["ascend950"], [0] * 4, [0, 1, 8, 9])
    source, target = np.array([0, 0, 0]), np.array([1, 2, 3])
    media = ProductNetwork(grid).media(source, target, np.full(3, NEAREST, np.int8))
    assert media.tolist() == [HCCS, HCCS, ROCE]


@pytest.mark.parametrize(
    ("name", "servers"),
    [("ascend950-2x8", (8, 8)), ("ascend950-8+4", (8, 4)), ("ascend950-4x1", (1, 1, 1, 1))],
)
def test_clusters_by_name(name: str, servers: tuple[int, ...]) -> None:
    topology = topology_of(preset=name)
    assert tuple(np.bincount(topology.server)) == servers
    assert topology.product.name == "ascend950"
    with pytest.raises(ParameterError, match="says where the ranks are"):
        topology_of(preset=name, servers=2)
