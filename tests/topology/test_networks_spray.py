"""Data that is spread over several routes: which links carry how much of it."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from hccl_py.cli import main
from hccl_py.documents.models import checked
from hccl_py.errors import FileError, ParameterError
from hccl_py.program import kernels
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import Network, network_of, spray
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from tests.simulator.costs import LINKS as COST
from tests.topology.networks import GENERATED, all_pairs, graph_of, network
from tests.topology.test_networks_files import documents, drawn_graph

Document = dict[str, Any]
Shares = dict[tuple[int, int], float]

HOPS = COST.model_copy(update={"hop_us": 0.25})


def built(document: Document) -> Topology:
    return topology_from(checked(NetworkModel, document), "drawn")


def shares_of(found: Network, source: Any, target: Any) -> list[Shares]:
    """Return the links of each pair by their ends, with the share of the data that each carries."""
    routes = found.routes(source, target, np.zeros(len(source), np.bool_))
    one, other = (nodes.tolist() for nodes in found.ends(routes.link))
    share = (routes.shares * np.ones(len(routes.link))).tolist()
    listed = []
    for first, end in pairwise(routes.first.tolist()):
        links = zip(one[first:end], other[first:end], strict=True)
        here = dict(zip(links, share[first:end], strict=True))
        assert len(here) == end - first, "every link stands once"
        listed.append(here)
    return listed


def between(found: Network, source: int, target: int) -> dict[str, float]:
    """Return the shares of one pair by the names of links."""
    links = shares_of(found, np.array([source]), np.array([target]))[0].items()
    return {f"{found.node_name(a)} {found.node_name(b)}": share for (a, b), share in links}


def listed_shares(graph: Any, source: int, target: int, weight: str | None = None) -> Shares:
    """Return what networkx's list of all shortest paths says, each with an equal share."""
    paths = list(nx.all_shortest_paths(graph, source, target, weight))
    used = Counter(link for path in paths for link in pairwise(path))
    return {link: count / len(paths) for link, count in used.items()}


def test_a_fat_tree_s_cores_share_alike() -> None:
    found = network("fat-tree:4,spray=all")
    assert between(found, 0, 15) == {
        "0 edge0": 1.0,
        **{"edge0 agg0": 0.5, "edge0 agg1": 0.5},
        **{"agg0 core0": 0.25, "agg0 core1": 0.25, "agg1 core2": 0.25, "agg1 core3": 0.25},
        **{"core0 agg6": 0.25, "core1 agg6": 0.25, "core2 agg7": 0.25, "core3 agg7": 0.25},
        **{"agg6 edge7": 0.5, "agg7 edge7": 0.5},
        "edge7 15": 1.0,
    }
    assert between(found, 0, 2) == {
        **{"0 edge0": 1.0, "edge0 agg0": 0.5, "edge0 agg1": 0.5},
        **{"agg0 edge1": 0.5, "agg1 edge1": 0.5, "edge1 2": 1.0},
    }
    assert between(found, 0, 1) == {"0 edge0": 1.0, "edge0 1": 1.0}
    links = list(between(found, 0, 15))
    assert (links[0], links[-1]) == ("0 edge0", "edge7 15")  # from the source on


def test_both_ways_round_a_torus_and_both_orders() -> None:
    found = network("torus:4x3,spray=all")
    assert between(found, 0, 1) == {"0 1": 1.0}
    assert between(found, 0, 5) == {"0 1": 0.5, "1 5": 0.5, "0 4": 0.5, "4 5": 0.5}
    assert between(found, 0, 2) == {"0 1": 0.5, "1 2": 0.5, "0 3": 0.5, "3 2": 0.5}


@pytest.mark.parametrize("spelling", GENERATED)
def test_shares_are_those_of_all_paths_with_the_fewest_links(spelling: str) -> None:
    found, plain = (network(name) for name in (spelling + ",spray=all", spelling))
    assert found.name == f"{plain.name}, sprayed"
    graph = graph_of(plain)
    assert set(graph_of(found).edges) == set(graph.edges)
    source, target = all_pairs(found.ranks)
    some = np.random.default_rng(3).permutation(len(source))[:60]
    pairs = zip(source[some].tolist(), target[some].tolist(), strict=True)
    for mine, pair in zip(shares_of(found, source[some], target[some]), pairs, strict=True):
        assert mine == pytest.approx(listed_shares(graph, *pair), rel=1e-12)
    ways = zip(found.groups(COST), plain.groups(COST), strict=True)
    assert all((one.of == other.of).all() for one, other in ways)


