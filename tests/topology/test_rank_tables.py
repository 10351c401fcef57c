"""Rank tables of all versions: what they say, what is unusual, and what no table may be."""

import copy
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.cli.errors import USAGE, guarded
from hccl_py.errors import HcclError, HcclResult, ParameterError, RankTableError
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.topology.rank_tables import RankTable, rank_table_of, read_rank_table
from tests.topology.tables import (
    GROUPS,
    LEVELS,
    MISSING,
    SERVERS,
    SUPERPODS,
    VALID,
    WIRING,
    changed,
    paths_of,
)

DEVICE = "server_list[1].device[0]"
EDGE = "edge_list[0]"
LEVEL = "rank_list[3].level_list[1]"
POD = "group_list[0].instance_list[1]"


def read(document: Any, wiring: Any = None) -> RankTable:
    return read_rank_table(
        json.dumps(document).encode(), None if wiring is None else json.dumps(wiring)
    )


def text_of(document: Any) -> str:
    return json.dumps(document)


# ---- what tables say ----


def test_servers() -> None:
    table = read(SERVERS)
    assert table.version == "1.0"
    assert table.server_ids == ("node_0", "node_1")
    assert table.server == (0, 0, 1, 1)
    assert table.device == (0, 1, 0, 1)
    assert table.device_ip[2] == "10.0.0.3"
    assert (table.superpod_ids, table.superpod, table.super_device) == ((), (0, 0, 0, 0), ())
    assert table.notes == ()
    assert repr(table.topology()) == repr(topology_of(servers=2, devices=2))
    assert repr(table) == "RankTable(version 1.0, 4 ranks, 2 servers)"


def test_superpods() -> None:
    table = read(SUPERPODS)
    assert table.superpod_ids == ("pod_0", "pod_1")
    assert table.superpod == (0, 0, 0, 0, 1, 1, 1, 1)
    assert table.super_device == (0, 1, 2, 3, 0, 1, 2, 3)
    topology = table.topology()
    assert topology.product.device == "910_93"
    assert topology.superpods == (2, 2)
    assert topology.is_even


def test_groups_are_numbered_in_the_order_of_the_file() -> None:
    table = read(GROUPS)
    assert table.version == "template 2"
    assert table.server == (0, 0, 1, 1)
    assert table.topology().product.device == "910A"
    assert "order of the file" in table.notes[0]


def test_pods_of_one_server_are_one_server() -> None:
    both = changed(
        GROUPS, (f"{POD}.server_id", "node_0"), (f"{POD}.devices[0].device_id", 2),
        (f"{POD}.devices[1].device_id", 3),
    )  # fmt: skip
    table = read(both)
    assert table.server == (0, 0, 0, 0)
    assert table.device == (0, 1, 2, 3)


def test_levels_and_links() -> None:
    table = read(LEVELS, WIRING)
    network = table.network
    assert network is not None
    assert [level.ids for level in network.levels] == [("rack0", "rack1"), ("pod",)]
    assert network.levels[0].types == ("TOPO_FILE_DESC", "TOPO_FILE_DESC")
    assert network.links() == ((0, 1), (2, 3))
    assert network.links(1) == ()
    assert network.members(0, 1) == (2, 3)
    assert network.members(5, 0) == ()
    assert network.layer_between(0, 1) == 0
    assert network.layer_between(0, 3) == 1
    assert network.edges[1].local_b is None
    assert repr(network) == "RankTableNetwork(2 levels, 2 edges of a server)"
    topology = table.topology()
    assert topology.product.device == "950"
    assert topology.servers == (2, 2)
    assert topology.superpods == (2,)
    assert table.notes == ()


def test_ranks_without_a_network_in_common() -> None:
    apart = changed(
        LEVELS,
        ("rank_list[2].level_list[1]", MISSING),
        ("rank_list[3].level_list[1].net_instance_id", "other"),
    )
    table = read(apart)
    assert table.network is not None
    assert table.network.layer_between(0, 2) is None
    assert table.superpod_ids == ()
    assert "do not hold whole servers" in " ".join(table.notes)
    assert "no topology file" in " ".join(table.notes)


def test_servers_outside_every_superpod_make_none() -> None:
    rack = [(f"rank_list[{k}].level_list[1]", MISSING) for k in (2, 3)]
    table = read(changed(LEVELS, *rack))
    assert table.superpod_ids == ()
    assert "do not hold whole servers" in " ".join(table.notes)


def test_a_backup_whose_die_takes_no_part_is_nobodys_address() -> None:
    alone = changed(SUPERPODS, ("server_list[3].device[1]", MISSING))
    assert alone["server_list"][3]["device"][0]["backup_device_ip"] == "10.0.0.8"
    assert read(alone).topology().size == 7
    taken = changed(alone, ("server_list[3].device[0].backup_device_ip", "10.0.0.1"))
    with pytest.raises(RankTableError, match=r"found \"10.0.0.1\", that of server_list\[0\]"):
        read(taken)


