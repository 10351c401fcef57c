"""Networks from files: routes against networkx, and every way to be refused."""

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hccl_py
from hccl_py.cli import main
from hccl_py.documents.models import checked
from hccl_py.errors import FileError, NotSupportedError
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import Network, network_of, read_network, shortest
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from tests.recording import op_of, recorded
from tests.simulator.costs import LINKS as COST
from tests.topology.networks import all_pairs, assert_sound, graph_of, paths_of

Document = dict[str, Any]

STAR: Document = {
    "ranks": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    "switches": [{"name": "s", "gbps": 40}],
    "links": [
        {"from": "a", "to": "s", "gbps": 25, "latency_us": 1.5},
        {"from": "b", "to": "s", "gbps": 25},
        {"from": "c", "to": "s"},
    ],
}


def built(document: Document) -> Topology:
    return topology_from(checked(NetworkModel, document), "drawn")


def paths(found: Network) -> dict[tuple[int, int], list[int]]:
    source, target = all_pairs(found.ranks)
    routes = found.routes(source, target, np.zeros(len(source), np.bool_))
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    return dict(zip(pairs, paths_of(found, routes), strict=True))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Connected networks: a tree and some links more, a few ways one way only."""
    ranks, switches = draw(st.integers(1, 6)), draw(st.integers(0, 4))
    names = [*map(str, range(ranks)), *(f"s{k}" for k in range(switches))]
    number = st.sampled_from([None, 0.0, 0.1, 0.2, 0.3, 1.0, 2.5])
    tree = {(draw(st.integers(0, k - 1)), k) for k in range(1, len(names))}
    anything = st.tuples(st.integers(0, len(names) - 1), st.integers(0, len(names) - 1))
    more = {tuple(sorted(pair)) for pair in draw(st.lists(anything, max_size=8))}
    links = []
    for one, other in sorted(tree | {pair for pair in more if pair[0] != pair[1]}):
        link: Document = {"from": names[one], "to": names[other]}
        link["latency_us"] = draw(number)
        link["gbps"] = draw(st.sampled_from([None, 1, 3, 10]))
        if (one, other) not in tree and draw(st.booleans()):
            link["duplex"] = False
        links.append({key: value for key, value in link.items() if value is not None})
    return {
        "ranks": draw(st.sampled_from([ranks, [{"name": name} for name in names[:ranks]]])),
        "switches": [{"name": name} for name in names[ranks:]],
        "links": draw(st.permutations(links)),
    }


def drawn_graph(document: Document, found: Network) -> Any:
    """Return networkx's graph; a length is picoseconds, then hops."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(found.nodes))
    for link in document["links"]:
        one, other = found.node(link["from"]), found.node(link["to"])
        length = round(link.get("latency_us", 0) * 1e6) * 1000 + 1
        for pair in ((one, other), (other, one))[: 1 + link.get("duplex", True)]:
            graph.add_edge(*pair, length=length)
    return graph


@settings(max_examples=60)
@given(document=documents())
def test_routes_are_networkx_s_shortest_paths(document: Document) -> None:
    topology = built(document)
    found = network_of(topology)
    graph = drawn_graph(document, found)
    assert set(graph_of(found).edges) == set(graph.edges)
    for (source, target), path in paths(found).items():
        choices = list(nx.all_shortest_paths(graph, source, target, "length"))
        assert path == min(choices, key=lambda nodes: nodes[::-1])


@settings(max_examples=40)
@given(document=documents())
def test_cuts_of_drawn_networks(document: Document) -> None:
    topology = built(document)
    if topology.size > 1:
        ways = network_of(topology).groups(COST)
        assert [way.name for way in ways] == ["rank"]
        assert len(ways[0].gbps) == topology.size
    assert_sound(topology)


