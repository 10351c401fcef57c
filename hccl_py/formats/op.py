"""The op of a program, to and from its JSON object, and how the caller issues it.

    {"name": "all_gather_v", "dtype": "fp32", "count": 0, "counts": [1, 2], ...}
    [{"stream": 0}, {"stream": 1, "after": [0]}]

Counts, displs, matrix and pairs mean what `OpParam` says; here they get their shapes, and numbers
that 64 bits can add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from hccl_py.call.op_param import LEVELS, Numbers, OpParam, Table
from hccl_py.call.ops import OPS
from hccl_py.documents.checks import a_list, an_object, at, defect, format_value, only_keys
from hccl_py.documents.models import checked
from hccl_py.enums import DataType, InPlace, Mode, ReduceOp
from hccl_py.errors import NotSupportedError, did_you_mean
from hccl_py.formats.checks import whole
from hccl_py.formats.models import OpModel
from hccl_py.program.limits import LIMIT, MAX_NUMBER
from hccl_py.program.program import Call

T = TypeVar("T")


def op_from(value: object, ranks: int, path: str = "op") -> OpParam:
    """Return the op of a JSON object."""
    model = checked(OpModel, value, path)
    if model.name not in OPS:
        raise defect(
            at(path, "name"), "an op", format_value(model.name), did_you_mean(model.name[:40], OPS)
        )
    count, dtype = _count(model, path), _data_type(model, path)
    op = OpParam(
        name=model.name,
        count=count,
        dtype=dtype,
        reduce=None if model.reduce is None else reduce_op(at(path, "reduce"), model.reduce),
        root=_root(model, ranks, path),
        mode=Mode(model.mode),
        in_place=_in_place(model, path),
        level0=model.level0[:40],
        level1=model.level1[:40],
        level2=model.level2[:40],
        deterministic=model.deterministic,
        **amounts_from(model, ranks, count, dtype.itemsize, path)._asdict(),
    )
    if OPS[op.name].reduces and not OPS[op.name].meets and op.reduce is None:
        hint = f"{op.name} reduces: state sum, prod, max or min."
        raise defect(at(path, "reduce"), "a reduce op", "null", hint)
    if op.size * ranks > LIMIT:
        hint = "All ranks together must stay below 2**62 bytes."
        raise defect(at(path, "count"), "a smaller count", str(op.count), hint)
    return op


def op_object(op: OpParam) -> dict[str, object]:
    """Return the JSON object of an op."""
    known = {
        "name": op.name,
        "dtype": op.dtype.value,
        "count": op.count,
        "reduce": None if op.reduce is None else op.reduce.spelling,
        "root": op.root,
        "in_place": op.in_place.value if isinstance(op.in_place, InPlace) else op.in_place,
        "mode": op.mode.value,
    }
    extras = {name: getattr(op, name) for name in (*Amounts._fields, *LEVELS, "deterministic")}
    return known | {name: value for name, value in extras.items() if value}


def data_type(path: str, name: object) -> DataType:
    """Return the data type of a name."""
    return _parsed(path, name, DataType.parse, "a data type")


def reduce_op(path: str, name: object) -> ReduceOp:
    """Return the reduce op of a name."""
    return _parsed(path, name, ReduceOp.parse, "a reduce op")


def _parsed(path: str, name: object, parse: Callable[[str], T], what: str) -> T:
    if not isinstance(name, str):
        raise defect(path, what, format_value(name), "Write its name in quotes.")
    try:
        return parse(name[:40])
    except NotSupportedError as error:
        raise defect(path, what, format_value(name), error.hint) from None


def _data_type(model: OpModel, path: str) -> DataType:
    if model.dtype is None and OPS[model.name].meets:
        return DataType.UINT8
    if model.dtype is None:
        found = "null" if "dtype" in model.model_fields_set else "nothing"
        hint = f"Say what {model.name} moves, such as fp32; only a barrier moves nothing."
        raise defect(at(path, "dtype"), "a data type", found, hint)
    return data_type(at(path, "dtype"), model.dtype)


def _in_place(model: OpModel, path: str) -> bool | InPlace:
    if isinstance(model.in_place, bool):
        return model.in_place
    for way in InPlace:
        if model.in_place == way.value and (way is InPlace.START or OPS[model.name].own_slot):
            return way
    slot = ', "start" or "slot"' if OPS[model.name].own_slot else ' or "start"'
    hint = "start: IN and OUT begin at one address; slot: one is the rank's own slot of the other."
    raise defect(at(path, "in_place"), f"true, false{slot}", format_value(model.in_place), hint)


def _count(model: OpModel, path: str) -> int:
    if model.count is None and not OPS[model.name].needs_count:
        return 0
    return int(whole([model.count], lambda _: at(path, "count"), "a count of elements")[0])


def _root(model: OpModel, ranks: int, path: str) -> int | None:
    if model.root is None and not OPS[model.name].rooted:
        return None
    where = at(path, "root")
    return int(whole([model.root], lambda _: where, "the root's rank", 0, ranks - 1)[0])


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


def _check_members(op: str, given: dict[str, object], path: str) -> None:
    """Refuse members that the op does not have, and those that it cannot do without."""
    allowed = OPS[op].members
    for name, value in given.items():
        if name not in allowed:
            having = ", ".join(row.name for row in OPS.values() if name in row.members)
            hint = f"{name} belongs to {having}."
            raise defect(at(path, name), f"no {name} for {op}", format_value(value), hint)
    for name in allowed:
        if name not in given and name not in OPS[op].optional:
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
            raise defect(at(path, k), members, format_value(pair), hint)
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


MOST_CALLS = 16
"""Calls that are verified together; each is another copy of the program."""


def calls_from(value: Sequence[object], path: str = "calls") -> tuple[Call, ...]:
    """Return the calls of a list of objects; each waits for earlier ones only."""
    if len(value) > MOST_CALLS:
        hint = "What is wrong with many calls is wrong with a few."
        raise defect(path, f"at most {MOST_CALLS} calls", str(len(value)), hint)
    return tuple(_call(item, number, at(path, number)) for number, item in enumerate(value))


def calls_document(calls: Sequence[Call]) -> list[dict[str, object]]:
    """Return the list of objects of calls."""
    return [{"stream": call.stream, "after": list(call.after)} for call in calls]


def _call(value: object, number: int, path: str) -> Call:
    members = an_object(path, value)
    only_keys(path, members, ("stream", "after"))
    streams = [members.get("stream", 0)]
    stream = whole(streams, lambda _: at(path, "stream"), "a stream of the caller", 0, MAX_NUMBER)
    listed = a_list(at(path, "after"), members.get("after", []))
    if listed and not number:
        hint = "Calls are numbered from 0; a call waits for those before it in the list."
        raise defect(at(path, "after"), "nothing at the first call", format_value(listed), hint)
    after = whole(
        listed, lambda k: at(path, "after", k), "the number of an earlier call", 0, number - 1
    )
    return Call(int(stream[0]), tuple(after.tolist()))
