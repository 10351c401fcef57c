"""What is wrong with outputs: which bytes, what they hold, and which task wrote them."""

import json
from typing import Any

import pytest

from hccl_py.formats import from_json
from hccl_py.verifier import MemoryRange, TaskAt, verify_program
from tests.verifier.broken_files import FILES
from tests.verifier.sketches import Flow, all_gather, all_reduce, mesh, sketch

SUM = {"name": "all_reduce", "dtype": "fp32", "count": 16, "reduce": "sum"}
FULL = {"IN": 64, "OUT": 64, "CCL": 64}


def test_a_missing_output_names_the_range_and_what_belongs_there() -> None:
    (finding,) = FILES["OUTPUT_MISSING"](True).report().errors
    assert finding.tasks == ()
    assert finding.memory == (MemoryRange(0, "OUT", 128, 192),)
    assert finding.ranks == (0,)
    assert finding.message == (
        "No task writes rank 0's user_out[128:192], where rank 2's input [0:64] belongs."
    )
    assert finding.hint.startswith("Add the copy, or deliver the result")


def test_missing_neighbours_are_told_apart() -> None:
    drawn = all_gather()
    for peer in (1, 2):
        drawn.drop(0, "read", peer)
    found = drawn.report().of_class("OUTPUT_MISSING")
    assert [finding.memory[0].start for finding in found] == [64, 128]


def test_an_output_that_is_too_small_names_both_sizes() -> None:
    drawn = all_gather()
    drawn.document["buffers"]["3"]["OUT"] = 200
    found = drawn.report().of_class("OUTPUT_MISSING")
    assert found[0].ranks == (3,)
    assert found[0].message == "Rank 3's OUT has 200 bytes, and all_gather fills 256."


def test_without_any_output_buffer_all_of_it_is_missing() -> None:
    drawn = sketch({"name": "broadcast", "dtype": "uint8", "count": 8, "root": 0}, 2, {"IN": 8})
    drawn.document["exported"] = ["IN"]
    for rank in range(2):
        drawn.put(rank, ["compute", 1])
    (finding,) = drawn.report().errors
    assert finding.name == "OUTPUT_MISSING"
    assert finding.message == "Rank 0's OUT has 0 bytes, and broadcast fills 8."
    assert finding.ranks == (0, 1)


def test_data_of_another_rank_names_both_and_the_writer() -> None:
    (finding,) = FILES["WRONG_SOURCE"](True).report().errors
    assert finding.tasks == (TaskAt(0, 0, 7),)
    assert finding.memory == (MemoryRange(0, "OUT", 128, 192),)
    assert finding.message.startswith(
        "rank 0's user_out[128:192] should hold rank 2's input [0:64] and holds rank 1's input "
        "[0:64]."
    )
    assert "rank 0 main task 7 wrote it" in finding.message
    assert "peer" in finding.hint


def test_the_right_rank_at_the_wrong_place_names_both_places() -> None:
    first, second = FILES["WRONG_OFFSET"](True).report().errors
    assert first.tasks == (TaskAt(0, 0, 10),)
    assert first.memory == (MemoryRange(0, "OUT", 128, 160),)
    assert "should hold rank 2's input [0:32] and holds rank 2's input [32:64]" in first.message
    assert second.memory == (MemoryRange(0, "OUT", 160, 192),)
    assert "address" in first.hint


def test_the_step_that_reduces_in_another_way_is_named() -> None:
    (finding,) = FILES["WRONG_REDUCE_OP"](True).report().errors
    assert finding.tasks == (TaskAt(0, 0, 12),)
    assert finding.message == (
        "rank 0 main task 12 reduces with max, but the call says sum, and the result ends in rank "
        "0's user_out[0:64]."
    )
    assert finding.hint == "Reduce with sum."


def test_a_missing_rank_of_a_sum_is_named_with_the_last_writer() -> None:
    (finding,) = FILES["MISSING_CONTRIBUTION"](True).report().errors
    assert finding.tasks == (TaskAt(0, 0, 11),)
    assert finding.memory == (MemoryRange(0, "OUT", 0, 64),)
    assert finding.message.startswith("rank 0's user_out[0:64] lacks the contribution of rank 2.")


def test_several_missing_ranks_are_named_together() -> None:
    drawn = all_reduce()
    for peer in (1, 3):
        drawn.drop(0, "read_reduce", peer)
    (finding,) = drawn.report().errors
    assert "lacks the contribution of ranks 1 and 3." in finding.message