@settings(max_examples=50)
@given(document=documents(), data=st.data())
def test_declared_routes_are_taken(document: Document, data: st.DataObject) -> None:
    found = network_of(built(document))
    graph = drawn_graph(document, found)
    before = paths(found)
    assume(before)
    source, target = data.draw(st.sampled_from(sorted(before)))
    path = data.draw(st.sampled_from(sorted(nx.all_simple_paths(graph, source, target))))
    there_and_back = all(graph.has_edge(b, a) for a, b in pairwise(path))
    route = {"path": [found.node_name(node) for node in path], "duplex": there_and_back}
    after = paths(network_of(built({**document, "routes": [route]})))
    told = {(source, target): path} | ({(target, source): path[::-1]} if there_and_back else {})
    assert after == before | told


def test_trees_are_kept_for_some_sources_only(monkeypatch: pytest.MonkeyPatch) -> None:
    links = [{"from": k, "to": (k + 1) % 12} for k in range(12)]
    document = {"ranks": 12, "links": links}
    wanted = paths(network_of(built(document)))
    monkeypatch.setattr(shortest, "KEPT", 3 * 12)
    found = network_of(built(document))
    assert paths(found) == wanted
    pair = np.array([4]), np.array([5]), np.zeros(1, np.bool_)
    for _ in range(2):
        assert paths_of(found, found.routes(*pair)) == [[4, 5]]
    assert paths(found) == wanted


def test_the_compiled_kernel_says_the_same() -> None:
    links = [{"from": k, "to": (k * 7 + 3) % 40, "latency_us": k % 3} for k in range(40)]
    links = [link for link in links if link["from"] != link["to"]]
    chain = [{"from": k, "to": k + 1, "latency_us": 2} for k in range(39)]
    known = {frozenset((link["from"], link["to"])) for link in chain}
    unique = {frozenset((link["from"], link["to"])): link for link in links}
    links = chain + [link for pair, link in unique.items() if pair not in known]
    graph = network_of(built({"ranks": 40, "links": links})).graph  # type: ignore[attr-defined]
    everybody = np.ones(40, np.bool_)
    for source in range(40):
        call = (*graph, source, everybody, 40)
        kernel = shortest._dijkstra
        plain, compiled = kernel.plain(*call), kernel.compiled(*call)
        assert [column.tolist() for column in plain] == [column.tolist() for column in compiled]


def test_rates_and_what_a_switch_lets_through() -> None:
    found = network_of(built(STAR))
    cost = COST.model_copy(update={"hop_us": 0.25, "memory_gbps": 100.0})
    routes = found.routes(np.array([0]), np.array([2]), np.zeros(1, np.bool_))
    assert routes.link.tolist() == [0 * 4 + 3, 3 * 4 + 3, 3 * 4 + 2]
    rates = found.rates(routes.link, cost)
    assert rates.gbps.tolist() == [25, 40, 1]
    assert rates.latency_us.tolist() == [1.5, 0, 0.25]
    assert found.rates(np.array([5]), cost).gbps.tolist() == [100]
    assert found.joins(0, 3) and not found.joins(0, 1)  # noqa: PT018
    free = cost.model_copy(update={"hccs": cost.hccs.model_copy(update={"gbps": None})})
    assert found.rates(routes.link, free).gbps.tolist() == [25, 40, np.inf]


def test_names_in_a_subset() -> None:
    part = network_of(built(STAR).subset([2, 0]))
    assert [part.node(name) for name in ("c", "a", "0", "1", "b", "s")] == [2, 0, 2, 0, 1, 3]
    assert [part.node_name(node) for node in range(4)] == ["a", "b", "c", "s"]


