"""Cuts never let through less than the network does: held to networkx's maximum flow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.simulator import CostModel
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import network_of
from hccl_py.topology.presets import PRESETS
from hccl_py.topology.rank_tables.table import ATLAS_950
from tests.simulator.costs import LINKS as COST
from tests.topology.networks import GENERATED, assert_sound


@pytest.mark.parametrize("spelling", GENERATED)
def test_generated_networks(spelling: str) -> None:
    topology = topology_of(preset=spelling)
    found = assert_sound(topology)
    assert bool(found) == (topology.size > 1)
    for name, (told, true) in found.items():
        if name.startswith(("rank", "dimension", "group", "half", "pod", "edge")):
            assert told == pytest.approx(true), name


def test_the_bisections_by_hand() -> None:
    def cuts(spelling: str) -> dict[str, float]:
        return {cut.name: cut.gbps for cut in network_of(topology_of(preset=spelling)).cuts(COST)}

    assert cuts("torus:4x6") == {"rank 0": 4, "dimension 1 half 0": 12, "dimension 2 half 0": 8}
    assert cuts("hypercube:3")["dimension 2 half 0"] == 4
    fat = cuts("fat-tree:4,oversubscription=4")
    assert fat == {"rank 0": 1, "edge switch 0": 0.5, "pod 0": 1, "half 0": 2}
    assert cuts("dragonfly:4,2,2") == {
        "rank 0": 1,
        "router 0": 5,
        "group 0": 8,
        "half 0": 20,
        "half 1": 20,
    }


@settings(max_examples=40)
@given(data=st.data())
def test_products(data: st.DataObject) -> None:
    product = data.draw(st.sampled_from([*PRESETS.values(), ATLAS_950]))
    most = min(product.devices_per_server, 8)
    servers = data.draw(st.lists(st.integers(1, most), min_size=1, max_size=3))
    pods = None
    if product.superpod_servers and len(servers) > 1 and data.draw(st.booleans()):
        pods = (1, len(servers) - 1)
    topology = Topology(product, tuple(servers), pods)
    topology = topology.linked(
        inter_hccs=data.draw(st.booleans()), intra_roce=data.draw(st.booleans())
    )
    if data.draw(st.booleans()):
        some = st.lists(st.integers(0, topology.size - 1), min_size=1, unique=True)
        topology = topology.subset(data.draw(some))
    assert_sound(topology)


@pytest.mark.parametrize(
    ("topology", "name"),
    [
        (topology_of(8), "rank 0"),
        (topology_of(8), "half 0"),
        (topology_of(8, preset="ring"), "half 0"),
        (topology_of(7, preset="ring"), "rank 0"),
        (topology_of(8, preset="atlas-800-9000"), "rank 0"),
        (topology_of(8, preset="atlas-800-9000"), "half 0"),
        (topology_of(8, preset="300i-duo"), "rank 0"),
        (topology_of(servers=3, devices=2), "server 0"),
        (topology_of(servers=2, devices=4, preset="atlas-900-a3"), "package 0"),
        (topology_of(servers=2, devices=4, preset="atlas-900-a3"), "server 0"),
        (topology_of(superpods=2, servers=2, devices=2, preset="atlas-900-a3"), "superpod 0"),
        (Topology(ATLAS_950, (2, 3)), "server 0"),
        (Topology(ATLAS_950, (2, 3)), "rank 0"),
    ],
)
def test_products_exactly(topology: Topology, name: str) -> None:
    told, true = assert_sound(topology)[name]
    assert told == pytest.approx(true)


@settings(max_examples=25)
@given(data=st.data())
def test_subsets_keep_the_cuts_of_those_that_take_part(data: st.DataObject) -> None:
    whole = topology_of(preset=data.draw(st.sampled_from(["fat-tree:4", "torus:3x4"])))
    ranks = data.draw(st.lists(st.integers(0, whole.size - 1), min_size=2, unique=True))
    part = whole.subset(ranks)
    groups = {way.name: way for way in network_of(whole).groups(COST)}
    for way in network_of(part).groups(COST):
        assert (way.of == groups[way.name].of[ranks]).all()
    assert_sound(part)


def test_the_slowest_group_of_each_size_is_named_and_free_links_let_through_anything() -> None:
    uneven = Topology(PRESETS["atlas-800t-a2"], (2, 4, 4, 2))
    names = [cut.name for cut in network_of(uneven).cuts(COST)]
    assert names == ["rank 0", "server 0", "server 1"]
    free = COST.model_copy(
        update={name: COST.hccs.model_copy(update={"gbps": None}) for name in ("hccs", "roce")}
    )
    assert {cut.gbps for cut in network_of(uneven).cuts(free)} == {np.inf}
    for spelling in GENERATED:
        network = network_of(topology_of(preset=spelling))
        assert all(cut.gbps == np.inf for cut in network.cuts(free)), spelling


def test_cuts_of_65_536_ranks_are_few() -> None:
    network = network_of(topology_of(preset="torus:256x256"))
    assert len(network.cuts(CostModel.of("ring"))) == 3
    network = network_of(topology_of(servers=8192, devices=8))
    assert [cut.inside.sum() for cut in network.cuts(CostModel.of("ring"))] == [1, 8]
