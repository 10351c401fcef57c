"""Ports that several links of a node share: routes, rates, cuts, and what makes no port."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.cli import main
from hccl_py.documents.models import checked
from hccl_py.errors import FileError, ParameterError
from hccl_py.simulator import CostModel, LinkCost, SharedPort
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import Network, network_of
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from tests.simulator.costs import LINKS as COST

Document = dict[str, Any]

TRIANGLE: Document = {
    "ranks": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    "links": [
        {"from": "a", "to": "b", "gbps": 25},
        {"from": "b", "to": "c", "gbps": 25},
        {"from": "c", "to": "a", "gbps": 25},
    ],
}
DIE = {"name": "die", "of": "a", "gbps": 30}
NIC = {"name": "nic", "of": "b", "to": ["c"], "gbps": 5}


def built(document: Document) -> Topology:
    return topology_from(checked(NetworkModel, document), "drawn")


def hops(found: Network, source: int, target: int, port: int = 0) -> list[str]:
    """Return the links of a route by the names of their ends."""
    ports = np.array([port], np.int8)
    routes = found.routes(np.array([source]), np.array([target]), ports)
    ends = zip(*(nodes.tolist() for nodes in found.ends(routes.link)), strict=True)
    return [f"{found.node_name(a)} {found.node_name(b)}" for a, b in ends]


def test_a_port_is_a_link_before_those_out_of_it_and_behind_those_into_it() -> None:
    found = network_of(built({**TRIANGLE, "ports": [DIE, NIC]}))
    assert hops(found, 0, 1) == ["a die", "a b"]
    assert hops(found, 1, 0) == ["b a", "die a"]
    assert hops(found, 1, 2) == ["b nic", "b c"]
    assert hops(found, 2, 1) == ["c b", "nic b"]
    assert hops(found, 2, 0) == ["c a", "die a"]
    rates = found.rates(found.routes(np.array([1]), np.array([2]), np.zeros(1, bool)).link, COST)
    assert (rates.gbps.tolist(), rates.latency_us.tolist()) == ([5, 25], [0, 0])


def test_ports_in_ports_and_ways_through() -> None:
    line = {
        "ranks": 3,
        "switches": [{"name": "s", "gbps": 40}],
        "links": [
            {"from": 0, "to": "s"},
            {"from": "s", "to": 1, "duplex": False},
            {"from": 1, "to": 2},
            {"from": 2, "to": "s", "duplex": False},
        ],
        "ports": [
            {"name": "nic", "of": 1, "to": [2], "gbps": 9},
            {"name": "die", "of": 1, "gbps": 12},
            {"name": "s-down", "of": "s", "to": [1], "gbps": 20},
        ],
    }
    found = network_of(built(line))
    assert hops(found, 0, 2) == ["0 s", "s s", "s s-down", "s 1", "die 1", "1 nic", "1 die", "1 2"]
    assert hops(found, 2, 0) == ["2 s", "s s", "s 0"]
    assert found.joins(1, found.node("nic"))
    assert found.joins(found.node("die"), 1)
    assert not found.joins(0, found.node("nic"))
    assert found.node_name(found.node("s-down")) == "s-down"
    part = network_of(built(line).subset([2, 0]))
    assert hops(part, 1, 0)[-4:] == ["die (1)", "(1) nic", "(1) die", "(1) 0"]
    with pytest.raises(ParameterError, match="no node 'nix'") as error:
        found.node("nix")
    assert "ranks 0 to 2 and 4 switches and ports, the last of them s-down" in error.value.hint


def test_without_ports_nothing_is_another_link() -> None:
    found = network_of(built(TRIANGLE))
    assert (found.nodes, found.further) == (3, "switches")
    assert hops(found, 0, 1) == ["a b"]


def test_what_a_rank_lets_through() -> None:
    """b has 25 GB/s to a, and 5 of 25 to c: both ways alike."""
    cuts = built({**TRIANGLE, "ports": [DIE, NIC]}).network
    assert cuts is not None
    assert cuts.groups(COST)[0].gbps.tolist() == [30, 30, 30]
    wide = built({**TRIANGLE, "ports": [{**DIE, "gbps": 70}, {**NIC, "gbps": 1}]}).network
    assert wide is not None
    assert wide.groups(COST)[0].gbps.tolist() == [50, 26, 26]


@settings(max_examples=40)
@given(st.data())
def test_cuts_are_never_below_what_ports_let_through(data: st.DataObject) -> None:
    """Of a full mesh, against the sum over each rank's links, no port counted twice."""
    ranks = data.draw(st.integers(2, 5))
    rate = st.sampled_from([1.0, 2.0, 5.0])
    pairs = [(a, b) for a in range(ranks) for b in range(a)]
    links = [{"from": a, "to": b, "gbps": data.draw(rate)} for a, b in pairs]
    rates = {frozenset(pair): link["gbps"] for pair, link in zip(pairs, links, strict=True)}
    ports, free = [], {rank: set(range(ranks)) - {rank} for rank in range(ranks)}
    most = dict.fromkeys(range(ranks), 0.0)
    for rank in range(ranks):
        some = sorted(data.draw(st.sets(st.sampled_from(sorted(free[rank])))))
        if some:
            gbps = data.draw(rate)
            ports.append({"name": f"p{rank}", "of": rank, "to": some, "gbps": gbps})
            most[rank] += min(gbps, sum(rates[frozenset((rank, other))] for other in some))
        most[rank] += sum(rates[frozenset((rank, other))] for other in free[rank] - {*some})
    found = network_of(built({"ranks": ranks, "links": links, "ports": ports}))
    for rank, gbps in enumerate(found.groups(COST)[0].gbps.tolist()):
        assert gbps <= most[rank] + 1e-9  # ports of the others may bind, too
        assert gbps >= _through(found, rank) - 1e-9