def test_a_sum_of_nothing_lacks_all_others() -> None:
    drawn = all_reduce()
    for peer in (1, 2, 3):
        drawn.drop(0, "read_reduce", peer)
    (finding,) = drawn.report().errors
    assert finding.name == "MISSING_CONTRIBUTION"
    assert "lacks the contribution of ranks 1 to 3." in finding.message


def test_a_rank_that_counts_twice_is_named() -> None:
    (finding,) = FILES["DOUBLE_CONTRIBUTION"](True).report().errors
    assert finding.tasks == (TaskAt(0, 0, 10), TaskAt(0, 0, 13))  # adds again; wrote last
    assert finding.message.startswith("rank 0's user_out[0:64] counts the input of rank 2 2 times.")


def test_half_of_a_sum_may_be_wrong() -> None:
    drawn = all_reduce()
    at = drawn.find(0, "read_reduce", 2)
    drawn.at(0)[at][3:] = [["CCL", 0, 32], ["OUT", 0, 32]]
    (finding,) = drawn.report().errors
    assert finding.name == "MISSING_CONTRIBUTION"
    assert finding.memory == (MemoryRange(0, "OUT", 32, 64),)


def test_a_sum_with_bytes_from_the_wrong_place() -> None:
    drawn = all_reduce()
    at = drawn.find(0, "read_reduce", 2)
    drawn.at(0)[at : at + 1] = [
        ["read_reduce", 2, "sum", ["CCL", 32, 32], ["OUT", 0, 32]],
        ["read_reduce", 2, "sum", ["CCL", 0, 32], ["OUT", 32, 32]],
    ]
    found = drawn.report().errors
    assert {finding.name for finding in found} == {"WRONG_OFFSET"}
    assert "adds rank 2's input from byte 32, where byte 0 belongs" in found[0].message


def test_a_sum_where_a_copy_is_wanted() -> None:
    for peer, name in ((1, "WRONG_SOURCE"), (2, "DOUBLE_CONTRIBUTION")):
        drawn = all_gather()
        at = drawn.find(0, "read", 2)
        drawn.at(0).insert(at + 1, ["read_reduce", peer, "sum", ["CCL", 0, 64], ["OUT", 128, 64]])
        found = drawn.report().of_class(name)
        assert found[0].memory == (MemoryRange(0, "OUT", 128, 192),)
        assert found[0].tasks == (TaskAt(0, 0, at + 1),)
        assert found[0].hint == "Nothing is to be reduced here: copy."


def test_a_reduction_may_take_the_way_over_other_ranks() -> None:
    """Rank 1 adds what ranks 0 and 1 have; all that counts is that each is in once."""
    op = {"name": "reduce", "dtype": "int32", "count": 16, "reduce": "sum", "root": 2}
    drawn = sketch(op, 3, FULL)
    for rank in range(3):
        drawn.put(rank, ["copy", ["IN", 0, 64], ["CCL", 0, 64]])
    into = ["CCL", 0, 64]
    for giver, taker in ((0, 1), (1, 2)):
        drawn.put(giver, ["post", taker, 0])
        drawn.put(taker, ["wait", giver, 0], ["read_reduce", giver, "sum", into, into])
        drawn.put(taker, ["post", giver, 1])
        drawn.put(giver, ["wait", taker, 1])
    drawn.put(2, ["copy", into, ["OUT", 0, 64]])
    drawn.at(1).append(drawn.at(1).pop(3))
    drawn.at(1)[:] = [t for t in drawn.at(1) if t != ["post", 0, 1]]
    drawn.at(1).insert(3, ["post", 0, 1])
    assert not drawn.report().errors


@pytest.mark.parametrize("ranks", [2, 4])
def test_silent_ranks_are_one_finding(ranks: int) -> None:
    drawn = all_gather()
    for rank in range(4 - ranks, 4):
        drawn.at(rank).clear()
    (finding,) = drawn.report().of_class("SILENT_RANK")
    assert finding.ranks == tuple(range(4 - ranks, 4))
    words = {2: "Ranks 2 and 3 of 4 issue", 4: "Ranks 0 to 3 of 4 issue"}[ranks]
    assert finding.message == f"{words} no task at all, but all_gather needs them."
    assert finding.hint.startswith("Every rank has to run the op")


