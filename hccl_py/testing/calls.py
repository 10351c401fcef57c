"""Calls as the testing kit makes them: legal, suitable, recorded."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.errors import HcclError
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import Executor, ops_of, with_levels
from hccl_py.program.program import Program
from hccl_py.topology import Topology
from hccl_py.verifier.sweeps.cases import Case


def instance(executor: Executor | type[Executor]) -> Executor:
    """Return an executor, given as a class or as it is."""
    return executor() if isinstance(executor, type) else executor


def is_legal(op: OpParam, topology: Topology) -> bool:
    """True if HCCL takes the parameters."""
    try:
        make_operator(op.name).check(op, topology)
    except HcclError:
        return False
    return True


def suits(executor: Executor | type[Executor], op: OpParam, topology: Topology) -> bool:
    """True if the call is legal and suits the executor."""
    ready = instance(executor)
    return is_legal(op, topology) and bool(ready.suits(with_levels(ready, op), topology))


def fitting(
    what: str | Executor | type[Executor], topology: Topology, count: int = 1
) -> list[OpParam]:
    """Return the legal parameters of an op, or those that suit an executor; with the usual root and
    amounts.
    """
    names = (what,) if isinstance(what, str) else ops_of(instance(what))
    legal = [op for name in names for op in _legal(name, topology, count)]
    if isinstance(what, str):
        return legal
    ready = instance(what)
    return [op for op in legal if ready.suits(with_levels(ready, op), topology)]


@lru_cache(maxsize=256)
def _legal(name: str, topology: Topology, count: int) -> tuple[OpParam, ...]:
    operator = make_operator(name)
    reduces = list(ReduceOp) if operator.reduces else [None]
    fill = operator.variants()[0]
    candidates = (
        fill(OpParam(name, count, dtype, reduce, mode=mode, in_place=in_place), topology.size)
        for in_place, mode, reduce, dtype in product((False, True), Mode, reduces, DataType)
    )
    return tuple(op for op in candidates if is_legal(op, topology))


def recorded(executor: Executor | type[Executor], case: Case, *, by_rank: bool = False) -> Program:
    """Record an executor for a call."""
    operator = make_operator(case.op.name)
    return record(
        instance(executor), case.op, case.topology, operator, case.ccl_bytes, by_rank=by_rank
    )
