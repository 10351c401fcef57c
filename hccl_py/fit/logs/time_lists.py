"""Lists of measured times of programs, as CSV or JSON: what ran, and how long it took.

    program,time_us,held_out
    ring.json,412.5,
    mesh.json,391.0,yes

    op,executor,bytes,time_us
    all_reduce,MyRing,64M,2120.5

    kind,link,bytes,gbps,group
    read,hccs,8M,148.1,inside

A row has options of a call by their names. `program` is a program file, or the folder of a custom
op in C++, beside the list. A row with `kind` read or write is one transfer between two devices.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hccl_py.documents.checks import a_list, an_object, at, defect, format_value, only_keys
from hccl_py.documents.disk import format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.parse import decoded, parse_document
from hccl_py.errors import ParameterError
from hccl_py.fit.logs.hccl_test import LEAST_US, MOST_US
from hccl_py.fit.logs.measured import MOST_BYTES
from hccl_py.fit.logs.rccl_tests import is_rccl_file
from hccl_py.fit.measured_transfers import Transfer

_KIND = FileKind(
    noun="list of times",
    parts="rows",
    larger="Give fewer rows.",
    depth="A list of times has two levels.",
)

_OWN = (
    *("program", "op", "name", "bytes", "time_us", "held_out", "calls"),
    *("group", "kind", "link", "far", "gbps"),
)
_WORDS = {"yes": True, "true": True, "no": False, "false": False, "": False}


@dataclass(frozen=True)
class TimedRow:
    """A row: its line, its name, the options of its call, and its time in µs; a time that is held
    out is predicted and not fitted. `group` is whose it is: a team, a machine. A time of one
    transfer between two devices has a `transfer`.
    """

    line: int
    name: str
    options: Mapping[str, Any]
    time_us: float
    held_out: bool
    group: str = ""
    transfer: Transfer | None = None


def is_list(path: str) -> bool:
    """True if a file is a list of times by its suffix, and no log."""
    return Path(path).suffix.lower() in (".csv", ".json") and not is_rccl_file(path)


@dataclass(frozen=True)
class RowReader:
    """The needs of a row's reader: the options that rows may have beside those of this format (int,
    bool or str), the op of rows that name none, and the bytes of a size such as 8M.
    """

    kinds: Mapping[str, type]
    op: str
    size_of: Callable[[str], int]


def read_list(path: str, reader: RowReader) -> list[TimedRow]:
    """Return the rows; FileError for a file that is no list of times, and for a time that no call
    takes.
    """
    data = read_file(path, MOST_BYTES, _KIND)
    rows = _of_csv if path.lower().endswith(".csv") else _of_json
    folder = Path(path).parent

    def read() -> list[TimedRow]:
        return [_row(place, line, row, reader, folder) for place, line, row in rows(data)]

    return named(format_path(path), _KIND, read)


def _of_csv(data: bytes) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield place, line and cells of the rows; lines that begin with # are comments."""
    lines = decoded(data, _KIND).splitlines()
    said = [(k, line) for k, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"]
    reader = csv.reader(line for _, line in said)
    names = [name.strip() for name in next(reader, [])]
    for (number, _), cells in zip(said[1:], reader, strict=False):
        place = f"line {number}"
        if len(cells) != len(names):
            raise defect(
                place, f"{len(names)} cells", str(len(cells)), "Write as many as the first line."
            )
        values = [cell.strip() for cell in cells]
        yield place, number, {n: v for n, v in zip(names, values, strict=True) if v}


def _of_json(data: bytes) -> Iterator[tuple[str, int, dict[str, Any]]]:
    document = a_list("", parse_document(data, _KIND), "Write a list of objects.")
    for k, row in enumerate(document):
        yield at("", k), k + 1, an_object(at("", k), row)


def _row(place: str, line: int, row: dict[str, Any], reader: RowReader, folder: Path) -> TimedRow:
    kinds = reader.kinds
    only_keys(place, row, [*_OWN, *kinds])
    options = {name: _value(place, name, kinds[name], row[name]) for name in row if name in kinds}
    transfer = _transfer(place, row, reader)
    time_us = _time_us(place, row, reader)
    if not LEAST_US <= time_us <= MOST_US:
        raise defect(at(place, "time_us"), "a time", f"{time_us:g} us", "A call takes time.")
    op = str(row.get("op", "")) or reader.op
    options["minbytes"] = str(row["bytes"]) if "bytes" in row else None
    if transfer is not None:
        pass
    elif "program" in row:
        options |= {"op": str(folder / str(row["program"])), "cpp_op": op or None}
    elif op:
        options["op"] = op
    else:
        raise defect(place, "an op or a program", "neither", "Add a column op or program.")
    if "calls" in row:
        options["calls"] = _value(place, "calls", int, row["calls"])
    held_out = row.get("held_out", False)
    held_out = held_out if isinstance(held_out, bool) else _word(place, str(held_out))
    name, group = str(row.get("name", "")), str(row.get("group", ""))
    return TimedRow(line, name, options, time_us, held_out, group, transfer)


def _transfer(place: str, row: dict[str, Any], reader: RowReader) -> Transfer | None:
    """Return the transfer of a row that has a kind, other than send_recv, which is an op."""
    kind = str(row.get("kind", ""))
    if kind == "send_recv":
        row["op"] = kind
    if kind in ("", "send_recv"):
        return None
    far = row.get("far", False)
    far = far if isinstance(far, bool) else _word(at(place, "far"), str(far))
    return Transfer(kind, str(row.get("link", "")), _bytes(place, row, reader), far)


def _time_us(place: str, row: dict[str, Any], reader: RowReader) -> float:
    """Return the time of a row: stated, or of its bytes at the rate that is."""
    if "gbps" not in row or "time_us" in row:
        return _number(place, "time_us", row.get("time_us"))
    gbps = _number(place, "gbps", row["gbps"])
    if not gbps > 0:
        raise defect(at(place, "gbps"), "a rate", f"{gbps:g} GB/s", "Write one above 0.")
    return _bytes(place, row, reader) / gbps * 1e-3


def _bytes(place: str, row: dict[str, Any], reader: RowReader) -> int:
    try:
        return reader.size_of(str(row.get("bytes", "")))
    except ParameterError:
        found = format_value(row.get("bytes", "nothing"))
        raise defect(at(place, "bytes"), "a size", found, "Write one, such as 8M.") from None


def _value(place: str, name: str, kind: type, value: Any) -> Any:
    if kind is bool:
        return value if isinstance(value, bool) else _word(at(place, name), str(value))
    if kind is int:
        number = _number(place, name, value)
        if not number.is_integer():
            raise defect(at(place, name), "a whole number", format_value(value), "Write one.")
        return int(number)
    return str(value)


def _number(place: str, name: str, value: Any) -> float:
    try:
        if isinstance(value, bool) or value is None:
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        found = "nothing" if value is None else format_value(value)
        raise defect(at(place, name), "a number", found, "Write one.") from None


def _word(place: str, text: str) -> bool:
    if text.lower() not in _WORDS:
        raise defect(place, "yes or no", format_value(text), "Write one of them.")
    return _WORDS[text.lower()]
