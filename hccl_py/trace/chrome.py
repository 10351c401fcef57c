"""Traces side by side in Chrome's trace-event format, which ui.perfetto.dev opens.

Every rank of every trace is a process, every stream a thread, and arrows lead from posts to waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hccl_py.documents.disk import PathLike, check_place, write_file
from hccl_py.documents.kind import FileKind
from hccl_py.enums import TaskKind
from hccl_py.program.describe import format_action, format_line_of, format_stream
from hccl_py.trace.steps import Trace

__all__ = ["check_timeline", "chrome_document", "write_timeline"]

Event = dict[str, Any]

KIND = FileKind(noun="timeline", parts="events", suffixes=(".json",))


def check_timeline(path: PathLike) -> None:
    """Refuse, before anything runs, a file that no timeline could be written to."""
    check_place(path, KIND)


def write_timeline(path: PathLike, traces: Mapping[str, Trace]) -> None:
    """Write traces by their names; FileError for a place that cannot be written."""
    write_file(path, json.dumps(chrome_document(traces)).encode(), KIND)


def chrome_document(traces: Mapping[str, Trace]) -> dict[str, Any]:
    """Return the document; what belongs to a rank stands together, in the order of the traces."""
    events: list[Event] = []
    for number, (name, trace) in enumerate(traces.items()):
        events += _names(trace, name, number, len(traces))
        events += _tasks(trace, number, len(traces))
    return {"displayTimeUnit": "ns", "traceEvents": events}


def _names(trace: Trace, name: str, number: int, traces: int) -> Iterator[Event]:
    tasks = trace.program.tasks
    for rank, stream in np.unique(np.column_stack([tasks.rank, tasks.stream]), axis=0).tolist():
        pid = rank * traces + number
        if stream == 0:
            process = {"name": f"rank {rank}, {name}"}
            yield {"ph": "M", "name": "process_name", "pid": pid, "args": process}
            yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
        thread = {"name": format_stream(stream)}
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": stream, "args": thread}


def _tasks(trace: Trace, number: int, traces: int) -> Iterator[Event]:
    program, tasks, timeline = trace.program, trace.program.tasks, trace.timeline
    for row in range(len(tasks)):
        kind = TaskKind(int(tasks.kind[row]))
        start, end = float(timeline.start_us[row]), float(timeline.end_us[row])
        at: Event = {
            "pid": int(tasks.rank[row]) * traces + number,
            "tid": int(tasks.stream[row]),
        }
        words = {"task": int(tasks.index[row]), "what": format_action(program, row)}
        if line := format_line_of(program, row):
            words["source"] = line
        if tasks.size[row]:
            words["bytes"] = int(tasks.size[row])
        yield {
            "ph": "X",
            "name": kind.spelling,
            "cat": "task",
            "ts": start,
            "dur": end - start,
            **at,
            "args": words,
        }
        arrow = {"name": "notify", "cat": "notify", "ts": end, **at}
        if kind is TaskKind.NOTIFY_POST:
            yield {"ph": "s", "id": row * traces + number, **arrow}
        elif kind is TaskKind.NOTIFY_WAIT and trace.partner[row] >= 0:
            post = int(trace.partner[row])
            yield {"ph": "f", "bp": "e", "id": post * traces + number, **arrow}
