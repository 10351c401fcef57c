"""Slices beyond their buffers and memory that is not exported."""

import json
from typing import Any

import pytest

from hccl_py.enums import Buffer
from hccl_py.formats import from_json
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.verifier.checks.bounds import find_bounds
from hccl_py.verifier.finding import MemoryRange, TaskAt
from hccl_py.verifier.verifier import verify_program
from tests.verifier.programs import FILE, MESH, authored, found, names, written

CCL_OUT = ["CCL_OUT", 0, 64]


def test_a_read_beyond_the_peers_buffer_names_it_and_its_size() -> None:
    read = ["read", 0, ["CCL_OUT", 64, 128], ["OUT", 0, 128], {"source": "mesh.py:7"}]
    program = written({"1": {"1": [["copy", CCL_OUT, ["CCL_IN", 0, 64]]] * 2 + [read]}})
    (finding,) = found(find_bounds, program)
    assert finding.name == "OUT_OF_BOUNDS"
    assert finding.message == (
        "rank 1 sub 0 task 2 reads rank 0's CCL_Out[64:192], but that buffer has 128 bytes."
    )
    assert finding.tasks == (TaskAt(1, 1, 2),)
    assert finding.memory == (MemoryRange(0, "CCL_OUT", 64, 192),)
    assert finding.ranks == (0, 1)
    assert finding.source == "mesh.py:7"
    assert finding.hint.startswith("Make the slice end at byte 128, or earlier")


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (["write", 0, ["IN", 0, 64], ["CCL_OUT", 96, 64]], "writes rank 0's CCL_Out[96:160]"),
        (
            ["write_reduce", 0, "sum", ["IN", 0, 64], ["CCL_OUT", 96, 64]],
            "reduces into rank 0's CCL_Out[96:160]",
        ),
        (["copy", ["IN", 100, 64], CCL_OUT], "reads rank 1's user_in[100:164]"),
        (["reduce", "sum", ["IN", 0, 64], ["OUT", 128, 64]], "reduces into rank 1's user_out["),
    ],
)
def test_every_side_is_held_against_its_owners_buffer(task: list[Any], expected: str) -> None:
    (finding,) = found(find_bounds, written({"1": {"0": [task]}}))
    assert expected in finding.message


def test_the_owner_of_remote_memory_is_the_peer() -> None:
    buffers = {"0": {**FILE["buffers"]["0"], "CCL_OUT": 256}, "1": FILE["buffers"]["1"]}
    beyond_own = ["read", 0, ["CCL_OUT", 192, 64], ["OUT", 0, 64]]
    assert not found(find_bounds, written({"1": {"0": [beyond_own]}}, buffers=buffers))
    beyond_peers = ["read", 1, ["CCL_OUT", 192, 64], ["OUT", 0, 64]]
    assert names(find_bounds, written({"0": {"0": [beyond_peers]}}, buffers=buffers)) == [
        "OUT_OF_BOUNDS"
    ]


def test_slices_that_end_with_their_buffer_and_empty_ones_anywhere_are_fine() -> None:
    tasks = [
        ["copy", ["IN", 64, 64], ["CCL_OUT", 64, 64]],
        ["copy", ["IN", 128, 0], ["OUT", 1000, 0]],
        ["read", 1, ["IN", 900, 0], ["OUT", 128, 0]],
    ]
    assert not found(find_bounds, written({"0": {"0": tasks}}))


def test_an_author_can_leave_a_buffer_with_a_region_of_their_own() -> None:
    def body(rank: Any) -> None:
        rank.main.copy(Region(Buffer.CCL_OUT, 1000, 64), rank.user_in[0:64])
        rank.main.copy(rank.user_out[0:64], Region(Buffer.CCL_OUT, -64, 64))
        rank.main.copy(Region(Buffer.USER_OUT, 8, -4), Region(Buffer.USER_IN, 8, -4))

    before, _, after, backwards = found(find_bounds, authored(body, topology=1))
    assert "writes rank 0's CCL_Out[1000:1064], but that buffer has 1024 bytes." in after.message
    assert "reads rank 0's CCL_Out[-64:0], but a buffer starts at byte 0." in before.message
    assert "writes rank 0's user_out[8:4], a range of -4 bytes." in backwards.message
    assert before.hint == "Check how the offset and the size of this slice are computed."
    assert backwards.hint == before.hint
    assert after.source is not None
    assert after.source.startswith("verifier/test_bounds.py:")


@pytest.mark.parametrize(
    ("buffer", "hint"),
    [
        ("IN", "Make the slice end at byte 128, or earlier; or the op's count sets its size."),
        ("CCL_IN", "let a round take less: ResourceRequest(max_count=...)."),
        ("SCRATCH", "Rank 0 has no scratch; ask for more: ResourceRequest(scratch_bytes=...)."),
        ("TEMP", "Make the slice end at byte 8, or earlier; or enlarge buffers.0.TEMP."),
    ],
)
def test_the_hint_says_where_the_size_comes_from(buffer: str, hint: str) -> None:
    buffers = {"0": {**FILE["buffers"]["0"], "SCRATCH": 0, "TEMP": 8}, "1": {}}
    task = ["copy", [buffer, 0, 129], ["OUT", 0, 129]]
    source, _ = found(find_bounds, written({"0": {"0": [task]}}, buffers=buffers))
    assert source.hint.endswith(hint)


