"""Small networks, and networkx's view of them, for tests."""

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import Cut, Network, Routes, network_of
from tests.simulator.costs import LINKS as COST

GENERATED = (
    *("torus:1", "torus:2", "torus:5", "torus:4x4", "torus:3x1x2", "torus:2x3x4", "torus:1x1x1"),
    *("hypercube:1", "hypercube:4"),
    *("fat-tree:2", "fat-tree:4", "fat-tree:6,oversubscription=3"),
    *("dragonfly:1,1,1", "dragonfly:2,3,1", "dragonfly:4,1,2,groups=3", "dragonfly:3,2,1"),
    *("dragonfly:4,2,1,groups=1", "dragonfly-plus:2,2,2,1", "dragonfly-plus:3,1,2,2,groups=4"),
    *("dragonfly-plus:2,3,2,1,groups=1", "dragonfly-plus:1,3,3,1"),
)


def network(spelling: str) -> Network:
    """Return the network of a spelling."""
    return network_of(topology_of(preset=spelling))


def all_pairs(ranks: int) -> tuple[Any, Any]:
    """Return sources and targets of all pairs of different ranks."""
    source, target = np.divmod(np.arange(ranks * ranks), ranks)
    return source[source != target], target[source != target]


def graph_of(found: Network) -> Any:
    """Return all links that a network says it has."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(found.nodes))
    nodes = range(found.nodes)
    graph.add_edges_from((a, b) for a in nodes for b in nodes if a != b and found.joins(a, b))
    return graph


def paths_of(found: Network, routes: Routes) -> list[list[int]]:
    """Return the nodes of each route, those of its links to themselves once; checks that it is
    one.
    """
    paths = []
    for first, end in pairwise(routes.first):
        one, other = found.ends(routes.link[first:end])
        assert (one[1:] == other[:-1]).all()
        hops = zip(one.tolist(), other.tolist(), strict=True)
        paths.append([int(one[0]), *(b for a, b in hops if a != b)])
    return paths


def used_graph(topology: Topology) -> Any:
    """Return the links that any route uses, with the rates of `COST` as capacities."""
    found = network_of(topology)
    source, target = all_pairs(topology.size)
    is_rdma = topology.link_kinds(source, target) == 1
    links = np.unique(found.routes(source, target, is_rdma).link)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(found.nodes))
    rates = found.rates(links, COST).gbps.tolist()
    for a, b, gbps in zip(*(end.tolist() for end in found.ends(links)), rates, strict=True):
        if a != b:
            graph.add_edge(a, b, capacity=gbps)
    return graph


def assert_sound(topology: Topology) -> dict[str, tuple[float, float]]:
    """Hold all cuts to the maximum flow; return what each says and what it is."""
    found = {}
    for cut in network_of(topology).cuts(COST):
        assert cut.inside.shape == (topology.size,)
        assert cut.inside.dtype == np.bool_
        assert 0 < cut.inside.sum() < topology.size
        found[cut.name] = cut.gbps, flow(topology, cut)
        assert cut.gbps >= found[cut.name][1] - 1e-9, (topology, cut.name, found[cut.name])
    return found


def flow(topology: Topology, cut: Cut) -> float:
    """Return the larger of what routes' links let through out of a cut, and into it."""
    graph = used_graph(topology)
    for node in range(topology.size):
        end = network_of(topology).rank_nodes[node]
        inside = bool(cut.inside[node])
        for one, other in (("inside", int(end)), (int(end), "inside")) if inside else ():
            graph.add_edge(one, other)
        for one, other in () if inside else (("outside", int(end)), (int(end), "outside")):
            graph.add_edge(one, other)
    out = nx.maximum_flow_value(graph, "inside", "outside")
    return float(max(out, nx.maximum_flow_value(graph, "outside", "inside")))
