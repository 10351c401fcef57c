"""A recording of C++ beside the program that it was exported from, and each way to differ."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from hccl_interop.cpp.export.memory import Zone, uses_of_memory, zones_of
from hccl_interop.cpp.export.same import first_difference
from hccl_py.errors import NotSupportedError
from hccl_py.formats import from_json
from hccl_py.program.program import Program
from tests.recording import op_of, recorded

FULL = 256 << 20
"""Bytes of a full work request."""

ZONES = [Zone("CCL_IN", "kCclIn", 0, 4096), Zone("CCL_OUT", "kCclOut", 4096, 4096)]

HEAD: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_reduce", "dtype": "fp32", "count": 4, "reduce": "sum"},
    "ranks": 2,
    "link": "sdma",
}

Tasks = dict[str, dict[str, list[list[Any]]]]

TASKS: Tasks = {
    "0": {
        "0": [
            ["copy", ["IN", 0, 16], ["CCL_IN", 32, 16]],
            ["local_post", 1, 1],
            ["post", 1, 0],
            ["wait", 1, 1],
            ["read", 1, ["CCL_OUT", 64, FULL + 8], ["CCL_IN", 0, FULL + 8]],
            ["read", 1, ["CCL_OUT", 0, 4], ["OUT", 0, 4]],
        ],
        "1": [["local_wait", 1], ["reduce", "sum", ["CCL_OUT", 8, 8], ["OUT", 0, 8]]],
    },
    "1": {"0": [["post", 0, 1], ["wait", 0, 0], ["copy", ["IN", 0, 0], ["OUT", 0, 0]]]},
}

RECORDED: Tasks = {
    "0": {
        "1": [
            ["local_wait", 0],
            ["copy", ["IN", 0, 16], ["CCL", 32, 16]],
            ["local_post", 2, 1],
            ["post", 1, 0],
            ["wait", 1, 1],
            ["read", 1, ["CCL", 4096 + 64, FULL], ["CCL", 0, FULL]],
            ["read", 1, ["CCL", 4096 + 64 + FULL, 8], ["CCL", FULL, 8]],
            ["read", 1, ["CCL", 4096, 4], ["OUT", 0, 4]],
            ["local_post", 0, 0],
        ],
        "2": [["local_wait", 1], ["reduce", "sum", ["CCL", 4096 + 8, 8], ["OUT", 0, 8]]],
    },
    "1": {"1": [["local_wait", 0], ["post", 0, 1], ["wait", 0, 0], ["local_post", 0, 0]]},
}
"""Streams one further, the caller's stream wakes main and hears from it, and one HCCL buffer."""


def program(tasks: Tasks, *buffers: str) -> Program:
    sizes = dict.fromkeys(("IN", "OUT", *buffers), 1 << 30)
    document = {
        **HEAD,
        "exported": list(buffers),
        "buffers": {"0": sizes, "1": sizes},
        "tasks": tasks,
    }
    return from_json(json.dumps(document))


def difference(recording: Tasks) -> str | None:
    return first_difference(program(TASKS, "CCL_IN", "CCL_OUT"), program(recording, "CCL"), ZONES)


def test_a_recording_is_the_same_program() -> None:
    assert difference(RECORDED) is None


def put(rank: str, stream: str, place: int, task: list[Any]) -> Callable[[Tasks], None]:
    def change(tasks: Tasks) -> None:
        tasks[rank][stream][place] = task

    return change