def test_memory_that_the_peer_does_not_export_is_named_with_what_it_does_export() -> None:
    read = ["read", 1, ["CCL_IN", 0, 64], ["OUT", 0, 64]]
    (finding,) = found(find_bounds, written({"0": {"0": [read]}}))
    assert finding.name == "REMOTE_NOT_EXPORTED"
    assert finding.message == (
        "rank 0 main task 0 reads rank 1's CCL_In[0:64] to rank 0's user_out[0:64], "
        "but rank 1 exports CCL_Out on this transport."
    )
    assert finding.memory == (MemoryRange(1, "CCL_IN", 0, 64),)


def test_what_counts_is_what_the_far_end_exports() -> None:
    link = {"id": 0, "ranks": [0, 1], "kind": "sdma"}
    form = {key: value for key, value in FILE.items() if key not in ("link", "exported")}
    tasks = {"0": {"0": [["write", 1, ["IN", 0, 64], ["OUT", 0, 64]]]}}
    for exports, expected in (
        ({"1": ["CCL_IN", "CCL_OUT", "OUT"]}, []),
        ({"0": ["OUT"]}, ["REMOTE_NOT_EXPORTED"]),
    ):
        document = {**form, "links": [{**link, "exports": exports}], "tasks": tasks}
        program = from_json(json.dumps(document))
        assert names(find_bounds, program) == expected


def test_a_name_that_no_rank_has_exports_nothing() -> None:
    read = {"0": {"0": [["read", 1, ["CCL_OUT", 0, 64], ["OUT", 0, 64]]]}}
    (finding,) = found(find_bounds, written(read, exported=["CLL_OUT"]))
    assert finding.name == "REMOTE_NOT_EXPORTED"
    assert "but rank 1 exports nothing on this transport." in finding.message
    assert not found(find_bounds, written(read, exported=["CLL_OUT", "CCL_OUT"]))


def test_a_transport_that_is_not_there_exports_nothing_to_miss() -> None:
    """Unless an end requested it, or exports something."""
    form = {key: value for key, value in FILE.items() if key not in ("link", "exported")}
    tasks = {"0": {"0": [["write", 1, ["IN", 0, 64], ["OUT", 0, 64]]]}}
    link = {"id": 0, "ranks": [0, 1], "kind": "sdma", "exports": {}, "notifies": 0}
    for links, expected in (
        ([], 0),
        ([link], 0),
        ([{**link, "notifies": 1}], 1),
        ([{**link, "exports": {"1": ["IN"]}}], 1),
    ):
        program = from_json(json.dumps({**form, "links": links, "tasks": tasks}))
        assert names(find_bounds, program) == ["REMOTE_NOT_EXPORTED"] * expected


def test_an_author_can_reach_past_the_exports_with_a_region_of_their_own() -> None:
    def reading(memory: Buffer) -> Any:
        def body(rank: Any) -> None:
            link = rank.flat.right
            rank.main.copy(rank.user_out[0:64], Region(memory, 0, 64, link))

        return body

    assert not found(find_bounds, authored(reading(Buffer.CCL_IN), MESH))
    finding, _ = found(find_bounds, authored(reading(Buffer.USER_IN), MESH))
    assert "exports CCL_In and CCL_Out on this transport" in finding.message
    request = ResourceRequest((PlaneRequest("flat", "mesh", input_mem=Buffer.USER_IN),))
    assert not found(find_bounds, authored(reading(Buffer.USER_IN), request))


def test_both_ends_of_one_wrong_line_and_all_its_ranks_are_counted() -> None:
    def body(rank: Any) -> None:
        for _ in range(10):
            rank.main.copy(Region(Buffer.CCL_OUT, 1024, 64), rank.user_in[0:64])

    findings = found(find_bounds, authored(body, topology=4))
    assert len(findings) == 8
    assert [finding.more for finding in findings] == [0] * 7 + [32]


def test_what_people_are_not_shown_is_listed_all_the_same() -> None:
    def body(rank: Any) -> None:
        for k in range(30):
            rank.main.copy(Region(Buffer.CCL_OUT, 1024 * (k + 1), 64), rank.user_in[0:64])

    report = verify_program(authored(body, topology=2))
    found = [f for f in report.every() if f.name == "OUT_OF_BOUNDS"]
    assert len({f.tasks for f in found}) == len(found) == 60
    assert not any(f.more for f in found)
    document = json.loads("".join(report.json()))
    assert document == report.document()
    assert [f["class"] for f in document["findings"]].count("OUT_OF_BOUNDS") == 60
