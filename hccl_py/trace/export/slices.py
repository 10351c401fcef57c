"""The elements of other viewers: slices on tracks of processes, with arguments, and counters."""

from __future__ import annotations

from typing import NamedTuple

from hccl_py.printable import one_line
from hccl_py.values import Floats

LONGEST = 400
"""Characters of a text: what is longer comes from files that no person reads."""

Arg = tuple[str, "int | str"]


class Process(NamedTuple):
    """A group of tracks; `place` orders processes, from 1."""

    place: int
    name: str


class Track(NamedTuple):
    """A row of slices; `is_stream` tells streams from other rows."""

    name: str
    is_stream: bool = False


class Slice(NamedTuple):
    """A slice, or a moment where it is no longer than 0 µs.

    `shared` are arguments that many events have, always the same tuple; `own` those that differ. A
    flow leads from the event with `flow_out` to that with the same `flow_in`; -1 for none.
    """

    name: str
    category: str
    begin_us: float
    end_us: float
    shared: tuple[Arg, ...] = ()
    own: tuple[Arg, ...] = ()
    flow_out: int = -1
    flow_in: int = -1


class Counter(NamedTuple):
    """Values from a moment on; those that do not change are left out."""

    name: str
    at_us: Floats
    percent: Floats


def brief(text: str) -> str:
    """Return a text of a file as a line that any viewer can show."""
    cut = text[:LONGEST]
    found = one_line(cut)[:LONGEST]
    left = len(text) - LONGEST
    return f"{found}… and {left} more characters" if left > 0 else found
