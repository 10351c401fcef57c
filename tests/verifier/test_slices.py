"""Overlaps, lengths and elements of single tasks."""

from typing import Any

import pytest

from hccl_py.topology import topology_of
from hccl_py.verifier.checks.slices import find_slices
from hccl_py.verifier.finding import MemoryRange, TaskAt
from tests.recording import op_of
from tests.verifier.programs import FILE, authored, found, names, written


def at(offset: int, size: int = 64, buffer: str = "CCL_OUT") -> list[Any]:
    """Return a slice."""
    return [buffer, offset, size]


def test_an_overlap_inside_one_task_names_the_shared_bytes() -> None:
    (finding,) = found(find_slices, written({"0": {"0": [["copy", at(0), at(32)]]}}))
    assert finding.name == "SELF_OVERLAP"
    assert finding.message == (
        "rank 0 main task 0 copies rank 0's CCL_Out[0:64] to rank 0's CCL_Out[32:96]: "
        "both sides share bytes 32 to 64."
    )
    assert finding.tasks == (TaskAt(0, 0, 0),)
    assert finding.memory == (MemoryRange(0, "CCL_OUT", 0, 64), MemoryRange(0, "CCL_OUT", 32, 96))


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (["copy", at(0), at(0)], ["SELF_OVERLAP"]),
        (["reduce", "sum", at(0), at(0)], ["SELF_OVERLAP"]),
        (["reduce", "sum", at(60), at(0)], ["SELF_OVERLAP"]),
        (["copy", at(0), at(64)], []),
        (["copy", at(8, 0), at(0, 0)], []),
        (["copy", at(0), at(0, buffer="CCL_IN")], []),
        (["read", 1, at(0), at(0)], []),
        (["write", 1, at(0), at(32)], []),
    ],
)
def test_only_the_same_memory_of_the_same_rank_overlaps(
    task: list[Any], expected: list[str]
) -> None:
    assert names(find_slices, written({"0": {"0": [task]}})) == expected


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (["copy", at(0, buffer="IN"), at(0, buffer="OUT")], []),
        (["copy", at(0, buffer="IN"), at(32, buffer="OUT")], ["SELF_OVERLAP"]),
        (["copy", at(0, buffer="OUT"), at(32, buffer="IN")], ["SELF_OVERLAP"]),
        (["reduce", "sum", at(0, buffer="IN"), at(0, buffer="OUT")], ["SELF_OVERLAP"]),
        (["copy", at(0, buffer="IN"), at(64, buffer="OUT")], []),
        (["read", 1, at(0, buffer="IN"), at(32, buffer="OUT")], []),
    ],
)
def test_in_place_input_and_output_are_one_memory(task: list[Any], expected: list[str]) -> None:
    tasks = {"0": {"0": [task]}}
    assert not names(find_slices, written(tasks))
    assert names(find_slices, written(tasks), in_place=True) == expected
    assert names(find_slices, written(tasks, op={**FILE["op"], "in_place": True})) == expected


def test_an_overlap_that_only_in_place_has_says_so() -> None:
    tasks = {"0": {"0": [["copy", at(0, buffer="IN"), at(32, buffer="OUT")]]}}
    (finding,) = found(find_slices, written(tasks), in_place=True)
    assert finding.message.endswith("share bytes, as in place IN and OUT are one memory.")


def test_an_author_can_copy_a_slice_over_itself() -> None:
    def shifted(by: int) -> Any:
        return lambda rank: rank.main.copy(rank.ccl_in[by : by + 64], rank.ccl_in[0:64])

    (finding,) = found(find_slices, authored(shifted(32), topology=1))
    assert finding.name == "SELF_OVERLAP"
    assert finding.source is not None
    assert finding.source.startswith("verifier/test_slices.py:")
    assert not found(find_slices, authored(shifted(64), topology=1))


def test_lengths_that_differ_are_both_named() -> None:
    program = written({"0": {"0": [["read", 1, at(0), at(0, 32, "OUT")]]}})
    (finding,) = found(find_slices, program)
    assert finding.name == "SLICE_LEN_MISMATCH"
    assert finding.message == (
        "rank 0 main task 0 reads rank 1's CCL_Out[0:64] to rank 0's user_out[0:32]: "
        "64 bytes into 32."
    )
    assert names(find_slices, written({"0": {"0": [["copy", at(0, 0), at(0, 8, "OUT")]]}})) == [
        "SLICE_LEN_MISMATCH"
    ]
    assert not found(find_slices, written({"0": {"0": [["copy", at(0), at(0, 64, "OUT")]]}}))


def test_a_reduction_in_another_data_type_than_the_ops_is_found() -> None:
    sides: list[Any] = ["sum", at(0), at(0, buffer="OUT")]
    program = written({"0": {"0": [["reduce", *sides, {"dtype": "fp16"}]]}})
    (finding,) = found(find_slices, program)
    assert finding.name == "DTYPE_MISMATCH"
    assert finding.message.endswith("as fp16, but the op reduces fp32.")
    assert not found(find_slices, written({"0": {"0": [["reduce", *sides, {"dtype": "fp32"}]]}}))
    moved = ["copy", *sides[1:], {"dtype": "fp16"}]
    assert not found(find_slices, written({"0": {"0": [moved]}}))


@pytest.mark.parametrize(
    ("sides", "cut"),
    [
        ([at(2), at(0, buffer="OUT")], "the source begins at byte 2."),
        ([at(0), at(6, buffer="OUT")], "the destination begins at byte 6."),
        ([at(0, 10), at(0, 10, "OUT")], "the source has a length of 10."),
        ([at(2, 0), at(0, 0, "OUT")], ""),
    ],
)
def test_a_reduction_of_parts_of_elements_is_found(sides: list[Any], cut: str) -> None:
    findings = found(find_slices, written({"0": {"0": [["reduce", "sum", *sides]]}}))
    assert [f.name for f in findings] == ["DTYPE_MISMATCH"] * bool(cut)
    for finding in findings:
        assert finding.message.endswith(f"an element of fp32 has 4 bytes: {cut}")
    assert not found(find_slices, written({"0": {"0": [["copy", *sides]]}}))


def test_an_author_can_cut_elements() -> None:
    def body(rank: Any) -> None:
        rank.main.reduce(rank.ccl_out[2:66], rank.ccl_in[0:64])

    (finding,) = found(find_slices, authored(body, topology=1))
    assert finding.name == "DTYPE_MISMATCH"
    assert not found(find_slices, authored(body, op=op_of("all_reduce", 64, "fp16"), topology=1))


def test_a_reduction_of_parts_in_another_data_type_is_found_once() -> None:
    task = ["reduce", "sum", at(2), at(0, buffer="OUT"), {"dtype": "fp16"}]
    assert names(find_slices, written({"0": {"0": [task]}})) == ["DTYPE_MISMATCH"]


def test_the_last_task_of_a_large_program_is_looked_at() -> None:
    def body(rank: Any) -> None:
        for _ in range(999):
            rank.main.copy(rank.user_out, rank.user_in)
        if rank.id == 99:
            rank.main.copy(rank.ccl_in, rank.ccl_in)

    (finding,) = found(find_slices, authored(body, topology=topology_of(100, preset="mesh")))
    assert finding.tasks == (TaskAt(99, 0, 999),)
