"""Sub streams that work before main has started them, or after it has ended."""

from hccl_py.verifier import TaskAt
from tests.verifier.broken_files import FILES
from tests.verifier.sketches import Sketch, sketch

OP = {"name": "all_gather", "dtype": "uint8", "count": 64}
COPY = ["copy", ["IN", 0, 64], ["OUT", 0, 64]]


def one() -> Sketch:
    return sketch(OP, 1, {"IN": 64, "OUT": 64, "CCL": 64})


def test_a_stream_that_main_has_not_started_is_named_with_its_first_task() -> None:
    (finding,) = FILES["STREAM_NOT_STARTED"](True).report().errors
    assert finding.tasks == (TaskAt(2, 1, 0),)
    assert finding.ranks == (2,)
    assert finding.repeat == 1
    assert finding.message.startswith(
        "rank 2 sub 0 task 0 runs without knowing that main has begun"
    )
    assert finding.hint == ("Let main post a notify that sub 0 waits for first (rank.fork() does).")


def test_a_stream_that_main_does_not_join_is_named_with_its_last_task() -> None:
    (finding,) = FILES["STREAM_NOT_JOINED"](True).report().errors
    assert finding.tasks == (TaskAt(2, 1, 1),)
    assert finding.ranks == (2,)
    assert finding.message.startswith(
        "rank 2 sub 0 task 1 may still run when main's last task is done"
    )
    assert "rank.fork() does" in finding.hint


def test_a_stream_may_be_neither_started_nor_joined() -> None:
    drawn = one()
    drawn.put(0, COPY, stream=2)
    drawn.put(0, ["compute", 1])
    found = [(finding.name, finding.tasks) for finding in drawn.report().errors]
    assert found == [
        ("STREAM_NOT_STARTED", (TaskAt(0, 2, 0),)),
        ("STREAM_NOT_JOINED", (TaskAt(0, 2, 0),)),
    ]


def test_a_stream_may_be_started_and_joined_through_another_sub() -> None:
    drawn = one()
    drawn.put(0, ["local_post", 1, 0], ["local_wait", 0])
    drawn.put(0, ["local_wait", 0], ["local_post", 2, 0], ["local_wait", 1], stream=1)
    drawn.put(0, ["local_post", 0, 0], stream=1)
    drawn.put(0, ["local_wait", 0], COPY, ["local_post", 1, 1], stream=2)
    assert not drawn.report(repeat=3).findings


def test_a_fork_inside_a_fork_is_fine_and_its_inner_join_is_needed() -> None:
    def nested(joined: bool) -> Sketch:
        drawn = one()
        drawn.put(0, ["local_post", 1, 0], ["local_wait", 0])
        inner = [["local_wait", 1]] if joined else []
        drawn.put(0, ["local_wait", 0], ["local_post", 2, 0], *inner, stream=1)
        drawn.put(0, ["local_post", 0, 0], stream=1)
        outer = [["local_post", 1, 1]] if joined else []
        drawn.put(0, ["local_wait", 0], COPY, *outer, stream=2)
        return drawn

    assert not nested(True).report().findings
    (finding,) = nested(False).report().errors
    assert finding.name == "STREAM_NOT_JOINED"
    assert finding.tasks == (TaskAt(0, 2, 1),)


def test_a_stream_may_be_started_by_a_peer_that_main_has_told() -> None:
    drawn = sketch(OP | {"name": "barrier", "count": 0}, 2, {"IN": 0, "OUT": 0, "CCL": 0})
    drawn.put(0, ["post", 1, 0], ["local_wait", 0])
    drawn.put(0, ["wait", 1, 1], ["compute", 1], ["local_post", 0, 0], stream=1)
    drawn.put(1, ["wait", 0, 0], ["post", 0, 1])
    assert not drawn.report().of_class("STREAM_NOT_STARTED")
    drawn.at(1).reverse()
    assert drawn.report().of_class("STREAM_NOT_STARTED")


def test_notifies_of_a_loose_stream_are_overrun_in_the_next_op_only_because_it_is_loose() -> None:
    drawn = one()
    drawn.put(0, ["local_post", 1, 0], COPY)
    drawn.put(0, ["local_wait", 0], stream=1)
    assert {finding.name for finding in drawn.report().errors} == {"STREAM_NOT_JOINED"}
    drawn.at(0).insert(1, ["local_post", 1, 0])
    drawn.put(0, ["local_wait", 0], stream=1)
    assert "NOTIFY_OVERRUN" in {finding.name for finding in drawn.report().errors}


def test_a_loose_stream_races_with_main_all_the_same() -> None:
    """Sub 0 and main copy into the same bytes of CCL, and main does not wait for sub 0."""
    drawn = one()
    stage = ["copy", ["IN", 0, 64], ["CCL", 0, 64]]
    drawn.put(0, ["local_post", 1, 0], stage, COPY)
    drawn.put(0, ["local_wait", 0], stage, stream=1)
    found = [(finding.name, set(finding.tasks)) for finding in drawn.report(repeat=1).errors]
    assert found == [
        ("STREAM_NOT_JOINED", {TaskAt(0, 1, 1)}),
        ("RACE_WW", {TaskAt(0, 0, 1), TaskAt(0, 1, 1)}),
    ]