def test_servers_without_a_product_are_joined_by_sdma() -> None:
    ranks = [{"name": name, "server": number // 2} for number, name in enumerate("abcd")]
    links = [{"from": "abcd"[k], "to": "abcd"[(k + 1) % 4]} for k in range(4)]
    topology = built({"name": "square", "ranks": ranks, "links": links})
    assert topology.servers == (2, 2)
    assert not topology.has_rdma
    number, index, size = topology.plane("level1")
    assert (number.tolist(), index.tolist()) == ([0, 1, 0, 1], [0, 0, 1, 1])
    assert size.tolist() == [2, 2, 2, 2]
    assert topology.description == "square, network, 2 servers x 2 devices"
    program = recorded("AllReduceComm", op_of("all_reduce"), topology)
    assert not program.transports.is_rdma.any()


def test_servers_of_a_product() -> None:
    ranks = [{"name": name, "server": ord(name[0])} for name in ("a0", "a1", "b0", "b1")]
    links = [{"from": "a0", "to": "a1", "gbps": 8}, {"from": "b1", "to": "b0", "gbps": 8}]
    links += [{"from": rank["name"], "to": "roce", "gbps": 2} for rank in ranks]
    document = {
        "name": "two servers",
        "product": "atlas-800t-a2",
        "ranks": ranks,
        "switches": [{"name": "roce"}],
        "links": links,
    }
    topology = built(document)
    assert (topology.servers, topology.has_rdma, topology.level0) == ((2, 2), True, "mesh")
    assert topology.description == "two servers, Atlas 800T A2, 2 servers x 2 devices"
    cuts = {cut.name: cut.gbps for cut in network_of(topology).cuts(COST)}
    assert cuts == {"rank 0": 10, f"server {ord('a')}": 4}
    assert_sound(topology)
    program = recorded("AllReduceComm", op_of("all_reduce"), topology)
    assert hccl_py.simulate(program, topology, COST).end_us.max() > 0


def test_a_switch_inside_a_server_is_on_its_side_of_the_cut() -> None:
    ranks = [{"name": str(k), "server": k // 2, "device": 1 - k % 2} for k in range(4)]
    links = [{"from": str(k), "to": f"pcie{k // 2}", "gbps": 10} for k in range(4)]
    links.append({"from": "pcie0", "to": "pcie1", "gbps": 3})
    switches = [{"name": "pcie0"}, {"name": "pcie1"}]
    product = {"product": "300i-duo", "ranks": ranks, "switches": switches, "links": links}
    topology = built(product)
    assert topology.device_id.tolist() == [1, 0, 1, 0]
    assert {cut.name: cut.gbps for cut in network_of(topology).cuts(COST)} == {
        "rank 0": 10,
        "server 0": 3,
    }


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    as_json, as_yaml = tmp_path / "star.json", tmp_path / "star.YML"
    as_json.write_text(json.dumps(STAR))
    as_yaml.write_text(yaml.safe_dump(STAR))
    one, other = topology_of(preset=str(as_json)), topology_of(preset=str(as_yaml))
    assert paths(network_of(one)) == paths(network_of(other))
    assert (one.description, other.description) == ("star.json", "star.YML")
    assert topology_of(2, preset=str(as_json)).size == 2
    assert built({**STAR, "name": "a star"}).description == "a star"


def test_yaml_needs_pyyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "star.yaml").write_text("ranks: 1")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(NotSupportedError, match=r"Install hccl-py\[yaml\]"):
        read_network(tmp_path / "star.yaml")


A, B, S = {"name": "a"}, {"name": "b"}, {"name": "s"}
AB = {"from": "a", "to": "b"}
TWO: Document = {"ranks": [A, B], "links": [AB]}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "ranks: expected a value, found nothing"),
        ({"ranks": []}, "ranks: expected at least one rank, found none"),
        ({"ranks": 0}, "ranks: expected 1 to 65536 ranks, found 0"),
        ({"ranks": 65537}, "expected 1 to 65536 ranks, found 65537"),
        ({"ranks": True}, "ranks: expected a list, found true"),
        (
            {"ranks": [{"name": f"r{k}"} for k in range(65537)]},
            "expected at most 65536, found 65537",
        ),
        ({"ranks": "4"}, "ranks: expected a list"),
        ({"ranks": ["a"]}, r"ranks\[0\]: expected an object, found \"a\""),
        ({"ranks": [{}]}, r"ranks\[0\].name: expected a value, found nothing"),
        ({"ranks": [{"name": ""}]}, "expected a name of 1 to 64 characters"),
        ({"ranks": [{"name": "-a"}]}, "expected a name of 1 to 64 characters"),
        ({"ranks": [{"name": "a" * 65}]}, "expected a name of 1 to 64 characters"),
        ({"ranks": [{"name": "a b"}]}, "A name begins and ends with"),
        ({"ranks": [{"name": None}]}, "expected a name"),
        ({"ranks": [A, A]}, r'ranks\[1\].name: expected a name of its own, found "a" twice'),
        ({**TWO, "switches": [A]}, r'switches\[0\].name: expected a name of its own, found "a" t'),
        ({"ranks": [{"name": "1"}]}, 'expected another name, found "1".\nA number as a name'),
        ({**TWO, "switches": [{"name": "7"}]}, "expected another name"),
        ({**TWO, "node": []}, "node: expected a key of the format"),
        ({**TWO, "name": ""}, "name: expected a name"),
        ({**TWO, "links": [{**AB, "gbp": 1}]}, r"links\[0\].gbp: expected a key.*\n.*mean gbps"),
        ({**TWO, "links": [{"from": "a"}]}, r"links\[0\].to: expected a value.*\n.*: from, to"),
        ({**TWO, "links": [{"from": "a", "source": "b"}]}, r"links\[0\]"),
        ({**TWO, "links": {}}, "links: expected a list"),
        ({**TWO, "links": [{**AB, "gbps": 0}]}, r"links\[0\].gbps: expected GB/s from 1e-06 to 1e"),
        ({**TWO, "links": [{**AB, "gbps": -5}]}, "expected GB/s from 1e-06 to 1e.06, found -5"),
        ({**TWO, "links": [{**AB, "gbps": float("nan")}]}, "expected GB/s"),
        ({**TWO, "links": [{**AB, "gbps": float("inf")}]}, "expected GB/s"),
        ({**TWO, "links": [{**AB, "gbps": 10**400}]}, "expected GB/s"),
        ({**TWO, "links": [{**AB, "gbps": "25"}]}, 'expected GB/s from .*, found "25"'),
        ({**TWO, "links": [{**AB, "gbps": True}]}, "expected GB/s from .*, found true"),
        ({**TWO, "links": [{**AB, "latency_us": -1}]}, "expected microseconds from 0"),
        ({**TWO, "links": [{**AB, "duplex": 1}]}, "expected true or false"),
        (
            {**TWO, "links": [{"from": "a", "to": "c"}]},
            r"links\[0\].to: expected a rank or a switch",
        ),
        ({**TWO, "links": [{"from": "a", "to": "a"}]}, r'expected two nodes, found "a" twice'),
        ({**TWO, "links": [AB, AB]}, r"links\[1\]: expected another link, found the link that lin"),
        ({**TWO, "links": [AB, {"from": "b", "to": "a"}]}, r"the link that links\[0\] is"),
        ({**TWO, "links": []}, 'expected a way between any two nodes, found none from "a" to "b"'),
        ({**TWO, "links": [{**AB, "duplex": False}]}, 'found none from "b" to "a"'),
        ({**TWO, "switches": [S]}, 'found none from "a" to "s"'),
        ({**TWO, "switches": [{"name": "s", "gbps": 0}]}, r"switches\[0\].gbps: expected GB/s"),
        ({**TWO, "routes": [{"path": []}]}, r"routes\[0\].path: expected a path from one rank"),
        ({**TWO, "routes": [{"path": ["a"]}]}, "expected a path from one rank to another, found a"),
        (
            {**TWO, "routes": [{"path": ["a", "x"]}]},
            r"routes\[0\].path\[1\]: expected a rank or a s",
        ),
        ({**TWO, "routes": [{"path": ["a", "b", "a"]}]}, 'expected every node once, found "a" twi'),
        ({**TWO, "routes": [{"path": ["a", "b"]}] * 2}, "expected one route for two ranks"),
        (
            {**STAR, "routes": [{"path": ["a", "b"]}]},
            'expected a link for every hop, found none from "a" to "b"',
        ),
        ({**STAR, "routes": [{"path": ["a", "s"]}]}, "expected a path from one rank to another"),
        (
            {
                "ranks": 3,
                "links": [{"from": k, "to": (k + 1) % 3, "duplex": False} for k in range(3)],
                "routes": [{"path": [0, 1]}],
            },
            'found none from "1" to "0".\nAdd the link, or write duplex: false',
        ),
        (
            {**TWO, "ranks": [{**A, "server": 0}, B]},
            r"ranks\[1\].server: expected a number, found nothing.*\n.*or where one rank does",
        ),
        ({"ranks": 1, "product": "atlas-800t"}, "product: expected a product, .*\n.*atlas-800t-a2"),
        ({"ranks": 1, "product": "mesh"}, r"ranks\[0\].server: expected a number, found nothing"),
        (
            {"ranks": [{**A, "server": 0, "device": 8}], "product": "atlas-800t-a2"},
            r"ranks\[0\]: expected a device from 0 to 7, found 8",
        ),
        (
            {
                **TWO,
                "ranks": [{**A, "server": 0, "device": 1}, {**B, "server": 0}],
                "product": "atlas-800t-a2",
            },
            "ranks: Rank 0 shares its device with another rank",
        ),
        (
            {
                **TWO,
                "ranks": [{**A, "server": 0}, {**B, "server": 1, "superpod": 1}],
                "product": "atlas-800t-a2",
            },
            "has no superpods",
        ),
        ({"ranks": [{**A, "server": -1}], "product": "mesh"}, r"ranks\[0\].server: expected"),
    ],
)
def test_what_makes_no_network(document: Document, words: str) -> None:
    with pytest.raises(FileError, match=words):
        built(document)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("n.json", b"", "line 1 column 1: the text is not JSON"),
        ("n.json", b'{"ranks": [{"name": "a"}', "the text is not JSON"),
        ("n.json", b"\x80\x04\x95\x00\xff", "expected UTF-8 text, found the byte 0x80"),
        ("n.json", b"[" * 100_000, "expected at most 8 levels of brackets"),
        ("n.json", b"[1]", "expected an object, found a list of 1"),
        ("n.json", b'{"ranks": 1, "ranks": 2}', "expected the key .ranks. once"),
        ("n.json", b'{"ranks": 1, "links": NaN}', "links: expected a value that JSON has"),
        ("n.yaml", b"", "expected an object, found null"),
        ("n.yaml", b"ranks: [", "line . column .: the text is not YAML"),
        ("n.yaml", b"\x80\x04\x95\x00\xff", "expected UTF-8 text, found the byte 0x80"),
        ("n.yaml", b"[" * 1_000, "expected at most 100 levels of nesting"),
        ("n.yaml", b"ranks: 1\nranks: 2", "line 2: expected the key .ranks. once, found it twice"),
        ("n.yaml", b"ranks: 1\n2: 3", "line 2: expected a string as the key, found 2"),
        ("n.yaml", b"ranks: 2020-01-01", "ranks: expected a list, found .2020-01-01."),
        (
            "n.yaml",
            b"ranks: !!python/object/apply:os.getpid []",
            "line 1: expected a value without a tag",
        ),
        ("n.yaml", b"ranks: !!int x", "line 1: expected a value without a tag"),
        ("n.yaml", b"? {a: 1}\n: 2", "expected a string as the key, found an object of 1 keys"),
        ("n.yaml", b"ranks: *a", "line 1: expected an alias of a value before it, found nothing"),
        (
            "n.yaml",
            b"&a ranks: &b [*b]",
            "line 1: expected an alias of a value before it, found itself",
        ),
    ],
)
def test_files_that_are_no_network(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FileError, match=words) as error:
        read_network(tmp_path / name)
    assert error.value.message.startswith(f"{tmp_path / name}: ")
    assert error.value.message.count("\n") == 0


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(10_000_000_000)  # a hole: takes no space
    with pytest.raises(FileError, match="at most 100,000,000 bytes, found 10,000,000,000"):
        topology_of(preset=str(huge))
    huge.rename(tmp_path / "huge.yaml")
    with pytest.raises(FileError, match="at most 4,000,000 bytes, found 10,000,000,000"):
        topology_of(preset=str(tmp_path / "huge.yaml"))
    with pytest.raises(FileError, match="cannot be read: it is a folder"):
        topology_of(preset=str(tmp_path))
    with pytest.raises(FileError, match="cannot be read: No such file or directory"):
        topology_of(preset="nowhere.json")
    assert main(["run", "all_reduce", "--topology", "nowhere.json"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: nowhere.json: the file cannot be read")
    assert "Traceback" not in error
