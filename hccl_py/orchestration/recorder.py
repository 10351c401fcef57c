"""The list of instructions of a batch of ranks, with the current label, line and round."""

from __future__ import annotations

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import OrchestrationError, TooManyTasksError
from hccl_py.lines import Line, author_line, format_line
from hccl_py.program.describe import format_stream
from hccl_py.program.instruction import Instruction, Texts
from hccl_py.values import RankInt

MOST_TASKS = 1 << 20
"""Tasks that one rank may have: several times those of the largest programs, and seconds of
recording, so that a loop without an end is found soon.
"""

FAR_TOO_MANY = 4
"""By how many times rounds like the first one exceed MOST_TASKS where no other is recorded."""

_INSIDE = 3
"""Calls inside of an author's: of a stream or link, a recorder and `author_line`."""

TASKS_PER_S = 100_000
"""Tasks that are recorded in a second, about."""


class Recorder:
    """Appends instructions for the ranks of one batch."""

    def __init__(
        self, dtype: DataType, reduce: ReduceOp | None, labels: Texts[str], lines: Texts[Line]
    ) -> None:
        self.instructions: list[Instruction] = []
        self.dtype = dtype.number
        self.reduce = -1 if reduce is None else int(reduce)
        self.labels = labels
        self.lines = lines
        self.label = -1
        self.not_entered: list[str] = []  # phases
        self.round, self.rounds = 0, 1

    def append(
        self,
        kind: TaskKind,
        stream: int,
        cell: RankInt = -1,
        end: RankInt = -1,
        peer: RankInt = -1,
        duration_us: float = 0.0,
    ) -> None:
        """Record a task that moves no data."""
        self._keep(
            Instruction(
                kind,
                stream,
                self.label,
                self.lines[author_line(_INSIDE)],
                self.round,
                cell,
                end,
                peer,
                duration_us=duration_us,
            )
        )

    def append_move(
        self,
        kind: TaskKind,
        stream: int,
        end: RankInt,
        peer: RankInt,
        src: tuple[int, RankInt],
        dst: tuple[int, RankInt],
        size: RankInt,
        reduce: int = -1,
    ) -> None:
        """Record a data task; `src` and `dst` are (buffer, offset)."""
        self._keep(
            Instruction(
                kind,
                stream,
                self.label,
                self.lines[author_line(_INSIDE)],
                self.round,
                -1,
                end,
                peer,
                *src,
                *dst,
                size,
                self.dtype,
                reduce,
            )
        )

    def check_rounds(self) -> None:
        """Raise TooManyTasksError after the first of very many rounds, rather than near the end."""
        each, expected = len(self.instructions), len(self.instructions) * self.rounds
        if self.round == 0 and expected > FAR_TOO_MANY * MOST_TASKS:
            hours = expected / TASKS_PER_S / 3600
            raise TooManyTasksError(
                f"{self.rounds} rounds of {each} tasks a rank are more than {MOST_TASKS} tasks; to "
                f"record them would take about {hours:.2g} hours",
                "Take less data at once, or a larger HCCL_BUFFSIZE: there are fewer rounds then.",
            )

    def _keep(self, instruction: Instruction) -> None:
        """Append an instruction; TooManyTasksError where a rank has MOST_TASKS already."""
        if len(self.instructions) >= MOST_TASKS:
            where = format_line(author_line())
            raise TooManyTasksError(
                f"A rank has more than {MOST_TASKS} tasks, in round {self.round + 1} of "
                f"{self.rounds} ({where})",
                "Does a loop of orchestrate never end? Else take less data at once, or a larger "
                "HCCL_BUFFSIZE, so that there are fewer rounds.",
                line=where,
            )
        self.instructions.append(instruction)


def orchestration_error(
    message: str, hint: str = "", finding: str = "", stream: int | None = None
) -> OrchestrationError:
    """Return an error that names the author's line, and the stream where one is concerned."""
    where = format_line(author_line())
    place = where if stream is None else f"{format_stream(stream)}, {where}"
    return OrchestrationError(f"{message} ({place})", hint, finding=finding, line=where)
