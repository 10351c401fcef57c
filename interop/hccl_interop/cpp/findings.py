"""Complaints of the recorder as findings of the verifier's kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hccl_interop.cpp.lines import SourceLines
from hccl_interop.cpp.merge import Meeting
from hccl_interop.cpp.traces import Complaint, RankTrace, Traces
from hccl_py.values import IntArray
from hccl_py.verifier.classes import CLASSES
from hccl_py.verifier.finding import Finding, TaskAt

T = TypeVar("T")

_HINTS = {
    "CODE_CRASHED": "The line is that of the author's innermost function.",
    "CODE_ENDLESS": "Look at the loop around this line: host code and kernels only enqueue, and "
    "take milliseconds.",
    "DEVICE_MEMORY_TOUCHED": "Keep what code reads in a context, or in memory of the host; only "
    "tasks touch buffers.",
    "UNKNOWN_HANDLE": "Take handles from HcclThreadAcquire and HcclChannelAcquire, and pass them "
    "to the kernel unchanged.",
    "WRONG_ADDRESS": "Local addresses come from the call and HcclGetHcclBuffer, a peer's from "
    "HcclChannelGetHcclBuffer of the same channel.",
    "ONE_SIDED_CHANNEL": "Both ranks must acquire the channel, in the same order where they have "
    "several: acquiring it waits for the peer.",
    "NOTIFY_INDEX_OUT_OF_RANGE": "Ask for more notifies where the channel or thread is acquired, "
    "or use a smaller index.",
    "WRONG_TOKEN": "The token of memory is that of its rank: a peer's comes with its address, by "
    "WriteVariableWithNotify.",
    "UNDEFINED_VALUE": "Wait for the notify bit that comes with the variable before it is used.",
    "RESOURCE_EXCEEDED": "docs/ccu.md has the registers of an instance.",
    "TRANSFER_TOO_LARGE": "Move the data in parts.",
    "INVALID_ARGUMENT": "HCCL would refuse this call, too.",
    "CALL_FAILED": "An op and a kernel return 0 where all is well, and an op 5, "
    "HCCL_E_NOT_SUPPORT, for a call that its own code refuses.",
    "UNSUPPORTED_CALL": "docs/cpp.md says what is modelled.",
}


_NO_LINE = "Nothing tells the line: look for calls of exit, and at what the code has printed."


def findings_of(traces: Traces, lines: SourceLines, entry: str) -> Iterator[Finding]:
    """Yield the recorder's complaints, and ranks whose process ended without one."""
    for trace in (traces.loading, *traces.ranks):
        trace.complaints.extend(_silent_end(trace, entry))
    complaints = [
        (trace.rank, complaint)
        for trace in (traces.loading, *traces.ranks)
        for complaint in trace.complaints
    ]
    groups: dict[tuple[str, int], list[tuple[int, Complaint]]] = {}
    for rank, complaint in complaints:
        groups.setdefault((complaint.name, complaint.stack), []).append((rank, complaint))
    for group in groups.values():
        yield _grouped(group, lambda one: _finding(one[0], one[1], lines))


def _silent_end(trace: RankTrace, entry: str) -> Iterator[Complaint]:
    """Yield a complaint for a rank whose process ended without a result or a complaint."""
    if not trace.was_run or trace.result is not None or trace.complaints:
        return
    where = f"inside {entry}" if trace.rank >= 0 else "in a constructor"
    message = (
        f"The process ended {where}: exit, _exit, a function that is defined nowhere, or a signal "
        "that cannot be caught"
    )
    yield Complaint("CODE_CRASHED", 0, 0, message)


def _finding(rank: int, complaint: Complaint, lines: SourceLines) -> Finding:
    who = f"Rank {rank}" if rank >= 0 else "Loading the op"
    again = f", in call {complaint.call + 1}" if complaint.call else ""
    message = f"{who}{again}: {complaint.message}."
    ranks = (rank,) if rank >= 0 else ()
    return _at_stack(complaint.name, message, complaint.stack, ranks, lines)


