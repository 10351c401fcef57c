"""The file of `--counts`: how much every rank sends, where that differs by rank."""

from __future__ import annotations

from dataclasses import replace

from hccl_py.documents.checks import a_list, at, defect, spell
from hccl_py.documents.disk import read_file, spell_path
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.parse import parse_document
from hccl_py.errors import ParameterError
from hccl_py.op_param import Numbers, OpParam, Table

__all__ = ["Amounts", "read_amounts", "with_amounts"]

Amounts = Numbers | Table

MOST_BYTES = 100_000_000

_KIND = FileKind(
    noun="list of counts",
    parts="counts",
    larger="A file of counts has at most 100 MB.",
    depth="Counts are a list, or a list of lists.",
    digits="Counts go to 34359738367.",
)

_MEMBERS = {
    "all_gather_v": ("counts", 1),
    "reduce_scatter_v": ("counts", 1),
    "all_to_all_v": ("counts", 2),
    "all_to_all_vc": ("matrix", 2),
}
"""Where an op keeps them, and whether they are a list or a matrix."""


def read_amounts(path: str, op: str) -> Amounts:
    """Return the counts of a file: a JSON list with an entry per rank, or a row of a matrix."""
    if op not in _MEMBERS:
        raise ParameterError(
            f"{op} takes no --counts.", f"These do: {', '.join(_MEMBERS)}. Give -b instead."
        )
    data = read_file(path, MOST_BYTES, _KIND)
    depth = _MEMBERS[op][1]
    return named(spell_path(path), _KIND, lambda: _amounts(parse_document(data, _KIND), depth))


def with_amounts(op: OpParam, amounts: Amounts) -> OpParam:
    """Return a call with these counts instead of the usual ones."""
    member = _MEMBERS[op.name][0]
    found = replace(op, **{member: amounts})  # type: ignore[arg-type]
    return replace(found, count=found.extent)


def _amounts(document: object, depth: int) -> Amounts:
    rows = a_list("", document)
    if depth == 1:
        return _row("", rows)
    return tuple(_row(at("", number), row) for number, row in enumerate(rows))


def _row(path: str, value: object) -> Numbers:
    row = a_list(path, value)
    for number, count in enumerate(row):
        if isinstance(count, bool) or not isinstance(count, int):
            raise defect(
                at(path, number), "a whole number", spell(count), "Count elements, not bytes."
            )
    return tuple(row)
