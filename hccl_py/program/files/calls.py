"""How the caller issues an op several times: `[{"stream": 0}, {"stream": 1, "after": [0]}]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hccl_py.documents.checks import a_list, an_object, at, defect, only_keys
from hccl_py.program.files.checks import MAX_NUMBER, whole
from hccl_py.program.program import Call

__all__ = ["calls_document", "calls_from"]

MOST_CALLS = 16
"""Calls that are verified together; each is another copy of the program."""


def calls_from(value: Sequence[Any], path: str = "calls") -> tuple[Call, ...]:
    """Return the calls of a list of objects; each waits for earlier ones only."""
    if len(value) > MOST_CALLS:
        hint = "What is wrong with many calls is wrong with a few."
        raise defect(path, f"at most {MOST_CALLS} calls", str(len(value)), hint)
    return tuple(_call(item, number, at(path, number)) for number, item in enumerate(value))


def calls_document(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return the list of objects of calls."""
    return [{"stream": call.stream, "after": list(call.after)} for call in calls]


def _call(value: object, number: int, path: str) -> Call:
    members = an_object(path, value)
    only_keys(path, members, ("stream", "after"))
    streams = [members.get("stream", 0)]
    stream = whole(streams, lambda _: at(path, "stream"), "a stream of the caller", 0, MAX_NUMBER)
    listed = a_list(at(path, "after"), members.get("after", []))
    after = whole(
        listed, lambda k: at(path, "after", k), "the number of an earlier call", 0, number - 1
    )
    return Call(int(stream[0]), tuple(after.tolist()))