@pytest.mark.parametrize("compiled", [False, True])
@settings(max_examples=40, deadline=None)
@given(document=documents())
def test_files_that_spray(document: Document, compiled: bool) -> None:
    found = network_of(built({**document, "spray": "all"}))
    graph = drawn_graph(document, found)
    source, target = all_pairs(found.ranks)
    with pytest.MonkeyPatch.context() as patch:
        if compiled:
            patch.setattr(kernels, "WORTH_COMPILING", 0)
        mine = shares_of(found, source, target)
        late = found.latency_us(source, target, np.zeros(len(source), np.bool_), HOPS)
    for k, (a, b) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        assert mine[k] == pytest.approx(split_shares(found, graph, a, b), rel=1e-9)
        assert late[k] == pytest.approx(longest(found, graph, a, b))


def split_shares(found: Network, graph: Any, source: int, target: int) -> Shares:
    """Return what every node sends over each of its links, path by path: as the rates of links say
    where all of its links state one, times the paths behind them.
    """
    paths = [tuple(path) for path in nx.all_shortest_paths(graph, source, target, "length")]
    behind: dict[int, set[tuple[int, ...]]] = {}
    for path in paths:
        for place, node in enumerate(path):
            behind.setdefault(node, set()).add(path[place:])
    free = COST.model_copy(update={"hccs": COST.hccs.model_copy(update={"gbps": None})})

    def weight(one: int, other: int) -> float:
        out = [found.number(np.array([one]), np.array([next_])) for next_ in graph[one]]
        rates = [float(found.rates(link, free).gbps[0]) for link in out]
        mine = rates[list(graph[one]).index(other)]
        return len(behind[other]) * (1.0 if np.isinf(rates).any() else mine)

    shares: Shares = {}
    for path in paths:
        sent = 1.0
        for one, other in pairwise(path):
            ways = {way[1] for way in behind[one]}
            sent *= weight(one, other) / sum(weight(one, way) for way in ways)
        for link in pairwise(path):
            shares[link] = shares.get(link, 0.0) + sent
    return shares


def test_faster_links_take_more_of_the_data() -> None:
    """Two planes of 30 and 10 GB/s, and a third one whose rate the file does not state."""

    def planes(*rates: float | None) -> Network:
        names = [f"plane{k}" for k in range(len(rates))]
        links = [
            {"from": end, "to": name} | ({} if gbps is None else {"gbps": gbps})
            for name, gbps in zip(names, rates, strict=True)
            for end in ("a", "b")
        ]
        ranks, switches = ({"name": "a"}, {"name": "b"}), [{"name": name} for name in names]
        document = {"ranks": list(ranks), "switches": switches, "links": links, "spray": "all"}
        return network_of(built(document))

    assert between(planes(30, 10), 0, 1) == {
        **{"a plane0": 0.75, "a plane1": 0.25, "plane0 b": 0.75, "plane1 b": 0.25}
    }
    shares = between(planes(30, None), 0, 1)
    assert set(shares.values()) == {0.5}


def test_a_trunk_counts_as_its_links_at_the_switch_before_it() -> None:
    """Leaf 0 has two cables to one spine and one to the other: 2/3 and 1/3 of the data go there,
    however many cables the spines have to leaf 1.
    """
    spines = [("leaf0", "s0", 200), ("leaf0", "s1", 100), ("s0", "leaf1", 200), ("s1", "leaf1", 50)]
    links = [{"from": a, "to": b, "gbps": gbps} for a, b, gbps in spines]
    links += [{"from": str(rank), "to": f"leaf{rank}", "gbps": 300} for rank in range(2)]
    switches = [{"name": name} for name in ("leaf0", "leaf1", "s0", "s1")]
    found = network_of(built({"ranks": 2, "switches": switches, "links": links, "spray": "all"}))
    assert between(found, 0, 1) == pytest.approx(
        {
            **{"0 leaf0": 1.0, "leaf0 s0": 2 / 3, "leaf0 s1": 1 / 3},
            **{"s0 leaf1": 2 / 3, "s1 leaf1": 1 / 3, "leaf1 1": 1.0},
        }
    )


def longest(found: Network, graph: Any, source: int, target: int) -> float:
    """Return the latency of the longest of the shortest paths: links without one have the cost
    model's, which does not choose paths.
    """
    return max(
        sum(latency_of(found, *link) for link in pairwise(path))
        for path in nx.all_shortest_paths(graph, source, target, "length")
    )


def latency_of(found: Network, one: int, other: int) -> float:
    link = found.number(np.array([one]), np.array([other]))
    return float(found.rates(link, HOPS).latency_us[0])


