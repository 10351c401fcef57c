"""Rank tables of all versions: what they say, what is unusual, and how topologies become tables."""

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.errors import ParameterError, RankTableError
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.topology.rank_tables import rank_table_of
from tests.topology.tables import (
    DEVICE,
    GROUPS,
    LEVEL,
    LEVELS,
    MISSING,
    POD,
    SERVERS,
    SUPERPODS,
    WIRING,
    changed,
    check_sentence,
    read,
)

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