def test_super_devices_have_32_bits() -> None:
    path = "server_list[0].device[1].super_device_id"
    assert read(changed(SUPERPODS, (path, str(2**32 - 1)))).topology().size == 8
    with pytest.raises(RankTableError, match="a super device id from 0 to 4294967295"):
        read(changed(SUPERPODS, (path, str(2**32))))


def test_levels_as_servers_and_superpods() -> None:
    pods = [(f"rank_list[{k}].level_list[1].net_instance_id", f"pod{k // 2}") for k in range(4)]
    assert read(changed(LEVELS, *pods)).topology().superpods == (1, 1)
    one = [(f"rank_list[{k}].level_list[1]", MISSING) for k in range(4)]
    assert read(changed(LEVELS, *one)).topology().superpods == (2,)


def test_numbers_may_be_digits_or_numbers() -> None:
    plain = changed(SERVERS, ("server_count", 2), (f"{DEVICE}.rank_id", 2), ("version", 1.0))
    assert read(plain) == read(SERVERS)
    assert read(changed(LEVELS, ("rank_count", "4"), ("rank_list[2].rank_id", "2"))) == read(LEVELS)


def test_ranks_may_be_listed_in_any_order() -> None:
    turned = copy.deepcopy(SERVERS)
    turned["server_list"].reverse()
    turned["server_list"][1]["device"].reverse()
    assert read(turned) == read(SERVERS)
    levels = copy.deepcopy(LEVELS)
    levels["rank_list"].reverse()
    assert read(levels, WIRING) == read(LEVELS, WIRING)


def test_status_may_be_left_out_and_one_server_needs_no_address() -> None:
    single = changed(
        SERVERS, ("status", MISSING), ("server_count", 1), ("server_list[1]", MISSING),
        ("server_list[0].device[0].device_ip", MISSING),
    )  # fmt: skip
    assert read(single).device_ip == (None, "10.0.0.2")


def test_the_list_of_servers_counts_them_where_server_count_is_missing() -> None:
    for document in (SERVERS, SUPERPODS):
        whole, counted = read(document), read(changed(document, ("server_count", MISSING)))
        assert counted == whole
        servers = len(whole.server_ids)
        note = f"There is no server_count: it is {servers}, as server_list has."
        assert counted.notes == (note, *whole.notes)


def test_a_device_may_have_several_addresses() -> None:
    """HCCL splits them at commas and uses the first."""
    table = read(changed(SERVERS, (f"{DEVICE}.device_ip", "10.0.1.2,10.0.0.9")))
    rank = table.device_ip.index("10.0.1.2")
    assert table.device_ips[rank] == ("10.0.1.2", "10.0.0.9")
    assert table.device_ips[0] == (table.device_ip[0],)
    device = table.device[rank]
    for address in table.device_ips[rank]:
        table.check_device(rank, device, address)
    with pytest.raises(RankTableError, match=r"found 10.0.1.2,10.0.0.9 "):
        table.check_device(rank, device, "10.0.0.7")
    assert repr(table.topology()) == repr(read(SERVERS).topology())


def test_a_backup_is_any_address_of_the_other_die() -> None:
    partner = "server_list[0].device[1]"
    several = changed(
        SUPERPODS,
        (f"{partner}.device_ip", "10.1.0.1,10.1.0.2"),
        ("server_list[0].device[0].backup_device_ip", "10.1.0.2"),
    )
    assert read(several).device_ips[1] == ("10.1.0.1", "10.1.0.2")
    wrong = changed(several, ("server_list[0].device[0].backup_device_ip", "10.1.0.2,10.1.0.3"))
    with pytest.raises(RankTableError, match=r'device\[0\].backup_device_ip.*found "10.1.0.3"'):
        read(wrong)


def test_one_superpod_needs_no_addresses() -> None:
    ips = [
        (f"server_list[{k}].device[{j}].{key}", MISSING)
        for k in range(4)
        for j in range(2)
        for key in ("device_ip", "backup_device_ip")
    ]
    joined = changed(
        SUPERPODS,
        ("super_pod_list[0].server_list", [{"server_id": f"node_{k}"} for k in range(4)]),
        ("super_pod_list[1]", MISSING),
        *[(f"server_list[{k}].device[{j}].super_device_id", 2 * k + j)
          for k in range(4) for j in range(2)],
        *ips,
    )  # fmt: skip
    table = read(joined)
    assert table.topology().superpods == (4,)
    with pytest.raises(RankTableError, match=r"device_ip: expected an address without HCCS"):
        table.topology(inter_hccs=False)
    assert read(SUPERPODS).topology(inter_hccs=False).has_rdma


