"""Reads of memory that holds nothing, or no longer what it should, and data that nobody reads."""

import pytest

from hccl_py.enums import InPlace
from hccl_py.verifier import MemoryRange, Severity, TaskAt
from tests.verifier.broken_files import FILES
from tests.verifier.sketches import all_gather, sketch


def test_readers_of_what_was_never_staged_are_named_with_the_owner() -> None:
    errors = FILES["READ_UNDEFINED"](True).report().errors
    assert [finding.tasks for finding in errors] == [
        (TaskAt(1, 0, 12),),
        (TaskAt(2, 0, 9),),
        (TaskAt(3, 0, 6),),
    ]
    assert {finding.memory for finding in errors} == {(MemoryRange(0, "CCL", 0, 64),)}
    assert errors[0].ranks == (0, 1)
    assert errors[0].message == (
        "rank 1 main task 12 reads rank 0's CCL[0:64], which no task has written before."
    )
    assert errors[0].hint.startswith("Write it first (stage the input")


def test_only_the_part_that_nobody_wrote_is_named() -> None:
    drawn = all_gather()
    drawn.at(0)[0] = ["copy", ["IN", 0, 40], ["CCL", 0, 40]]
    errors = drawn.report().errors
    assert {finding.name for finding in errors} == {"READ_UNDEFINED"}
    assert {finding.memory for finding in errors} == {(MemoryRange(0, "CCL", 40, 64),)}


def test_what_is_made_of_garbage_is_not_blamed_again() -> None:
    """Rank 1 passes on what nobody wrote: one finding, at the first reader."""
    drawn = sketch(
        {"name": "broadcast", "dtype": "uint8", "count": 64, "root": 0},
        1,
        {"IN": 64, "OUT": 64, "CCL": 64, "TEMP": 64},
    )
    drawn.put(0, ["copy", ["CCL", 0, 64], ["TEMP", 0, 64]])
    drawn.put(0, ["copy", ["TEMP", 0, 64], ["OUT", 0, 64]])
    (finding,) = drawn.report().errors
    assert finding.name == "READ_UNDEFINED"
    assert finding.tasks == (TaskAt(0, 0, 0),)


def test_the_reduction_that_has_nothing_to_add_to_is_named() -> None:
    (finding,) = FILES["REDUCE_INTO_UNDEFINED"](True).report().errors
    assert finding.tasks == (TaskAt(0, 0, 5),)
    assert finding.memory == (MemoryRange(0, "OUT", 0, 64),)
    assert finding.message == (
        "rank 0 main task 5 reduces into rank 0's user_out[0:64], which no task has written before."
    )


def test_an_input_that_the_output_has_overwritten_names_the_reader() -> None:
    (finding,) = FILES["INPLACE_CLOBBER"](True).report().errors
    assert finding.tasks == (TaskAt(1, 0, 16),)
    assert finding.memory == (MemoryRange(1, "IN", 0, 64),)
    assert "rank 1 main task 16 reads rank 1's user_in[0:64] after the op has" in finding.message
    assert "(IN and OUT begin at the same address.)" in finding.message
    assert finding.hint.startswith("Stage the input in CCL memory before the first write to OUT")


def test_the_same_program_is_fine_out_of_place() -> None:
    drawn = FILES["INPLACE_CLOBBER"](True)
    drawn.document["op"]["in_place"] = False
    assert not drawn.report().errors
    assert not drawn.report(in_place=True).ok


def test_a_range_is_copied_to_itself_in_place_without_harm() -> None:
    assert not FILES["INPLACE_CLOBBER"](False).report().errors


def test_dead_data_is_a_hint_at_its_task() -> None:
    report = FILES["DEAD_TRANSFER"](True).report()
    (finding,) = report.findings
    assert finding.severity is Severity.HINT
    assert finding.tasks == (TaskAt(0, 0, 0),)
    assert finding.message == (
        "rank 0 main task 0 moves 64 bytes that no task reads: they are overwritten, "
        "or left behind."
    )
    assert report.ok


def test_what_is_read_in_part_is_not_dead() -> None:
    drawn = FILES["DEAD_TRANSFER"](True)
    drawn.at(0)[1] = ["copy", ["IN", 8, 56], ["CCL", 8, 56]]
    assert not drawn.report().findings


def test_whether_racing_data_is_read_depends_on_timing() -> None:
    assert not FILES["RACE_WW"](True).report().of_class("DEAD_TRANSFER")


def test_what_does_not_follow_from_a_clobber_is_found_beside_it() -> None:
    """Rank 0 takes rank 2's data for rank 3's, in place or not; rank 1 clobbers its input."""
    drawn = FILES["INPLACE_CLOBBER"](True)
    at = drawn.find(0, "read", 3)
    drawn.at(0)[at][2:] = [["CCL", 0, 64], ["OUT", 128, 64]]
    found = {finding.name: finding for finding in drawn.report().errors}
    assert set(found) == {"INPLACE_CLOBBER", "WRONG_SOURCE", "OUTPUT_MISSING"}
    assert found["INPLACE_CLOBBER"].ranks == (1,)
    assert found["WRONG_SOURCE"].memory == (MemoryRange(0, "OUT", 128, 192),)
    assert found["OUTPUT_MISSING"].memory == (MemoryRange(0, "OUT", 192, 256),)


@pytest.mark.parametrize(
    ("side", "name", "memory"),
    [
        ("left", "WRONG_SOURCE", MemoryRange(1, "OUT", 0, 64)),
        ("right", "OUTPUT_MISSING", MemoryRange(1, "OUT", 128, 192)),
    ],
)
def test_the_bytes_beside_a_clobbered_output_are_a_mistake_of_their_own(
    side: str, name: str, memory: MemoryRange
) -> None:
    """Rank 1 clobbers what belongs in OUT[64:128]. The bytes before it come from rank 2 instead of
    rank 0, or those behind it are missing, in place or not.
    """
    drawn = FILES["INPLACE_CLOBBER"](True)
    if side == "left":
        drawn.drop(1, "read", 0)
        at = drawn.find(1, "read", 2)
        drawn.at(1).insert(at, ["read", 2, ["CCL", 0, 64], ["OUT", 0, 64]])
    else:
        drawn.drop(1, "read", 2)
    found = {finding.name: finding for finding in drawn.report().errors}
    assert set(found) == {"INPLACE_CLOBBER", name}
    assert found["INPLACE_CLOBBER"].memory == (MemoryRange(1, "IN", 0, 64),)
    assert found[name].memory == (memory,)


def test_a_read_of_overwritten_input_that_does_no_harm_is_no_clobber() -> None:
    """Rank 1 reads its input where it has put it itself; rank 0 lacks data for another reason."""
    drawn = FILES["INPLACE_CLOBBER"](False)
    drawn.put(1, ["copy", ["IN", 0, 64], ["CCL", 0, 64]])
    drawn.drop(0, "read", 3)
    report = drawn.report(repeat=1)
    assert not report.of_class("INPLACE_CLOBBER")
    assert {finding.ranks for finding in report.errors} == {(0,)}


@pytest.mark.parametrize(("way", "is_fine"), [("start", False), ("slot", True), (True, False)])
def test_how_a_call_is_in_place_can_be_stated(way: object, is_fine: bool) -> None:
    """In its own slot of the output, rank 1's input stays as it is."""
    drawn = FILES["INPLACE_CLOBBER"](True)
    drawn.document["op"]["in_place"] = way
    assert drawn.report().ok is is_fine
    drawn.document["op"]["in_place"] = False
    how = way if isinstance(way, bool) else InPlace(str(way))
    assert drawn.report(in_place=how).ok is is_fine
