"""Traces with launches, as traces with the tasks of the kernels that they launch."""

from __future__ import annotations

from dataclasses import replace

from hccl_interop.cpp.ccu.machine import run_together
from hccl_interop.cpp.merge import Meeting
from hccl_interop.cpp.traces import LAUNCH, RankTrace, Traces


def expanded(traces: Traces, meeting: Meeting) -> tuple[Traces, tuple[str, ...]]:
    """Return traces with all tasks, and the names of their streams; complaints are in them."""
    if not any((trace.tasks["kind"] == LAUNCH).any() for trace in traces.ranks):
        return traces, ()
    tasks, names = run_together(traces.ranks, meeting)
    ranks = []
    for trace, own in zip(traces.ranks, tasks, strict=True):
        rows = own.columns()
        last = max([len(trace.threads) - 1, *own.notifies, *rows["thread"].tolist()])
        threads = [*trace.threads, *[(0, 0)] * (last + 1 - len(trace.threads))]
        for stream, count in own.notifies.items():
            threads[stream] = (max(count, threads[stream][0]), threads[stream][1])
        ranks.append(_with_tasks(trace, rows, threads))
    return replace(traces, ranks=ranks), tuple(names.names)


def _with_tasks(trace, rows, threads) -> RankTrace:
    channels = [replace(channel, notifies=128) for channel in trace.channels]
    return replace(
        trace, tasks=rows, threads=threads, channels=channels, buffer_bytes=(1 << 20, 1 << 20)
    )
