"""The rank graph of an Ascend 950, against what HCCL's system tests draw."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.topology.rank_graph import RankGraph

ROW = list(range(8))


def graph(*servers: list[int], pods: tuple[int, ...] = (), **bus: Any) -> RankGraph:
    """Return the graph of servers with these devices; `pods` has the superpod of each."""
    product = PRESETS["ascend950"]
    product = replace(product, bus=replace(product.bus, **bus))
    numbers = [n for n, ids in enumerate(servers) for _ in ids]
    pod = [(pods or (0,) * len(servers))[n] for n in numbers]
    devices = [i for ids in servers for i in ids]
    return RankGraph.of(Topology.placed(product, numbers, devices, pod))


def test_levels_are_servers_superpods_and_what_joins_superpods() -> None:
    assert graph(ROW).levels == 1
    assert graph(ROW, ROW).levels == 2
    found = graph(ROW, ROW[:4], pods=(0, 1))
    assert (found.levels, found.servers, found.pods) == (3, (8, 4), (8, 4))
    assert (found.server, found.pod, found.divisor) == (8, 8, 4)


@pytest.mark.parametrize(
    ("devices", "shape"),
    [
        ([3], "mesh"),
        (ROW, "mesh"),
        ([0, 8, 16, 24], "mesh"),
        ([0, 1, 8, 9], "clos"),
        ([*ROW, *range(8, 16)], "clos"),
        ([0, 1, 8], ""),
    ],
)
def test_shapes_follow_from_rows_and_columns(devices: list[int], shape: str) -> None:
    assert graph(devices).shape == shape


def test_ubx_is_a_mesh_of_a_row_and_a_clos_network() -> None:
    found = graph([*ROW, *range(8, 16)], ubx=True)
    assert (found.shape, found.mesh, found.server) == ("mesh+clos", 8, 16)
    assert graph([0, 8], ubx=True).shape == "clos"


def test_dies_count_for_meshes_of_more_than_two() -> None:
    assert graph(ROW, dies="regular").dies == "regular"
    assert graph(ROW[:2], dies="regular").dies == "one"
    assert graph([0, 1, 8, 9], dies="regular").dies == "one"


def test_a_lone_server_may_have_the_clos_network_of_layer_1() -> None:
    assert graph(ROW).layers == 1
    assert graph(ROW, lone_clos=True).layers == 2


def test_presets_fill_rows() -> None:
    where = topology_of(preset="ascend950", servers=4, devices=8)
    assert (RankGraph.of(where).shape, RankGraph.of(where).servers) == ("mesh", (8,) * 4)
