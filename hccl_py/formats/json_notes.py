"""The objects at the ends of tasks in a JSON file: `{"round": 0, "label": "...",
"source": "file:line", "dtype": "...", "owner": 0, "joined": true}`.

hccl-py adds `owner`, the stream whose notify a `local_wait` clears, where it is not its own, and
`joined`, one step of a kernel with the data task before, or, with "sum", one sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import a_text, defect, format_value, is_text, only_keys
from hccl_py.formats.checks import whole
from hccl_py.formats.json_rows import Rows
from hccl_py.formats.op import data_type
from hccl_py.program.builder.columns import TaskColumns
from hccl_py.program.instruction import ONE_STEP, ONE_SUM
from hccl_py.program.limits import MAX_NUMBER, MAX_ROUND
from hccl_py.values import IntArray

_KEYS = frozenset(("round", "label", "source", "dtype", "owner", "joined"))


def read_notes(rows: Rows, columns: TaskColumns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read the notes of all tasks into their columns; return the labels and lines that tasks name
    by number, in the order of their first use.
    """
    at = np.flatnonzero(rows.has_note)
    notes = [task[-1] for task in rows.picked(at)]
    for k, note in enumerate(notes):
        if not note.keys() <= _KEYS:
            only_keys(rows.path(int(at[k]), len(rows.tasks[at[k]]) - 1), note, _KEYS)
    reader = _NoteReader(rows, at, notes)
    _set_dtypes(reader, columns)
    _set_owners(reader, columns)
    _set_joined(reader, columns)
    _set_rounds(reader, columns)
    return reader.texts("label", columns.label), reader.texts("source", columns.line)


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

    def texts(self, key: str, column: npt.NDArray[np.int32]) -> tuple[str, ...]:
        """Number the texts of a key in a column; return the texts."""
        at, values = self.having(key)
        numbers: dict[Any, int] = {}
        found = []
        for row, text in zip(at.tolist(), values, strict=True):
            if type(text) is not str or text not in numbers:
                if not is_text(text):  # only then the path, which takes longer than the text
                    a_text(self.path(row, key), text)
                numbers[text] = len(numbers)
            found.append(numbers[text])
        column[at] = found
        return tuple(numbers)


def _set_rounds(reader: _NoteReader, columns: TaskColumns) -> None:
    at, values = reader.having("round")
    where = lambda k: reader.path(int(at[k]), "round")  # noqa: E731
    columns.round[at] = whole(values, where, "a round", 0, MAX_ROUND)


def _set_dtypes(reader: _NoteReader, columns: TaskColumns) -> None:
    at, names = reader.having("dtype")
    known: dict[Any, int] = {}
    for row, name in zip(at.tolist(), names, strict=True):
        if type(name) is not str or name not in known:
            known[name] = data_type(reader.path(row, "dtype"), name).number
        if columns.src_buffer[row] < 0:
            hint = "Only tasks that move data have a data type."
            raise defect(reader.path(row, "dtype"), "no data type here", f'"{name}"', hint)
        columns.dtype[row] = known[name]


def _set_joined(reader: _NoteReader, columns: TaskColumns) -> None:
    at, values = reader.having("joined")
    for row, value in zip(at.tolist(), values, strict=True):
        if (value is not True and value != "sum") or columns.src_buffer[row] < 0:
            hint = "Only tasks that move data are joined: to the one before, or not at all."
            raise defect(
                reader.path(row, "joined"),
                'true or "sum" on such a task',
                format_value(value),
                hint,
            )
        columns.joined[row] = ONE_STEP if value is True else ONE_SUM


def _set_owners(reader: _NoteReader, columns: TaskColumns) -> None:
    at, streams = reader.having("owner")
    for row in at.tolist():
        if reader.rows.tasks[row][0] != "local_wait":
            hint = "Only local_wait has one: the stream whose notify it clears."
            raise defect(reader.path(row, "owner"), "no owner here", "one", hint)
    where = lambda k: reader.path(int(at[k]), "owner")  # noqa: E731
    columns.owner[at] = whole(streams, where, "a stream", 0, MAX_NUMBER - 1)
