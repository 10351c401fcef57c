"""Whether the outputs hold what the op means, and which task is to blame where they do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import ReduceOp
from hccl_py.values import IntArray, count_up
from hccl_py.verifier.analysis.contents import UNDEFINED, Contents, Pieces
from hccl_py.verifier.analysis.meaning import EVERYONE, Expected, expected_blocks
from hccl_py.verifier.analysis.memory import Memory
from hccl_py.verifier.checks.culprits import spell_ranks
from hccl_py.verifier.finding import Finding, MemoryRange
from hccl_py.verifier.subject import Subject, limited

__all__ = ["find_silent_ranks", "find_wrong_results", "silent_ranks"]

EXPLAINED = 200
"""Wrong ranges that are looked into; further ones are only counted."""


class _Span(NamedTuple):
    """Neighbouring wrong runs of one expected range: places first .. last - 1 in the columns."""

    first: int
    last: int


def find_silent_ranks(subject: Subject, ranks: IntArray) -> Iterator[Finding]:
    """Yield SILENT_RANK, once: ranks without a task whose input or output the op needs."""
    silent = ranks.tolist()
    if silent:
        yield subject.finding(
            "SILENT_RANK",
            f"{spell_ranks(silent).capitalize()} of {subject.program.ranks} "
            f"{'issues' if len(silent) == 1 else 'issue'} no task at all, but "
            f"{subject.program.op.name} needs {'it' if len(silent) == 1 else 'them'}.",
            "Every rank has to run the op: look for a condition that leaves ranks out.",
            ranks=silent,
        )


def silent_ranks(subject: Subject) -> IntArray:
    """Return the ranks that issue nothing and should."""
    program = subject.program
    is_silent = np.diff(subject.tasks.first) == 0
    needed = np.full(program.ranks, program.op.name == "barrier")
    if is_silent.any():
        for expected in expected_blocks(program.op, program.ranks):
            everyone = expected.source == EVERYONE
            needed[expected.rank] = True
            needed[expected.source[~everyone]] = True
            needed |= bool(everyone.any())
    needed &= program.ranks > 1  # alone, a rank may have its result in place
    return np.flatnonzero(is_silent & needed)


def find_wrong_results(
    subject: Subject, memory: Memory, contents: Contents, silent: IntArray
) -> Iterator[Finding]:
    """Yield what is wrong with the outputs, by the bytes that one task has left there.

    Silent ranks have a finding of their own, and so has what was made from garbage.
    """
    program = subject.program
    said: list[tuple[object, Finding]] = []
    left, more = EXPLAINED, 0
    for expected in expected_blocks(program.op, program.ranks):
        yield from _short_outputs(subject, expected)
        if "OUT" in program.buffers:
            judge = _Judge(subject, memory, contents, expected)
            spans = judge.spans(np.flatnonzero(judge.wrong & ~np.isin(judge.rank, silent)))
            said += [pair for span in spans[:left].tolist() for pair in judge.say(_Span(*span))]
            more += max(len(spans) - left, 0)
            left -= min(len(spans), left)
    findings = list(limited(said))
    if more and findings:
        findings[-1] = replace(findings[-1], more=findings[-1].more + more)
    yield from findings


def _short_outputs(subject: Subject, expected: Expected) -> Iterator[Finding]:
    program = subject.program
    room = np.zeros(program.ranks, np.int64)
    if "OUT" in program.buffers:
        room = program.buffer_sizes[:, program.buffers.index("OUT")]
    short = np.flatnonzero(expected.stop > room[expected.rank])
    for rank in np.unique(expected.rank[short]).tolist()[:1]:
        needed = int(expected.stop[expected.rank == rank].max())
        yield subject.finding(
            "OUTPUT_MISSING",
            f"Rank {rank}'s OUT has {room[rank]} bytes, and {program.op.name} fills {needed}.",
            "State the size of OUT as the op's count demands it.",
            ranks=np.unique(expected.rank[short]).tolist(),
        )


class _Judge:
    """Every run of bytes of the outputs that the op defines, as columns: what it holds and should.

    Runs are what is left when pieces of memory and expected ranges cut each other.
    """

    def __init__(
        self, subject: Subject, memory: Memory, contents: Contents, expected: Expected
    ) -> None:
        self.subject, self.memory, self.contents = subject, memory, contents
        self.ranks = subject.program.ranks
        names = subject.program.buffers
        self.into, self.out = (names.index(n) if n in names else 0 for n in ("IN", "OUT"))
        base = memory.spaces.base[:, self.out]
        room = memory.spaces.size[:, self.out] if "OUT" in names else np.zeros_like(base)
        begin = base[expected.rank] + np.minimum(expected.start, room[expected.rank])
        end = base[expected.rank] + np.minimum(expected.stop, room[expected.rank])
        row, self.start, self.stop, piece = _overlaid(begin, end, contents.pieces)
        self.row, self.rank, self.source = row, expected.rank[row], expected.source[row]
        self.offset = expected.offset[row] + self.start - begin[row]
        self.held = contents.pieces.content[piece]
        self.delta = contents.pieces.delta[piece]
        self.writer = contents.pieces.writer[piece]
        self.input_base = memory.spaces.base[:, self.into]
        self.again = subject.program.op.reduce in (ReduceOp.MAX, ReduceOp.MIN)
        self.right_moves = self._right_moves()
        self.wrong = ~self._is_right() & ((self.held >= 0) | (self.held == UNDEFINED))
        if subject.program.op.name == "broadcast":  # in HCCL it has one buffer
            self.wrong &= (self.rank != self.source) | (self.held != UNDEFINED)

    def _right_moves(self) -> npt.NDArray[np.bool_]:
        """Whether each transfer reduces with the call's op."""
        tasks, op = self.subject.tasks, self.subject.program.op
        reduce = tasks.table.reduce[tasks.instruction[self.memory.transfers.row]]
        return np.equal(reduce, -1 if op.reduce is None else int(op.reduce))

    def _is_right(self) -> npt.NDArray[np.bool_]:
        right = np.zeros(len(self.held), bool)
        one = self.source != EVERYONE
        there = self.start + self.delta  # where the content lies, in its own coordinates
        wanted = self.input_base[np.maximum(self.source, 0)] + self.offset
        right[one] = ((self.held == self.source) & (there == wanted))[one]
        every = np.flatnonzero(~one & (self.held >= 0))
        if len(every):
            keys = np.stack([self.held[every], (self.offset - there)[every]])
            roots, which = np.unique(keys, axis=1, return_inverse=True)
            sums = self.contents.are_sums(
                roots[0], roots[1], self.input_base, self.right_moves, again=self.again
            )
            right[every] = sums[which.reshape(-1)]
        return right

    def spans(self, bad: IntArray) -> IntArray:
        """Return neighbouring wrong runs that the same task wrote, of the same expected range: rows
        (first, last + 1).
        """
        if not len(bad):
            return np.zeros((0, 2), np.int64)
        kind = np.minimum(self.held[bad], self.ranks)
        keys = np.stack([self.row[bad], self.writer[bad], kind], axis=1)
        ends = np.flatnonzero(
            (np.diff(keys, axis=0) != 0).any(axis=1) | (self.start[bad][1:] != self.stop[bad][:-1])
        )
        firsts, lasts = np.concatenate([[0], ends + 1]), np.append(ends, len(bad) - 1)
        return np.stack([bad[firsts], bad[lasts] + 1], axis=1)

    def say(self, span: _Span) -> Iterator[tuple[object, Finding]]:
        """Yield findings about neighbouring atoms, with what makes them alike."""
        held, writer = int(self.held[span.first]), int(self.writer[span.first])
        if held == UNDEFINED:
            found = [self._missing(span)]
        elif held < self.ranks:
            found = [self._one_wrong(span, held)]
        else:
            found = list(self._explained(span, held))
        line = self.subject.source(self._row(writer)) if writer >= 0 else None
        for finding in found:
            yield (finding.name, line), finding

    def _missing(self, span: _Span) -> Finding:
        return self._made(
            span,
            "OUTPUT_MISSING",
            f"Nobody writes {self._where(span)}, where {self._wanted(span)} belongs.",
            "Add the copy, or deliver the result: the call's output ends in OUT.",
        )

    def _one_wrong(self, span: _Span, rank: int) -> Finding:
        there = int(self.start[span.first] + self.delta[span.first])
        offset = there - int(self.input_base[rank])
        size = self._memory(span).stop - self._memory(span).start
        same = rank == int(self.source[span.first])
        if int(self.source[span.first]) == EVERYONE and self.ranks > 1:
            return self._without(span, [r for r in range(self.ranks) if r != rank])
        same |= self.ranks == 1
        return self._made(
            span,
            "WRONG_OFFSET" if same else "WRONG_SOURCE",
            f"{self._where(span)} should hold {self._wanted(span)} and holds rank {rank}'s input "
            f"[{offset}:{offset + size}].",
            "Look at the addresses of source and destination."
            if same
            else "Look at which peer's data is taken.",
        )

    def _explained(self, span: _Span, held: int) -> Iterator[Finding]:
        """Yield what is wrong with a reduction: steps, then contributions."""
        there = int(self.start[span.first] + self.delta[span.first])
        made = self.contents.made_of(held, there)
        if not made.is_whole:
            yield self._too_much(span, len(made.counts))
            return
        moves = sorted({move for _, (move, _, _) in made.steps})
        steps = [move for move in moves if not self.right_moves[move]]
        right, elsewhere = self._contributions(span, made.counts)
        source = int(self.source[span.first])
        if source != EVERYONE:
            yield self._not_one(span, right, elsewhere, source)
            return
        if steps:
            yield self._wrong_op(span, steps[0])
        ranks = range(self.ranks)
        missing = [r for r in ranks if r not in right and r not in elsewhere]
        twice = [r for r in ranks if right.get(r, 0) > 1 and not self.again]
        if missing:
            yield self._without(span, missing)
        if twice:
            again = made.doubling(twice[0])
            yield self._made(
                span,
                "DOUBLE_CONTRIBUTION",
                f"{self._where(span)} counts the input of {spell_ranks(twice)} "
                f"{max(right[r] for r in twice)} times.",
                "Each rank's data must be added once: look for a chunk that is reduced again.",
                cause=None if again is None else (self._row(again), "adds it again"),
            )
        if elsewhere:
            rank, offset = min(elsewhere.items())
            yield self._made(
                span,
                "WRONG_OFFSET",
                f"{self._where(span)} adds rank {rank}'s input from byte {offset}, where "
                f"byte {int(self.offset[span.first])} belongs.",
                "Look at the address of the source.",
            )

    def _contributions(
        self, span: _Span, counts: dict[tuple[int, int], int]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return how often ranks count with the right bytes, and which wrong bytes others give."""
        right: dict[int, int] = defaultdict(int)
        elsewhere: dict[int, int] = {}
        for (rank, address), count in counts.items():
            offset = address - int(self.input_base[rank])
            if offset == int(self.offset[span.first]):
                right[rank] += count
            else:
                elsewhere[rank] = offset
        return right, elsewhere

    def _wrong_op(self, span: _Span, move: int) -> Finding:
        row, op, tasks = self._row(move), self.subject.program.op, self.subject.tasks
        assert op.reduce is not None
        used = ReduceOp(int(tasks.table.reduce[tasks.instruction[row]]))
        return self._made(
            span,
            "WRONG_REDUCE_OP",
            f"{self.subject.place(row)} reduces with {used.spelling}, but the call says "
            f"{op.reduce.spelling}, and the result ends in {self._where(span)}.",
            f"Reduce with {op.reduce.spelling}.",
            row=row,
        )

    def _without(self, span: _Span, missing: list[int]) -> Finding:
        lost = self.contents.lost
        here = (lost[:, 1] < self.stop[span.first]) & (lost[:, 2] > self.start[span.first])
        killers = lost[here]
        cause = None
        if len(killers):
            killer, victim = self._row(int(killers[-1, 0])), self._row(int(killers[-1, 3]))
            cause = killer, f"overwrites what {self.subject.place(victim)} has put there"
        return self._made(
            span,
            "MISSING_CONTRIBUTION",
            f"{self._where(span)} lacks the contribution of {spell_ranks(missing)}.",
            "Look for a reduction that was left out, or a chunk that was overwritten after it.",
            cause=cause,
        )

    def _too_much(self, span: _Span, parts: int) -> Finding:
        return self._made(
            span,
            "WRONG_OFFSET",
            f"{self._where(span)} is a sum of more than {parts} parts of inputs, from many places.",
            "Look for reductions of the same data at several offsets.",
        )

    def _not_one(
        self, span: _Span, right: dict[int, int], elsewhere: dict[int, int], source: int
    ) -> Finding:
        others = sorted({*right, *elsewhere} - {source})
        name = "WRONG_SOURCE" if others or elsewhere else "DOUBLE_CONTRIBUTION"
        what = f"a sum with {spell_ranks(others)}" if others else "a sum of that with itself"
        return self._made(
            span,
            name,
            f"{self._where(span)} should hold {self._wanted(span)} and holds {what}.",
            "Nothing is to be reduced here: copy.",
        )

    def _made(
        self,
        span: _Span,
        name: str,
        message: str,
        hint: str,
        row: int | None = None,
        cause: tuple[int, str] | None = None,
    ) -> Finding:
        """Return a finding whose culprit is `row`, or the cause, or the task that wrote last."""
        writer = int(self.writer[span.first])
        rows = [] if row is None else [row]
        if cause is not None:
            rows.append(cause[0])
            message += f" {self.subject.place(cause[0])} {cause[1]}."
        if row is None and writer >= 0:
            rows.append(self._row(writer))
            message += f" {self.subject.place(rows[-1])} wrote it last."
        culprits = [(culprit, 0) for culprit in dict.fromkeys(rows)]
        return self.subject.finding(name, message, hint, rows=culprits, memory=[self._memory(span)])

    def _row(self, move: int) -> int:
        return int(self.memory.transfers.row[move])

    def _memory(self, span: _Span) -> MemoryRange:
        start, stop = int(self.start[span.first]), int(self.stop[span.last - 1])
        return self.memory.range_of(int(self.rank[span.first]), self.out, start, stop)

    def _where(self, span: _Span) -> str:
        return self.subject.words(self._memory(span))

    def _wanted(self, span: _Span) -> str:
        """Return what belongs there, in words."""
        memory, offset = self._memory(span), int(self.offset[span.first])
        source = int(self.source[span.first])
        of = (
            "the reduction of all ranks' inputs" if source == EVERYONE else f"rank {source}'s input"
        )
        return f"{of} [{offset}:{offset + memory.stop - memory.start}]"


def _overlaid(
    begin: IntArray, end: IntArray, pieces: Pieces
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut ranges by the pieces that cover them; return of every run its range, start, stop and
    piece.
    """
    if not len(pieces.start) or not len(begin):
        none = np.zeros(0, np.int64)
        return none, none, none, none
    low = np.searchsorted(pieces.start, begin, side="right") - 1
    count = np.maximum(np.searchsorted(pieces.start, end, side="left") - low, 0) * (end > begin)
    row = np.repeat(np.arange(len(begin)), count)
    piece = low[row] + count_up(count)
    start = np.maximum(begin[row], pieces.start[piece])
    stop = np.minimum(end[row], pieces.stop[piece])
    return row, start, stop, piece