SPINES: Document = {
    "ranks": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    "switches": [{"name": "x", "gbps": 3}, {"name": "y"}, {"name": "z"}],
    "links": [
        {"from": "a", "to": "x", "gbps": 10, "latency_us": 1},
        {"from": "x", "to": "b", "gbps": 10, "latency_us": 1},
        {"from": "a", "to": "y", "gbps": 4, "latency_us": 2},
        {"from": "y", "to": "z", "gbps": 4, "latency_us": 2},
        {"from": "z", "to": "b", "gbps": 4, "latency_us": 2},
        {"from": "c", "to": "b", "gbps": 20},
    ],
    "ports": [{"name": "nic", "of": "a", "to": ["x", "y"], "gbps": 8}],
}
SHARED = [
    {"path": ["a", "x", "b"], "share": 0.25},
    {"path": ["a", "y", "z", "b"], "share": 0.75},
]


def test_declared_shares_of_a_pair_both_ways() -> None:
    found = network_of(built({**SPINES, "routes": SHARED}))
    there = {
        **{"a nic": 1.0, "a x": 0.25, "x x": 0.25, "x b": 0.25},
        **{"a y": 0.75, "y z": 0.75, "z b": 0.75},
    }
    assert between(found, 0, 1) == there
    assert between(found, 1, 0) == {
        **{"b x": 0.25, "x x": 0.25, "x a": 0.25, "b z": 0.75, "z y": 0.75, "y a": 0.75},
        "nic a": 1.0,
    }
    assert between(found, 2, 1) == {"c b": 1.0}  # the others take their one route
    assert between(found, 2, 0) == {"c b": 1.0, "b x": 1.0, "x x": 1.0, "x a": 1.0, "nic a": 1.0}
    pairs = np.array([0, 2, 1]), np.array([1, 1, 0])
    assert found.latency_us(*pairs, np.zeros(3, bool), HOPS).tolist() == [6, 0.25, 6]
    one_way = [{**route, "duplex": False} for route in SHARED]
    found = network_of(built({**SPINES, "routes": one_way}))
    assert between(found, 0, 1) == there
    assert between(found, 1, 0) == {"b x": 1.0, "x x": 1.0, "x a": 1.0, "nic a": 1.0}


def test_shares_with_few_digits_and_routes_that_meet() -> None:
    """Three routes over two switches: what two of them have in common carries both."""
    names = [{"name": name} for name in "abcd"]
    links = [{"from": a, "to": b} for a, b in ("ab", "ac", "bd", "cd", "bc")]
    thirds = [{"path": list(path), "share": 0.333} for path in ("abd", "acd", "abcd")]
    found = network_of(built({"ranks": names, "links": links, "routes": thirds}))
    third = pytest.approx(1 / 3, rel=1e-12)
    two = pytest.approx(2 / 3, rel=1e-12)
    assert between(found, 0, 3) == {
        "a b": two,
        "a c": third,
        "b c": third,
        "b d": third,
        "c d": two,
    }


def test_declared_routes_and_spraying_go_together() -> None:
    square = {
        "ranks": 4,
        "links": [{"from": a, "to": b} for a, b in ((0, 1), (1, 2), (2, 3), (3, 0))],
        "routes": [{"path": [1, 0, 3]}],
    }
    assert between(network_of(built(square)), 0, 2) == {"0 1": 1.0, "1 2": 1.0}
    found = network_of(built({**square, "spray": "all"}))
    assert between(found, 0, 2) == {"0 1": 0.5, "1 2": 0.5, "0 3": 0.5, "3 2": 0.5}
    assert between(found, 1, 3) == {"1 0": 1.0, "0 3": 1.0}
    pairs = np.array([1, 0]), np.array([3, 2]), np.zeros(2, bool)
    routes = found.routes(*pairs)
    assert routes.first.tolist() == [0, 2, 6]


def test_a_declared_share_of_one_is_the_one_route() -> None:
    routes = [{"path": ["a", "y", "z", "b"], "share": 1}]
    one = network_of(built({**SPINES, "routes": routes}))
    other = network_of(built({**SPINES, "routes": [{"path": ["a", "y", "z", "b"]}]}))
    assert between(one, 0, 1) == between(other, 0, 1)
    pair = np.array([0]), np.array([1]), np.zeros(1, bool)
    assert one.routes(*pair).share is None


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (
            {"routes": [SHARED[0], {**SHARED[1], "share": 0.7}]},
            r'routes\[1\].share: expected shares from "a" to "b" that sum to 1, found 0.95',
        ),
        ({"routes": SHARED[:1]}, r"routes\[0\].share: expected shares .* sum to 1, found 0.25"),
        (
            {"routes": [SHARED[0], {**SHARED[1], "duplex": False}]},
            r'expected shares from "b" to "a" that sum to 1, found 0.25',
        ),
        (
            {"routes": [SHARED[0], {"path": SHARED[1]["path"]}]},
            r"routes\[1\].path: expected one route for two ranks.*\n.*or give each a share",
        ),
        (
            {"routes": [{"path": SHARED[0]["path"]}, SHARED[1]]},
            r"routes\[1\].path: expected one route for two ranks, found a second one",
        ),
        (
            {"routes": [SHARED[0], {**SHARED[0], "share": 0.75}]},
            r"routes\[1\].path: expected a path of its own, found the same one twice",
        ),
        ({"routes": [{**SHARED[0], "share": 0}]}, r"\[0\].share: expected a share from 1e-06 to 1"),
        (
            {"routes": [{**SHARED[0], "share": 1.5}]},
            r"expected a share from .*, found 1.5.\nRoutes",
        ),
        ({"routes": [{**SHARED[0], "share": "half"}]}, 'expected a share from .*, found "half"'),
        ({"routes": [{**SHARED[0], "share": float("nan")}]}, "expected a share from"),
        ({"spray": "some"}, "spray: expected 'all', found \"some\""),
        ({"spray": True}, "spray: expected 'all', found true"),
    ],
)
def test_what_makes_no_shares(over: Document, words: str) -> None:
    with pytest.raises(FileError, match=words):
        built({**SPINES, **over})