# ---- notes ----


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (changed(SERVERS, ("server_list[1].device[1]", MISSING)), "Servers have 2, 1 devices"),
        (changed(SUPERPODS, ("super_pod_list", MISSING)), "no super_pod_list: the table is read"),
        (changed(SERVERS, (f"{DEVICE}.device_prot", 1)), "Did you mean device_port?"),
        (changed(SERVERS, ("server_list[0].board", 1)), 'server_list[0].board is not read'),
        (changed(LEVELS, (f"{LEVEL}.x y", 1)), '["x y"] is not read: rank tables v2.0 have no'),
    ],
)  # fmt: skip
def test_unusual_tables_are_accepted_with_a_note(document: Any, words: str) -> None:
    notes = read(document).notes
    assert words in " ".join(notes)


def test_tables_without_super_devices_are_plain_servers() -> None:
    plain = changed(
        SUPERPODS,
        *[(f"server_list[{k}].device[{j}].super_device_id", MISSING)
          for k in range(4) for j in range(2)],
    )  # fmt: skip
    table = read(plain)
    assert table.superpod_ids == ()
    assert "There is no super_device_id" in table.notes[0]


def test_superpods_of_different_sizes_get_a_note() -> None:
    uneven = changed(
        SUPERPODS,
        ("super_pod_list[1].server_list[0]", MISSING),
        ("super_pod_list[0].server_list[2]", {"server_id": "node_2"}),
        *[(f"server_list[2].device[{j}].super_device_id", 4 + j) for j in range(2)],
    )
    table = read(uneven)
    assert table.topology().superpods == (3, 1)
    assert "Superpods have 3, 1 servers" in table.notes[0]


def test_a_key_that_is_not_read_is_named_once_and_many_are_cut() -> None:
    everywhere = [(f"server_list[{k}].device[{j}].new", 1) for k in range(2) for j in range(2)]
    assert len(read(changed(SERVERS, *everywhere)).notes) == 1
    many = read(changed(SERVERS, *[(f"key{k}", 1) for k in range(90)]))
    assert len(many.notes) == 21
    assert many.notes[-1] == "More keys are not read."


# ---- what is wrong ----


def again(path: str, other: str) -> str:
    return f"{path}: expected a value of its own, found {other}"


