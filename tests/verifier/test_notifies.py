"""Notifies that are used again too early, connections without order, waits that are not needed."""

from dataclasses import replace
from typing import Any

from hccl_py.program.program import Call
from hccl_py.verifier import Options, Severity, TaskAt, verify_program
from tests.verifier.broken_files import FILES
from tests.verifier.programs import written
from tests.verifier.sketches import Sketch, all_gather, sketch

OP = {"name": "barrier", "dtype": "uint8", "count": 0}


def barrier() -> Sketch:
    """A barrier of two ranks: they answer each other, and know that they did."""
    drawn = sketch(OP, 2, {"IN": 0, "OUT": 0, "CCL": 0})
    for rank in range(2):
        drawn.put(rank, ["post", 1 - rank, 0], ["wait", 1 - rank, 0])
        drawn.put(rank, ["post", 1 - rank, 1], ["wait", 1 - rank, 1])
    return drawn


def test_a_notify_for_two_things_is_overrun_where_the_peer_is_late() -> None:
    report = FILES["NOTIFY_OVERRUN"](True).report()
    first = min(report.errors, key=lambda finding: finding.repeat)
    assert first.name == "NOTIFY_OVERRUN"
    assert first.tasks == (TaskAt(1, 0, 13), TaskAt(0, 0, 5))
    assert first.ranks == (0, 1)
    assert first.message == (
        "rank 1 main task 13 posts Ack of rank 0 again without knowing that rank 0 main task 5 has "
        "consumed the previous post: where that is late, one of the two is lost."
    )
    assert "wait for the answer before the next post" in first.hint


def test_reuse_in_the_next_op_needs_an_answer_too() -> None:
    drawn = barrier()
    assert not drawn.report().findings
    for rank in range(2):
        del drawn.at(rank)[2:]
    report = drawn.report()
    assert {finding.name for finding in report.errors} == {"NOTIFY_OVERRUN"}
    assert [finding.repeat for finding in report.errors] == [2, 2]
    assert report.only_between_calls == report.errors
    stated = replace(drawn.program(), calls=(Call(), Call()))
    assert not verify_program(stated).only_between_calls  # the caller says that there are two
    assert report.errors[0].tasks == (TaskAt(0, 0, 2), TaskAt(1, 0, 1))
    assert report.errors[0].message.startswith("rank 0 main task 0 of op 2 posts Ack of rank 1")
    assert drawn.report(repeat=1).ok


def test_two_posts_in_a_row_lose_one_for_certain() -> None:
    drawn = sketch(OP, 2, {"IN": 0, "OUT": 0, "CCL": 0})
    drawn.put(0, ["post", 1, 0], ["post", 1, 0], ["post", 1, 1])
    drawn.put(1, ["wait", 0, 1], ["wait", 0, 0], ["wait", 0, 0])
    finding = drawn.report().of_class("NOTIFY_OVERRUN")[0]
    assert finding.message == (
        "rank 0 main task 1 posts Ack of rank 1 while the post of rank 0 main task 0 is still not "
        "consumed: a notify is one bit, so one of them is lost."
    )
    assert finding.tasks == (TaskAt(0, 0, 1), TaskAt(0, 0, 0))


def test_ping_pong_on_one_notify_is_fine() -> None:
    drawn = sketch(OP, 2, {"IN": 0, "OUT": 0, "CCL": 0})
    for _ in range(5):
        drawn.put(0, ["post", 1, 0], ["wait", 1, 0])
        drawn.put(1, ["wait", 0, 0], ["post", 0, 0])
    assert not drawn.report(repeat=3).errors


def test_two_streams_that_wait_for_one_notify_may_take_each_others_post() -> None:
    drawn = sketch(OP, 2, {"IN": 0, "OUT": 0, "CCL": 0})
    drawn.put(0, ["local_post", 1, 0], ["wait", 1, 0], ["post", 1, 1], ["local_wait", 0])
    drawn.put(0, ["local_wait", 0], ["wait", 1, 0], ["post", 1, 2], ["local_post", 0, 0], stream=1)
    drawn.put(1, ["post", 0, 0], ["wait", 0, 1], ["post", 0, 0], ["wait", 0, 2])
    found = drawn.report().of_class("NOTIFY_OVERRUN")
    finding = next(f for f in found if "either may take the other's post" in f.message)
    assert {task.stream for task in finding.tasks} == {0, 1}
    assert "wait for the same notify (Ack from rank 1) in no order" in finding.message
    assert finding.hint.startswith("Let one stream do all waits of a notify")


def test_two_streams_on_one_connection_name_both_and_the_peer() -> None:
    (finding,) = FILES["CONNECTION_UNORDERED"](True).report().errors
    assert finding.tasks == (TaskAt(1, 1, 1), TaskAt(1, 0, 3))
    assert finding.ranks == (1,)
    assert finding.message.startswith(
        "rank 1 sub 0 task 1 and rank 1 main task 3 issue on the RDMA connection to rank 0 in no "
        "order"
    )
    assert finding.hint.startswith("Use one stream for each connection")


def test_different_connections_need_no_order() -> None:
    drawn = FILES["CONNECTION_UNORDERED"](True)
    drawn.document["link"] = "sdma"
    assert not drawn.report().of_class("CONNECTION_UNORDERED")


def test_an_implied_wait_is_a_hint_about_wait_and_post() -> None:
    report = FILES["REDUNDANT_SYNC"](True).report()
    (finding,) = report.findings
    assert finding.severity is Severity.HINT
    assert finding.tasks == (TaskAt(1, 0, 12), TaskAt(0, 0, 2))
    assert finding.message.startswith("rank 1 main task 12 waits for Ack from rank 0, but ")
    assert "(rank 0 main task 2) is already known to be over" in finding.message
    assert report.ok


def test_no_wait_of_a_program_that_gets_stuck_is_called_needless() -> None:
    drawn = FILES["REDUNDANT_SYNC"](True)
    drawn.put(3, ["wait", 0, 2])
    assert {finding.name for finding in drawn.report()} == {"WAIT_WITHOUT_POST"}


def test_a_barrier_after_the_op_is_a_hint_at_most() -> None:
    drawn = all_gather()
    for index in (2, 3):
        for rank in range(4):
            drawn.put(rank, *(["post", p, index] for p in range(4) if p != rank))
            drawn.put(rank, *(["wait", p, index] for p in range(4) if p != rank))
    assert drawn.report().ok


def test_of_waits_in_a_row_only_those_are_needed_that_bring_something() -> None:
    """Two posts in a row and two waits in a row: the first pair brings nothing."""
    tasks: dict[str, Any] = {
        "0": {"0": [["post", 1, 0], ["post", 1, 2], ["wait", 1, 0], ["wait", 1, 2]]},
        "1": {"0": [["post", 0, 0], ["post", 0, 2], ["wait", 0, 0], ["wait", 0, 2]]},
    }
    program = written(tasks, op={"name": "barrier", "dtype": "fp32"})
    report = verify_program(program, Options(repeat=1))
    assert [f.tasks[0] for f in report.of_class("REDUNDANT_SYNC")] == [
        TaskAt(0, 0, 2),
        TaskAt(1, 0, 2),
    ]
    between = ["copy", ["IN", 0, 8], ["OUT", 0, 8]]
    for rank in "01":
        tasks[rank]["0"].insert(3, between)
    apart = written(tasks, op={"name": "barrier", "dtype": "fp32"})
    assert not verify_program(apart, Options(repeat=1)).of_class("REDUNDANT_SYNC")
