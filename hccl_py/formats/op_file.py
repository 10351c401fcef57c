"""An op's object in a JSON file of its own: what a program of another tool carries out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hccl_py.call.ops import OPS
from hccl_py.documents.checks import an_object, at, defect, format_value, only_keys
from hccl_py.documents.disk import format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.parse import parse_document
from hccl_py.errors import did_you_mean
from hccl_py.formats.op import op_from

AMOUNTS = ("count", "counts", "displs", "matrix")
"""The members that say how much."""

_OP_FILE = FileKind("op", "members", larger="An op's object is small.", suffixes=(".json",))
_OP_LIMIT = 1 << 20


def op_members(path: str, ranks: int) -> dict[str, Any]:
    """Return the object's members, of those that say which op it is, between whom, and how much;
    FileError for what is no op of so many ranks.
    """
    data = read_file(path, _OP_LIMIT, _OP_FILE)

    def read() -> dict[str, Any]:
        found = an_object("", parse_document(data, _OP_FILE))
        only_keys("", found, ("name", "root", "pairs", *AMOUNTS))
        if found.get("name") not in OPS:
            name = found.get("name")
            hint = did_you_mean(str(name)[:40], OPS)
            raise defect(at("", "name"), "an op", format_value(name), hint)
        op_from({"count": 1, "dtype": "uint8", "reduce": _any_reduce(found), **found}, ranks, "")
        return found

    return named(f"{format_path(path):.200}", _OP_FILE, read)


def _any_reduce(members: Mapping[str, Any]) -> str | None:
    return "sum" if OPS[members["name"]].reduces else None
