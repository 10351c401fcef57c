"""A job: what every rank issues on its streams, kernels, events and collectives.

Streams run at the same time, what is on one stream runs in order, and events order streams of one
rank, as in CANN and CUDA:

    compute   backward 2 ─ record ─ backward 1 ─ record ─ backward 0 ─ ... ─ wait ─ optimizer
                             │                     │                          │
    dp                       └ wait ─ all_reduce   └ wait ─ all_reduce ─ ... record
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan, idle
from hccl_py.errors import ParameterError
from hccl_py.jobs.communicators import JobCommunicators, ranks_of
from hccl_py.jobs.compose import composed
from hccl_py.jobs.program import JobProgram
from hccl_py.jobs.steps import Communicate, Compute, Event, Record, Step, Wait
from hccl_py.lines import format_line
from hccl_py.topology import Topology
from hccl_py.values import IntArray


class Job:
    """The streams of all ranks of a topology, with the kernels, events and collectives issued on
    them. Raises ParameterError where `topology` is no `Topology`.
    """

    def __init__(self, topology: Topology) -> None:
        if not isinstance(topology, Topology):
            raise ParameterError(
                f"A job got {topology!r:.80} as topology.",
                "Give the topology of its ranks, such as world.topology.",
            )
        self.topology = topology
        self.steps: list[Step] = []
        self._streams: list[str] = []
        self.communicators = JobCommunicators(topology)
        self._recorded: dict[Event, npt.NDArray[np.bool_]] = {}
        self.line = ""
        """The source line of the next steps; the caller's line where it is empty."""

    def stream(self, name: str) -> JobStream:
        """Return a new stream of every rank.

        The job begins and ends on the first one: it wakes the others and waits for them. Raises
        ParameterError for a name that is empty or taken.
        """
        if not isinstance(name, str) or not name or name in self._streams:
            reason = "is taken" if name in self._streams else "is no name"
            raise ParameterError(
                f"{name!r:.80} {reason} for a stream of the job.", "Give a text of its own."
            )
        self._streams.append(name)
        return JobStream(self, len(self._streams) - 1, np.arange(self.topology.size))

    def event(self) -> Event:
        """Return an event to record later: streams may wait for it before it is recorded."""
        event = Event()
        self._recorded[event] = np.zeros(self.topology.size, bool)
        return event

    def program(self) -> JobProgram:
        """Return all steps issued so far as one program.

        Raises ParameterError where a stream waits for an event that its rank never records. A
        deadlock of streams is found when the program is timed or verified.
        """
        program = composed(self.topology, tuple(self._streams), tuple(self.steps))
        return replace(program, job=self)

    def check_event(self, event: Event) -> npt.NDArray[np.bool_]:
        """Return a flag per rank, True where it has recorded an event of this job."""
        if not isinstance(event, Event) or event not in self._recorded:
            raise ParameterError(
                f"{event!r:.80} is no event of this job.",
                "Take what stream.record() or job.event() returned.",
            )
        return self._recorded[event]

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of the streams by their numbers."""
        return tuple(self._streams)

    def name_of(self, stream: int) -> str:
        """Return the name of a stream by its number."""
        return self._streams[stream]


class JobStream:
    """One stream of some ranks of a job; `ranks` are numbers of the job's topology, ascending.

    Methods raise ParameterError for arguments that they cannot take.
    """

    def __init__(self, job: Job, number: int, ranks: IntArray) -> None:
        self.job, self.number, self.ranks = job, number, ranks

    def __repr__(self) -> str:
        return f"<JobStream {self.name} of {len(self.ranks)} ranks>"

    @property
    def name(self) -> str:
        """The stream's name in the job."""
        return self.job.name_of(self.number)

    def on(self, ranks: Sequence[int] | IntArray) -> JobStream:
        """Return the same stream on some of its ranks only, for steps that differ by rank.

        The k-th call that a rank makes on a communicator meets the k-th call of the others. Raises
        ParameterError for no rank, or for one that the stream does not have.
        """
        given = np.unique(ranks_of(ranks))
        if not len(given) or not np.isin(given, self.ranks).all():
            raise ParameterError(
                f"{ranks!r:.80} are not ranks of stream {self.name}.",
                f"Give some of {len(self.ranks)} ranks, {self.ranks[0]} to {self.ranks[-1]}.",
            )
        return JobStream(self.job, self.number, given)

    def compute(self, microseconds: float | Sequence[float], label: str = "compute") -> None:
        """Run a kernel of a duration of 0 or more: one number, or one for each of `ranks`. Ranks
        that are slow in every task are described by `Stragglers`.
        """
        us = _durations(microseconds)
        if us.ndim > 1 or (us.ndim and len(us) != len(self.ranks)):
            raise ParameterError(
                f"{us.size} durations for {len(self.ranks)} ranks of stream {self.name}.",
                "Give one number, or one for every rank.",
            )
        if not (np.isfinite(us) & (us >= 0)).all():
            raise ParameterError(
                f"A kernel cannot take {microseconds!r:.80} microseconds.",
                "Give 0 or more, not infinity.",
            )
        each = np.broadcast_to(us, len(self.ranks))
        self.job.steps.append(Compute(self.number, self.ranks, self._line(), _text(label), each))

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one or one that `job.event()` made: it happens when everything
        that was issued on the stream before is done. Raises ParameterError for another job's event,
        and where a rank of the stream has recorded it already.
        """
        event = self.job.event() if event is None else event
        recorded = self.job.check_event(event)
        if recorded[self.ranks].any():
            rank = int(self.ranks[recorded[self.ranks]][0])
            raise ParameterError(
                f"Rank {rank} records an event twice, the second time on stream {self.name}.",
                "Take an event for each point: stream.record() makes one.",
            )
        recorded[self.ranks] = True
        self.job.steps.append(Record(self.number, self.ranks, self._line(), event))
        return event

    def wait(self, event: Event) -> None:
        """Let later steps of the stream begin after the event, which may be recorded later. Raises
        ParameterError for another job's event.
        """
        self.job.check_event(event)
        self.job.steps.append(Wait(self.number, self.ranks, self._line(), event))

    def run(
        self,
        communicators: Communicator | Sequence[Communicator],
        op: OpParam | Plan,
        label: str = "",
        *,
        members: Sequence[int] | None = None,
    ) -> None:
        """Issue a collective of a communicator, or of several that share no rank, each for itself.

        A communicator of the job's topology, its groups and their groups know their ranks; for any
        other, `members` are its ranks in the job, placed alike. All calls of a communicator go to
        one stream: they share its buffers. `label` is by default the op's name. A call without data
        is left out, as HCCL does.

        Raises ParameterError for communicators whose ranks are not in the job, share a rank or lie
        on another stream, and for calls that differ between ranks; planning the call raises what
        `Communicator.plan` does.
        """
        groups = self.job.communicators.placed(communicators, members)
        if isinstance(op, OpParam) and idle(op):
            return  # HCCL returns from such a call before it issues a task
        parts = tuple((group, self.job.communicators.plan(group, op)) for group in groups)
        here = np.concatenate([group.members for group in groups])
        ranks = self.ranks[np.isin(self.ranks, here)]
        if not len(ranks):
            raise ParameterError(
                f"No rank of {self!r} is in {groups[0].communicator.name}.",
                f"Its ranks are {', '.join(map(str, here[:8].tolist()))}.",
            )
        for group, plan in parts:
            self.job.communicators.issue(group, plan, self.name, ranks)
        label = _text(label) or parts[0][1].op.name
        self.job.steps.append(Communicate(self.number, ranks, self._line(), label, parts))

    def _line(self) -> str:
        return self.job.line or _line()


def _durations(given: object) -> npt.NDArray[np.float64]:
    """Return durations as an array, NaN where they are no numbers."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _text(label: str) -> str:
    if not isinstance(label, str):
        raise ParameterError(f"{label!r:.80} is no label.", "Give a text.")
    return label


_HERE = str(Path(__file__).parent)


def _line() -> str:
    """Return the line outside of this package that is being run, as `folder/file.py:line`."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return format_line((frame.f_code.co_filename, frame.f_lineno))