# Document, changes, the path that the error must name, and a part of its message or hint.
Change = tuple[str, object]
DEFECTS: list[tuple[dict[str, Any], list[Change], str, str]] = [
    (SERVERS, [("version", MISSING)], "version", 'one of "1.0", "1.2", "2.0", found nothing'),
    (SERVERS, [("version", "1.1")], "version", "Did you mean 1."),
    (SERVERS, [("version", True)], "version", "found true"),
    (SERVERS, [("version", [])], "version", "a list of 0"),
    (SERVERS, [("status", "initializing")], "status", "not waited for here"),
    (SERVERS, [("status", "complete")], "status", "Did you mean completed"),
    (SERVERS, [("status", None)], "status", "found null"),
    (SERVERS, [("server_count", "3")], "server_count", "2, the number of servers"),
    (SERVERS, [("server_count", "0")], "server_count", "from 1 to 65536"),
    (SERVERS, [("server_count", "two")], "server_count", 'found "two"'),
    (SERVERS, [("server_count", 2.0)], "server_count", "found 2.0"),
    (SERVERS, [("server_list", {})], "server_list", "a list, found an object of 0"),
    (SERVERS, [("server_list", [])], "server_list", "at least one server"),
    (SERVERS, [("server_list[1]", "node_1")], "server_list[1]", "an object"),
    (SERVERS, [("server_list", MISSING), ("sever_list", [])], "server_list", '"sever_list" is'),
    (SERVERS, [("server_list[1].server_id", "node_0")], "server_list[1].server_id", "in server_l"),
    (SERVERS, [("server_list[1].server_id", "n" * 65)], "server_list[1].server_id", "1 to 64 cha"),
    (SERVERS, [("server_list[1].server_id", "")], "server_list[1].server_id", 'found ""'),
    (SERVERS, [("server_list[1].server_id", 1)], "server_list[1].server_id", "Write it in quotes"),
    (SERVERS, [("server_list[1].host_ip", "host")], "server_list[1].host_ip", 'found "host"'),
    (SERVERS, [("server_list[1].device", [])], "server_list[1].device", "at least one device"),
    (SERVERS, [("server_list[1].device", MISSING)], "server_list[1].device", "server_id, device."),
    (SERVERS, [(f"{DEVICE}.device_id", "16")], f"{DEVICE}.device_id", "from 0 to 15"),
    (SERVERS, [(f"{DEVICE}.device_id", "-1")], f"{DEVICE}.device_id", 'found "-1"'),
    (SERVERS, [(f"{DEVICE}.device_id", "1")], "server_list[1].device[1].device_id",
     "found 1, as in server_list[1].device[0].device_id"),
    (SERVERS, [(f"{DEVICE}.device_id", MISSING)], f"{DEVICE}.device_id", "found nothing"),
    (SERVERS, [(f"{DEVICE}.rank_id", "x")], f"{DEVICE}.rank_id", "a rank id"),
    (SERVERS, [(f"{DEVICE}.rank_id", True)], f"{DEVICE}.rank_id", "found true"),
    (SERVERS, [(f"{DEVICE}.rank_id", "٣")], f"{DEVICE}.rank_id", "a rank id"),
    (SERVERS, [(f"{DEVICE}.rank_id", "4")], f"{DEVICE}.rank_id", "from 0 to 3, found 4"),
    (SERVERS, [(f"{DEVICE}.rank_id", "1")], f"{DEVICE}.rank_id", "found 1, as in server_list[0]"),
    (SERVERS, [(f"{DEVICE}.rank_id", "1"), ("server_list[0].device[1].rank_id", "2")],
     "server_list[0].device[1].rank_id", "a rank of the server of rank 1, found 2"),
    (SERVERS, [(f"{DEVICE}.device_ip", "10.0.0.256")], f"{DEVICE}.device_ip", "IPv4 or IPv6"),
    (SERVERS, [(f"{DEVICE}.device_ip", "")], f"{DEVICE}.device_ip", "leave the key out"),
    (SERVERS, [(f"{DEVICE}.device_ip", 167772163)], f"{DEVICE}.device_ip", "found 167772163"),
    (SERVERS, [(f"{DEVICE}.device_ip", None)], f"{DEVICE}.device_ip", "found null"),
    (SERVERS, [(f"{DEVICE}.device_ip", "10.0.0.1")], f"{DEVICE}.device_ip", "addresses of its own"),
    (SERVERS, [(f"{DEVICE}.device_ip", "10.0.0.9,10.0.0.1")], f"{DEVICE}.device_ip", "of its own"),
    (SERVERS, [(f"{DEVICE}.device_ip", "10.0.0.9,")], f"{DEVICE}.device_ip", "IPv4 or IPv6"),
    (SERVERS, [(f"{DEVICE}.device_ip", "10.0.0.9,::1")], f"{DEVICE}.device_ip", "an IPv4 address"),
    (SERVERS, [(f"{DEVICE}.device_ip", "::1")], f"{DEVICE}.device_ip", "an IPv4 address, found"),
    (SERVERS, [(f"{DEVICE}.device_ip", MISSING)], f"{DEVICE}.device_ip", "There are 2 servers"),
    (SERVERS, [(f"{DEVICE}.device_port", "0")], f"{DEVICE}.device_port", "0 is reserved"),
    (SERVERS, [(f"{DEVICE}.device_port", 65536)], f"{DEVICE}.device_port", "1 to 65535"),
    (SERVERS, [(f"{DEVICE}.host_port", False)], f"{DEVICE}.host_port", "found false"),
    (SUPERPODS, [("super_pod_list", {})], "super_pod_list", "a list"),
    (SUPERPODS, [("super_pod_list[1].super_pod_id", "pod_0")], "super_pod_list[1].super_pod_id",
     "found \"pod_0\", as in super_pod_list[0]"),
    (SUPERPODS, [("super_pod_list[1].server_list", [])], "super_pod_list[1].server_list",
     "at least one server"),
    (SUPERPODS, [("super_pod_list[1].server_list[0].server_id", "node_9")],
     "super_pod_list[1].server_list[0].server_id", "Did you mean node_"),
    (SUPERPODS, [("super_pod_list[1].server_list[0].server_id", "node_0")],
     "super_pod_list[1].server_list[0].server_id", '"node_0" again'),
    (SUPERPODS, [("super_pod_list[1].server_list[1]", MISSING)], "server_list[3].server_id",
     '"node_3" in none'),
    (SUPERPODS, [("super_pod_list[0].server_list[1].server_id", "node_2"),
                 ("super_pod_list[1].server_list[0].server_id", "node_1")],
     "server_list[2].server_id", "a server of the superpod of rank 3"),
    (SUPERPODS, [(f"{DEVICE}.super_device_id", MISSING)], f"{DEVICE}.super_device_id",
     "a super device id, found nothing"),
    (SUPERPODS, [(f"{DEVICE}.super_device_id", "")], f"{DEVICE}.super_device_id", 'found ""'),
    (SUPERPODS, [(f"{DEVICE}.super_device_id", "1")], f"{DEVICE}.super_device_id", "(EI0014)"),
    (SUPERPODS, [(f"{DEVICE}.backup_device_ip", "10.0.0.3")], f"{DEVICE}.backup_device_ip",
     "the address of device 1, found \"10.0.0.3\", that of server_list[1].device[0]"),
    (SUPERPODS, [(f"{DEVICE}.backup_device_ip", "10.9.9.9")], f"{DEVICE}.backup_device_ip",
     "the other die of the same package"),
    (SUPERPODS, [(f"{DEVICE}.backup_device_port", "x")], f"{DEVICE}.backup_device_port", "a port"),
    (SUPERPODS, [(f"{DEVICE}.device_ip", MISSING), ("server_list[1].device[1].backup_device_ip",
      MISSING)], f"{DEVICE}.device_ip", "There are 2 superpods"),
    (SUPERPODS, [(f"{DEVICE}.device_ip", MISSING), ("super_pod_list", []),
                 ("server_list[1].device[1].backup_device_ip", MISSING)],
     f"{DEVICE}.device_ip", "4 servers, and no superpods"),
    (GROUPS, [("group_count", 2)], "group_count", "1, the number of groups"),
    (GROUPS, [("group_list[0].instance_count", 1)], "group_list[0].instance_count", "2, the num"),
    (GROUPS, [("group_list[0].device_count", 2)], "group_list[0].device_count", "4, the number"),
    (GROUPS, [("group_list[0].group_name", 1)], "group_list[0].group_name", "a string"),
    (GROUPS, [(f"{POD}.devices", [])], f"{POD}.devices", "at least one device"),
    (GROUPS, [(f"{POD}.pod_name", "pod0")], f"{POD}.pod_name", "A pod appears once"),
    (GROUPS, [(f"{POD}.server_id", "node_0")], f"{POD}.devices[0].device_id", "value of its own"),
    (GROUPS, [(f"{POD}.devices[0].device_ip", "10.0.0.1")], f"{POD}.devices[0].device_ip",
     "addresses of its own"),
    (GROUPS, [(f"{POD}.devices[1].device_ip", MISSING)], f"{POD}.devices[1].device_ip",
     "There are 2 servers"),
    (LEVELS, [("rank_count", 5)], "rank_count", "4, the number of ranks"),
    (LEVELS, [("rank_count", 65537)], "rank_count", "from 1 to 65536"),
    (LEVELS, [("rank_list[3].rank_id", 9)], "rank_list[3].rank_id", "from 0 to 3, found 9"),
    (LEVELS, [("rank_list[3].rank_id", 0)], "rank_list[3].rank_id", "Every rank id appears once"),
    (LEVELS, [("rank_list[3].local_id", 65)], "rank_list[3].local_id", "from 0 to 64"),
    (LEVELS, [("rank_list[3].local_id", 0)], "rank_list[3].local_id", "value of its own"),
    (LEVELS, [("rank_list[3].device_id", 0)], "rank_list[3].device_id", "value of its own"),
    (LEVELS, [("rank_list[3].level_list", [])], "rank_list[3].level_list", "1 to 8 levels"),
    (LEVELS, [("rank_list[3].level_list[0].net_layer", 1)], "rank_list[3].level_list[0].net_layer",
     "layer 0 first"),
    (LEVELS, [(f"{LEVEL}.net_layer", 0)], f"{LEVEL}.net_layer", "a layer above 0"),
    (LEVELS, [(f"{LEVEL}.net_layer", 8)], f"{LEVEL}.net_layer", "from 0 to 7"),
    (LEVELS, [(f"{LEVEL}.net_instance_id", "x" * 1025)], f"{LEVEL}.net_instance_id", "1024 char"),
    (LEVELS, [(f"{LEVEL}.net_type", "CLOSE")], f"{LEVEL}.net_type", "Did you mean CLOS"),
    (LEVELS, [(f"{LEVEL}.net_type", "TOPO_FILE_DESC")], f"{LEVEL}.net_type", "Only layer 0"),
    (LEVELS, [(f"{LEVEL}.rank_addr_list", [LEVELS["rank_list"][0]["level_list"][0]
      ["rank_addr_list"][0]] * 25)], f"{LEVEL}.rank_addr_list", "at most 24 addresses"),
    (LEVELS, [(f"{LEVEL}.rank_addr_list[0].addr_type", "IPV6")],
     f"{LEVEL}.rank_addr_list[0].addr", "an IPV6 address"),
    (LEVELS, [(f"{LEVEL}.rank_addr_list[0].addr", "switch")],
     f"{LEVEL}.rank_addr_list[0].addr", "an IPV4 address"),
    (LEVELS, [(f"{LEVEL}.rank_addr_list[0].ports", [4])],
     f"{LEVEL}.rank_addr_list[0].ports[0]", "Write die and port"),
]  # fmt: skip

