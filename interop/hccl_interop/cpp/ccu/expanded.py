"""Traces with launches, as traces with the tasks of the kernels that they launch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hccl_interop.cpp.ccu.machine import run_together
from hccl_interop.cpp.ccu.missions import LOCAL_POST, LOCAL_WAIT, RankTasks
from hccl_interop.cpp.ccu.move_memory import FIRST_BUFFER_PART
from hccl_interop.cpp.merge import Meeting
from hccl_interop.cpp.traces import LAUNCH, RankTrace, Traces
from hccl_py.values import IntArray

_AS_USED = -1
"""As many notifies of a channel as tasks use: of those that ops ask for, every one has 16 bits."""


def expanded(traces: Traces, meeting: Meeting) -> Traces:
    """Return traces with the tasks of kernels in place of launches; complaints are in them."""
    if not any((trace.tasks["kind"] == LAUNCH).any() for trace in traces.ranks):
        return traces
    threads = max(len(trace.threads) for trace in traces.ranks)
    tasks, found = run_together(traces.ranks, meeting)
    names = [*found.names[:threads], *sorted(found.names[threads:], key=_numbers)]
    place = {name: number for number, name in enumerate(names)}
    number = np.array([place[name] for name in found.names])
    ranks = [
        _with_tasks(trace, own, number) for trace, own in zip(traces.ranks, tasks, strict=True)
    ]
    return replace(traces, ranks=ranks, stream_names=tuple(names))


def _numbers(name: str) -> list[int]:
    """Return the numbers in a stream's name: a mission comes before its lanes."""
    return [int(word) for word in re.findall("[0-9]+", name)]


def _with_tasks(trace: RankTrace, tasks: RankTasks, number: IntArray) -> RankTrace:
    """Return a trace with other tasks, on streams of other numbers."""
    rows = tasks.columns()
    is_local = np.isin(rows["kind"], (LOCAL_POST, LOCAL_WAIT)) & (rows["target"] >= 0)
    rows["thread"] = number[rows["thread"]]
    rows["target"][is_local] = number[rows["target"][is_local]]
    notifies = {int(number[stream]): count for stream, count in tasks.notifies.items()}
    last = max(int(rows["thread"].max(initial=0)), *notifies, len(trace.threads) - 1)
    threads = [*trace.threads, *[(0, 0)] * (last + 1 - len(trace.threads))]
    for stream, count in notifies.items():
        threads[stream] = (max(count, threads[stream][0]), threads[stream][1])
    return replace(
        trace,
        tasks=rows,
        threads=threads,
        channels=[replace(channel, notifies=_AS_USED) for channel in trace.channels],
        buffer_bytes=(_end(rows, FIRST_BUFFER_PART), _end(rows, FIRST_BUFFER_PART + 1)),
    )


def _end(rows: npt.NDArray[np.void], part: int) -> int:
    """Return the end of the last byte of a part of memory that tasks use."""
    sides: Sequence[str] = ("src", "dst")
    ends = ((rows[f"{side}_offset"] + rows["size"])[rows[f"{side}_part"] == part] for side in sides)
    return max(int(found.max(initial=0)) for found in ends)
