"""Servers, planes and link kinds; bad shapes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.clocks.cost import CostModel
from hccl_py.enums import LinkKind
from hccl_py.errors import HcclError
from hccl_py.topology import PLANES, PRESETS, Topology, topology_of
from hccl_py.topology.networks.product import MEDIA, ProductNetwork, network_of


@given(servers=st.lists(st.integers(1, 8), min_size=1, max_size=6).map(tuple))
def test_planes_partition_the_ranks(servers: tuple[int, ...]) -> None:
    topology = Topology(PRESETS["atlas-800t-a2"], servers)
    for name in (*PLANES[:5], *topology.rings):
        number, index, size = topology.plane(name)
        members = topology.members(name)
        assert sorted(members[members >= 0].tolist()) == list(range(topology.size))
        for rank in range(topology.size):
            row = members[number[rank]]
            assert row[index[rank]] == rank
            assert (row >= 0).sum() == size[rank]
    level1 = topology.members("level1")
    assert all(len(set(topology.device[row[row >= 0]])) == 1 for row in level1)


def test_links_are_sdma_inside_a_server_and_rdma_between() -> None:
    topology = topology_of(12)
    assert topology.servers == (8, 4)
    ranks = np.arange(12)
    kinds = topology.link_kinds(ranks, (ranks + 1) % 12)
    assert np.flatnonzero(kinds == LinkKind.RDMA).tolist() == [7, 11]


def test_shapes_by_ranks_or_by_servers() -> None:
    assert topology_of().servers == (4,)
    assert topology_of(8).servers == (8,)
    assert topology_of(17).servers == (8, 8, 1)
    assert topology_of(servers=3, devices=4).servers == (4, 4, 4)
    assert topology_of(devices=2).servers == (2,)
    assert topology_of(servers=2).servers == (8, 8)
    assert topology_of(1024, preset="ring").servers == (1024,)
    sizes = [topology_of(n).size for n in range(1, 40)]
    assert all(b - a == 1 for a, b in pairwise(sizes))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ranks": 0}, "ranks is 0"),
        ({"ranks": -3}, "ranks is -3"),
        ({"ranks": 10**9}, "Give 1 to 65536 ranks"),
        ({"servers": 0}, "servers is 0"),
        ({"servers": 2, "devices": 0}, "devices is 0"),
        ({"servers": 2, "devices": 9}, "Server 0 has 9 devices, but atlas-800t-a2 has 8"),
        ({"servers": 65536, "devices": 8}, "are 524288 ranks"),
        ({"ranks": 5, "servers": 2, "devices": 2}, "are 4 ranks, not 5"),
        ({"ranks": 4, "preset": "atlas-800"}, "Did you mean atlas-800-9000 or atlas-800t-a2?"),
    ],
)
def test_bad_shapes_are_refused(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(HcclError, match=words):
        topology_of(**arguments)  # type: ignore[arg-type]


def test_empty_topologies_are_refused() -> None:
    with pytest.raises(HcclError, match="at least one server"):
        Topology(PRESETS["mesh"], ())
    with pytest.raises(HcclError, match="Server 1 has 0 devices"):
        Topology(PRESETS["mesh"], (2, 0))


# ---- hosts of several modules ----

BOX16 = "atlas-200t-a2-box16"


def test_pcie_joins_the_modules_of_a_host() -> None:
    two_hosts = topology_of(servers=4, devices=8, preset=BOX16)
    assert two_hosts.hosts == (0, 0, 1, 1)
    kinds = two_hosts.link_kinds(np.array([0, 0, 0, 0]), np.array([7, 8, 16, 31]))
    assert kinds.tolist() == [LinkKind.SDMA, LinkKind.SDMA, LinkKind.RDMA, LinkKind.RDMA]
    by_roce = two_hosts.linked(inter_hccs=True, intra_roce=True)
    assert by_roce.link_kinds(np.array([0, 0]), np.array([7, 8])).tolist() == [0, 1]
    assert two_hosts.level0 == "mesh"
    assert two_hosts.plane("level0")[2].tolist() == [8] * 32
    assert two_hosts.plane("level1")[2].tolist() == [4] * 32
    assert two_hosts.description == "Atlas 200T A2 Box16, 4 modules x 8 devices"


def test_parts_of_a_job_keep_their_hosts() -> None:
    job = topology_of(servers=4, devices=8, preset=BOX16)
    assert job.subset(range(16)).hosts == (0, 0)
    apart = job.subset([8, 9, 16, 17])  # the second half of a host, the first of the next
    assert apart.hosts == (0, 1)
    assert apart.has_rdma
    assert not job.subset([0, 1, 8, 9]).has_rdma


def test_pcie_has_the_rate_of_the_cost_model() -> None:
    """PCIe 5 has 54.4 GB/s in HCCL's selection, HCCS 18.3 GB/s."""
    pair = topology_of(servers=2, devices=8, preset=BOX16).subset([0, 8])
    near = topology_of(servers=1, devices=2, preset=BOX16)
    cost = CostModel.of(BOX16)
    network = ProductNetwork(pair)
    assert MEDIA[network.media(np.array([0]), np.array([1]), np.zeros(1, bool))[0]] == "pcie"
    routes = network.routes(np.array([0]), np.array([1]), np.zeros(1, bool))
    assert len(routes.link) == 2, "up to the host's switch, and down"
    assert set(network.rates(routes.link, cost).gbps.tolist()) == {54.4}
    near_routes = network_of(near).routes(np.array([0]), np.array([1]), np.zeros(1, bool))
    assert set(network_of(near).rates(near_routes.link, cost).gbps.tolist()) == {18.3}


def test_servers_of_ascend_950_are_rows_unless_a_call_says_more() -> None:
    assert topology_of(20, preset="ascend950").servers == (8, 8, 4)
    assert topology_of(servers=1, devices=16, preset="ascend950").servers == (16,)


def test_ub_reaches_all_ranks_of_ascend_950() -> None:
    pods = topology_of(servers=2, devices=2, superpods=2, preset="ascend950")
    assert not pods.has_rdma
    assert topology_of(servers=2, devices=2, superpods=2, preset="atlas-900-a3").has_rdma
