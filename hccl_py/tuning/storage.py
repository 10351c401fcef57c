"""Rows of a sweep on disk: a journal while it runs, one CSV or Parquet file when it has ended.

A row is a point, its key, and its outcome; columns are the members of the two models. Values other
than numbers and texts are written as JSON, a model as its name.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, SimpleNamespace, TracebackType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from hccl_py.documents.disk import (
    PathLike,
    check_regular,
    format_path,
    read_file,
    refusal,
    replacing,
)
from hccl_py.documents.kind import FileKind, named
from hccl_py.errors import FileError, ParameterError

SCHEMA = "hccl-py.sweep/1"
_HEAD = f'{{"schema": "{SCHEMA}"'.encode()
"""The first bytes of a journal."""
KEY = "key"

Row = dict[str, Any]
"""By column: a number, a text, a truth value, or None."""

_SWEEP = FileKind(
    "sweep",
    "rows",
    FileError,
    larger="Keep the rows that matter, or name another file.",
    text="Name another file.",
    suffixes=(".csv", ".parquet"),
    mark=re.compile(rb"^(key,|PAR1)"),
)

MOST_BYTES = 1 << 30

_OTHER_COLUMNS = "It was made by another version of hccl-py or another program: name another file."

_FIX = "Mend the row or take it out: it is then computed anew."


@dataclass(frozen=True)
class Column:
    """The type of a column's cells: `int`, `float`, `bool`, `str`, or None for JSON; optional ones
    may be empty.
    """

    kind: type | None
    is_optional: bool

    def cell(self, value: Any) -> Any:
        """Return the cell for a model's value."""
        if isinstance(value, BaseModel):
            name: str | None = getattr(value, "name", None)
            return name or value.model_dump_json(exclude_defaults=True)
        if value is None or self.kind is not None:
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)

    def value(self, cell: Any) -> Any:
        """Return the value of a stored cell; CSV has only texts."""
        if self.is_optional and cell in (None, ""):
            return None
        if cell is None:
            raise ValueError("nothing is there")
        if self.kind is None:
            return json.loads(cell)
        if self.kind is bool and isinstance(cell, str):
            return {"True": True, "False": False}[cell]
        return self.kind(cell)


Columns = Mapping[str, Column]


def columns_of(point: type[BaseModel], outcome: type[BaseModel]) -> Columns:
    """Return the columns of a sweep: the key, the point's members, the outcome's.

    Of members with the same name, the point's gets the prefix `asked_`.
    """
    asked = {name: _column(field.annotation) for name, field in point.model_fields.items()}
    found = {name: _column(field.annotation) for name, field in outcome.model_fields.items()}
    renamed = {f"asked_{name}" if name in found else name: c for name, c in asked.items()}
    return {KEY: Column(str, False), **renamed, **found}


def _column(annotation: Any) -> Column:
    """Return the column of an annotation; anything but plain scalars is JSON."""
    if get_origin(annotation) is Annotated:
        return _column(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        inner = [argument for argument in get_args(annotation) if argument is not NoneType]
        kind = _column(inner[0]).kind if len(inner) == 1 else None
        return Column(kind, NoneType in get_args(annotation))
    is_named = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if is_named or get_origin(annotation) is Literal:
        return Column(str, False)
    return Column(annotation if annotation in (int, float, bool, str) else None, False)


def row_of(key: str, point: BaseModel, outcome: BaseModel) -> Row:
    """Return the row of a point and its outcome."""
    asked, found = _members(point), _members(outcome)
    return {KEY: key} | {f"asked_{n}" if n in found else n: v for n, v in asked.items()} | found


def _members(model: BaseModel) -> Row:
    """Return the members of a model as JSON has them; models in it stay what they are."""
    plain = model.model_dump(mode="json")
    models = {n: v for n, v in model if isinstance(v, BaseModel)}
    return plain | models


@dataclass(frozen=True)
class PointFile:
    """The file of a sweep, by its suffix CSV or Parquet."""

    path: Path
    columns: Columns

    @staticmethod
    def at(path: PathLike, columns: Columns) -> PointFile:
        """Check a path before anything is computed.

        Raises ParameterError for another suffix, and for Parquet where pyarrow is missing.
        """
        found = Path(path)
        if found.suffix not in _FORMATS:
            raise ParameterError(
                f"A sweep is not written as {format_path(found.name)!r}.",
                "Name a file that ends in .csv or .parquet.",
            )
        if found.suffix == ".parquet":
            _pyarrow()
        return PointFile(found, columns)

    def rows(self) -> dict[str, Row]:
        """Return the rows by key; none where there is no file."""
        if not self.path.exists():
            return {}
        begins = b"" if self.path.suffix == ".csv" else b"PAR1"
        data = read_file(self.path, MOST_BYTES, _SWEEP, begins=begins)
        read, _ = _FORMATS[self.path.suffix]
        return {row[KEY]: row for row in read(self, data)}

    def write(self, rows: Iterable[Row]) -> None:
        """Write the file as a whole: readers find the old one until then."""
        _, write = _FORMATS[self.path.suffix]
        with replacing(self.path, _SWEEP) as part:
            write(self, part, rows)

    def check(self, found: Iterable[object], what: Path) -> None:
        """Refuse a file of other columns."""
        names = [str(name) for name in found]
        if names == list(self.columns):
            return
        odd = sorted({*names} ^ {*self.columns})
        differ = f"they differ in {', '.join(odd[:4])}" if odd else "they are in another order"
        raise FileError(
            f"{format_path(what)}: the columns are not those of this sweep: {differ}.",
            _OTHER_COLUMNS,
        )

    def parsed(self, cells: Mapping[str, Any], place: str) -> Row:
        """Return a row of cells as values; FileError names the first that does not fit."""
        row = {}
        for name, column in self.columns.items():
            try:
                row[name] = column.value(cells[name])
            except (KeyError, TypeError, ValueError):
                raise FileError(
                    f"{place}: {name} is {cells.get(name)!r:.60}.",
                    _FIX,
                ) from None
        return row


def _read_csv(store: PointFile, data: bytes) -> Iterator[Row]:
    try:
        reader = csv.DictReader(io.StringIO(data.decode(), newline=""))
        store.check(reader.fieldnames or (), store.path)
        for cells in reader:
            place = f"{format_path(store.path)} line {reader.line_num}"
            if None in cells or None in cells.values():
                message = f"{place}: the row does not have {len(store.columns)} cells."
                raise FileError(message, _FIX)
            yield store.parsed(cells, place)
    except (UnicodeDecodeError, csv.Error):
        message = f"{format_path(store.path)}: the file is not CSV in UTF-8."
        raise FileError(message, _OTHER_COLUMNS) from None


def _write_csv(store: PointFile, path: Path, rows: Iterable[Row]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        # A writer quotes the characters of its own line ends only: with both, cells may hold them.
        lines = SimpleNamespace(write=lambda line: file.write(line.removesuffix("\r\n") + "\n"))
        writer = csv.writer(lines, lineterminator="\r\n")
        writer.writerow(store.columns)
        writer.writerows(_cells(store.columns, row) for row in rows)


def _cells(columns: Columns, row: Row) -> list[Any]:
    return [column.cell(row[name]) for name, column in columns.items()]


def _read_parquet(store: PointFile, data: bytes) -> Iterator[Row]:
    pyarrow = _pyarrow()
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError):
        raise FileError(
            f"{format_path(store.path)}: the file is not Parquet.", _OTHER_COLUMNS
        ) from None
    store.check(table.column_names, store.path)
    for number, cells in enumerate(table.to_pylist()):
        yield store.parsed(cells, f"{format_path(store.path)} row {number}")


def _write_parquet(store: PointFile, path: Path, rows: Iterable[Row]) -> None:
    pyarrow = _pyarrow()
    import pyarrow.parquet as parquet

    types: dict[type | None, Any] = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
    }
    schema = pyarrow.schema(
        [(name, types.get(c.kind, pyarrow.string())) for name, c in store.columns.items()]
    )
    cells = zip(*(_cells(store.columns, row) for row in rows), strict=True)
    lists = [*cells] or [()] * len(schema)
    arrays = [pyarrow.array(c, type=f.type) for c, f in zip(lists, schema, strict=True)]
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), path)


