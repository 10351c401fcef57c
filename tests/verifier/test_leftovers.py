"""Posts that nobody waits for."""

from hccl_py.verifier import TaskAt
from hccl_py.verifier.verifier import ONCE
from tests.verifier.broken_files import FILES
from tests.verifier.sketches import all_gather


def test_a_post_that_nobody_waits_for_names_its_notify() -> None:
    report = FILES["UNMATCHED_POST"](True).report()
    (finding,) = report.errors
    assert finding.tasks == (TaskAt(0, 0, 10),)
    assert finding.ranks == (0,)
    assert finding.message == (
        "rank 0 main task 10 posts DataSignal of rank 2, but no task waits for it: the notify "
        "stays set, and the next op takes it for its own."
    )
    assert finding.hint == "Add the wait at the other end, or remove the post."
    assert report.notes == (ONCE,)


def test_one_post_too_many_is_counted_and_the_last_one_named() -> None:
    drawn = all_gather()
    drawn.put(1, ["post", 2, 1])
    (finding,) = drawn.report().of_class("UNMATCHED_POST")
    assert finding.tasks == (TaskAt(1, 0, 17),)
    assert "but it is posted 2 times and waited for 1 times" in finding.message


def test_one_notify_is_one_finding_and_several_are_several() -> None:
    drawn = all_gather()
    drawn.put(1, ["post", 2, 2], ["post", 3, 2])
    found = drawn.report().of_class("UNMATCHED_POST")
    assert [finding.tasks for finding in found] == [(TaskAt(1, 0, 17),), (TaskAt(1, 0, 18),)]


def test_a_local_post_may_be_left_over_too() -> None:
    drawn = all_gather()
    drawn.put(2, ["local_post", 0, 3])
    (finding,) = drawn.report().errors
    assert finding.name == "UNMATCHED_POST"
    assert finding.message.startswith("rank 2 main task 17 posts notify 3 of main, but no task")


def test_the_rest_is_still_judged() -> None:
    drawn = FILES["UNMATCHED_POST"](True)
    drawn.drop(0, "read", 2)
    assert {finding.name for finding in drawn.report().errors} == {
        "UNMATCHED_POST",
        "OUTPUT_MISSING",
    }
