"""Notifies that count, and buffers that alternate from call to call, in files."""

import json
from typing import Any

import numpy as np
import pytest

from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from hccl_py.program.edit import part_of
from hccl_py.program.program import Program

DOCUMENT: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "uint8", "count": 4},
    "ranks": 1,
    "buffers": {"0": {"IN": 4, "OUT": 4, "SCRATCH": 4, "CCL": 4}},
    "tasks": {"0": {"0": [["copy", ["IN", 0, 4], ["OUT", 0, 4]]]}},
}
COUNTING = {"notifies": "counting"}
ALTERNATING = {"alternating": ["CCL", "SCRATCH"]}


def loaded(**more: object) -> Program:
    return from_json(json.dumps(DOCUMENT | more))


@pytest.mark.parametrize("members", [{}, COUNTING, ALTERNATING, COUNTING | ALTERNATING])
def test_both_formats_keep_the_kind_of_notifies_and_what_alternates(members: Any) -> None:
    program = loaded(**members)
    assert program.counts_posts == ("notifies" in members)
    assert list(program.alternating) == members.get("alternating", [])
    text = json.loads(to_json(program))
    assert {key: text[key] for key in ("notifies", "alternating") if key in text} == members
    for again in (
        from_json(to_json(program)),
        from_npz(to_npz(program)),
        part_of(program, np.zeros(1, int), 1),
    ):
        assert again.counts_posts == program.counts_posts
        assert again.alternating == program.alternating
    assert from_npz(to_npz(program)).digest == from_json(to_json(program)).digest == program.digest


def test_a_program_that_counts_is_another_one() -> None:
    programs = [loaded(), loaded(**COUNTING), loaded(**ALTERNATING), loaded(alternating=["CCL"])]
    assert len({program.digest for program in programs}) == 4
    assert loaded(notifies="one-bit").digest == loaded().digest == loaded(alternating=[]).digest


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"notifies": "count"}, "notifies: expected .*one-bit.*counting"),
        ({"notifies": 1}, "notifies: expected"),
        ({"alternating": "CCL"}, "alternating: expected a list"),
        ({"alternating": ["OUT"]}, r"alternating\[0\]: expected the name of a buffer, other than"),
        ({"alternating": ["CCL", "CCL"]}, r"alternating\[1\]: expected the name of a buffer"),
        ({"alternating": ["SCRATHC"]}, r"alternating\[0\]: .*found \"SCRATHC\""),
        ({"alternating": [["CCL"]]}, r"alternating\[0\]: expected the name of a buffer"),
    ],
)
def test_other_kinds_and_names_are_refused_with_their_place(members: Any, message: str) -> None:
    with pytest.raises(ProgramFileError, match=message):
        loaded(**members)


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    with pytest.raises(ProgramFileError, match="SCRATCH"):
        loaded(alternating=["SCRATHC"])