def test_ranks_that_an_op_does_not_need_may_be_silent() -> None:
    op = {"name": "send_recv", "dtype": "uint8", "count": 16, "pairs": [[0, 2]]}
    assert not mesh(op, [Flow(0, 0, 2, 0, 16)], 4).report().findings


def test_a_thousand_wrong_ranges_are_a_few_and_a_number() -> None:
    document = json.loads(all_gather().text())
    size = 4096
    document["op"]["count"] = size
    document["tasks"] = {
        str(r): {"0": [["copy", ["IN", k, 1], ["OUT", 2 * k, 1]] for k in range(0, 600, 2)]}
        for r in range(4)
    }
    for buffers in document["buffers"].values():
        buffers |= {"IN": size, "OUT": 4 * size}
    report = verify_program(from_json(json.dumps(document)))
    assert len(report.errors) < 40
    # Every rank: of its own first 600 places those that are even, and 300 more behind them, lack
    # the right byte, each a range of its own; from 600 on one range, and one for each peer.
    listed = [finding for finding in report.every() if finding.name != "DEAD_TRANSFER"]
    assert len(listed) == sum(1 + finding.more for finding in report.errors)
    assert len(listed) == len({(f.name, f.memory) for f in listed})
    for rank in range(4):
        ranges = sorted(m[2:] for f in listed for m in f.memory if m.rank == rank)
        wrong = {byte for low, high in ranges for byte in range(low, high)}
        right = {0} if rank == 0 else set()
        assert wrong == set(range(4 * size)) - right


@pytest.mark.parametrize(("op", "wrong"), [("max", False), ("min", False), ("sum", True)])
def test_a_rank_may_count_twice_where_that_changes_nothing(op: str, wrong: bool) -> None:
    """Max and min of the same input again are the same; its sum is not."""
    drawn = all_reduce(reduce=op)
    drawn.at(0).append(["reduce", op, ["IN", 0, 64], ["OUT", 0, 64]])
    assert [f.name for f in drawn.report().errors] == ["DOUBLE_CONTRIBUTION"] * wrong


def test_a_lost_contribution_names_who_overwrote_it() -> None:
    """Rank 0 copies rank 1's input over its own instead of adding it."""
    drawn = all_reduce()
    at = drawn.find(0, "read_reduce", 1)
    _, peer, _, src, dst = drawn.at(0)[at]
    drawn.at(0)[at] = ["read", peer, src, dst]
    (finding,) = drawn.report().of_class("MISSING_CONTRIBUTION")
    assert finding.tasks[0] == TaskAt(0, 0, at)
    assert "overwrites what rank 0 main task" in finding.message


def test_sums_that_no_memory_could_hold_unfolded_are_judged_all_the_same() -> None:
    """Forty times a copy and a sum with itself, shifted: 2^40 parts."""
    tasks: list[list[Any]] = [["copy", ["IN", 0, 64], ["CCL", 0, 64]]]
    for step in range(40):
        shift = 4 * (step % 5)
        tasks.append(["copy", ["CCL", 0, 64], ["CCL", 64, 64]])
        tasks.append(["reduce", "sum", ["CCL", 64 + shift, 32], ["CCL", 0, 32]])
    tasks.append(["copy", ["CCL", 0, 64], ["OUT", 0, 64]])
    drawn = sketch({"name": "all_reduce", "dtype": "fp32", "count": 16, "reduce": "sum"}, 1, SIZES)
    drawn.put(0, *tasks)
    names = {finding.name for finding in drawn.report().errors}
    assert names & {"WRONG_OFFSET", "DOUBLE_CONTRIBUTION"}


SIZES = {"IN": 64, "OUT": 64, "CCL": 128}


def test_one_rank_alone_can_have_its_bytes_in_the_wrong_place() -> None:
    op = {"name": "all_reduce", "dtype": "uint8", "count": 8, "reduce": "sum"}
    drawn = sketch(op, 1, {"IN": 8, "OUT": 8})
    drawn.put(0, ["copy", ["IN", 0, 4], ["OUT", 4, 4]], ["copy", ["IN", 4, 4], ["OUT", 0, 4]])
    findings = drawn.report().errors
    assert [finding.name for finding in findings] == ["WRONG_OFFSET"] * 2
    assert "holds rank 0's input [4:8]" in findings[0].message