def _through(found: Network, rank: int) -> float:
    """Return what goes out of a rank over its routes at best: the slowest link of each, added up
    until a port is full.
    """
    total, used = 0.0, dict[int, float]()
    for peer in range(found.ranks):
        if peer != rank:
            links = found.routes(np.array([rank]), np.array([peer]), np.zeros(1, bool)).link
            gbps = found.rates(links, COST).gbps
            left = [
                g - used.get(k, 0.0) for k, g in zip(links.tolist(), gbps.tolist(), strict=True)
            ]
            rate = max(min(left), 0.0)
            for link in links.tolist():
                used[link] = used.get(link, 0.0) + rate
            total += rate
    return total


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        ([DIE, DIE], r'ports\[1\].name: expected a name of its own, found "die" twice'),
        ([{**DIE, "name": "b"}], r'ports\[0\].name: expected a name of its own, found "b" twice'),
        ([{**DIE, "name": "7"}], r'ports\[0\].name: expected another name, found "7"'),
        ([{**DIE, "of": "d"}], r'ports\[0\].of: expected a rank or a switch, found "d"'),
        ([DIE, {**NIC, "of": "die"}], r'ports\[1\].of: expected a rank or a switch, found "die"'),
        ([{**NIC, "to": ["d"]}], r'ports\[0\].to\[0\]: expected a rank or a switch, found "d"'),
        ([{**NIC, "to": ["b"]}], r'ports\[0\].to\[0\]: expected a link of "b", found "b"'),
        (
            [{**NIC, "to": ["c", "c"]}],
            r'ports\[0\].to\[1\]: expected every node once, found "c" tw',
        ),
        ([{**NIC, "to": []}], r"ports\[0\].to: expected at least one node, found none"),
        ([{**DIE, "to": None}], r"ports\[0\].to: expected a list, found null"),
        ([{"name": "die", "of": "a"}], r"ports\[0\].gbps: expected a value, found nothing"),
        ([{**DIE, "gbps": 0}], r"ports\[0\].gbps: expected GB/s from 1e-06 to 1e.06, found 0"),
        ([{**DIE, "gbps": None}], r"ports\[0\].gbps: expected GB/s .*, found null"),
        ([{**DIE, "links": ["a"]}], r"ports\[0\].links: expected a key of the format"),
        ({}, "ports: expected a list"),
    ],
)
def test_what_makes_no_port(ports: object, words: str) -> None:
    with pytest.raises(FileError, match=words):
        built({**TRIANGLE, "ports": ports})


def test_links_cannot_lead_to_ports() -> None:
    links = [*TRIANGLE["links"], {"from": "a", "to": "nic"}]
    with pytest.raises(FileError, match=r'links\[3\].to: expected a rank or a switch, found "nic"'):
        built({**TRIANGLE, "links": links, "ports": [NIC]})
    routes = [{"path": ["a", "nic", "b"]}]
    with pytest.raises(FileError, match=r"routes\[0\].path\[1\]: expected a rank or a switch"):
        built({**TRIANGLE, "routes": routes, "ports": [NIC]})


