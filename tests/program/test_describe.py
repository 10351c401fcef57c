"""Tasks and notifies in words: counted from 0, by the names that the program gives them."""

import json
from typing import Any

import pytest

from hccl_py.formats import from_json, to_json, to_npz
from hccl_py.formats.npz_read import from_npz
from hccl_py.program.describe import format_action, format_place, format_task
from hccl_py.program.program import Program
from hccl_py.program.tasks import Tasks

FILE: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "uint8", "count": 8},
    "ranks": 2,
    "link": "sdma",
    "exported": ["CCL"],
    "buffers": {"0": {"IN": 8, "OUT": 16, "CCL": 8}, "1": {"IN": 8, "OUT": 16, "CCL": 8}},
    "tasks": {
        "0": {
            "0": [["post", 1, 1], ["read", 1, ["CCL", 0, 8], ["OUT", 8, 8], {"source": "a.py:3"}]],
            "1": [["local_post", 0, 2], ["compute", 2.5]],
        },
        "1": {"0": [["wait", 0, 1], ["wait", 0, 4]]},
    },
}


def program(**changes: Any) -> Program:
    return from_json(json.dumps(FILE | changes))


def test_tasks_of_a_stream_count_from_0() -> None:
    assert format_place(program(), 1) == "rank 0 main task 1"
    assert format_place(program(), 2) == "rank 0 sub 0 task 0"
    assert format_place(program(), 2, copy=1) == "rank 0 sub 0 task 0 of op 2"
    assert format_task(program(), 1) == (
        "rank 0 main   task 1  read rank 1 CCL[0:8] to user_out[8:16]   a.py:3"
    )


def test_words_of_a_task_expand_no_column_of_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million findings name a task each."""
    here = program()
    words = [format_task(here, row) for row in range(len(here.tasks))]
    for name in ("kind", "stream"):
        monkeypatch.setattr(Tasks, name, property(lambda _: pytest.fail("a whole column")))
    assert [format_task(here, row) for row in range(len(here.tasks))] == words


def test_in_a_sentence_memory_says_whose_it_is() -> None:
    assert format_action(program(), 1, in_sentence=True) == (
        "reads rank 1's CCL[0:8] to rank 0's user_out[8:16]"
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, ["DataSignal of rank 1", "DataSignal from rank 0", "extra notify 1 from rank 0"]),
        ([], ["notify 1 of rank 1", "notify 1 from rank 0", "notify 4 from rank 0"]),
        (["free", "full"], ["full of rank 1", "full from rank 0", "notify 4 from rank 0"]),
    ],
)
def test_notifies_have_the_names_that_the_file_gives(names: Any, expected: list[str]) -> None:
    named = program() if names is None else program(notify_names=names)
    for same in (named, from_json(to_json(named)), from_npz(to_npz(named))):
        said = [format_action(same, row) for row in (0, 4, 5)]
        assert [text.split(maxsplit=1)[1].removeprefix("for ") for text in said] == expected


def test_other_tasks() -> None:
    assert format_action(program(), 2) == "posts notify 2 of main"
    assert format_action(program(), 3) == "computes 2.5 us"
