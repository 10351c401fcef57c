"""Records of this process's last calls and the programs that they ran, for people and tests."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.communicator.pending import Result
from hccl_py.enums import READS, WRITES
from hccl_py.program.program import Program

if TYPE_CHECKING:
    from hccl_py.selection import Selection

TRACES = 64
"""Calls that are kept; the oldest goes first."""


@dataclass(frozen=True)
class CallTrace:
    """One collective of a group: torch's `call`, HCCL's op, and how it ran.

    `folded` says that HCCL has no such op or type, so that the inputs of all ranks were gathered
    and folded at every rank. `rank` is this process's rank in the group.
    """

    call: str
    rank: int
    selection: Selection
    program: Program
    folded: bool = False

    @classmethod
    def of(cls, call: str, rank: int, result: Result, *, folded: bool = False) -> CallTrace:
        """Return the trace of a call with this result."""
        return cls(call, rank, result.selection, result.program, folded)

    @property
    def executor(self) -> str:
        """The name of the executor that ran."""
        return self.selection.executor

    @property
    def sent_bytes(self) -> int:
        """Bytes that left this rank for others."""
        tasks = self.program.tasks
        kind = tasks.kind
        pushed = np.isin(kind, WRITES) & (tasks.rank == self.rank)
        pulled = np.isin(kind, READS) & (tasks.peer == self.rank)
        return int(tasks.size[pushed | pulled].sum())

    def __str__(self) -> str:
        op = self.program.op
        ran = f"{op.name} of {op.count} {op.dtype.value} on {self.program.ranks} ranks"
        by = f"by {self.executor}" if self.executor else "with nothing to do"
        fold = ", then folded at every rank" if self.folded else ""
        return f"{self.call}: {ran} {by}{fold}, {self.sent_bytes} bytes sent"


_traces: deque[CallTrace] = deque(maxlen=TRACES)


def note(trace: CallTrace) -> None:
    """Keep the trace of a call that has ended."""
    _traces.append(trace)


def last_trace() -> CallTrace | None:
    """Return the trace of this process's last collective; None before the first."""
    return _traces[-1] if _traces else None


def traces() -> tuple[CallTrace, ...]:
    """Return the traces of the last calls, the oldest first."""
    return tuple(_traces)
