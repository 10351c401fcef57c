"""How the caller issues an op, in files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from hccl_py.program.program import Call

SHORT = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "uint8", "count": 4},
    "ranks": 1,
    "buffers": {"0": {"IN": 4, "OUT": 4}},
    "tasks": {"0": {"0": [["copy", ["IN", 0, 4], ["OUT", 0, 4]]]}},
}


@st.composite
def calls(draw: st.DrawFn) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number in range(draw(st.integers(0, 5))):
        after = draw(st.lists(st.integers(0, number - 1), unique=True)) if number else []
        found.append({"stream": draw(st.integers(0, 9)), "after": after})
    return found


@given(calls())
def test_calls_survive_both_formats(listed: list[dict[str, object]]) -> None:
    program = from_json(json.dumps(SHORT | {"calls": listed}))
    assert [(c.stream, list(c.after)) for c in program.calls] == [
        (c["stream"], c["after"]) for c in listed
    ]
    assert from_json(to_json(program)).calls == program.calls
    assert from_npz(to_npz(program)).calls == program.calls


def test_a_call_is_on_the_first_stream_after_nothing_unless_it_says_so() -> None:
    assert from_json(json.dumps(SHORT | {"calls": [{}]})).calls == (Call(0, ()),)
    assert from_json(json.dumps(SHORT)).calls == ()


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ([{}, {"after": [1]}], r"calls\[1\]\.after\[0\]: expected the number of an earlier call"),
        ([{"after": [0]}], r"calls\[0\]\.after: expected nothing at the first call, found a list"),
        ([{"stream": -1}], r"calls\[0\]\.stream: expected a stream of the caller"),
        ([{"stream": True}], r"calls\[0\]\.stream"),
        ([{"steam": 0}], r"calls\[0\]\.steam: expected a key of the format"),
        ([7], r"calls\[0\]: expected an object"),
        ([{"after": 0}], r"calls\[0\]\.after: expected a list"),
        ([{}] * 17, r"calls: expected at most 16 calls"),
        ("twice", r"calls: expected"),
    ],
)
def test_what_is_no_call_is_refused_with_its_place(listed: object, message: str) -> None:
    with pytest.raises(ProgramFileError, match=message):
        from_json(json.dumps(SHORT | {"calls": listed}))
