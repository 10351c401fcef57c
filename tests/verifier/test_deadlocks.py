"""Streams that can never go on: the wait, the post that is missing, or the cycle."""

import numpy as np
import pytest

from hccl_py.enums import TaskKind
from hccl_py.program.edit import without
from hccl_py.verifier import TaskAt, verify_program
from hccl_py.verifier.verifier import STUCK
from tests.recording import op_of, recorded
from tests.verifier.broken_files import FILES
from tests.verifier.sketches import Sketch, all_gather, sketch

OP = {"name": "all_gather", "dtype": "uint8", "count": 0}


def empty(ranks: int) -> Sketch:
    return sketch(OP, ranks, {"IN": 0, "OUT": 0, "CCL": 0})


def test_a_missing_post_names_the_wait_and_who_should_post() -> None:
    report = FILES["WAIT_WITHOUT_POST"](True).report()
    (finding,) = report.errors
    assert finding.tasks == (TaskAt(2, 0, 8),)
    assert finding.ranks == (2,)
    assert finding.repeat == 1
    assert finding.message == (
        "rank 2 main task 8 waits for ever for Ack from rank 0: it is never posted. 2 other "
        "streams wait behind it."
    )
    assert finding.hint.startswith("Rank 0 must post it")
    assert report.notes == (STUCK,)


def test_a_notify_posted_under_another_index_is_pointed_at() -> None:
    drawn = all_gather()
    drawn.at(0)[drawn.find(0, "post", 2, 0)] = ["post", 2, 2]
    report = drawn.report()
    (waiting,) = report.of_class("WAIT_WITHOUT_POST")
    (left,) = report.of_class("UNMATCHED_POST")
    assert waiting.hint.endswith("rank 0 main task 3 posts DataAck of rank 2: is that meant?")
    assert left.hint.endswith("rank 2 main task 8 waits for Ack from rank 0: is that meant?")


def test_a_cycle_names_every_wait_and_the_post_behind_it() -> None:
    (finding,) = FILES["DEADLOCK_CYCLE"](True).report().errors
    assert finding.tasks == tuple(TaskAt(rank, 0, 2) for rank in range(4))
    assert finding.ranks == (0, 1, 2, 3)
    head, *lines = finding.message.splitlines()
    assert head == "4 streams wait for each other in a cycle:"
    assert lines == [
        f"  rank {r} main task 2 waits for Ack from rank {(r + 1) % 4}, "
        f"which rank {(r + 1) % 4} main task 5 would post"
        for r in range(4)
    ]
    assert finding.hint.startswith("Post before you wait")


def test_a_cycle_that_comes_of_a_missing_post_says_so() -> None:
    """Without rank 0's first DataSignal, rank 1 takes the second one for it, and all get stuck."""
    program = recorded("AllGatherComm", op_of("all_gather", 100), 3)
    posts = (program.tasks.rank == 0) & (program.tasks.kind == TaskKind.NOTIFY_POST)
    row = int(np.flatnonzero(posts)[1])
    (finding,) = verify_program(without(program, np.arange(len(program.tasks)) != row)).errors
    assert finding.name == "DEADLOCK_CYCLE"
    assert finding.hint == (
        "A post is missing: DataSignal from rank 0, for which rank 1 waits, is posted 2 times and "
        "waited for 3 times. Rank 0 must post it once for each wait."
    )


def test_two_cycles_are_two_findings() -> None:
    drawn = empty(4)
    for rank, peer in ((0, 1), (1, 0), (2, 3), (3, 2)):
        drawn.put(rank, ["wait", peer, 0], ["post", peer, 0])
    cycles = drawn.report().of_class("DEADLOCK_CYCLE")
    assert [finding.ranks for finding in cycles] == [(0, 1), (2, 3)]


def test_a_stream_may_wait_for_its_own_later_post() -> None:
    drawn = empty(1)
    drawn.put(0, ["local_wait", 0], ["local_post", 0, 0])
    (finding,) = drawn.report().errors
    assert finding.name == "DEADLOCK_CYCLE"
    assert finding.message.startswith("A stream waits for a post of its own that comes later:")
    assert finding.tasks == (TaskAt(0, 0, 0),)


def test_a_local_wait_without_post_is_this_ranks_business() -> None:
    drawn = empty(1)
    drawn.put(0, ["local_wait", 0], stream=1)
    (finding,) = drawn.report().of_class("WAIT_WITHOUT_POST")
    assert finding.hint.startswith("Another stream of this rank must post it")


def test_a_wait_too_many_is_found_where_it_blocks() -> None:
    drawn = all_gather()
    drawn.put(3, ["wait", 1, 0])
    (finding,) = drawn.report().errors
    assert finding.name == "WAIT_WITHOUT_POST"
    assert finding.tasks == (TaskAt(3, 0, 17),)
    assert "for Ack from rank 1: it is posted once and waited for 2 times." in finding.message


def test_who_waits_for_a_rank_that_the_op_does_not_need_is_found() -> None:
    drawn = sketch({"name": "send_recv", "dtype": "uint8", "count": 64, "pairs": [[0, 0]]}, 2, FULL)
    drawn.put(0, ["copy", ["IN", 0, 64], ["OUT", 0, 64]])
    assert not drawn.report().findings
    drawn.put(0, ["wait", 1, 0])
    (finding,) = drawn.report().errors
    assert finding.name == "WAIT_WITHOUT_POST"
    drawn.at(0)[1] = ["post", 1, 0]
    (finding,) = drawn.report().errors
    assert finding.name == "UNMATCHED_POST"


FULL = {"IN": 64, "OUT": 64, "CCL": 64}


@pytest.mark.parametrize("ranks", [13, 40])
def test_long_cycles_are_cut(ranks: int) -> None:
    drawn = empty(ranks)
    for rank in range(ranks):
        drawn.put(rank, ["wait", (rank + 1) % ranks, 0], ["post", (rank - 1) % ranks, 0])
    (finding,) = drawn.report().errors
    assert finding.message.splitlines()[-1] == f"  ... and {ranks - 12} more"
    assert len(finding.tasks) == ranks


def test_what_a_lost_post_has_left_waiting_is_no_finding_of_its_own() -> None:
    drawn = empty(2)
    drawn.put(0, ["post", 1, 0], ["post", 1, 0], ["post", 1, 1])
    drawn.put(1, ["wait", 0, 1], ["wait", 0, 0], ["wait", 0, 0])
    assert {finding.name for finding in drawn.report()} == {"NOTIFY_OVERRUN"}


def test_who_waits_for_a_silent_rank_hears_of_it() -> None:
    report = FILES["SILENT_RANK"](True).report()
    waits = report.of_class("WAIT_WITHOUT_POST")
    assert [finding.tasks for finding in waits] == [
        (TaskAt(0, 0, 11),),
        (TaskAt(1, 0, 8),),
        (TaskAt(2, 0, 5),),
    ]
    assert {finding.hint for finding in waits} == {
        "Rank 3 must post it once for each wait, but it issues no task at all."
    }
