"""Tasks of an imported program, and the places in its source from which they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import InPlace
from hccl_py.errors import DeadlockError
from hccl_py.program.builder import BufferSlice, TaskStream
from hccl_py.program.program import Program

if TYPE_CHECKING:  # timing a program does without the verifier
    from hccl_py.verifier import Finding

P = TypeVar("P")

_MOST_LINES = 4


class PlacedStream(Generic[P]):
    """A stream of a builder, and the place of each of its tasks."""

    def __init__(self, stream: TaskStream) -> None:
        self.stream = stream
        self.places: list[P] = []

    def at(self, place: P) -> TaskStream:
        """Return the stream, to append one task that comes from a place."""
        self.places.append(place)
        return self.stream


@dataclass(frozen=True)
class PlacedProgram(Generic[P]):
    """A program, and the places of its tasks: `places[rank, stream]` in the stream's order.

    `describe` returns the words for a place of a rank, "" for one that the source does not show;
    `is_authors` is True for a post or wait that the author of the source has written.
    """

    program: Program
    places: Mapping[tuple[int, int], Sequence[P]]
    describe: Callable[[P, int], str]
    is_authors: Callable[[P], bool]

    def explained(self, finding: Finding) -> Finding | None:
        """Return a finding with the places of its tasks; None for one about streams and signals of
        the tool's runtime, which authors cannot change.
        """
        from hccl_py.verifier import Severity

        if finding.name == "RESOURCE_UNUSED":
            return None
        tasks = dict.fromkeys((t.rank, t.stream, t.index) for t in finding.tasks)
        places = {task: self._place(*task) for task in tasks}
        is_hint = finding.severity is Severity.HINT and finding.name == "REDUNDANT_SYNC"
        if is_hint and not all(map(self.is_authors, places.values())):
            return None
        texts = {task: self.describe(place, task[0]) for task, place in places.items()}
        lines = [f"  r{r}.s{s}.t{i} is {text}." for (r, s, i), text in texts.items() if text]
        return replace(finding, message="\n".join([finding.message, *lines[:_MOST_LINES]]))

    def hang(self, where: str, error: DeadlockError) -> DeadlockError:
        """Return the error of a program that never ends, with the places that wait, and with what
        and for which call it was made of.
        """
        tasks = self.program.tasks
        found: list[tuple[bool, str]] = []
        for row in self.program.linked.stuck.tolist():
            rank, index = int(tasks.rank[row]), int(tasks.index[row])
            place = self._place(rank, int(tasks.stream[row]), index)
            found.append((self.is_authors(place), self.describe(place, rank)))
        found.sort(key=lambda one: one[0])  # what is written beside data waits for it, as a rule
        lines = [f"  {text}" for _, text in found if text]
        more = len(lines) - _MOST_LINES
        shown = lines[:_MOST_LINES] + [f"  ... and {more} more"] * (more > 0)
        hangs = f"{where}: Deadlock: {len(lines)} threadblocks can never go on. They wait for"
        return error.reworded("\n".join([hangs, *shown])) if lines else error

    def _place(self, rank: int, stream: int, index: int) -> P:
        places = self.places[rank, stream]
        return places[index % len(places)]  # of several calls in a row


def copies_onto_itself(op: OpParam, rank: int, src: BufferSlice, dst: BufferSlice) -> bool:
    """Return True if a copy inside a rank moves bytes of IN and OUT to their own place, as calls in
    place do where the two share memory.
    """
    begins = {"IN": 0, "OUT": 0}
    own_slot = OPS[op.name].own_slot
    if op.in_place == InPlace.SLOT and own_slot:
        begins["IN" if own_slot > 0 else "OUT"] = rank * op.size
    if not op.in_place or src[0] not in begins or dst[0] not in begins:
        return False
    return begins[src[0]] + src[1] == begins[dst[0]] + dst[1]
