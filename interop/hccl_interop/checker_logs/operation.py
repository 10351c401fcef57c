"""The op that a test calls, as far as its log tells.

    op         the word in the test's name: AllReduceTest.allreduce_four_ranks
    dtype      what its tasks reduce; where none does, bytes
    reduce     what its tasks reduce with
    count      the least that holds all that tasks touch in INPUT and OUTPUT

Neither a root, nor the amounts of v-ops, nor the pairs of send_recv are printed. What is stated
beside the log goes before what the log says. Where something is left open, the program has no op,
and its results are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hccl_interop.checker_logs.lines import LoggedTask
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.formats.op import op_from
from hccl_py.formats.op_file import op_members
from hccl_py.importers import ImportOptions
from hccl_py.operators import make_operator

_WORD = re.compile(
    r"(?<![a-z])(?:"
    r"(?P<all_gather_v>all_?gather_?v)|(?P<all_gather>all_?gather)"
    r"|(?P<reduce_scatter_v>reduce_?scatter_?v)|(?P<reduce_scatter>reduce_?scatter)"
    r"|(?P<all_reduce>all_?reduce)"
    r"|(?P<all_to_all_vc>all_?to_?all_?vc)|(?P<all_to_all_v>all_?to_?all_?v)"
    r"|(?P<all_to_all>all_?to_?all)"
    r"|(?P<batch_send_recv>batch_?send_?recv)|(?P<send_recv>send_?recv)"
    r"|(?P<broadcast>broadcast)|(?P<scatter>scatter)|(?P<gather>gather)|(?P<reduce>reduce)"
    r"|(?P<barrier>barrier)"
    r")(?![a-z])"
)
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class TouchedBytes(NamedTuple):
    """Bytes of INPUT and OUTPUT that tasks touch, of the rank that touches most."""

    input: int
    output: int


@dataclass(frozen=True)
class FoundOp:
    """An op; `open` says what is not known about it, "" where all is known."""

    op: OpParam
    open: str = ""


def op_named(test: str) -> str | None:
    """Return the op in the name of a test, `Suite.case`: of words that extend each other, such as
    those of all_to_all and all_to_all_v, the longer one; else that of the case.
    """
    suite, _, case = test.partition(".")
    found = [name for name in map(_first_word, (case, suite)) if name is not None]
    if len(found) == 2 and found[1].startswith(found[0]):
        return found[1]
    return found[0] if found else None


def _first_word(name: str) -> str | None:
    match = _WORD.search(_HUMPS.sub("_", name[:400]).lower())
    return None if match is None else match.lastgroup


def found_op(
    test: str, ranks: int, tasks: Iterable[LoggedTask], touched: TouchedBytes, stated: ImportOptions
) -> FoundOp:
    """Return the op of a test; ParameterError for what is stated and does not suit the op."""
    first = next((task for task in tasks if task.dtype is not None), None)
    dtype, reduce = (None, None) if first is None else (first.dtype, first.reduce)
    name, members = _stated_op(test, ranks, stated)
    dtype = stated.dtype or dtype or DataType.UINT8
    if name is None:
        return FoundOp(_nothing(dtype), "no op is in the test's name")
    facts = OPS[name]
    _check_stated(facts.name, ranks, stated)
    if facts.reduces:
        members["reduce"] = (stated.reduce or reduce or ReduceOp.SUM).spelling
    if facts.rooted and stated.root is not None:
        members["root"] = stated.root
    members |= {"name": facts.name, "dtype": dtype.value}
    if facts.rooted and "root" not in members:
        return FoundOp(_nothing(dtype), f"it is {facts.name}, and the log does not print the root")
    missing = [n for n in facts.members if n not in facts.optional and n not in members]
    if missing or (facts.name == "send_recv" and "pairs" not in members):
        what = (missing or ["pairs"])[0]
        found = f"it is {facts.name}, and the log does not print the {what}"
        return FoundOp(_nothing(dtype), found)
    if facts.needs_count and "count" not in members:
        members["count"] = _count(facts.name, ranks, dtype.itemsize, touched, stated)
    return FoundOp(op_from(members, ranks, "op"))


def _nothing(dtype: DataType) -> OpParam:
    """Return the parameters that stand in place of an op that is not known."""
    return OpParam("send_recv", 0, dtype)


def _stated_op(test: str, ranks: int, stated: ImportOptions) -> tuple[str | None, dict[str, Any]]:
    if stated.op is None:
        return op_named(test), {}
    if stated.op.lower().endswith(".json"):
        members = op_members(stated.op, ranks)
        return str(members["name"]), members
    if stated.op not in OPS:
        hint = did_you_mean(stated.op, OPS)
        raise ParameterError(f"--op {stated.op!r} is no op, and no JSON file of one.", hint)
    return stated.op, {}


def _check_stated(op: str, ranks: int, stated: ImportOptions) -> None:
    if stated.reduce is not None and not OPS[op].reduces:
        raise ParameterError(f"{op} has no reduce op to choose.", "Leave it out.")
    if stated.root is not None and not OPS[op].rooted:
        raise ParameterError(f"{op} has no root.", "Leave -r/--root out.")
    if stated.root is not None and not 0 <= stated.root < ranks:
        raise ParameterError(
            f"Root {stated.root} is out of range.", f"The test has ranks 0 to {ranks - 1}."
        )


def _count(op: str, ranks: int, unit: int, touched: TouchedBytes, stated: ImportOptions) -> int:
    if stated.size is not None:
        return make_operator(op).count(stated.size, ranks, unit)
    slots = {"input": OPS[op].slots_in, "output": OPS[op].slots_out}
    sizes: Mapping[str, int] = touched._asdict()
    return max(-(-sizes[side] // (unit * (ranks if slots[side] else 1))) for side in slots)
