"""Wrong outputs: bytes that differ from the op's meaning, and the task that is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from hccl_py.program.describe import format_ranks
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents import UNDEFINED, Contents
from hccl_py.verifier.analysis.meaning import EVERYONE, Expected, expected_blocks
from hccl_py.verifier.analysis.outputs import Outputs, outputs_of
from hccl_py.verifier.checks.reasons import Reason, Reasons
from hccl_py.verifier.finding import Finding, MemoryRange
from hccl_py.verifier.subject import Subject, limited

EXPLAINED = 200
"""Wrong ranges that are explained; further ones only where every finding is asked for."""


class _WrongRuns(NamedTuple):
    """Neighbouring wrong runs first .. last - 1 in the columns of some outputs."""

    outputs: Outputs
    first: int
    last: int


def find_silent_ranks(subject: Subject, ranks: IntArray) -> Iterator[Finding]:
    """Yield SILENT_RANK, once: ranks without a task whose input or output the op needs."""
    silent = ranks.tolist()
    if silent:
        yield subject.finding(
            "SILENT_RANK",
            f"{format_ranks(silent).capitalize()} of {subject.program.ranks} "
            f"{'issues' if len(silent) == 1 else 'issue'} no task at all, but "
            f"{subject.program.op.name} needs {'it' if len(silent) == 1 else 'them'}.",
            "Every rank has to run the op: look for a condition that leaves ranks out.",
            ranks=silent,
        )


def silent_ranks(subject: Subject) -> IntArray:
    """Return the ranks that issue no task although the op needs them."""
    program = subject.program
    is_silent = np.diff(subject.tasks.first) == 0
    needed = np.full(program.ranks, program.op.name == "barrier")
    if program.ranks == 1 or not is_silent.any():  # alone, a rank may have its result in place
        return np.zeros(0, np.int64)
    first, others = np.split(np.arange(program.ranks), [1])  # one rank may need all others
    for expected in chain(
        *(expected_blocks(program.op, program.ranks, at) for at in (first, others))
    ):
        everyone = expected.source == EVERYONE
        needed[expected.rank] = True
        needed[expected.source[~everyone]] = True
        needed |= bool(everyone.any())
        if needed.all():
            break
    return np.flatnonzero(is_silent & needed)


class WrongResults:
    """The wrong outputs of all ranks but the silent ones, which have a finding of their own; so
    have bytes made from garbage.

    `unclobbered` are the contents as they would be if reads of the input got the caller's data even
    where the op has overwritten it: outputs that are right there have a finding of their own, too.
    """

    def __init__(
        self,
        subject: Subject,
        silent: IntArray,
        contents: Contents,
        unclobbered: Contents | None = None,
    ) -> None:
        self._subject, self._contents, self._unclobbered = subject, contents, unclobbered
        self._memory = contents.memory
        self._speaking = np.setdiff1d(np.arange(subject.program.ranks), silent)
        self._reasons = Reasons(subject, contents)

    def find(self) -> Iterator[Finding]:
        """Yield findings, one for neighbouring bytes with the same reason."""
        yield from self._short_outputs()
        first: list[_WrongRuns] = []
        more = 0
        for outputs, ends in self._ends():
            room = EXPLAINED - len(first)
            first += [_WrongRuns(outputs, *span) for span in ends[:room].tolist()]
            more += max(len(ends) - room, 0)
        findings = list(limited(self._wrong(first), self._key, self._finding))
        if more:
            findings[-1] = findings[-1].followed_by(more, self._beyond)
        yield from findings

    def has_clobbered(self) -> bool:
        """True if some output is wrong only because the op has overwritten its input."""
        return any(len(self._compared(expected)[1]) for expected in self._expected())

    def _beyond(self) -> Iterator[Finding]:
        spans = (
            _WrongRuns(outputs, *span) for outputs, ends in self._ends() for span in ends.tolist()
        )
        return map(self._finding, self._wrong(islice(spans, EXPLAINED, None)))

    def _compared(self, expected: Expected) -> tuple[Outputs, IntArray, IntArray]:
        """Return outputs, their runs that only clobbered inputs make wrong, other wrong ones."""
        outputs = outputs_of(self._contents, expected)
        wrong = np.flatnonzero(outputs.is_wrong)
        clobbered = np.zeros(len(wrong), bool)
        if self._unclobbered is not None and len(wrong):
            clobbered = ~outputs.overlaps(wrong, outputs_of(self._unclobbered, expected))
        return outputs, wrong[clobbered], wrong[~clobbered]

    def _expected(self) -> Iterator[Expected]:
        program = self._subject.program
        return expected_blocks(program.op, program.ranks, self._speaking)

    def _ends(self) -> Iterator[tuple[Outputs, IntArray]]:
        """Yield the first and last + 1 of wrong runs that continue each other: rows [spans, 2]."""
        for expected in self._expected():
            outputs, _, wrong = self._compared(expected)
            if len(wrong):
                columns = (outputs.row, outputs.writer, outputs.content, outputs.shift)
                keys = np.stack([column[wrong] for column in columns], axis=1)
                is_new = (keys[1:] != keys[:-1]).any(axis=1)
                is_new |= outputs.start[wrong][1:] != outputs.stop[wrong][:-1]
                firsts = np.flatnonzero(np.append(True, is_new))
                lasts = np.append(firsts[1:], len(wrong)) - 1
                yield outputs, np.stack([wrong[firsts], wrong[lasts] + 1], axis=1)

    def _wrong(self, spans: Iterable[_WrongRuns]) -> Iterator[tuple[_WrongRuns, Reason]]:
        """Yield spans with their reasons; neighbours with the same reasons become one span."""
        before: _WrongRuns | None = None
        known: tuple[Reason, ...] = ()
        for span in spans:
            outputs, first, _ = span
            content, shift, source = outputs.content, outputs.shift, outputs.source
            held = UNDEFINED if outputs.writer[first] < 0 else int(content[first])
            reasons = self._reasons.of(held, int(shift[first]), int(source[first]))
            if before is not None and reasons == known and _continues(before, span):
                before = before._replace(last=span.last)
                continue
            if before is not None:
                yield from ((before, reason) for reason in known)
            before, known = span, reasons
        if before is not None:
            yield from ((before, reason) for reason in known)

    def _key(self, wrong: tuple[_WrongRuns, Reason]) -> tuple[str, str | None]:
        """Return the class, and the line of the last writer, by which findings are grouped."""
        span, reason = wrong
        writer = int(span.outputs.writer[span.first])
        return reason.name, self._subject.source(self._row(writer)) if writer >= 0 else None

    def _finding(self, wrong: tuple[_WrongRuns, Reason]) -> Finding:
        """Return the finding; the culprit is the reason's, its cause, or the last writer."""
        span, reason = wrong
        writer, memory = int(span.outputs.writer[span.first]), self._range(span)
        message, rows = self._message(memory, span, reason), []
        if reason.culprit is not None:
            rows.append(self._row(reason.culprit))
        cause = self._lost(span) if reason.is_lost else reason.cause
        if cause is not None:
            rows.append(self._row(cause[0]))
            message += f" {self._subject.place(rows[-1])} {cause[1]}."
        if reason.culprit is None and writer >= 0:
            rows.append(self._row(writer))
            message += f" {self._subject.place(rows[-1])} wrote it last."
        culprits = [(row, 0) for row in dict.fromkeys(rows)]
        return self._subject.finding(
            reason.name, message, reason.hint, rows=culprits, memory=[memory]
        )

    def _message(self, memory: MemoryRange, span: _WrongRuns, reason: Reason) -> str:
        outputs, at, _ = span
        first, source = int(outputs.offset[at]), int(outputs.source[at])
        size, moved = memory.stop - memory.start, first + reason.moved
        whose = (
            "the reduction of all ranks' inputs" if source == EVERYONE else f"rank {source}'s input"
        )
        return reason.text.format(
            where=self._subject.words(memory),
            wanted=f"{whose} [{first}:{first + size}]",
            first=first,
            moved=moved,
            moved_stop=moved + size,
        )

    @cached_property
    def _losses(self) -> tuple[IntArray, IntArray]:
        """Data overwritten unread: rows of `Contents.lost` by address, and the addresses."""
        starts = self._contents.lost[:, 1]
        order = np.argsort(starts, kind="stable")
        return order, starts[order]

    def _lost(self, span: _WrongRuns) -> tuple[int, str] | None:
        """Return the last move that has overwritten unread data of a span, and its action."""
        start, stop = int(span.outputs.start[span.first]), int(span.outputs.stop[span.last - 1])
        order, starts = self._losses
        intervals = self._memory.intervals.start  # each loss lies in one of them
        low = intervals[np.searchsorted(intervals, start, "right") - 1]
        near = order[slice(*np.searchsorted(starts, [low, stop]))]
        near = near[self._contents.lost[near, 2] > start]
        if not len(near):
            return None
        killer, _, _, victim = self._contents.lost[near.max()].tolist()
        return killer, f"overwrites what {self._subject.place(self._row(victim))} wrote there"

    def _row(self, move: int) -> int:
        return int(self._memory.transfers.row[move])

    def _range(self, span: _WrongRuns) -> MemoryRange:
        outputs, first, last = span
        out = self._subject.program.buffers.index("OUT")
        start, stop = int(outputs.start[first]), int(outputs.stop[last - 1])
        return self._memory.range_of(int(outputs.rank[first]), out, start, stop)

    def _short_outputs(self) -> Iterator[Finding]:
        """Yield OUTPUT_MISSING, once: ranks whose OUT is smaller than what the op fills."""
        program = self._subject.program
        room, needed = np.zeros((2, program.ranks), np.int64)
        if "OUT" in program.buffers:
            room = program.buffer_sizes[:, program.buffers.index("OUT")]
        for expected in self._expected():
            np.maximum.at(needed, expected.rank, expected.stop)
        short = np.flatnonzero(needed > room).tolist()
        if short:
            yield self._subject.finding(
                "OUTPUT_MISSING",
                f"Rank {short[0]}'s OUT has {room[short[0]]} bytes, and {program.op.name} fills "
                f"{needed[short[0]]}.",
                "State the size of OUT as the op's count demands it.",
                ranks=short,
            )


def _continues(before: _WrongRuns, after: _WrongRuns) -> bool:
    """True if a span begins where another ends, in the same expected range, written by the same
    task.
    """
    outputs, end, begin = before.outputs, before.last - 1, after.first
    return (
        outputs is after.outputs
        and bool(outputs.stop[end] == outputs.start[begin])
        and bool(outputs.row[end] == outputs.row[begin])
        and bool(outputs.writer[end] == outputs.writer[begin])
    )
