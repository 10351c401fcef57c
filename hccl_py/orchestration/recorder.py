"""The list of instructions of a batch of ranks, with the current label, line and round."""

from __future__ import annotations

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.lines import Line, author_line, format_line
from hccl_py.program.describe import format_stream
from hccl_py.program.instruction import Instruction, Texts
from hccl_py.values import RankInt


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
        self.round = 0

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
        self.instructions.append(
            Instruction(
                kind,
                stream,
                self.label,
                self.lines.number(author_line()),
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
        self.instructions.append(
            Instruction(
                kind,
                stream,
                self.label,
                self.lines.number(author_line()),
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


def orchestration_error(
    message: str, hint: str = "", finding: str = "", stream: int | None = None
) -> OrchestrationError:
    """Return an error that names the author's line, and the stream where one is concerned."""
    where = format_line(author_line())
    place = where if stream is None else f"{format_stream(stream)}, {where}"
    return OrchestrationError(f"{message} ({place})", hint, finding=finding, line=where)