WIRING_DEFECTS: list[tuple[list[Change], str, str]] = [
    ([("version", "1.0")], "version", '"2.0", found "1.0"'),
    ([("peer_count", 3)], "peer_count", "2, the number of peers"),
    ([("peer_count", 66)], "peer_count", "from 1 to 65"),
    ([("peer_list[1].local_id", 65)], "peer_list[1].local_id", "from 0 to 64"),
    ([("peer_list[1].local_id", 0)], "peer_list[1].local_id", "value of its own"),
    ([("edge_count", 1)], "edge_count", "2, the number of edges"),
    ([(f"{EDGE}.net_layer", 8)], f"{EDGE}.net_layer", "from 0 to 7"),
    ([(f"{EDGE}.link_type", "PEER2PER")], f"{EDGE}.link_type", "Did you mean PEER2PEER"),
    ([(f"{EDGE}.protocols", [])], f"{EDGE}.protocols", "at least one protocol"),
    ([(f"{EDGE}.protocols[1]", "UB_MEN")], f"{EDGE}.protocols[1]", "Did you mean UB_MEM"),
    ([(f"{EDGE}.local_a", 7)], f"{EDGE}.local_a", "peer_list has 0, 1"),
    ([(f"{EDGE}.local_b", 0)], f"{EDGE}.local_b", "another device"),
    ([(f"{EDGE}.local_b", MISSING)], f"{EDGE}.local_b", "the other device, found nothing"),
    ([("edge_list[1].local_b", 1)], "edge_list[1].local_b", "expected nothing, found 1"),
    ([(f"{EDGE}.local_a_ports[0]", "0-4")], f"{EDGE}.local_a_ports[0]", 'as in "0/4"'),
    ([(f"{EDGE}.topo_type", "2DMESH")], f"{EDGE}.topo_type", "Did you mean 1DMESH"),
    ([(f"{EDGE}.position", "NPU")], f"{EDGE}.position", "one of HOST, DEVICE"),
]


