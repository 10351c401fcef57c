"""The members of ops whose ranks have different amounts: counts, displs, matrix, pairs.

`OpParam` says what they mean; here they get their shapes, and numbers that 64 bits can add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from hccl_py.documents.checks import a_list, at, defect, spell
from hccl_py.op_param import Numbers, Table
from hccl_py.program.files.checks import LIMIT, whole
from hccl_py.program.files.models import OpModel

__all__ = ["MEMBERS", "Amounts", "amounts_from"]

MEMBERS = {
    "all_gather_v": ("counts", "displs"),
    "reduce_scatter_v": ("counts", "displs"),
    "all_to_all_v": ("counts", "displs"),
    "all_to_all_vc": ("matrix",),
    "send_recv": ("pairs",),
    "batch_send_recv": ("pairs",),
}
"""Which ops have which members."""

_NAMES = ("counts", "displs", "matrix", "pairs")


class Amounts(NamedTuple):
    """Members of OpParam, `()` where they are left out."""

    counts: Numbers | Table = ()
    displs: Numbers | Table = ()
    matrix: Table = ()
    pairs: Table = ()


def amounts_from(model: OpModel, ranks: int, count: int, unit: int, path: str) -> Amounts:
    """Return the amounts of an op; `unit` is the bytes of an element."""
    given = {name: getattr(model, name) for name in _NAMES if getattr(model, name) is not None}
    _check_members(model.name, given, path)
    places = {name: at(path, name) for name in _NAMES}
    if "pairs" in given:
        pairs = _pairs(places["pairs"], given["pairs"], ranks, model.name == "batch_send_recv")
        moved = (pair[2] if len(pair) > 2 else count for pair in pairs)
        _check_total(places["pairs"], moved, unit)
        return Amounts(pairs=pairs)
    if "matrix" in given:
        matrix = _table(places["matrix"], given["matrix"], ranks, (ranks,))
        _check_total(places["matrix"], chain.from_iterable(matrix), unit)
        return Amounts(matrix=matrix)
    if "counts" not in given:
        return Amounts()
    counts, displs = given["counts"], given.get("displs")
    if model.name != "all_to_all_v":
        return _row_amounts(places, counts, displs, ranks, unit)
    return _table_amounts(places, counts, displs, ranks, unit)


def _check_members(op: str, given: dict[str, Any], path: str) -> None:
    """Refuse members that the op does not have, and those that it cannot do without."""
    allowed = MEMBERS.get(op, ())
    for name, value in given.items():
        if name not in allowed:
            having = ", ".join(other for other, names in MEMBERS.items() if name in names)
            hint = f"{name} belongs to {having}."
            raise defect(at(path, name), f"no {name} for {op}", spell(value), hint)
    for name in allowed:
        if name not in given and name != "displs" and op != "send_recv":
            raise defect(at(path, name), f"the {name} of {op}", "nothing", _shape_hint(name))


def _shape_hint(name: str) -> str:
    if name == "pairs":
        return "Write [[src, dst, count], ...]; without a count, the op's count holds."
    return "Write one number of elements per rank, for all-to-all one list of them per rank."


def _row_amounts(
    places: dict[str, str], counts: object, displs: object, ranks: int, unit: int
) -> Amounts:
    row = _row(places["counts"], counts, ranks)
    _check_total(places["counts"], row, unit)
    begins = () if displs is None else _row(places["displs"], displs, ranks)
    _check_total(places["displs"], (max(begins, default=0), *row), unit)
    return Amounts(counts=row, displs=begins)


def _table_amounts(
    places: dict[str, str], counts: object, displs: object, ranks: int, unit: int
) -> Amounts:
    table = _table(places["counts"], counts, ranks, (ranks,))
    numbers = list(chain.from_iterable(table))
    _check_total(places["counts"], numbers, unit)
    begins = () if displs is None else _table(places["displs"], displs, ranks, (ranks, 2 * ranks))
    largest = max(chain.from_iterable(begins), default=0)
    _check_total(places["displs"], (largest, *numbers), unit)
    return Amounts(counts=table, displs=begins)


def _row(path: str, value: object, ranks: int) -> Numbers:
    items = a_list(path, value, "Write one number of elements per rank.")
    if len(items) != ranks:
        hint = "Write one number of elements per rank."
        raise defect(path, f"{ranks} numbers", f"{len(items)} of them", hint)
    return tuple(whole(items, lambda k: at(path, k), "a number of elements").tolist())


def _table(path: str, value: object, ranks: int, widths: tuple[int, ...]) -> Table:
    hint = f"Write one list per rank, with {' or '.join(map(str, widths))} numbers each."
    rows = [a_list(at(path, k), row, hint) for k, row in enumerate(a_list(path, value, hint))]
    if len(rows) != ranks:
        raise defect(path, f"{ranks} lists", f"{len(rows)} of them", hint)
    width = len(rows[0]) if len(rows[0]) in widths else widths[0]
    for k, row in enumerate(rows):
        if len(row) != width:
            raise defect(at(path, k), f"{width} numbers", f"{len(row)} of them", hint)
    flat = list(chain.from_iterable(rows))
    where = lambda k: at(path, k // width, k % width)  # noqa: E731
    numbers = whole(flat, where, "a number of elements").tolist()
    return tuple(tuple(numbers[k : k + width]) for k in range(0, len(numbers), width))


def _pairs(path: str, value: object, ranks: int, has_counts: bool) -> Table:
    members = "[src, dst] or [src, dst, count]" if has_counts else "[src, dst]"
    hint = f"Write a list of {members}; leave pairs out for a ring."
    if has_counts:
        hint = _shape_hint("pairs")
    pairs = [a_list(at(path, k), pair, hint) for k, pair in enumerate(a_list(path, value, hint))]
    if not pairs:
        raise defect(path, f"a list of {members}", "a list of 0", hint)
    for k, pair in enumerate(pairs):
        if len(pair) != 2 and not (has_counts and len(pair) == 3):
            raise defect(at(path, k), members, spell(pair), hint)
    both = [rank for pair in pairs for rank in pair[:2]]
    whole(both, lambda k: at(path, k // 2, k % 2), "a rank", 0, ranks - 1)
    counted = [k for k, pair in enumerate(pairs) if len(pair) == 3]
    counts = [pairs[k][2] for k in counted]
    whole(counts, lambda k: at(path, counted[k], 2), "a number of elements")
    return tuple(map(tuple, pairs))


def _check_total(path: str, elements: Iterable[int], unit: int) -> None:
    total = sum(elements)
    if total * unit > LIMIT:
        hint = "All ranks together must stay below 2**62 bytes."
        raise defect(path, "fewer elements", str(total), hint)
