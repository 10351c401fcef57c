"""Tasks in words, from a whole line down to what fits a narrow column."""

from __future__ import annotations

from hccl_py.enums import TaskKind
from hccl_py.program.describe import BUFFER_WORDS, ByteRange, format_stream
from hccl_py.program.program import Program
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.trace.steps import Step
from hccl_py.trace.units import format_size, format_time

__all__ = ["MARKS", "Words", "mark_of", "style_of"]

MARKS = ("", "wait", "compute", "copy", "transfer", "reduce")
"""What a stream can be busy with, the more telling the later."""

_MARK_STYLES = {
    "wait": "dim",
    "compute": "bold",
    "copy": "blue",
    "transfer": "green",
    "reduce": "magenta",
}


def mark_of(kind: TaskKind) -> str:
    """Return the member of `MARKS` for a kind of task; posts take no time."""
    if kind.reduces:
        return "reduce"
    if kind is TaskKind.COPY:
        return "copy"
    if kind.moves_data:
        return "transfer"
    return {TaskKind.NOTIFY_WAIT: "wait", TaskKind.COMPUTE: "compute"}.get(kind, "")


def style_of(step: Step) -> str:
    """Return the colour of a task: the article's blue, green and orange, magenta for reductions."""
    if step.kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT):
        return "yellow" if step.peer is None else "cyan"
    return _MARK_STYLES[mark_of(step.kind)]


class Words:
    """Spells the tasks of a program; plain characters where the terminal has no others."""

    def __init__(self, program: Program, *, unicode: bool) -> None:
        self._buffers = [BUFFER_WORDS.get(name, name) for name in program.buffers]
        self.to, self.frm = ("▸", "◂") if unicode else (">", "<")
        self.arrow = "→" if unicode else "->"
        self.back = "←" if unicode else "<-"
        self.runs, self.waits = ("│", "┊") if unicode else ("|", ":")
        chars = " ·░▒█▓" if unicode else " .xc=+"
        self._marks = dict(zip(MARKS, chars, strict=True))

    def mark(self, name: str) -> tuple[str, str]:
        """Return the character of a member of `MARKS`, and its colour."""
        return self._marks[name], _MARK_STYLES.get(name, "")

    def column(self, step: Step, pair: str, width: int) -> str:
        """Return the longest form that fits; `pair` names a post and its wait on the same rank."""
        forms = self._data_forms(step) if step.kind.moves_data else [self._sync(step, pair)]
        return next((form for form in forms if len(form) <= width), forms[-1][:width])

    def line(self, step: Step) -> tuple[str, str]:
        """Return what a task does, with memory or with its other end, in two parts."""
        if step.src and step.dst:
            src, dst = self._range(step, step.src), self._range(step, step.dst)
            is_late = step.effect_us > step.end_us
            arrival = f" at {format_time(step.effect_us)}" if is_late else ""
            return f"{step.kind.spelling} {src}", f"{self.arrow} {dst}{arrival}"
        if step.kind is TaskKind.COMPUTE:
            return f"compute {step.end_us - step.start_us:g} us", ""
        arrow = self.back if step.kind is TaskKind.NOTIFY_WAIT else self.arrow
        return f"{self._verb(step)} {arrow} {self._partner(step)}", ""

    def _data_forms(self, step: Step) -> list[str]:
        assert step.src
        assert step.dst
        kind, size = step.kind.spelling, format_size(step.size)
        src, dst = self._buffers[step.src.buffer], self._buffers[step.dst.buffer]
        away = ""
        if step.peer is not None:
            away = f" {self.frm if step.kind.reads_remote else self.to}r{step.peer}"
        return [
            f"{kind} {size}{away} {src}{self.arrow}{dst}",
            f"{kind} {size}{away}",
            f"{kind}{away}",
            kind,
        ]

    def _sync(self, step: Step, pair: str) -> str:
        if step.kind is TaskKind.COMPUTE:
            return f"compute {step.end_us - step.start_us:g}"
        arrow = self.frm if step.kind is TaskKind.NOTIFY_WAIT else self.to
        if step.peer is not None:
            return f"{self._verb(step)} {arrow}r{step.peer}"
        other = format_stream(step.partner.stream) if step.partner else "?"
        return f"{self._verb(step)} {pair} {arrow}{other}"

    def _verb(self, step: Step) -> str:
        """Return the article's name: TxAck posts a peer's Ack, RxAck waits for one's own."""
        is_wait = step.kind is TaskKind.NOTIFY_WAIT
        if step.peer is None:
            return "wait" if is_wait else "post"
        prefix = "Rx" if is_wait else "Tx"
        return prefix + (step.notify if step.notify in NOTIFY_NAMES else f" {step.notify}")

    def _partner(self, step: Step) -> str:
        if step.partner is None:
            return "nobody"
        rank, stream, number = step.partner
        where = f"{format_stream(stream)} #{number}"
        return where if rank == step.place.rank else f"rank {rank} {where}"

    def _range(self, step: Step, memory: ByteRange) -> str:
        whose = f"rank {memory.rank} " if memory.rank != step.place.rank else ""
        start, stop = format_size(memory.start), format_size(memory.stop)
        return f"{whose}{self._buffers[memory.buffer]}[{start}:{stop}]"