CHANGES: dict[str, tuple[Callable[[Tasks], object], str]] = {
    "kind": (
        put("0", "2", 1, ["copy", ["CCL", 4104, 8], ["OUT", 0, 8]]),
        "rank 0, stream 1, task 1: REDUCE",
    ),
    "operation": (
        put("0", "2", 1, ["reduce", "max", ["CCL", 4104, 8], ["OUT", 0, 8]]),
        "rank 0, stream 1, task 1: REDUCE",
    ),
    "data type": (
        put("0", "2", 1, ["reduce", "sum", ["CCL", 4104, 8], ["OUT", 0, 8], {"dtype": "int8"}]),
        "rank 0, stream 1, task 1: REDUCE",
    ),
    "source": (
        put("0", "1", 1, ["copy", ["IN", 1, 16], ["CCL", 32, 16]]),
        "stream 0, task 0: COPY",
    ),
    "target": (
        put("0", "1", 1, ["copy", ["IN", 0, 16], ["CCL", 33, 16]]),
        "stream 0, task 0: COPY",
    ),
    "memory": (put("0", "1", 1, ["copy", ["OUT", 0, 16], ["CCL", 32, 16]]), "task 0: COPY"),
    "zone": (put("0", "1", 7, ["read", 1, ["CCL", 0, 4], ["OUT", 0, 4]]), "task 5: READ"),
    "size": (put("0", "1", 7, ["read", 1, ["CCL", 4096, 8], ["OUT", 0, 8]]), "task 5: READ"),
    "notify": (put("0", "1", 3, ["post", 1, 2]), "stream 0, task 2: NOTIFY_POST"),
    "notify of a wait": (put("1", "1", 2, ["wait", 0, 2]), "rank 1, stream 0, task 1: NOTIFY_WAIT"),
    "notify of a thread": (put("0", "1", 2, ["local_post", 2, 0]), "task 1: NOTIFY_POST"),
    "thread": (put("0", "1", 2, ["local_post", 1, 1]), "task 1: NOTIFY_POST"),
    "wait of a thread": (put("0", "2", 0, ["local_wait", 0]), "stream 1, task 0: NOTIFY_WAIT"),
    "rest of a transfer": (
        put("0", "1", 6, ["read", 1, ["CCL", 4160 + FULL, 8], ["CCL", FULL + 8, 8]]),
        "stream 0, task 4: READ",
    ),
    "rest of another source": (
        put("0", "1", 6, ["read", 1, ["CCL", 4168 + FULL, 8], ["CCL", FULL, 8]]),
        "stream 0, task 4: READ",
    ),
    "missing": (lambda tasks: tasks["0"]["2"].pop(), "stream 1, 2 tasks, recorded 1"),
    "more": (
        lambda tasks: tasks["1"]["1"].insert(1, ["copy", ["IN", 0, 4], ["OUT", 0, 4]]),
        "rank 1, stream 0, task 0: NOTIFY_POST",
    ),
    "one more thread": (
        lambda tasks: tasks["1"].update({"3": [["copy", ["IN", 0, 4], ["OUT", 0, 4]]]}),
        "rank 1, stream 2, 0 tasks, recorded 1",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_difference_is_named(name: str) -> None:
    change, words = CHANGES[name]
    recording = deepcopy(RECORDED)
    change(recording)
    assert words in (difference(recording) or "")


def test_only_full_requests_go_on() -> None:
    """Two transfers side by side are two tasks."""
    recording = deepcopy(RECORDED)
    recording["0"]["1"][5:7] = [
        ["read", 1, ["CCL", 4160, FULL - 4], ["CCL", 0, FULL - 4]],
        ["read", 1, ["CCL", 4156 + FULL, 12], ["CCL", FULL - 4, 12]],
    ]
    assert "task 4: READ" in (difference(recording) or "")


def on_two_channels(posts: tuple[int, int], waits: tuple[int, int], stream: str = "0") -> Program:
    """Rank 0 posts to rank 1, which waits, each over two channels in some order."""
    first, last = [[["local_wait", 0]], [["local_post", 0, 0]]] if stream == "1" else [[], []]
    sizes = {"IN": 16, "OUT": 16}
    document = {
        **{key: value for key, value in HEAD.items() if key != "link"},
        "links": [{"id": k, "ranks": [0, 1], "kind": "sdma", "exports": {}} for k in (0, 1)],
        "buffers": {"0": sizes, "1": sizes},
        "tasks": {
            "0": {stream: [*first, *(["post", f"link:{k}", 0] for k in posts), *last]},
            "1": {stream: [*first, *(["wait", f"link:{k}", 0] for k in waits), *last]},
        },
    }
    return from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("posts", "recorded_posts", "recorded_waits", "words"),
    [
        ((0, 1), (0, 1), (0, 1), None),
        ((0, 1), (1, 0), (1, 0), None),  # they have no names
        ((0, 1), (0, 1), (1, 0), "rank 0: a channel is recorded with another far end"),
        ((0, 1), (0, 0), (0, 1), "two channels are recorded as one"),
        ((0, 0), (0, 1), (0, 1), "rank 0, stream 0, task 1: NOTIFY_POST is recorded on another"),
    ],
)
def test_channels_correspond(
    posts: tuple[int, int],
    recorded_posts: tuple[int, int],
    recorded_waits: tuple[int, int],
    words: str | None,
) -> None:
    mine = on_two_channels(posts, (0, 1))
    theirs = on_two_channels(recorded_posts, recorded_waits, "1")
    found = first_difference(mine, theirs, [])
    assert found is None if words is None else found is not None and found.startswith(words)


def test_other_ranks_are_a_difference() -> None:
    three = recorded("AllReduceComm", op_of("all_reduce"), 3)
    four = recorded("AllReduceComm", op_of("all_reduce"), 4)
    assert first_difference(three, four, []) == "3 ranks, recorded 4"


def test_zones_are_halves_or_equal_parts() -> None:
    both = program(TASKS, "CCL_IN", "CCL_OUT")
    room = 2 * (FULL + 512)
    assert zones_of(both, room) == [
        Zone("CCL_IN", "kCclIn", 0, FULL + 512),
        Zone("CCL_OUT", "kCclOut", FULL + 512, FULL + 512),
    ]
    assert uses_of_memory(both) == {
        **{"IN": 16, "OUT": 8, "CCL_IN": FULL + 8, "CCL_OUT": FULL + 72}
    }
    only: Tasks = {"0": {"0": [["copy", ["CCL_OUT", 0, 8], ["OUT", 0, 8]]]}}
    (zone,) = zones_of(program(only, "CCL_IN", "CCL_OUT"), 2048)
    assert zone == Zone("CCL_OUT", "kCclOut", 1024, 1024)  # the second half all the same
    three: Tasks = {
        "0": {"0": [["copy", [name, 0, 8], ["OUT", 0, 8]] for name in ("CCL_IN", "SCRATCH", "X")]}
    }
    assert zones_of(program(three, "CCL_IN", "SCRATCH", "X"), 5000) == [
        Zone("CCL_IN", "kCclIn", 0, 1536),
        Zone("SCRATCH", "kScratch", 1536, 1536),
        Zone("X", "kMemory2", 3072, 1536),
    ]


@pytest.mark.parametrize(("size", "fits"), [(512, True), (513, False)])
def test_a_buffer_fits_its_zone(size: int, fits: bool) -> None:
    only: Tasks = {"0": {"0": [["copy", ["CCL_IN", 0, size], ["CCL_OUT", 0, 8]]]}}
    made = program(only, "CCL_IN", "CCL_OUT")
    if fits:
        assert [zone.size for zone in zones_of(made, 1024)] == [512, 512]
        return
    with pytest.raises(NotSupportedError, match="CCL_IN of 513 bytes does not fit"):
        zones_of(made, 1024)
