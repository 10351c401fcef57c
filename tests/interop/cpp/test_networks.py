"""The networks of clusters, as host code asks HCCL's rank graph for them."""

import pytest

from hccl_interop.cpp.networks import networks_of, options_of
from hccl_py.call.call_spec import ClusterSpec
from hccl_py.call.config import Config
from hccl_py.topology.topology import Topology


def topology(name: str, servers: int | None = None, devices: int | None = None) -> Topology:
    return ClusterSpec(name, servers=servers, devices=devices).build(Config())


@pytest.mark.parametrize(
    ("cluster", "wanted"),
    [
        ("ascend950-2x8", [(0, False, "die 0"), (1, True, "die 1")]),
        ("ascend950-clos", [(0, False, "die 0"), (1, True, "die 1")]),
        ("ascend950-two-dies", [(0, False, "regular")]),
        ("ascend950-ubx", [(0, False, "die 0"), (0, True, "die 0")]),
    ],
)
def test_networks_of_clusters(cluster: str, wanted: list[tuple[int, bool, str]]) -> None:
    found = networks_of(topology(cluster))
    assert [(one.layer, one.is_clos, one.dies) for one in found] == wanted


def test_boards_of_ubx_have_meshes_of_their_own_and_one_clos_network() -> None:
    mesh, clos = networks_of(topology("ascend950-ubx"))
    assert mesh.groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len(set(clos.groups.tolist())) == 1


def test_options_have_a_column_for_every_property() -> None:
    options = options_of(networks_of(topology("ascend950-8+4")))
    assert options["network_layer"] == "0 1"
    assert options["network_dies"] == "0 1"
    assert options["network_width"] == "1 4"
    assert options["network_group"] == f"{'0 ' * 8}{'1 ' * 4}{'0 ' * 11}0"


def test_other_products_have_hccs_and_roce() -> None:
    near, far = networks_of(topology("atlas-800t-a2", servers=2, devices=8))
    assert (near.protocol, far.protocol) == (0, 1)
