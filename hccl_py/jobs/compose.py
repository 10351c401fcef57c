"""From the steps of a job to one program.

Steps become pieces, instructions of some ranks. Ranks that take part in the same pieces are a
batch, so that thousands of ranks stay a few batches. The first stream wakes the others and waits
for them in the end: to its caller, a job is over when its first stream is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan
from hccl_py.enums import Buffer, DataType, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.jobs.calls import Calls, Cells
from hccl_py.jobs.events import Crossing, Events, begun, ended
from hccl_py.jobs.layout import JobNumbers
from hccl_py.jobs.pieces import Piece, narrowed
from hccl_py.jobs.program import CallOn, JobProgram
from hccl_py.jobs.steps import Communicate, Compute, Record, Step, Wait
from hccl_py.program.instruction import Batch, Instruction, Texts
from hccl_py.program.narrowing import Narrower
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, PerRank


def composed(topology: Topology, streams: tuple[str, ...], steps: Sequence[Step]) -> JobProgram:
    """Return the program of a job; ParameterError for waits that no record answers."""
    plans = [plan for step in steps if isinstance(step, Communicate) for _, plan in step.parts]
    _refuse_counting(plans)
    ranks = topology.size
    layout = JobNumbers(ranks, max(len(streams), 1))
    composer = _Composer(layout, streams, steps)
    batches = _batches(ranks, list(composer.pieces()))
    return JobProgram(
        op=_op(plans),
        executor="Job",
        ranks=ranks,
        buffers=tuple(buffer.spelling for buffer in Buffer),
        buffer_sizes=layout.buffer_sizes,
        transports=layout.transports,
        local_notifies=layout.local_notifies,
        declared=layout.declared,
        batches=batches,
        labels=tuple(composer.labels.texts),
        lines=tuple(composer.calls.lines),
        rounds=max((plan.program.rounds for plan in plans), default=1),
        stream_names=streams,
        calls_run=tuple(composer.labels.calls),
        call_of_label=tuple(composer.labels.call_of),
    )


def _refuse_counting(plans: Sequence[Plan]) -> None:
    """Refuse programs with counting notifies or alternating buffers, which a job has not."""
    for plan in plans:
        if plan.program.counts_posts or plan.program.alternating:
            what = "notifies count" if plan.program.counts_posts else "buffers alternate"
            raise NotSupportedError(
                f"A job cannot call {plan.program.executor or plan.op.name}, whose {what}: a job's "
                "notifies hold one bit, and its buffers are there once.",
                "Simulate, verify or run it by itself.",
            )


def _op(plans: Sequence[Plan]) -> OpParam:
    """Return the op of a job: an empty message, since no op stands for a whole job. Its data type
    is that of the first call that reduces.
    """
    types = [plan.op.dtype for plan in plans if plan.op.reduce is not None]
    dtype = types[0] if types else DataType.UINT8
    return OpParam("batch_send_recv", 0, dtype, pairs=((0, 0, 0),))


class _Composer:
    """The layout of a job, made by the constructor, and its pieces."""

    def __init__(self, layout: JobNumbers, streams: Sequence[str], steps: Sequence[Step]) -> None:
        self.labels, self.calls = Labels(), Calls(layout, steps)
        self._steps, self._events = steps, Events(layout, streams, steps)
        self._wakes = begun(layout, steps, self._events, len(streams))
        self._dones = ended(layout, steps, self._events, len(streams))
        transports, slots = layout.transports, len(layout.local_notifies.slots)
        self._cells = Cells(transports.stride, transports.cells, slots)

    def pieces(self) -> Iterator[tuple[IntArray, Piece]]:
        """Yield pieces in the order of issue, each with the ranks that take part in it."""
        for wake in self._wakes:
            yield self._post(0, wake, "start")
            yield self._wait(wake, "start")
        for number, step in enumerate(self._steps):
            yield from self._step(number, step)
        for stream, done in self._dones:
            yield self._post(stream, done, "end")
        for _, done in self._dones:
            yield self._wait(done, "end")

    def _step(self, number: int, step: Step) -> Iterator[tuple[IntArray, Piece]]:
        if isinstance(step, Communicate):
            pieces = self.calls.pieces(step, self._cells)
            call = CallOn(step.label, step.stream)
            for piece in self.labels.of_call(call, pieces, self.calls.phases):
                yield np.intersect1d(piece.ranks, step.ranks), piece
        elif isinstance(step, Compute):
            yield from self._compute(step)
        elif isinstance(step, Record):
            for post in self._events.posts.get(number, ()):
                yield self._post(step.stream, post, "event", step.line)
        elif isinstance(step, Wait) and number in self._events.waits:
            yield self._wait(self._events.waits[number], "event", step.line)

    def _compute(self, step: Compute) -> Iterator[tuple[IntArray, Piece]]:
        label, line = self.labels.plain(step.label), self.calls.lines[step.line]
        us: Any = step.duration_us  # PerRank of floats: a duration is read, never calculated with
        duration = float(us[0]) if (us == us[0]).all() else PerRank(us, bounds=(0, 0))
        kernel = Instruction(TaskKind.COMPUTE, step.stream, label, line, duration_us=duration)
        yield step.ranks, Piece(step.ranks, (kernel,))

    def _post(
        self, stream: int, to: Crossing, label: str, line: str = ""
    ) -> tuple[IntArray, Piece]:
        return to.ranks, self._notify(TaskKind.NOTIFY_POST, stream, to, label, line)

    def _wait(self, of: Crossing, label: str, line: str = "") -> tuple[IntArray, Piece]:
        return of.ranks, self._notify(TaskKind.NOTIFY_WAIT, of.stream, of, label, line)

    def _notify(self, kind: TaskKind, stream: int, at: Crossing, label: str, line: str) -> Piece:
        number = self.calls.lines[line] if line else -1
        cell = self._cells.local(at.slot, at.ranks)
        task = Instruction(kind, stream, self.labels.plain(label), number, cell=cell)
        return Piece(at.ranks, (task,))


def _batches(ranks: int, pieces: Sequence[tuple[IntArray, Piece]]) -> tuple[Batch, ...]:
    """Return the batches: ranks that take part in the same pieces."""
    masks = [np.isin(np.arange(ranks), who) for who, _ in pieces]
    number = np.zeros(ranks, np.int64)
    for mask in masks:
        if not mask.all():
            number = np.unique(2 * number + mask, return_inverse=True)[1].reshape(-1)
    narrower = Narrower()
    found = []
    for batch in range(int(number.max(initial=0)) + 1):
        mine = np.flatnonzero(number == batch)
        parts = [
            narrowed(narrower, piece, mine)
            for mask, (_, piece) in zip(masks, pieces, strict=True)
            if mask[mine[0]]
        ]
        found.append(Batch(mine, tuple(i for part in parts for i in part)))
    return tuple(sorted(found, key=lambda batch: int(batch.ranks[0])))


class Labels:
    """All labels, and the number of the call of each, -1 for none."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.call_of: list[int] = []
        self.calls: list[CallOn] = []
        self._plain: dict[str, int] = {}

    def plain(self, text: str) -> int:
        """Return the number of a label that belongs to no call."""
        if text not in self._plain:
            self._plain[text] = self._add(text, -1)
        return self._plain[text]

    def of_call(self, call: CallOn, pieces: list[Piece], phases: Texts[str]) -> list[Piece]:
        """Return pieces, whose labels are numbers of phases, under labels of a new call."""
        self.calls.append(call)
        names, known = list(phases), dict[int, int]()
        for piece in pieces:
            for phase in {instruction.label for instruction in piece.instructions} - known.keys():
                text = f"{call.label}: {names[phase]}" if names[phase] else call.label
                known[phase] = self._add(text, len(self.calls) - 1)
        return [
            Piece(piece.ranks, tuple(i._replace(label=known[i.label]) for i in piece.instructions))
            for piece in pieces
        ]

    def _add(self, text: str, call: int) -> int:
        self.texts.append(text)
        self.call_of.append(call)
        return len(self.texts) - 1
