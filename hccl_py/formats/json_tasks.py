"""From the task lists of a JSON file to columns.

Lists are laid end to end: by rank, then stream, then position. All tasks of one name are read at a
time, one member after the other; then the objects at their ends: `{"round": 0, "label": "...",
"source": "file:line", "dtype": "...", "owner": 0, "joined": true}`. hccl-py adds `owner`, the
stream whose notify a `local_wait` clears, where it is not its own, and `joined`, one step of a
kernel with the data task before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import a_list, a_text, at, defect, format_value, only_keys
from hccl_py.enums import TaskKind
from hccl_py.errors import did_you_mean
from hccl_py.formats.checks import MAX_NUMBER, Where, numbered, whole
from hccl_py.formats.links import Ends
from hccl_py.formats.memory import BufferTable
from hccl_py.formats.op import data_type, reduce_op
from hccl_py.op_param import OpParam
from hccl_py.values import IntArray

__all__ = ["Columns", "Rows", "TaskNotes", "columns_from", "notes_from", "rows_from"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Queue q of (rank[q], stream[q]) holds tasks first[q] .. first[q + 1] - 1."""

    tasks: list[list[Any]]
    queue_rank: IntArray
    queue_stream: IntArray
    first: IntArray

    def __len__(self) -> int:
        return int(self.first[-1])

    @cached_property
    def rank(self) -> IntArray:
        """The rank of every row."""
        return np.repeat(self.queue_rank, np.diff(self.first))

    @cached_property
    def stream(self) -> IntArray:
        """The stream of every row."""
        return np.repeat(self.queue_stream, np.diff(self.first))

    def path(self, row: int, *keys: int | str) -> str:
        """Return the JSON path of a task, or of a part of it."""
        queue = int(np.searchsorted(self.first, row, "right")) - 1
        rank, stream = str(self.queue_rank[queue]), str(self.queue_stream[queue])
        return at("tasks", rank, stream, row - int(self.first[queue]), *keys)

    def where(self, rows: IntArray, *keys: int | str) -> Where:
        """Return the paths of one part of some tasks."""
        return lambda k: self.path(int(rows[k]), *keys)

    def picked(self, rows: IntArray) -> list[list[Any]]:
        """Return some tasks."""
        return [self.tasks[row] for row in rows.tolist()]

    @cached_property
    def names(self) -> list[str]:
        """The name of every task."""
        return [task[0] for task in self.tasks]

    @cached_property
    def has_note(self) -> npt.NDArray[np.bool_]:
        """Whether each task ends with an object."""
        return np.fromiter((type(task[-1]) is dict for task in self.tasks), bool, len(self))

    @cached_property
    def fields(self) -> IntArray:
        """How many members each task has beside its name and the object at its end."""
        return np.fromiter(map(len, self.tasks), np.int64, len(self)) - self.has_note - 1


def rows_from(value: object, ranks: int) -> Rows:
    """Return the tasks of the object `tasks`; every one is a list with a name in front."""
    lists: list[list[Any]] = []
    queues: list[tuple[int, int]] = []
    for rank, streams in numbered("tasks", value, ranks, "rank"):
        place = at("tasks", str(rank))
        for stream, tasks in numbered(place, streams, MAX_NUMBER, "stream"):
            lists.append(a_list(at(place, str(stream)), tasks, "Write the tasks in brackets."))
            queues.append((rank, stream))
    rank_column, stream_column = np.array(queues, np.int64).reshape(-1, 2).T
    first = np.concatenate([[0], np.cumsum(list(map(len, lists)))]).astype(np.int64)
    rows = Rows(list(chain.from_iterable(lists)), rank_column, stream_column, first)
    _check_names(rows)
    return rows


def _check_names(rows: Rows) -> None:
    are_lists = set(map(type, rows.tasks)) <= {list} and all(rows.tasks)
    if are_lists and set(map(type, rows.names)) <= {str}:
        return
    for row, task in enumerate(rows.tasks):
        if type(task) is not list or not task:
            raise defect(rows.path(row), "a task", format_value(task), 'Such as ["post", 1, 0].')
        if type(task[0]) is not str:
            hint = 'A task starts with its name, such as "copy".'
            raise defect(rows.path(row, 0), "the name of a task", format_value(task[0]), hint)


