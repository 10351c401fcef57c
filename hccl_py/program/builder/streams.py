"""Streams of a builder: each method appends one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.program.instruction import Texts
from hccl_py.program.limits import LIMIT, MAX_NUMBER, MAX_ROUND

BufferSlice: TypeAlias = tuple[str, int, int]
"""Name of a buffer, offset and length in bytes."""

_MOST_MICROSECONDS = 1e12


class TaskNote(NamedTuple):
    """A label for a task, its source line `file:line`, and the round in which it is recorded."""

    label: str = ""
    source: str = ""
    round: int = 0


NO_NOTE = TaskNote()


class TaskRow(NamedTuple):
    """A task by the columns of TaskColumns."""

    kind: TaskKind
    label: int
    line: int
    round: int
    end: int = -1
    owner: int = -1
    notify: int = -1
    src_buffer: int = -1
    src_offset: int = 0
    src_size: int = 0
    dst_buffer: int = -1
    dst_offset: int = 0
    dst_size: int = 0
    dtype: int = -1
    reduce: int = -1
    joined: int = 0
    microseconds: float = 0.0


class NoteTexts:
    """The labels and lines of all notes, numbered."""

    def __init__(self) -> None:
        self.labels, self.lines = Texts[str](), Texts[str]()
        self._known: dict[TaskNote, tuple[int, int, int]] = {}

    def numbers(self, note: TaskNote) -> tuple[int, int, int]:
        """Return label, line and round of a note; ParameterError for a round out of range."""
        if note not in self._known:
            check_range("a round", note.round, 0, MAX_ROUND)
            label = self.labels[note.label] if note.label else -1
            line = self.lines[note.source] if note.source else -1
            self._known[note] = label, line, note.round
        return self._known[note]


class TaskStream:
    """The tasks of one stream. `dtype` and `reduce` of a task are those of the op unless it states
    others; sums where the op reduces nothing. A task that is `joined` is one step of a kernel with
    the data task before it, or one sum (Instruction).

    ParameterError for buffers and links that the rank does not have, and for numbers out of range.
    """

    def __init__(
        self,
        rank: int,
        number: int,
        texts: NoteTexts,
        find_buffer: Callable[[str], int],
        find_side: Callable[[int, int], int],
        dtype: DataType,
        reduce: ReduceOp,
    ) -> None:
        self.rank, self.number = rank, number
        self.rows: list[TaskRow] = []
        self._texts, self._find_buffer, self._find_side = texts, find_buffer, find_side
        self._dtype, self._reduce = dtype, reduce

    def move(
        self,
        kind: TaskKind,
        src: BufferSlice,
        dst: BufferSlice,
        note: TaskNote = NO_NOTE,
        *,
        link: int | None = None,
        dtype: DataType | None = None,
        reduce: ReduceOp | None = None,
        joined: int = 0,
    ) -> None:
        """Append a task of any kind that moves data; kinds that reach a peer need a link."""
        if not kind.moves_data:
            raise ParameterError(f"A {kind.spelling} moves no data.", "Use its own method.")
        reaches_peer = kind.reads_remote or kind.writes_remote
        if reaches_peer != (link is not None):
            what = "needs a link to the peer" if reaches_peer else "takes no link"
            raise ParameterError(f"A {kind.spelling} {what}.", "A link leads to other ranks only.")
        self.rows.append(
            TaskRow(
                kind,
                *self._texts.numbers(note),
                -1 if link is None else self._find_side(self.rank, link),
                -1,
                -1,
                *self._slice(src),
                *self._slice(dst),
                (dtype or self._dtype).number,
                int(self._reduce if reduce is None else reduce) if kind.reduces else -1,
                joined,
            )
        )

    def copy(self, src: BufferSlice, dst: BufferSlice, note: TaskNote = NO_NOTE) -> None:
        """Append a copy inside the rank."""
        self.move(TaskKind.COPY, src, dst, note)

    def reduce(self, src: BufferSlice, dst: BufferSlice, note: TaskNote = NO_NOTE) -> None:
        """Append a reduction of `src` into `dst` inside the rank."""
        self.move(TaskKind.REDUCE, src, dst, note)

    def read(self, link: int, src: BufferSlice, dst: BufferSlice, note: TaskNote = NO_NOTE) -> None:
        """Append a read of the peer's `src`."""
        self.move(TaskKind.READ, src, dst, note, link=link)

    def read_reduce(
        self, link: int, src: BufferSlice, dst: BufferSlice, note: TaskNote = NO_NOTE
    ) -> None:
        """Append a reduction of the peer's `src` into `dst`."""
        self.move(TaskKind.READ_REDUCE, src, dst, note, link=link)

    def write(
        self, link: int, src: BufferSlice, dst: BufferSlice, note: TaskNote = NO_NOTE
    ) -> None:
        """Append a write to the peer's `dst`."""
        self.move(TaskKind.WRITE, src, dst, note, link=link)

    def write_reduce(
        self, link: int, src: BufferSlice, dst: BufferSlice, note: TaskNote = NO_NOTE
    ) -> None:
        """Append a reduction of `src` into the peer's `dst`."""
        self.move(TaskKind.WRITE_REDUCE, src, dst, note, link=link)

    def post(self, link: int, index: int, note: TaskNote = NO_NOTE) -> None:
        """Append a post of a notify at the other side of a link."""
        self._notify(TaskKind.NOTIFY_POST, index, note, end=self._find_side(self.rank, link))

    def wait(self, link: int, index: int, note: TaskNote = NO_NOTE) -> None:
        """Append a wait for a notify of the rank's side of a link."""
        self._notify(TaskKind.NOTIFY_WAIT, index, note, end=self._find_side(self.rank, link))

    def local_post(self, stream: int, index: int, note: TaskNote = NO_NOTE) -> None:
        """Append a post of a notify that another stream of the rank owns."""
        self._notify(TaskKind.NOTIFY_POST, index, note, owner=stream)

    def local_wait(self, index: int, note: TaskNote = NO_NOTE, *, owner: int | None = None) -> None:
        """Append a wait for a notify of this stream, or of the stream `owner` of the rank."""
        of = self.number if owner is None else owner
        self._notify(TaskKind.NOTIFY_WAIT, index, note, owner=of)

    def compute(self, microseconds: float, note: TaskNote = NO_NOTE) -> None:
        """Append a kernel that takes some time."""
        check_range("microseconds", microseconds, 0, _MOST_MICROSECONDS)
        numbers = self._texts.numbers(note)
        self.rows.append(TaskRow(TaskKind.COMPUTE, *numbers, microseconds=float(microseconds)))

    def _notify(
        self, kind: TaskKind, index: int, note: TaskNote, *, end: int = -1, owner: int = -1
    ) -> None:
        check_range("a notify's index", index, 0, MAX_NUMBER - 1)
        if end < 0:
            check_range("the number of a stream", owner, 0, MAX_NUMBER - 1)
        self.rows.append(TaskRow(kind, *self._texts.numbers(note), end, owner, index))

    def _slice(self, part: BufferSlice) -> tuple[int, int, int]:
        name, offset, size = part
        if not (0 <= offset <= LIMIT and 0 <= size <= LIMIT):
            check_range("an offset in bytes", offset, 0, LIMIT)
            check_range("a length in bytes", size, 0, LIMIT)
        return self._find_buffer(name), offset, size


def check_range(what: str, number: float, low: int, high: float) -> None:
    """Refuse a number outside of low .. high."""
    if not low <= number <= high:
        most = "2**62 - 1" if high == LIMIT else f"{high:g}" if isinstance(high, float) else high
        raise ParameterError(f"{number} is not {what} from {low} to {most}.", "Take one of those.")
