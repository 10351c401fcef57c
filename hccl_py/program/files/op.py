"""The op of a program, to and from its JSON object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hccl_py.documents.checks import at, defect, spell
from hccl_py.documents.models import checked
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.errors import NotSupportedError, did_you_mean
from hccl_py.op_param import OpParam
from hccl_py.program.files.amounts import Amounts, amounts_from
from hccl_py.program.files.checks import LIMIT, whole
from hccl_py.program.files.models import OpModel

__all__ = ["data_type", "op_from", "op_object", "reduce_op"]

OPS = (
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "all_to_all_vc",
    "barrier",
    "batch_send_recv",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_v",
    "scatter",
    "send_recv",
)
_REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v")
_ROOTED = ("broadcast", "gather", "reduce", "scatter")
_COUNTLESS = (
    "all_gather_v",
    "all_to_all_v",
    "all_to_all_vc",
    "barrier",
    "batch_send_recv",
    "reduce_scatter_v",
    "send_recv",
)

T = TypeVar("T")


def op_from(value: object, ranks: int, path: str = "op") -> OpParam:
    """Return the op of a JSON object."""
    model = checked(OpModel, value, path)
    if model.name not in OPS:
        raise defect(
            at(path, "name"), "an op", spell(model.name), did_you_mean(model.name[:40], OPS)
        )
    count, dtype = _count(model, path), _data_type(model, path)
    op = OpParam(
        name=model.name,
        count=count,
        dtype=dtype,
        reduce=None if model.reduce is None else reduce_op(at(path, "reduce"), model.reduce),
        root=_root(model, ranks, path),
        mode=Mode(model.mode),
        in_place=model.in_place,
        level1=model.level1[:40],
        level2=model.level2[:40],
        deterministic=model.deterministic,
        **amounts_from(model, ranks, count, dtype.itemsize, path)._asdict(),
    )
    if op.name in _REDUCING and op.reduce is None:
        hint = f"{op.name} reduces: state sum, prod, max or min."
        raise defect(at(path, "reduce"), "a reduce op", "null", hint)
    if op.size * ranks > LIMIT:
        hint = "All ranks together must stay below 2**62 bytes."
        raise defect(at(path, "count"), "a smaller count", str(op.count), hint)
    return op


def op_object(op: OpParam) -> dict[str, Any]:
    """Return the JSON object of an op."""
    known = {
        "name": op.name,
        "dtype": op.dtype.value,
        "count": op.count,
        "reduce": None if op.reduce is None else op.reduce.spelling,
        "root": op.root,
        "in_place": op.in_place,
        "mode": op.mode.value,
    }
    extras = {
        name: getattr(op, name) for name in (*Amounts._fields, "level1", "level2", "deterministic")
    }
    return known | {name: value for name, value in extras.items() if value}


def data_type(path: str, name: object) -> DataType:
    """Return the data type of a name."""
    return _parsed(path, name, DataType.parse, "a data type")


def reduce_op(path: str, name: object) -> ReduceOp:
    """Return the reduce op of a name."""
    return _parsed(path, name, ReduceOp.parse, "a reduce op")


def _parsed(path: str, name: object, parse: Callable[[str], T], what: str) -> T:
    if not isinstance(name, str):
        raise defect(path, what, spell(name), "Write its name in quotes.")
    try:
        return parse(name[:40])
    except NotSupportedError as error:
        raise defect(path, what, spell(name), error.hint) from None


def _data_type(model: OpModel, path: str) -> DataType:
    if model.dtype is None and model.name == "barrier":
        return DataType.UINT8
    if model.dtype is None:
        found = "null" if "dtype" in model.model_fields_set else "nothing"
        hint = f"Say what {model.name} moves, such as fp32; only a barrier moves nothing."
        raise defect(at(path, "dtype"), "a data type", found, hint)
    return data_type(at(path, "dtype"), model.dtype)


def _count(model: OpModel, path: str) -> int:
    if model.count is None and model.name in _COUNTLESS:
        return 0
    return int(whole([model.count], lambda _: at(path, "count"), "a count of elements")[0])


def _root(model: OpModel, ranks: int, path: str) -> int | None:
    if model.root is None and model.name not in _ROOTED:
        return None
    where = at(path, "root")
    return int(whole([model.root], lambda _: where, "the root's rank", 0, ranks - 1)[0])
