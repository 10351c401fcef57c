"""What α and β transports have, by product, network and what is slow."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.clocks.links import Links
from hccl_py.errors import LostLinkError, ParameterError
from hccl_py.formats import from_json
from hccl_py.simulator import (
    COSTS,
    CostModel,
    LinkCost,
    Stragglers,
    simulate_batches,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import network_of
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkLinkModel, NetworkModel, NetworkRankModel
from hccl_py.topology.presets import PRESETS
from tests.recording import op_of, recorded
from tests.simulator.costs import LINKS as COST
from tests.simulator.moves import Move, moving

MESH = topology_of(4)
PRODUCTS = [name for name in PRESETS if name not in ("mesh", "ring")]


def alpha_of(topology: Topology, rank: int, peer: int, slow: Stragglers | None = None) -> float:
    """Return α of the transport between two ranks in an all-to-all among all of them."""
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 32), topology)
    transports = program.transports
    classes = Links(topology, COST, slow or Stragglers()).classes(transports)
    end = np.flatnonzero((transports.rank == rank) & (transports.peer == peer))[0]
    return float(classes.alpha_us[classes.of_end[end]])


def test_every_product_has_a_model_with_sources() -> None:
    assert set(PRODUCTS) <= set(COSTS)
    for name in PRODUCTS:
        assert CostModel.of(name).name == name
        assert COSTS[name].sources
        assert "α" in COSTS[name].uncertain
    assert CostModel.of("ring") == COSTS["study"]
    assert CostModel.of("study").name == "study"


def test_rates_of_hccl_s_selection() -> None:
    assert COSTS["selection"].hccs == LinkCost(alpha_us=60, gbps=18.3)
    assert COSTS["selection"].roce.gbps == 20
    assert COSTS["300i-duo"].pcie.gbps == 13.6


def test_sorts_of_links() -> None:
    a3 = topology_of(servers=2, devices=4, superpods=2, preset="atlas-900-a3")
    assert alpha_of(a3, 0, 1) == 2  # the two dies of a package
    assert alpha_of(a3, 1, 2) == 1  # through the switch
    assert alpha_of(a3, 3, 4) == 1  # to the next server of the superpod
    assert alpha_of(a3, 7, 8) == 5  # to the next superpod
    assert alpha_of(topology_of(4, preset="300i-duo"), 0, 1) == 3
    assert alpha_of(topology_of(servers=2, devices=2), 1, 2) == 5


@pytest.mark.parametrize("preset", sorted(PRESETS))
@given(data=st.data())
def test_routes_are_paths_over_links_that_exist(preset: str, data: st.DataObject) -> None:
    devices = data.draw(st.integers(1, min(8, PRESETS[preset].devices_per_server)))
    topology = topology_of(servers=data.draw(st.integers(1, 3)), devices=devices, preset=preset)
    network = network_of(topology)
    pairs = [(a, b) for a in range(topology.size) for b in range(topology.size) if a != b]
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    rdma = topology.link_kinds(source, target) == 1
    routes = network.routes(source, target, rdma)
    for at, (a, b) in enumerate(pairs):
        links = routes.link[routes.first[at] : routes.first[at + 1]]
        one, other = network.ends(links)
        assert (one[0], other[-1]) == (a, b)
        assert (one[1:] == other[:-1]).all()
        assert (network.rates(links, COST).gbps > 0).all()
        if preset != "ring":
            assert all(map(network.joins, one.tolist(), other.tolist()))
        names = [network.node_name(int(node)) for node in {*one.tolist(), *other.tolist()}]
        assert [network.node_name(network.node(name)) for name in names] == names


def test_a_slow_rank_takes_longer_for_all_it_does() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1 << 16), MESH)
    once = simulate_tasks(program, MESH, COST)
    slow = simulate_tasks(program, MESH, COST, Stragglers.parse(["rank=2:3x"]))
    kind, mine = program.tasks.kind, program.tasks.rank == 2
    moves = kind <= 7
    longer = (slow.end_us - slow.start_us) / np.maximum(once.end_us - once.start_us, 1e-12)
    assert longer[moves & mine & (once.end_us > once.start_us)] == pytest.approx(3)
    assert longer[moves & ~mine & (once.end_us > once.start_us)] == pytest.approx(1)


def test_a_slow_link_is_slow_both_ways_and_alone() -> None:
    slow = Stragglers.parse(["link=1-0:10"])
    assert [alpha_of(MESH, *pair, slow) for pair in ((0, 1), (1, 0), (1, 2))] == [10, 10, 1]


def test_a_slow_port_slows_all_that_goes_through_it() -> None:
    servers = topology_of(servers=3, devices=1)
    slow = Stragglers.parse(["link=1-roce:2x"])
    assert [alpha_of(servers, *pair, slow) for pair in ((0, 1), (1, 2), (2, 0))] == [10, 10, 5]


def test_pairs_that_no_link_joins_can_be_slow_too() -> None:
    servers = topology_of(servers=3, devices=1)
    slow = Stragglers.parse(["link=0-1:2x"])
    assert [alpha_of(servers, *pair, slow) for pair in ((0, 1), (1, 0), (1, 2))] == [10, 10, 5]


def test_every_link_may_be_of_a_sort_of_its_own() -> None:
    ranks = 182
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    assert len(pairs) > np.iinfo(np.int16).max
    links = [
        NetworkLinkModel.model_construct(
            source=str(a), target=str(b), latency_us=1 + k / 1e5, duplex=False
        )
        for k, (a, b) in enumerate(pairs)
    ]
    named = [NetworkRankModel(name=str(rank)) for rank in range(ranks)]
    topology = topology_from(NetworkModel(ranks=named, links=links), "apart")
    program = recorded("RunAlltoAllVFullMesh", op_of("all_to_all", ranks), topology)
    found = Links(topology, COST).classes(program.transports)
    assert len(found.alpha_us) == len(pairs)
    place = program.transports.rank * (ranks - 1) + program.transports.peer
    place -= program.transports.peer > program.transports.rank
    assert found.alpha_us[found.of_end] == pytest.approx(2 + place / 1e5, abs=1e-9)


def test_ranks_that_no_link_joins_may_be_named_as_in_the_file() -> None:
    lone = NAMED | {"links": [NAMED["links"][0], {"from": "b", "to": "c", "gbps": 1}]}
    topology = topology_from(NetworkModel.model_validate(lone), "named")
    for text in ("link=a-c:4x", "link=0-2:4x"):
        slow = Stragglers.parse([text])
        assert [alpha_of(topology, *pair, slow) for pair in ((0, 2), (2, 0), (0, 1))] == [4, 4, 1]
    with pytest.raises(ParameterError, match="named has no such link"):
        alpha_of(topology, 0, 1, Stragglers.parse(["link=0-a:2x"]))


@given(
    preset=st.sampled_from([*PRODUCTS, "mesh"]),
    servers=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    texts=st.lists(st.sampled_from(["rank=0:2x", "link=0-1:3x", "rank=1:1.5", "link=0-2:4"])),
    name=st.sampled_from(["AllReduceComm", "AllGatherComm"]),
)
def test_all_walks_agree_on_what_is_slow(
    preset: str, servers: tuple[int, ...], texts: list[str], name: str
) -> None:
    topology = Topology(PRESETS[preset], servers)
    fitting = [t for t in texts if topology.size > 2] if topology.size > 2 else []
    slow = Stragglers.parse(fitting)
    op = op_of("all_reduce" if "Reduce" in name else "all_gather", 3000)
    program = recorded(name, op, topology)
    timeline = simulate_tasks(program, topology, COST, slow)
    for lockstep in (True, False):
        clocks = simulate_batches(program, topology, COST, slow, lockstep=lockstep)
        assert clocks.total_us == timeline.total_us
    assert timeline.total_us >= simulate_tasks(program, topology, COST).total_us


NAMED: dict[str, list[dict[str, object]]] = {
    "ranks": [{"name": name} for name in "abc"],
    "links": [
        {"from": "a", "to": "b", "gbps": 1},
        {"from": "c", "to": "b", "gbps": 1, "duplex": False},
        {"from": "a", "to": "c", "gbps": 1, "duplex": False},
    ],
}


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["link=a-b:2x", "link=0-1:3x"], [6, 6, 6]),
        (["link=b-c:2x"], [1, 1, 2]),
        (["link=b-a:2x", "link=a-c:5x"], [2, 5, 2]),
    ],
)
def test_a_link_may_be_named_in_several_ways(texts: list[str], wanted: list[int]) -> None:
    """Routes are a b, b a c and c b a."""
    topology = topology_from(NetworkModel.model_validate(NAMED), "named")
    slow = Stragglers.parse(texts)
    assert [alpha_of(topology, *pair, slow) for pair in ((0, 1), (1, 2), (2, 0))] == wanted


def test_what_is_read_takes_the_route_of_the_data() -> None:
    """There are 4 GB/s from a to b, 1 back."""
    ways = [("a", "b", 4), ("b", "a", 1)]
    links = [{"from": a, "to": b, "gbps": gbps, "duplex": False} for a, b, gbps in ways]
    drawn = {"ranks": [{"name": "a"}, {"name": "b"}], "links": links}
    topology = topology_from(NetworkModel.model_validate(drawn), "two ways")
    from_b, from_a = Move(0, 1, 8), Move(1, 0, 8)
    to_b, to_a = Move(0, 1, 8, writes=True), Move(1, 0, 8, writes=True)
    for move, wanted in ((from_b, 8), (from_a, 2), (to_b, 2), (to_a, 8)):
        program = moving([move], topology)
        for simulate in (simulate_tasks, simulate_batches, simulate_contended):
            assert simulate(program, topology, COST).total_us == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "rank=4:2x": "--slow rank=4 names no rank.",
        "link=0-9:2x": "has no node '9'",
        "link=hccs-0:2x": "has no node 'hccs'",
        "link=0-hccs0:2x": "has no such link",
        "link=0-hccs0:lost": "0 and one of 1, 2, 3",
    }.items(),
)
def test_what_is_slow_must_exist(text: str, message: str) -> None:
    program = recorded("AllGatherComm", op_of("all_gather"), MESH)
    with pytest.raises(ParameterError) as error:
        simulate_batches(program, MESH, COST, Stragglers.parse([text]))
    assert message in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "3:2x", "rank=3", "rank=-1:2x", "rank=1:0.5x", "rank=1:x", "rank=1:1e999", "rank=x:2x",
     "link=0:2x", "link=0-0:2x", "link=0-1-2:2x", "cable=0-1:2x", "rank=1:nan", "link=-:2x",
     "rank=1:1e7", "rank=1:lost", "link=0-1:lostx"],
)  # fmt: skip
def test_slow_texts_that_mean_nothing(text: str) -> None:
    with pytest.raises(ParameterError, match="--slow") as error:
        Stragglers.parse([text])
    assert "rank=3:2x" in error.value.hint


def test_factors_of_the_same_are_multiplied_up_to_a_million() -> None:
    for name in ("rank=1", "link=0-1"):
        with pytest.raises(ParameterError, match="not from 1 to 1e\\+06"):
            Stragglers.parse([f"{name}:1000x", f"{name}:1001x"])


def test_slow_texts() -> None:
    slow = Stragglers.parse(["rank=3:2x", "rank=3:2", "link=pod--1-0:10x", "link=0-pod--1:1.5x"])
    assert slow == Stragglers(((3, 4.0),), (("0", "pod-1", 15.0),))
    assert not Stragglers.parse([])
    lost = Stragglers.parse(["link=pod--1-0:2x", "link=0-pod--1:lost", "rank=1:2x"])
    assert lost.options() == ["rank=1:2x", "link=0-pod--1:lost"]
    assert Stragglers.parse(lost.options()) == lost
    assert lost.slow == Stragglers(((1, 2.0),))


@pytest.mark.parametrize("simulate", [simulate_tasks, simulate_batches, simulate_contended])
@pytest.mark.parametrize("network", [MESH, topology_of(preset="torus:4x4")], ids=["mesh", "torus"])
def test_a_lost_link_ends_what_goes_over_it_and_nothing_else(
    simulate: Callable[..., Any], network: Topology
) -> None:
    program = moving([Move(0, 1, 8), Move(2, 1, 4, writes=True)], network)
    for text, size in (("link=1-0:lost", 8000), ("link=1-2:lost", 4000)):
        with pytest.raises(LostLinkError, match=f"since {size} bytes go over it") as error:
            simulate(program, network, COST, Stragglers.parse([text]))
        assert error.value.size == size
    free = Stragglers.parse(["link=2-3:lost"])
    alone = simulate(program, network, COST).total_us
    assert simulate(program, network, COST, free).total_us == alone


def test_a_lost_link_counts_what_is_routed_over_it() -> None:
    torus = topology_of(preset="torus:4x4")
    program = moving([Move(0, 2, 8, writes=True), Move(1, 2, 1, writes=True)], torus)
    with pytest.raises(LostLinkError, match="since 9000 bytes go over it"):
        simulate_tasks(program, torus, COST, Stragglers.parse(["link=1-2:lost"]))


def test_what_goes_over_several_lost_links_counts_once() -> None:
    torus = topology_of(preset="torus:4x4")
    program = moving([Move(0, 2, 8, writes=True), Move(1, 2, 1, writes=True)], torus)
    slow = Stragglers.parse([f"link={ends}:lost" for ends in ("0-1", "1-2", "8-9")])
    said = r"^Links 0-1, 1-2 are lost: the call has no end, since 9000 bytes go over them\."
    with pytest.raises(LostLinkError, match=said) as error:
        simulate_tasks(program, torus, COST, slow)
    assert error.value.hint.startswith("`compare --slow link=0-1:lost --slow link=1-2:lost` times")


def test_posts_need_a_link_too() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 0), MESH)
    with pytest.raises(LostLinkError, match=r"since \d+ posts go over it"):
        simulate_tasks(program, MESH, COST, Stragglers.parse(["link=0-1:lost"]))


def test_pairs_that_are_slow_move_their_bytes_slowly_on_networks_too() -> None:
    torus = topology_of(preset="torus:3x3")
    program = recorded("RunAlltoAllVFullMesh", op_of("all_to_all", 9), torus)
    ends = program.transports
    pair = (ends.rank == 0) & (ends.peer == 4)  # two hops apart
    once, slow = (
        Links(torus, COST, Stragglers.parse(texts)).classes(ends) for texts in ([], ["link=0-4:3x"])
    )
    times = slow.beta_us[slow.of_end] / once.beta_us[once.of_end]
    assert times[pair] == pytest.approx(3)
    assert times[~pair & (ends.rank != 4)] == pytest.approx(1)


def test_channels_go_over_the_layer_that_their_author_chose() -> None:
    """On an Ascend 950 level1 is the Clos network, inside a server, too; level0 is the mesh."""
    rates = {"hccs": LinkCost(alpha_us=0, gbps=50), "roce": LinkCost(alpha_us=0, gbps=400)}
    cost = COSTS["ascend950"].model_copy(update=rates)
    topology = topology_of(servers=2, devices=2, preset="ascend950")
    found = {}
    for plane, peer in (("level0", 1), ("level1", 1), ("level1", 2), ("flat", 2)):
        write = {"0": {"0": [["write", peer, ["IN", 0, 8], ["CCL", 0, 8]]]}}
        document = {
            "format": "hccl-py.program/1",
            "op": {"name": "all_gather", "dtype": "uint8", "count": 8},
            "ranks": 4,
            "link": "sdma",
            "plane": plane,
            "exported": ["CCL"],
            "buffers": {str(rank): {"IN": 8, "OUT": 32, "CCL": 8} for rank in range(4)},
            "tasks": write,
        }
        transports = from_json(json.dumps(document)).transports
        links = Links(topology, cost)
        classes = links.classes(transports)
        end = np.flatnonzero(transports.rank == 0)
        route = [
            links.network.node_name(node)
            for node in links.network.ends(links.routes(transports, end).link)[1].tolist()
        ]
        found[plane, peer] = 1e-3 / classes.beta_us[classes.of_end[end[0]]], route
        assert not classes.is_rdma.any()
    assert found == {
        ("level0", 1): (pytest.approx(50), ["1"]),
        ("level1", 1): (pytest.approx(400), ["clos", "1"]),
        ("level1", 2): (pytest.approx(400), ["clos", "2"]),
        ("flat", 2): (pytest.approx(400), ["clos", "2"]),
    }