class TaskForm(NamedTuple):
    """What stands behind the name of a task; `remote` is the slice that lies at the peer."""

    kind: TaskKind
    members: tuple[str, ...]
    remote: str = ""

    def usage(self, name: str) -> str:
        """Return the task as one would write it."""
        return f'["{name}", {", ".join(self.members)}]'


SHAPES = {
    "copy": TaskForm(TaskKind.COPY, ("src", "dst")),
    "reduce": TaskForm(TaskKind.REDUCE, ("op", "src", "dst")),
    "read": TaskForm(TaskKind.READ, ("peer", "src", "dst"), "src"),
    "read_reduce": TaskForm(TaskKind.READ_REDUCE, ("peer", "op", "src", "dst"), "src"),
    "write": TaskForm(TaskKind.WRITE, ("peer", "src", "dst"), "dst"),
    "write_reduce": TaskForm(TaskKind.WRITE_REDUCE, ("peer", "op", "src", "dst"), "dst"),
    "post": TaskForm(TaskKind.NOTIFY_POST, ("peer", "index")),
    "wait": TaskForm(TaskKind.NOTIFY_WAIT, ("peer", "index")),
    "compute": TaskForm(TaskKind.COMPUTE, ("us",)),
    "local_post": TaskForm(TaskKind.NOTIFY_POST, ("stream", "index")),
    "local_wait": TaskForm(TaskKind.NOTIFY_WAIT, ("index",)),
}
_NAMES = tuple(SHAPES)
_CODES = {name: code for code, name in enumerate(_NAMES)}


class Columns:
    """One value per task: kind, the key of the end (-1: none), the stream that owns the notify (-1:
    the notify is an end's), its index, and the fields of Instruction.
    """

    def __init__(self, rows: int) -> None:
        self.src_offset, self.src_size, self.dst_offset, self.dst_size = (
            np.zeros(rows, np.int64) for _ in range(4)
        )
        self.key = np.full(rows, -1)
        self.owner, self.index = (np.full(rows, -1, np.int32) for _ in range(2))
        self.kind, self.src_buffer, self.dst_buffer, self.dtype, self.reduce = (
            np.full(rows, -1, np.int8) for _ in range(5)
        )
        self.microseconds = np.zeros(rows)

    @property
    def posts(self) -> npt.NDArray[np.bool_]:
        """Whether each task is a post."""
        return np.equal(self.kind, TaskKind.NOTIFY_POST)


def columns_from(rows: Rows, ends: Ends, memory: BufferTable, op: OpParam) -> Columns:
    """Return the columns of all tasks; the objects at their ends are read elsewhere."""
    codes = np.fromiter(map(_CODES.get, rows.names, repeat(-1)), np.int8, len(rows))
    for row in np.flatnonzero(codes < 0)[:1].tolist():
        name = rows.names[row]
        hint = did_you_mean(name[:40], _NAMES)
        raise defect(rows.path(row, 0), "the name of a task", format_value(name), hint)
    columns = Columns(len(rows))
    for code in np.unique(codes).tolist():
        _TaskReader(_NAMES[code], np.flatnonzero(codes == code), rows, columns, ends, memory).read()
    moves = columns.src_buffer >= 0
    columns.dtype[moves] = op.dtype.number
    return columns