def test_ports_of_nodes_that_have_no_links_and_of_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(FileError, match=r'ports\[0\]: expected a node with links, found "0"'):
        built({"ranks": 1, "ports": [{"name": "p", "of": 0, "gbps": 1}]})
    monkeypatch.setattr("hccl_py.topology.networks.build.MOST_LINKS", 3)
    more = [{**DIE, "name": f"die{k}"} for k in range(2)]
    with pytest.raises(FileError, match="ends of links in ports: expected at most 3, found 4"):
        built({**TRIANGLE, "ports": more})
    with pytest.raises(FileError, match="ports: expected at most 3, found 4"):
        built({**TRIANGLE, "ports": more * 2})


def test_the_command_says_what_is_wrong_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "drawn.json"
    file.write_text(json.dumps({**TRIANGLE, "ports": [{**NIC, "to": ["d"]}]}))
    assert main(["simulate", "all_gather", "--topology", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f'error: {file}: ports[0].to[0]: expected a rank or a switch, found "d"')


def product(preset: str, **sizes: int) -> Topology:
    return topology_of(**sizes, preset=preset)


def sharing(preset: str, *ports: SharedPort) -> CostModel:
    """The model of a product with plain links, whose devices have ports."""
    links = {
        "hccs": LinkCost(alpha_us=1, gbps=50 if preset == "ascend950" else 20, ports=7),
        "roce": LinkCost(alpha_us=1, gbps={"ascend950": 400, "300i-duo": 10}.get(preset, 20)),
    }
    return CostModel.of(preset).model_copy(update={**links, "shared_ports": ports})


def test_links_of_a_product_s_device_share_a_port() -> None:
    topology = product("ascend950", servers=2, devices=4)
    die = SharedPort(links=("hccs", "roce"), gbps=150)
    found = network_of(topology, sharing("ascend950", die))
    assert hops(found, 0, 1) == ["0 port0", "0 1", "port0 1"]
    assert hops(found, 0, 5) == ["0 port0", "0 clos", "clos 5", "port0 5"]
    assert found.joins(3, found.node("port0"))
    assert found.joins(0, 1)
    assert not found.joins(found.node("clos"), found.node("port0"))
    plain = network_of(topology)
    assert hops(plain, 0, 5) == ["0 clos", "clos 5"]
    assert plain.nodes == found.nodes - 1


def test_ports_that_share_links_and_the_links_that_no_port_has() -> None:
    topology = product("atlas-900-a3", servers=1, devices=4)
    both = SharedPort(links=("sio", "hccs"), gbps=90), SharedPort(links=("hccs",), gbps=40)
    cost = sharing("atlas-900-a3", *both)
    found = network_of(topology, cost)
    assert hops(found, 0, 1) == ["0 port0", "0 1", "port0 1"]
    assert hops(found, 0, 2) == ["0 port0", "0 port1", "0 hccs0", "hccs0 2", "port0 2", "port1 2"]
    assert hops(found, 0, 1, port=1) == ["0 roce", "roce 1"]
    numbers = found.routes(np.array([0]), np.array([2]), np.zeros(1, bool)).link
    assert found.rates(numbers, cost).gbps.tolist() == [90, 40, 7 * 20, 7 * 20, 90, 40]


@pytest.mark.parametrize(
    ("preset", "ports", "wanted"),
    [
        ("ascend950", [("hccs", "roce", 450.0)], 450),  # of three links of 50, and 400
        ("ascend950", [("hccs", 60.0)], 60 + 400),
        ("ascend950", [("hccs", 60.0), ("roce", 100.0)], 60 + 100),
        ("ascend950", [("hccs", "roce", 450.0), ("roce", 100.0)], 450),  # each counts once
        ("atlas-900-a3", [("sio", "hccs", 100.0)], 100),
        ("300i-duo", [("pcie", 10.0)], 10 + 10),
    ],
)
def test_what_a_device_lets_through(preset: str, ports: list[Any], wanted: float) -> None:
    cost = sharing(preset, *(SharedPort(links=tuple(p[:-1]), gbps=p[-1]) for p in ports))
    topology = product(preset, servers=1 if preset == "atlas-900-a3" else 2, devices=4)
    out = network_of(topology, cost).groups(cost)[0].gbps
    assert out.tolist() == pytest.approx([wanted] * topology.size)
