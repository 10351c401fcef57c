"""What no rank table may be: one sentence that says where and what, for every defect."""

import copy
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.cli.errors import USAGE, guarded
from hccl_py.errors import RankTableError
from hccl_py.topology.rank_tables import read_rank_table
from tests.topology.tables import (
    DEVICE,
    EDGE,
    GROUPS,
    LEVEL,
    LEVELS,
    MISSING,
    POD,
    SERVERS,
    SUPERPODS,
    VALID,
    WIRING,
    Change,
    changed,
    check_sentence,
    paths_of,
    read,
    text_of,
)


def again(path: str, other: str) -> str:
    return f"{path}: expected a value of its own, found {other}"


# Document, changes, the path that the error must name, and a part of its message or hint.
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
    else:
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
    else:
        assert table.network is not None
        assert set(table.network.links()) <= {(0, 1), (2, 3)}


@given(text=st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_refused_cleanly(text: bytes) -> None:
    with pytest.raises(RankTableError) as caught:
        read_rank_table(text)
    check_sentence(caught.value, "", "")
