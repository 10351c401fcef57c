"""Tasks in words, from a whole line down to what fits a narrow column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from hccl_py.enums import TaskKind
from hccl_py.language import translated
from hccl_py.printable import brief
from hccl_py.program.describe import BUFFER_WORDS, ByteRange, format_stream
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.trace.scene import Scene
from hccl_py.trace.steps import TraceStep
from hccl_py.trace.units import format_size, format_time

MARKS = ("", "wait", "compute", "copy", "transfer", "reduce", "stuck")
"""Kinds of work of a stream, the more telling the later; `stuck` is a wait that never ends."""

_MARK_STYLES = {
    "wait": "dim",
    "stuck": "red",
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


def kind_of(kind: TaskKind) -> str:
    """Return the name of a kind of task for people."""
    return translated(kind.spelling)


def style_of(step: TraceStep) -> str:
    """Return the colour of a task: the article's blue, green and orange, magenta for reductions."""
    if step.kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT):
        return "yellow" if step.peer is None else "cyan"
    return _MARK_STYLES[mark_of(step.kind)]


class Words:
    """Spells the tasks of a program that has such `buffers`; plain characters where the terminal
    has no others.

    All characters are one column wide in every terminal: none that is wide where Chinese is usual.
    """

    def __init__(
        self, buffers: Sequence[str], *, unicode: bool, streams: Mapping[int, str] | None = None
    ) -> None:
        self._streams = {k: brief(name) for k, name in (streams or {}).items()}
        self._buffers = [brief(BUFFER_WORDS.get(name, name)) for name in buffers]
        self.to, self.frm = ("▸", "◂") if unicode else (">", "<")
        self.arrow = self.to if unicode else "->"
        self.back = self.frm if unicode else "<-"
        self.runs, self.waits = ("╏", "╎") if unicode else ("|", ":")
        self.tick = "╷" if unicode else "|"
        chars = " ╌▐░⣿▚╍" if unicode else " .xc=+~"
        self._marks = dict(zip(MARKS, chars, strict=True))

    @staticmethod
    def of(scene: Scene, *, unicode: bool) -> Words:
        """Return words for what a scene shows."""
        lanes = scene.lanes
        streams = dict(zip(lanes.stream.tolist(), lanes.names, strict=True))
        return Words(scene.buffers, unicode=unicode, streams=streams)

    def stream(self, stream: int) -> str:
        """Return the name of a stream."""
        return self._streams.get(stream) or format_stream(stream)

    def mark(self, name: str) -> tuple[str, str]:
        """Return the character of a member of `MARKS`, and its colour."""
        return self._marks[name], _MARK_STYLES.get(name, "")

    def column(self, step: TraceStep, pair: str, width: int) -> str:
        """Return the longest form that fits; `pair` names a post and its wait on the same rank."""
        forms = self._data_forms(step) if step.kind.moves_data else self._sync(step, pair)
        fitting = (form for form in forms if cell_len(form) <= width)
        return next(fitting, set_cell_size(forms[-1], width))

    def inside(self, step: TraceStep, width: int) -> str:
        """Return the text in a bar: the longest form that fits, or an empty one."""
        return next((form for form in self._inner_forms(step) if cell_len(form) <= width), "")

    def line(self, step: TraceStep) -> tuple[str, str]:
        """Return a task in words, with its memory or its other end, in two parts."""
        if step.src and step.dst:
            src, dst = self._range(step, step.src), self._range(step, step.dst)
            is_late = step.effect_us > step.end_us
            arrival = translated(f" at {format_time(step.effect_us)}") if is_late else ""
            return f"{kind_of(step.kind)} {src}", f"{self.arrow} {dst}{arrival}"
        if step.kind is TaskKind.COMPUTE:
            return translated(f"compute {step.end_us - step.start_us:g} us"), ""
        arrow = self.back if step.kind is TaskKind.NOTIFY_WAIT else self.arrow
        return f"{self._verb(step)} {arrow} {self._partner(step)}", ""

    def _inner_forms(self, step: TraceStep) -> list[str]:
        if step.kind is TaskKind.COMPUTE:
            us = f"{step.end_us - step.start_us:g} us"
            name = step.label or kind_of(step.kind)
            return [f"{name} {us}", *([name] if step.label else []), us]
        if step.kind.moves_data:
            away = f"{self.frm if step.kind.reads_remote else self.to}r{step.peer}"
            return [*self._data_forms(step), *([away] if step.peer is not None else [])]
        whole = self._sync(step, "")
        return [*whole, whole[0].rpartition(" ")[2] if step.peer is not None else ""]

    def _data_forms(self, step: TraceStep) -> list[str]:
        assert step.src
        assert step.dst
        kind, size = kind_of(step.kind), format_size(step.size)
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

    def _sync(self, step: TraceStep, pair: str) -> list[str]:
        if step.kind is TaskKind.COMPUTE:
            return [f"{kind_of(step.kind)} {step.end_us - step.start_us:g}"]
        verb, arrow = self._verb(step), self.frm if step.kind is TaskKind.NOTIFY_WAIT else self.to
        if step.peer is not None:
            return [f"{verb} {arrow}r{step.peer}"]
        if step.partner is None:
            return [f"{verb} {step.notify}", f"{verb} {arrow}?"]
        return [" ".join(filter(None, [verb, pair, f"{arrow}{self.stream(step.partner.stream)}"]))]

    def _verb(self, step: TraceStep) -> str:
        """Return the article's name: TxAck posts a peer's Ack, RxAck waits for one's own."""
        is_wait = step.kind is TaskKind.NOTIFY_WAIT
        if step.peer is None:
            return "wait" if is_wait else "post"
        prefix = "Rx" if is_wait else "Tx"
        return prefix + (step.notify if step.notify in NOTIFY_NAMES else f" {step.notify}")

    def _partner(self, step: TraceStep) -> str:
        if step.partner is None:
            alone = "unmatched" if step.peer is None else f"rank {step.peer}, unmatched"
            return translated(alone)
        rank, stream, number = step.partner
        where = f"{self.stream(stream)} #{number}"
        return where if rank == step.place.rank else f"rank {rank} {where}"

    def _range(self, step: TraceStep, memory: ByteRange) -> str:
        whose = f"rank {memory.rank} " if memory.rank != step.place.rank else ""
        start, stop = format_size(memory.start), format_size(memory.stop)
        return f"{whose}{self._buffers[memory.buffer]}[{start}:{stop}]"
