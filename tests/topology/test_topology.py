"""Servers, planes and link kinds; bad shapes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import LinkKind
from hccl_py.errors import HcclError
from hccl_py.topology import PLANES, PRESETS, Topology, topology_of


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
        ({"ranks": 4, "preset": "atlas-800"}, "Did you mean atlas-800t-a2"),
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