def _at_stack(
    name: str, message: str, stack: int, ranks: tuple[int, ...], lines: SourceLines
) -> Finding:
    """Return a finding at the line of a stack, with its callers in the message."""
    source = lines.line(stack)
    is_lost = source is None and name == "CODE_CRASHED"
    return Finding(
        name=name,
        message=f"{message} {lines.above(stack)}".rstrip(),
        hint=_NO_LINE if is_lost else _HINTS[name],
        severity=CLASSES[name].severity,
        ranks=ranks,
        source=source,
    )


@dataclass(frozen=True)
class Callers:
    """The stack of every task and its call of the op: `stacks[rank]` and `calls[rank]` by stream
    and the task's index there.
    """

    stacks: Sequence[Sequence[IntArray]]
    calls: Sequence[Sequence[IntArray]]
    lines: SourceLines

    @classmethod
    def of(cls, traces: Traces, lines: SourceLines) -> Callers:
        """Keep the stacks and calls of all tasks."""
        ranks = traces.ranks
        stacks, calls = ([_by_thread(trace, what) for trace in ranks] for what in ("stack", "call"))
        return cls(stacks, calls, lines)

    def explained(self, finding: Finding) -> Finding:
        """Return a finding with the callers of its culprit's line, marked if it is between two
        recorded calls.
        """
        return self._with_calls(self._with_callers(finding))

    def stack_of(self, task: TaskAt, offset: int = 0) -> int:
        """Return the stack of a task, or of the one that is `offset` behind it on its stream."""
        stacks = self.stacks[task.rank][task.stream]
        return int(stacks[(task.index + offset) % len(stacks)])

    def _with_calls(self, finding: Finding) -> Finding:
        calls = {
            int(own[task.index % len(own)])
            for task in finding.tasks
            for own in (self.calls[task.rank][task.stream],)
        }
        return replace(finding, between_calls=True) if len(calls) > 1 else finding

    def _with_callers(self, finding: Finding) -> Finding:
        if not finding.tasks or finding.source is None:
            return finding
        above = self.lines.above(self.stack_of(finding.tasks[0]))
        return replace(finding, message=f"{finding.message} {above}") if above else finding


def _by_thread(trace: RankTrace, what: str) -> list[IntArray]:
    order = np.argsort(trace.tasks["thread"], kind="stable")
    counts = np.bincount(trace.tasks["thread"], minlength=len(trace.threads))
    return np.split(trace.tasks[what][order], np.cumsum(counts)[:-1])


def one_sided_channels(meeting: Meeting, traces: Traces, lines: SourceLines) -> Iterator[Finding]:
    """Yield ONE_SIDED_CHANNEL for channels that only one of two ranks acquires."""
    groups: dict[int, list[tuple[int, int, int]]] = {}
    for rank, channel, peer in meeting.one_sided():
        stack = traces.ranks[rank].channels[channel].stack
        groups.setdefault(stack, []).append((rank, channel, peer))

    def make(one: tuple[int, int, int]) -> Finding:
        rank, channel, peer = one
        found = traces.ranks[rank].channels[channel]
        message = (
            f"Rank {rank} acquires a channel to rank {peer} on layer {found.layer}, and rank "
            f"{peer} acquires none to rank {rank} that would meet it."
        )
        return _at_stack("ONE_SIDED_CHANNEL", message, found.stack, (rank, peer), lines)

    for group in groups.values():
        yield _grouped(group, make)


def _grouped(group: Sequence[T], make: Callable[[T], Finding]) -> Finding:
    """Return the first finding of the same place, counting the others."""
    first, rest = make(group[0]), group[1:]
    others: Callable[[], Iterable[Finding]] = lambda: map(make, rest)  # noqa: E731
    return first.followed_by(len(rest), others) if rest else first
