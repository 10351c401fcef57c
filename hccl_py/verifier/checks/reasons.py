"""Reasons why output bytes are wrong, said without their place.

So neighbours with the same reason become one finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hccl_py.enums import ReduceOp
from hccl_py.program.describe import format_ranks
from hccl_py.verifier.analysis.contents import UNDEFINED, Contents, SumOrigin
from hccl_py.verifier.analysis.meaning import EVERYONE
from hccl_py.verifier.analysis.outputs import input_bases, right_moves
from hccl_py.verifier.subject import Subject


class Reason(NamedTuple):
    """One defect of a range of an output.

    `text` has fields for the range, {where}, and the input that belongs there, {wanted}; {first} is
    the range's offset in the input, {moved} and {moved_stop} its ends `moved` bytes further on.
    The culprit is the task of the move `culprit`, else the last writer; `cause` is another move and
    its action. `is_lost` says that data may have been overwritten there.
    """

    name: str
    text: str
    hint: str
    moved: int = 0
    culprit: int | None = None
    cause: tuple[int, str] | None = None
    is_lost: bool = False


class Reasons:
    """Finds the reasons of contents, each content once."""

    def __init__(self, subject: Subject, contents: Contents) -> None:
        self._subject, self._contents = subject, contents
        self._row = contents.memory.transfers.row
        self._base = input_bases(contents.memory).tolist()
        self._right_moves = right_moves(contents.memory)
        self._ranks = subject.program.ranks
        self._again = subject.program.op.reduce in (ReduceOp.MAX, ReduceOp.MIN)
        self._known: dict[tuple[int, int, int], tuple[Reason, ...]] = {}

    def of(self, content: int, shift: int, source: int) -> tuple[Reason, ...]:
        """Return the defects of a content, moved by `shift`, in the place of that of `source`."""
        key = content, shift, source
        if key not in self._known:
            self._known[key] = tuple(self._reasons(*key))
        return self._known[key]

    def _reasons(self, content: int, shift: int, source: int) -> Iterator[Reason]:
        if content == UNDEFINED:
            yield _UNWRITTEN
        elif content < self._ranks and (source != EVERYONE or self._ranks == 1):
            same = content == source or source == EVERYONE
            yield _another(content, shift - self._base[content], same=same)
        else:
            origin = self._contents.origin_of(content, shift)
            if origin.is_whole:
                yield from self._of_sum(origin, source)
            else:
                yield _too_much(len(origin.counts))

    def _of_sum(self, origin: SumOrigin, source: int) -> Iterator[Reason]:
        """Yield the defects of a reduction: of its steps, then of its contributions."""
        right: dict[int, int] = defaultdict(int)
        moved: dict[int, list[int]] = defaultdict(list)
        for (rank, address), count in origin.counts.items():
            distance = address - self._base[rank]
            if distance:
                moved[distance].append(rank)
            else:
                right[rank] += count
        elsewhere = {rank for ranks in moved.values() for rank in ranks}
        if source != EVERYONE:
            yield _reduced(sorted({*right, *elsewhere} - {source}), bool(elsewhere))
            return
        wrong = {move for _, (move, _, _) in origin.steps if not self._right_moves[move]}
        if wrong:
            yield self._wrong_op(sorted(wrong))
        missing = [r for r in range(self._ranks) if r not in right and r not in elsewhere]
        if missing:
            yield _without(missing)
        counts: dict[int, list[int]] = defaultdict(list)
        for rank in sorted(right) if not self._again else ():
            counts[right[rank]].append(rank)
        for count in sorted(counts.keys() - {1}):
            yield self._counted(origin, counts[count], count)
        for distance in sorted(moved):
            yield _added_from_elsewhere(moved[distance], distance)

    def _wrong_op(self, moves: Sequence[int]) -> Reason:
        tasks, wanted = self._subject.tasks, self._subject.program.op.reduce
        assert wanted is not None
        row = int(self._row[moves[0]])
        used = ReduceOp(int(tasks.table.reduce[tasks.instruction[row]]))
        more = len(moves) - 1
        others = f" (so {'does' if more == 1 else 'do'} {more} more)" if more else ""
        return Reason(
            "WRONG_REDUCE_OP",
            f"{self._subject.place(row)} reduces with {used.spelling}{others}, but the call says "
            f"{wanted.spelling}, and the result ends in {{where}}.",
            f"Reduce with {wanted.spelling}.",
            culprit=moves[0],
        )

    def _counted(self, origin: SumOrigin, ranks: Sequence[int], count: int) -> Reason:
        again = origin.doubling(ranks[0])
        return Reason(
            "DOUBLE_CONTRIBUTION",
            f"{{where}} counts the input of {format_ranks(ranks)} {count} times.",
            "Each rank's data must be added once: look for a chunk that is reduced again.",
            cause=None if again is None else (again, "adds it again"),
        )


_UNWRITTEN = Reason(
    "OUTPUT_MISSING",
    "No task writes {where}, where {wanted} belongs.",
    "Add the copy, or deliver the result: the call's output ends in OUT.",
)


def _another(rank: int, moved: int, *, same: bool) -> Reason:
    holds = f"rank {rank}'s input [{{moved}}:{{moved_stop}}]"
    return Reason(
        "WRONG_OFFSET" if same else "WRONG_SOURCE",
        f"{{where}} should hold {{wanted}} and holds {holds}.",
        "Look at the addresses of source and destination."
        if same
        else "Look at which peer the data is taken from.",
        moved=moved,
    )


def _too_much(parts: int) -> Reason:
    return Reason(
        "WRONG_OFFSET",
        f"{{where}} is a sum of more than {parts} parts of inputs, from many places.",
        "Look for reductions of the same data at several offsets.",
    )


def _reduced(others: Sequence[int], is_moved: bool) -> Reason:
    what = f"a sum with {format_ranks(others)}" if others else "a sum of that with itself"
    return Reason(
        "WRONG_SOURCE" if others or is_moved else "DOUBLE_CONTRIBUTION",
        f"{{where}} should hold {{wanted}} and holds {what}.",
        "Nothing is to be reduced here: copy.",
    )


def _without(missing: Sequence[int]) -> Reason:
    return Reason(
        "MISSING_CONTRIBUTION",
        f"{{where}} lacks the contribution of {format_ranks(missing)}.",
        "Look for a reduction that was left out, or a chunk that was overwritten after it.",
        is_lost=True,
    )


def _added_from_elsewhere(ranks: Sequence[int], moved: int) -> Reason:
    whose = (
        f"rank {ranks[0]}'s input" if len(ranks) == 1 else f"the inputs of {format_ranks(ranks)}"
    )
    return Reason(
        "WRONG_OFFSET",
        f"{{where}} adds {whose} from byte {{moved}}, where byte {{first}} belongs.",
        "Look at the address of the source.",
        moved=moved,
    )