def test_spellings_that_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ParameterError, match="spray=some is not understood") as error:
        topology_of(preset="fat-tree:4,spray=some")
    assert error.value.hint == "Write spray=all."
    with pytest.raises(ParameterError, match="has spray twice"):
        topology_of(preset="torus:4x4,spray=all,spray=all")
    with pytest.raises(ParameterError, match="no option 'spry'") as error:
        topology_of(preset="torus:4x4,spry=all")
    assert error.value.hint == "Did you mean spray?"
    assert main(["simulate", "all_gather", "--topology", "fat-tree:4,spray=2"]) == 2
    assert capsys.readouterr().err.startswith("error: Topology 'fat-tree:4,spray=2': spray=2 is")


def test_pairs_of_too_many_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opposite corners of a torus of 4 x 4 have 4 quadrants with 6 paths each."""
    monkeypatch.setattr(spray, "MOST_PATHS", 23)
    found = network("torus:4x4,spray=all")
    assert len(between(found, 0, 1)) == 1
    with pytest.raises(ParameterError, match="from rank 0 to rank 10 there are 24 shortest paths"):
        between(found, 0, 10)
    monkeypatch.setattr(spray, "MOST_PATHS", 24)
    assert between(found, 0, 10)["0 1"] == 0.25
    monkeypatch.undo()
    with pytest.raises(ParameterError, match=r"torus 32 x 32, sprayed: .* are 1470942 ") as e:
        between(network("torus:32x32,spray=all"), 0, 272)
    assert "at most 1048576" in e.value.hint


def test_little_room_and_few_distances_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = all_pairs(16)
    wanted = shares_of(network("torus:4x4,spray=all"), *pairs)
    monkeypatch.setattr(spray, "_ROOM", 1)
    monkeypatch.setattr(spray, "KEPT", 20)
    found = network("torus:4x4,spray=all")
    assert shares_of(found, *pairs) == wanted
    order = np.random.default_rng(1).permutation(len(pairs[0]))
    again = shares_of(found, *(ends[order] for ends in pairs))
    assert again == [wanted[k] for k in order]


def test_links_into_a_large_switch_count_as_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A route of two links is found by going over all that lead to the switch between them, which
    is too much for plain Python where there are many of both.
    """
    steps: list[int] = []

    def sized(count: int) -> Any:
        steps.append(count)
        return spray._spread.plain

    monkeypatch.setattr(spray._spread, "sized", sized)
    links = [{"from": rank, "to": "s"} for rank in range(100)]
    model = {"ranks": 100, "switches": [{"name": "s"}], "links": links, "spray": "all"}
    found = network_of(built(model))
    routes = found.routes(np.arange(3), np.arange(1, 4), np.zeros(3, np.bool_))
    assert routes.first.tolist() == [0, 2, 4, 6]
    assert len(steps) == 3
    assert min(steps) >= 100


def test_a_part_of_a_network_is_sprayed_over_the_whole() -> None:
    part = network_of(topology_of(preset="fat-tree:4,spray=all").subset([0, 15]))
    assert len(between(part, 0, 1)) == 14
    ends = np.array([0]), np.array([1]), np.zeros(1, bool)
    assert part.latency_us(*ends, HOPS).tolist() == [6 * 0.25]


def test_the_command_refuses_shares_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "drawn.json"
    file.write_text(json.dumps({**SPINES, "routes": SHARED[:1]}))
    assert main(["simulate", "all_gather", "--topology", str(file)]) == 2
    assert capsys.readouterr().err == (
        f'error: {file}: routes[0].share: expected shares from "a" to "b" that sum to 1, found '
        "0.25.\nhint: All data takes one of the routes; routes go both ways unless duplex is "
        "false.\n"
    )