_FORMATS = {".csv": (_read_csv, _write_csv), ".parquet": (_read_parquet, _write_parquet)}
"""Readers and writers by suffix."""


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ParameterError(
            "Parquet needs pyarrow, which is not installed.",
            "pip install hccl-py[parquet], or name a file that ends in .csv.",
        ) from None
    return pyarrow


class Journal:
    """The rows of a sweep that is under way, a line each, next to its file.

    Entering locks it against other processes and reads the rows of an earlier run, but for a last
    line that is torn. Raises FileError where the sweep runs already, and for a journal of
    other columns.
    """

    def __init__(self, store: PointFile) -> None:
        self._store = store
        self.path = store.path.with_name(f"{store.path.name}.journal")
        self.rows: dict[str, Row] = {}

    def append(self, row: Row) -> None:
        """Write a row to disk, so that it outlives this process."""
        self.rows[row[KEY]] = row
        cells = dict(zip(self._store.columns, _cells(self._store.columns, row), strict=True))
        self._write(cells)

    def remove(self) -> None:
        """Delete the journal: the file has all rows."""
        self.path.unlink()

    def __enter__(self) -> Journal:
        try:
            self._file = _locked(self.path)
        except OSError as error:
            raise refusal("used", error, f"{format_path(self.path)}: ") from None
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def _read(self) -> None:
        data = self._file.read()
        whole, end, torn = data.rpartition(b"\n")
        head, *lines = whole.split(b"\n")
        if end or not _HEAD.startswith(torn[: len(_HEAD)]):
            self._check(self._parsed(head or torn, 1))
        self._file.truncate(len(data) - len(torn))
        if not end:
            self._write({"schema": SCHEMA, "columns": list(self._store.columns)})
        for number, line in enumerate(lines, start=2):
            place = f"{format_path(self.path)} line {number}"
            row = self._store.parsed(self._parsed(line, number), place)
            self.rows[row[KEY]] = row

    def _check(self, head: dict[str, Any]) -> None:
        if head.get("schema") != SCHEMA:
            raise FileError(
                f"{format_path(self.path)}: expected the schema {SCHEMA}, "
                f"found {head.get('schema')!r:.60}.",
                _OTHER_COLUMNS,
            )
        columns = head.get("columns")
        self._store.check(columns if isinstance(columns, list) else [], self.path)

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise FileError(
                f"{format_path(self.path)} line {number}: the line is no JSON object.",
                "Take the line out: it is then computed anew." if number > 1 else _OTHER_COLUMNS,
            )
        return found

    def _write(self, line: Mapping[str, Any]) -> None:
        left = memoryview(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise refusal("written", error, f"{format_path(self.path)}: ") from None


def _locked(path: Path) -> io.FileIO:
    """Open a journal that no other process has open.

    Record locks are not inherited: workers that outlive a killed sweep hold none.
    """
    while True:
        if path.exists():
            named(format_path(path), _SWEEP, lambda: check_regular(path, "used"))
        file = open(path, "a+b", buffering=0)  # noqa: SIM115 (the journal closes it)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise FileError(
                f"{format_path(path)}: another process runs this sweep.",
                "Wait for its end, or name another file.",
            ) from None
        file.seek(0)
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()  # the other one has just ended and taken its journal away