def test_neighbours_that_hold_different_sums_are_told_apart() -> None:
    """Half of the output counts a rank twice, the other half lacks one; one task delivers both."""
    drawn = sketch(SUM, 3, {"IN": 64, "OUT": 64, "CCL": 64})
    for rank, peers in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        drawn.put(rank, ["copy", ["IN", 0, 64], ["CCL", 0, 64]])
        drawn.put(rank, *(["post", peer, 0] for peer in peers))
        drawn.put(rank, ["copy", ["IN", 0, 64], ["TMP", 0, 64]])
        for peer in peers:
            drawn.put(rank, ["wait", peer, 0])
            drawn.put(rank, ["read_reduce", peer, "sum", ["CCL", 0, 64], ["TMP", 0, 64]])
            drawn.put(rank, ["post", peer, 1])
        drawn.put(rank, *(["wait", peer, 1] for peer in peers))
        drawn.put(rank, ["copy", ["TMP", 0, 64], ["OUT", 0, 64]])
        drawn.document["buffers"][str(rank)]["TMP"] = 64
    at = drawn.find(0, "read_reduce", 2)
    twice = ["read_reduce", 1, "sum", ["CCL", 0, 32], ["TMP", 0, 32]]
    drawn.at(0)[at : at + 1] = [["read_reduce", 2, "sum", ["CCL", 0, 32], ["TMP", 0, 32]], twice]
    found = {finding.name: finding for finding in drawn.report(repeat=1).errors}
    assert found["DOUBLE_CONTRIBUTION"].memory == (MemoryRange(0, "OUT", 0, 32),)
    assert "counts the input of rank 1 2 times" in found["DOUBLE_CONTRIBUTION"].message
    assert found["MISSING_CONTRIBUTION"].memory == (MemoryRange(0, "OUT", 32, 64),)
    assert "lacks the contribution of rank 2." in found["MISSING_CONTRIBUTION"].message


def test_neighbours_of_which_the_same_is_true_are_one_finding() -> None:
    """The same two ranks are added, but in two tasks: two sums that say the same."""
    drawn = all_reduce()
    drawn.drop(0, "read_reduce", 2)
    at = drawn.find(0, "read_reduce", 1)
    drawn.at(0)[at : at + 1] = [
        ["read_reduce", 1, "sum", ["CCL", half, 32], ["OUT", half, 32]] for half in (0, 32)
    ]
    (finding,) = drawn.report().errors
    assert finding.memory == (MemoryRange(0, "OUT", 0, 64),)


def test_inputs_from_several_wrong_places_are_told_apart() -> None:
    drawn = all_reduce()
    for peer, place in ((1, 32), (2, 32), (3, 48)):
        at = drawn.find(0, "read_reduce", peer)
        drawn.at(0)[at][3:] = [["CCL", place, 16], ["OUT", 0, 16]]
    found = [f.message for f in drawn.report().of_class("WRONG_OFFSET")]
    assert [message.split(" from byte ")[0] for message in found] == [
        "rank 0's user_out[0:16] adds the inputs of ranks 1 and 2",
        "rank 0's user_out[0:16] adds rank 3's input",
    ]


def test_of_two_ranks_one_may_be_silent_and_of_one_it_may_be_alone() -> None:
    op = {"name": "all_gather", "dtype": "uint8", "count": 8}
    for ranks, silent in ((2, [(1,)]), (1, [])):
        drawn = sketch(op, ranks, {"IN": 8, "OUT": 8 * ranks})
        if ranks == 2:
            drawn.put(0, ["copy", ["IN", 0, 8], ["OUT", 0, 8]])
        assert [f.ranks for f in drawn.report().of_class("SILENT_RANK")] == silent


@pytest.mark.parametrize(
    ("tasks", "classes"),
    [
        ([], []),
        ([["copy", ["IN", 0, 8], ["OUT", 0, 8]]], []),
        ([["copy", ["IN", 0, 2], ["OUT", 2, 2]]], ["WRONG_OFFSET"]),
    ],
)
def test_a_root_may_leave_its_output_but_write_nothing_wrong_there(
    tasks: list[Any], classes: list[str]
) -> None:
    """A broadcast of HCCL has one buffer: the root's data is in it already."""
    op = {"name": "broadcast", "dtype": "uint8", "count": 8, "root": 0}
    drawn = mesh(op, [Flow(0, 0, 1, 0, 8)], 2)
    drawn.put(0, *tasks)
    errors = drawn.report().errors
    assert [finding.name for finding in errors] == classes
    assert [finding.memory for finding in errors] == [(MemoryRange(0, "OUT", 2, 4),)] * len(classes)
