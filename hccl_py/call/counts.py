"""Files of `--counts`: the elements that every rank sends, where that differs by rank."""

from __future__ import annotations

from hccl_py.call.op_param import Counts, Numbers
from hccl_py.call.ops import COUNTS_OF
from hccl_py.documents.checks import a_list, at, defect, format_value
from hccl_py.documents.disk import format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.parse import parse_document
from hccl_py.errors import ParameterError

MOST_BYTES = 100_000_000

_KIND = FileKind(
    noun="list of counts",
    parts="counts",
    larger="A file of counts has at most 100 MB.",
    depth="Counts are a list, or a list of lists.",
    digits="Counts go to 34359738367.",
)


def read_counts(path: str, op: str) -> Counts:
    """Return the counts of a file: a JSON list with an entry per rank, or a row of a matrix."""
    if op not in COUNTS_OF:
        raise ParameterError(
            f"{op} takes no --counts.", f"These do: {', '.join(COUNTS_OF)}. Give -b instead."
        )
    data = read_file(path, MOST_BYTES, _KIND)
    axes = COUNTS_OF[op][1]
    return named(format_path(path), _KIND, lambda: _counts(parse_document(data, _KIND), axes))


def _counts(document: object, axes: int) -> Counts:
    rows = a_list("", document)
    if axes == 1:
        return _row("", rows)
    return tuple(_row(at("", number), row) for number, row in enumerate(rows))


def _row(path: str, value: object) -> Numbers:
    row = a_list(path, value)
    for number, count in enumerate(row):
        if isinstance(count, bool) or not isinstance(count, int):
            raise defect(
                at(path, number),
                "a whole number",
                format_value(count),
                "Count elements, not bytes.",
            )
    return tuple(row)
