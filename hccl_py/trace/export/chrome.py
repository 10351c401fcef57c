"""Scenes in Chrome's trace-event format: for MindStudio Insight, chrome://tracing, Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

from hccl_py.trace.export.events import sections
from hccl_py.trace.export.limits import FLOWS
from hccl_py.trace.export.slices import Counter, Slice, Track
from hccl_py.trace.scene import Scene

Json = dict[str, Any]


def write_chrome(file: IO[bytes], scenes: Mapping[str, Scene], flows: int = FLOWS) -> None:
    """Write scenes by their names, "" for a single one, with at most so many flows each.

    Timestamps are microseconds. One event stands on every line.
    """
    encode = json.JSONEncoder(separators=(",", ":")).encode
    comma = '{"otherData":{"generator":"hccl-py"},"displayTimeUnit":"ns","traceEvents":[\n'
    for document in _documents(scenes, flows):
        file.write((comma + encode(document)).encode())
        comma = ",\n"
    file.write(b"\n]}\n")


def _documents(scenes: Mapping[str, Scene], flows: int) -> Iterator[Json]:
    for section in sections(scenes, flows):
        pid = section.process.place
        yield _named("process_name", pid, 0, section.process.name)
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
        for tid, (track, events) in enumerate(section.tracks):
            yield from _described(track, pid, tid)
            for event in events:
                yield from _of_event(event, {"pid": pid, "tid": tid})
        for counter in section.counters:
            yield from _of_counter(counter, pid)


def _named(what: str, pid: int, tid: int, name: str) -> Json:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _described(track: Track, pid: int, tid: int) -> Iterator[Json]:
    yield _named("thread_name", pid, tid, track.name)
    order = {"sort_index": tid}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": order}


def _of_event(event: Slice, at: Json) -> Iterator[Json]:
    args = dict(event.shared + event.own)
    head = {"name": event.name, "cat": event.category, "ts": event.begin_us, **at}
    if event.category in ("finding", "about"):
        yield {"ph": "i", "s": "t", **head, "args": args}
        return
    yield {"ph": "X", **head, "dur": event.end_us - event.begin_us, "args": args}
    arrow = {"name": "notify", "cat": "notify", "ts": event.end_us, **at}
    if event.flow_out >= 0:
        yield {"ph": "s", "id": event.flow_out, **arrow}
    if event.flow_in >= 0:
        yield {"ph": "f", "bp": "e", "id": event.flow_in, **arrow}


def _of_counter(counter: Counter, pid: int) -> Iterator[Json]:
    for at_us, percent in zip(counter.at_us.tolist(), counter.percent.tolist(), strict=True):
        yield {"ph": "C", "name": counter.name, "pid": pid, "ts": at_us, "args": {"%": percent}}