def check_sentence(error: HcclError, path: str, words: str) -> None:
    assert isinstance(error, RankTableError)
    assert error.result is HcclResult.E_PARA
    assert error.code in ("EI0004", "EI0014")
    assert f": {path}: expected " in error.message or not path
    assert error.message.endswith(f"({error.code}).")
    assert "\n" not in str(error.message)
    assert error.hint
    assert words in str(error), str(error)
    assert len(str(error)) < 1200


@pytest.mark.parametrize(("document", "changes", "path", "words"), DEFECTS)
def test_defects_are_said_in_one_sentence(
    document: dict[str, Any], changes: list[Change], path: str, words: str
) -> None:
    with pytest.raises(RankTableError) as caught:
        read(changed(document, *changes))
    check_sentence(caught.value, path, words)


@pytest.mark.parametrize(("changes", "path", "words"), WIRING_DEFECTS)
def test_defects_of_topology_files(changes: list[Change], path: str, words: str) -> None:
    with pytest.raises(RankTableError, match=r"^topology file: ") as caught:
        read(LEVELS, changed(WIRING, *changes))
    check_sentence(caught.value, path, words)


def test_ranks_are_held_against_the_topology_file() -> None:
    lone = changed(
        WIRING, ("peer_list[1]", MISSING), ("peer_count", 1), ("edge_list", []), ("edge_count", 0)
    )
    with pytest.raises(RankTableError) as caught:
        read(LEVELS, lone)
    check_sentence(caught.value, "rank_list[1].local_id", "a local id of the topology file")
    with pytest.raises(RankTableError) as caught:
        read(SERVERS, WIRING)
    check_sentence(caught.value, "version", "Leave the topology file out")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "The file is empty"),
        (b" \n", "The file is empty"),
        (b"{", "line 1 column 2: the text is not JSON"),
        (b'{"version": "1.0", // really\n}', "does it have comments"),
        (b"[]", "$: expected an object, found a list of 0"),
        (b"null", "$: expected an object, found null"),
        (b"\xff\xfe{", "line 1: expected UTF-8 text, found the byte 0xff"),
        (text_of(SERVERS).encode("utf-16"), "expected UTF-8 text"),
        (b'{"version": "1.0", "version": "1.2"}', '$: expected the key "version" once'),
        (b'{"a": [{"b": 1, "b": 2}]}', 'a[0]: expected the key "b" once, found it twice'),
        (b'{"version": "1.0", "server_count": NaN}', "server_count: expected a value that JSON"),
        (b'{"x": [-Infinity]}', "x[0]: expected a value that JSON has, found -Infinity"),
        (b'{"x": ' + b"[" * 200_000, "levels of brackets"),
        (b'{"x": ' + b"[" * 2_000_000, "2000001 brackets in"),
        (b'{"x": ' + b"1" * 50_000 + b"}", "numbers of at most 19 digits"),
        (text_of(WIRING).encode(), "a rank table, found a topology file"),
        (b'{"version": "1.0", "server_group_list": []}', "a table of server groups"),
    ],
)
def test_what_is_no_table_at_all(text: bytes, words: str) -> None:
    with pytest.raises(RankTableError) as caught:
        read_rank_table(text)
    check_sentence(caught.value, "", words)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text(text_of(SERVERS), "utf-8-sig")
    assert read_rank_table(file) == read_rank_table(str(file)) == read_rank_table(text_of(SERVERS))
    assert read_rank_table(file).name == str(file)
    file.write_text(text_of(changed(SERVERS, (f"{DEVICE}.rank_id", "x"))))
    with pytest.raises(RankTableError, match=r"table\.json: server_list\[1\]\.device\[0\]\.r"):
        read_rank_table(file)
    wiring = tmp_path / "topo.json"
    wiring.write_text(text_of(WIRING))
    file.write_text(text_of(LEVELS))
    assert read_rank_table(file, wiring) == read(LEVELS, WIRING)
    wiring.write_text("{}")
    with pytest.raises(RankTableError, match=r"topo\.json: version: expected a value"):
        read_rank_table(file, wiring)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, words in ((tmp_path, "it is a folder"), (tmp_path / "none.json", "No such file")):
        with pytest.raises(RankTableError, match=words) as caught:
            read_rank_table(path)
        check_sentence(caught.value, "", "the file cannot be read")
    with pytest.raises(RankTableError, match="null"):
        read_rank_table("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.touch(mode=0)
    with pytest.raises(RankTableError, match="Permission denied"):
        read_rank_table(file)


def test_sizes_are_limited(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    with open(file, "wb") as hole:
        hole.truncate(1_000_000_001)
    with pytest.raises(RankTableError, match=r"at most 1,000,000,000 bytes, found 1,000,000,001"):
        read_rank_table(file)
    padded = text_of(SERVERS).encode() + b" " * 40_000_000
    with pytest.raises(RankTableError, match=r"at most 40,000,000 bytes") as caught:
        read_rank_table(padded)
    check_sentence(caught.value, "", "v2.0 at most 1 GB")
    with pytest.raises(RankTableError, match=r"at most 40,000,000 bytes"):
        read_rank_table(padded.replace(b'"server_id"', b'"version": "2.0", "server_id"'))
    levels = text_of(LEVELS).encode() + b" " * 40_000_000
    assert read_rank_table(levels) == read(LEVELS)


@pytest.mark.parametrize(
    "changes", [[("version", "3")], [("status", "initializing")], [("server_list[0]", None)]]
)
def test_the_command_line_says_it_and_ends_with_2(
    changes: list[Change], capsys: pytest.CaptureFixture[str]
) -> None:
    document = changed(SERVERS, *changes)
    assert guarded(lambda: read(document)) == USAGE == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"]
    assert f"{changes[0][0]}: expected" in lines[0]


# ---- products and local devices ----


def test_topologies_are_held_against_the_product() -> None:
    wide = read(changed(SERVERS, ("server_list[0].device[1].device_id", 12)))
    with pytest.raises(RankTableError) as caught:
        wide.topology("atlas-800t-a2")
    check_sentence(caught.value, "server_list[0].device[1].device_id", "from 0 to 7 of Atlas 800T")
    assert wide.topology("atlas-900-a3").size == 4
    bare = changed(
        SERVERS, ("server_count", 1), ("server_list[1]", MISSING),
        ("server_list[0].device[0].device_ip", MISSING),
    )  # fmt: skip
    with pytest.raises(RankTableError) as caught:
        read(bare).topology("atlas-800t-a2")
    check_sentence(caught.value, "server_list[0].device[0].device_ip", "an address on Atlas 800T")
    assert read(bare).topology(PRESETS["atlas-800-9000"]).servers == (2,)
    with pytest.raises(ParameterError, match="Did you mean atlas-800"):
        read(SERVERS).topology("atlas-80")
    with pytest.raises(ParameterError, match=r"v2\.0 place devices 950, not 910B"):
        read(LEVELS).topology("atlas-800t-a2")
    with pytest.raises(ParameterError, match="has no superpods"):
        read(SUPERPODS).topology("atlas-800t-a2")


def test_box16_has_modules_where_a_job_uses_both_halves() -> None:
    """IsDiffDeviceModule and GetModuleIdx: devices 0-7 and 8-15 of a host, if both occur."""
    second = ("server_list[0].device[1].device_id", 12)
    half = [(f"server_list[{k}].device[{j}].device_id", 8 + j) for k in (0, 1) for j in (0, 1)]
    split = read(changed(SERVERS, second)).topology("atlas-200t-a2-box16")
    assert (split.servers, split.hosts) == ((1, 1, 2), (0, 0, 1))
    assert split.link_kinds(np.array([0, 0]), np.array([1, 2])).tolist() == [0, 1]
    assert split.linked(inter_hccs=True, intra_roce=True).sdma_groups.tolist() == [0, 1, 2, 2]
    whole = read(changed(SERVERS, *half)).topology("atlas-200t-a2-box16")
    assert (whole.servers, whole.hosts) == ((2, 2), (0, 1))


def test_a_table_of_box16_has_its_hosts() -> None:
    job = topology_of(servers=4, devices=8, preset="atlas-200t-a2-box16")
    table = rank_table_of(job)
    ids = [[int(d["device_id"]) for d in server["device"]] for server in table["server_list"]]
    assert ids == [list(range(16))] * 2
    back = read(table).topology("atlas-200t-a2-box16")
    assert (back.servers, back.hosts) == (job.servers, job.hosts)
    assert back.sdma_groups.tolist() == job.sdma_groups.tolist()


def test_local_devices_are_held_against_the_table() -> None:
    table = read(SERVERS)
    table.check_device(3, 1, "10.0.0.4")
    table.check_device(3, 1)
    with pytest.raises(RankTableError) as caught:
        table.check_device(3, 0)
    check_sentence(caught.value, "server_list[1].device[1].device_id", "expected 0, as here")
    assert caught.value.code == "EI0014"
    with pytest.raises(RankTableError) as caught:
        table.check_device(3, 1, "10.0.0.9")
    check_sentence(caught.value, "server_list[1].device[1].device_ip", "10.0.0.9, as here, found")
    with pytest.raises(ParameterError, match=r"no rank 4"):
        table.check_device(4, 0)
    with pytest.raises(ParameterError, match=r"device_ip is 'here'"):
        table.check_device(3, 1, "here")


# ---- writing ----


def same_places(one: Topology, other: Topology) -> bool:
    columns = ("server", "device_id", "superpod")
    return all(getattr(one, c).tolist() == getattr(other, c).tolist() for c in columns)


@given(
    servers=st.lists(st.integers(1, 8), min_size=1, max_size=6).map(tuple),
    cuts=st.sets(st.integers(1, 5)),
    preset=st.sampled_from(["atlas-800t-a2", "atlas-800-9000", "atlas-900-a3", "mesh"]),
)
def test_tables_of_topologies_come_back(
    servers: tuple[int, ...], cuts: set[int], preset: str
) -> None:
    product = PRESETS[preset]
    ends = [0, *sorted(cut for cut in cuts if cut < len(servers)), len(servers)]
    pods = tuple(b - a for a, b in pairwise(ends))
    pods = pods if product.superpod_servers else (len(servers),)
    topology = Topology(product, servers, pods)
    table = read(rank_table_of(topology))
    assert same_places(table.topology(product), topology)
    assert table.version == ("1.2" if product.superpod_servers else "1.0")
    assert bool(table.notes) == (len(set(servers)) > 1 or len(set(pods)) > 1)


def test_parts_of_topologies_come_back_with_their_device_ids() -> None:
    part = topology_of(servers=2, devices=8).subset([1, 5, 8, 15])
    assert same_places(read(rank_table_of(part)).topology(), part)


def test_topologies_that_no_table_describes() -> None:
    with pytest.raises(ParameterError, match=r"Device 19 of a server fits into no rank table"):
        rank_table_of(topology_of(20, preset="ring"))
    mixed = topology_of(servers=2, devices=2).subset([0, 2, 1, 3])
    with pytest.raises(ParameterError, match=r"Rank 2 is on server 0 again"):
        rank_table_of(mixed)
    with pytest.raises(ParameterError, match=r"do not describe devices 950"):
        rank_table_of(read(LEVELS).topology())


def test_large_tables() -> None:
    topology = topology_of(superpods=8, servers=48, devices=16, preset="atlas-900-a3")
    table = read(rank_table_of(topology))
    assert table.size == 6144
    assert same_places(table.topology(), topology)


# ---- whatever else ----

ODD: list[object] = [
    None, True, False, 0, 1, -1, 3, 2**70, 1.5, float("nan"), float("inf"), "", "0", "1", "3",
    "completed", "2.0", "10.0.0.1", "::1", "node_0", "٣", "\ud800", "x" * 3000, [], {}, [[]],
    [None], {"device": []}, {"a b": {"\n": 1}},
]  # fmt: skip


def placed(document: Any, path: Iterable[str | int], value: object, remove: bool) -> Any:
    *parents, last = path
    document = copy.deepcopy(document)
    inner = document
    for key in parents:
        inner = inner[key]
    if remove:
        del inner[last]
    else:
        inner[last] = value
    return document


@given(version=st.sampled_from(list(VALID)), data=st.data())
def test_any_change_is_accepted_or_refused_cleanly(version: str, data: st.DataObject) -> None:
    document = VALID[version]
    for _ in range(data.draw(st.integers(1, 2))):
        paths = paths_of(document)[1:]
        if not paths:
            break
        path = data.draw(st.sampled_from(paths))
        swapped = data.draw(st.sampled_from([*ODD, document]))
        document = placed(document, path, swapped, data.draw(st.booleans()))
    wiring = WIRING if version == "2.0" else None
    try:
        table = read(document, wiring)
    except RankTableError as error:
        check_sentence(error, "", "")
        return
    assert sorted(set(table.server)) == list(range(len(table.server_ids)))
    assert replace(table, notes=()) == table


@given(data=st.data())
def test_any_topology_file_is_accepted_or_refused_cleanly(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths_of(WIRING)[1:]))
    wiring = placed(WIRING, path, data.draw(st.sampled_from(ODD)), data.draw(st.booleans()))
    try:
        table = read(LEVELS, wiring)
    except RankTableError as error:
        check_sentence(error, "", "")
        return
    assert table.network is not None
    assert set(table.network.links()) <= {(0, 1), (2, 3)}


@given(text=st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_refused_cleanly(text: bytes) -> None:
    with pytest.raises(RankTableError) as caught:
        read_rank_table(text)
    check_sentence(caught.value, "", "")