class _TaskReader:
    """Reads all tasks of one name."""

    def __init__(
        self, name: str, at: IntArray, rows: Rows, columns: Columns, ends: Ends, memory: BufferTable
    ) -> None:
        self.name, self.shape = name, SHAPES[name]
        self.at, self.rows, self.columns = at, rows, columns
        self.ends, self.memory = ends, memory
        self.rank = rows.rank[at]

    def read(self) -> None:
        """Fill the columns, member by member."""
        self._check_length()
        self.columns.kind[self.at] = self.shape.kind
        if self.name == "local_wait":
            self.columns.owner[self.at] = self.rows.stream[self.at]
        tasks = self.rows.picked(self.at)
        readers: dict[str, Callable[[list[Any], int], None]] = {
            "peer": self._peer,
            "op": self._op,
            "src": self._src,
            "dst": self._dst,
            "stream": self._stream,
            "index": self._index,
            "us": self._microseconds,
        }
        for position, member in enumerate(self.shape.members, 1):
            readers[member]([task[position] for task in tasks], position)

    def _where(self, *keys: int) -> Where:
        return self.rows.where(self.at, *keys)

    def _check_length(self) -> None:
        wrong = self.rows.fields[self.at] != len(self.shape.members)
        for row in self.at[wrong][:1].tolist():
            expected = self.shape.usage(self.name)
            found = f"{self.rows.fields[row]} members behind the name"
            hint = "Slices are [buffer, offset, length] in bytes; an object may follow."
            raise defect(self.rows.path(row), expected, found, hint)

    def _peer(self, values: list[Any], position: int) -> None:
        self.columns.key[self.at] = self.ends.keys(self.rank, values, self._where(position))

    def _op(self, values: list[Any], position: int) -> None:
        known: dict[Any, int] = {}
        numbers = []
        for k, value in enumerate(values):
            if type(value) is not str or value not in known:
                found = reduce_op(self.rows.path(int(self.at[k]), position), value)
                known[value] = int(found)
            numbers.append(known[value])
        self.columns.reduce[self.at] = numbers

    def _src(self, values: list[Any], position: int) -> None:
        columns = self.columns
        found = self._slices(values, position, self._owner("src"))
        columns.src_buffer[self.at], columns.src_offset[self.at], columns.src_size[self.at] = found

    def _dst(self, values: list[Any], position: int) -> None:
        columns = self.columns
        found = self._slices(values, position, self._owner("dst"))
        columns.dst_buffer[self.at], columns.dst_offset[self.at], columns.dst_size[self.at] = found

    def _stream(self, values: list[Any], position: int) -> None:
        where = self._where(position)
        self.columns.owner[self.at] = whole(values, where, "a stream", 0, MAX_NUMBER - 1)

    def _index(self, values: list[Any], position: int) -> None:
        where = self._where(position)
        self.columns.index[self.at] = whole(values, where, "a notify's index", 0, MAX_NUMBER - 1)

    def _microseconds(self, values: list[Any], position: int) -> None:
        if not all(map(_is_duration, values)):
            k = next(k for k, value in enumerate(values) if not _is_duration(value))
            hint = "A kernel takes 0 microseconds or more, and ends."
            where = self.rows.path(int(self.at[k]), position)
            raise defect(where, "microseconds from 0 to 1e12", format_value(values[k]), hint)
        self.columns.microseconds[self.at] = values

    def _owner(self, side: str) -> IntArray:
        """Return whose memory a side lies in."""
        if side != self.shape.remote:
            return self.rank
        return self.ends.peers(self.columns.key[self.at])

    def _slices(
        self, values: list[Any], position: int, owner: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return buffers, offsets and lengths of a column of [buffer, offset, length]."""
        for k, value in enumerate(values):
            if type(value) is not list or len(value) != 3:
                path = self.rows.path(int(self.at[k]), position)
                hint = 'Such as ["IN", 0, 64], in bytes.'
                raise defect(path, "[buffer, offset, length]", format_value(value), hint)
        buffers = self._buffers([value[0] for value in values], position, owner)
        offsets = whole([v[1] for v in values], self._where(position, 1), "an offset in bytes")
        sizes = whole([v[2] for v in values], self._where(position, 2), "a length in bytes")
        return buffers, offsets, sizes

    def _buffers(self, names: Sequence[Any], position: int, owner: IntArray) -> IntArray:
        known: dict[Any, int] = {}
        numbers = np.empty(len(names), np.int64)
        for k, name in enumerate(names):
            if type(name) is not str or name not in known:
                path = self.rows.path(int(self.at[k]), position, 0)
                known[name] = self.memory.number(name, path)
            numbers[k] = known[name]
        for k in np.flatnonzero(~self.memory.known[owner, numbers])[:1].tolist():
            path = self.rows.path(int(self.at[k]), position, 0)
            hint = f"Add it to buffers.{owner[k]} with its size."
            raise defect(path, f"a buffer of rank {owner[k]}", format_value(names[k]), hint)
        return numbers


def _is_duration(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1e12  # type: ignore[operator]


_KEYS = frozenset(("round", "label", "source", "dtype", "owner", "joined"))
_MAX_ROUND = 2**31 - 2


@dataclass(frozen=True, eq=False)
class TaskNotes:
    """Round, label, line of every task, and whether it is joined to the one before; texts are
    numbered in the order of their first use.
    """

    round: IntArray
    label: IntArray
    line: IntArray
    joined: IntArray
    labels: tuple[str, ...]
    lines: tuple[str, ...]


def notes_from(rows: Rows, columns: Columns) -> TaskNotes:
    """Return the notes of all tasks; `dtype` and `owner` go to the columns."""
    at = np.flatnonzero(rows.has_note)
    notes = [task[-1] for task in rows.picked(at)]
    for k, note in enumerate(notes):
        if not note.keys() <= _KEYS:
            only_keys(rows.path(int(at[k]), len(rows.tasks[at[k]]) - 1), note, _KEYS)
    reader = _NoteReader(rows, at, notes)
    _set_dtypes(reader, columns)
    _set_owners(reader, columns)
    label, labels = reader.texts("label")
    line, lines = reader.texts("source")
    return TaskNotes(reader.rounds(), label, line, _joined(reader, columns), labels, lines)


class _NoteReader:
    """One key at a time, over all notes."""

    def __init__(self, rows: Rows, at: IntArray, notes: list[dict[str, Any]]) -> None:
        self.rows, self._at, self._notes = rows, at, notes

    def having(self, key: str) -> tuple[IntArray, list[Any]]:
        """Return the rows whose note has a key, and the values."""
        has = [key in note for note in self._notes]
        rows = self._at[np.array(has, bool)]
        return rows, [note[key] for note in self._notes if key in note]

    def path(self, row: int, key: str) -> str:
        """Return the JSON path of a key."""
        return self.rows.path(row, len(self.rows.tasks[row]) - 1, key)

    def rounds(self) -> IntArray:
        """Return the round of every task, 0 where none is given."""
        at, values = self.having("round")
        column = np.zeros(len(self.rows), np.int64)
        where = lambda k: self.path(int(at[k]), "round")  # noqa: E731
        column[at] = whole(values, where, "a round", 0, _MAX_ROUND)
        return column

    def texts(self, key: str) -> tuple[IntArray, tuple[str, ...]]:
        """Return the number of every task's text, -1 where none is given, and the texts."""
        at, values = self.having(key)
        numbers: dict[Any, int] = {}
        found = []
        for row, text in zip(at.tolist(), values, strict=True):
            if type(text) is not str or text not in numbers:
                numbers[a_text(self.path(row, key), text)] = len(numbers)
            found.append(numbers[text])
        column = np.full(len(self.rows), -1)
        column[at] = found
        return column, tuple(numbers)


def _set_dtypes(reader: _NoteReader, columns: Columns) -> None:
    at, names = reader.having("dtype")
    known: dict[Any, int] = {}
    for row, name in zip(at.tolist(), names, strict=True):
        if type(name) is not str or name not in known:
            known[name] = data_type(reader.path(row, "dtype"), name).number
        if columns.src_buffer[row] < 0:
            hint = "Only tasks that move data have a data type."
            raise defect(reader.path(row, "dtype"), "no data type here", f'"{name}"', hint)
        columns.dtype[row] = known[name]


def _joined(reader: _NoteReader, columns: Columns) -> IntArray:
    """Return 1 for data tasks that are joined to the one before."""
    at, values = reader.having("joined")
    found = np.zeros(len(reader.rows), np.int64)
    for row, value in zip(at.tolist(), values, strict=True):
        if value is not True or columns.src_buffer[row] < 0:
            hint = "Only tasks that move data are joined: to the one before, or not at all."
            raise defect(
                reader.path(row, "joined"), "true on such a task", format_value(value), hint
            )
        found[row] = 1
    return found


def _set_owners(reader: _NoteReader, columns: Columns) -> None:
    at, streams = reader.having("owner")
    for row in at.tolist():
        if reader.rows.tasks[row][0] != "local_wait":
            hint = "Only local_wait has one: the stream whose notify it clears."
            raise defect(reader.path(row, "owner"), "no owner here", "one", hint)
    where = lambda k: reader.path(int(at[k]), "owner")  # noqa: E731
    columns.owner[at] = whole(streams, where, "a stream", 0, MAX_NUMBER - 1)
