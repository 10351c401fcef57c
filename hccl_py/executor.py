"""The contract of an executor: three methods, in the order of the hello-world article.

    suits(op, topology)        算法选择   could it run correctly here?
    resources(op, rank)        资源计算   what does a rank need?
    orchestrate(op, rank)      算法编排   record the tasks of one round

`suits` is about correctness only; whether an executor is chosen is up to the selection tables, the
user, or cost.

An executor that reduces may say in an attribute `order` in which order it adds, which
HCCL_DETERMINISTIC asks for (`ORDERS`); one that says nothing adds in the same order in every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

from hccl_py.enums import Mode
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.op_param import OpParam
from hccl_py.orchestration.rank import Rank, RankView
from hccl_py.resources import PlaneRequest, ResourceRequest
from hccl_py.topology.topology import Topology

__all__ = [
    "ORDERS",
    "Executor",
    "Mode",
    "OpParam",
    "PlaneRequest",
    "Rank",
    "RankView",
    "ResourceRequest",
    "Topology",
    "Unsuitable",
    "check_levels",
    "choices_of",
    "executor_name",
    "ops_of",
    "order_of",
    "require",
    "with_levels",
]


ORDERS = ("arrival", "fixed", "rank")
"""In which order an executor adds: as data arrives, so that sums of floats differ from run to run;
the same in every run; from rank 0 to the last rank, one after the other.
"""


class Unsuitable:
    """A `suits` that says no, with the reason; false in a condition."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Unsuitable({self.reason!r})"


def require(*demands: tuple[bool, str]) -> bool | Unsuitable:
    """Return True if all demands hold, otherwise the first reason against; for use in `suits`."""
    for demand in demands:
        if not (isinstance(demand, tuple) and len(demand) == 2):
            raise TypeError(f"require() takes pairs (condition, reason), not {demand!r}")
        holds, reason = demand
        if not holds:
            return Unsuitable(reason)
    return True


class Executor(Protocol):
    """What a plugin provides for every algorithm. Instances are made without arguments and keep no
    state.
    """

    @property
    def op(self) -> str | tuple[str, ...]:
        """The op that it executes, such as `all_gather`, or several: an attribute of the class."""

    @property
    def algorithm(self) -> str:
        """What it does on each level, in HCCL_ALGO's words, such as `level0:mesh`. Where it leaves
        a choice, `level0:mesh;level1:ring|NHR`, the call says which in `op.level1` and `op.level2`;
        by default the first.
        """

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Say whether it would compute the right result for this call on this topology."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Return what each rank needs; computed once per tag."""

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Record one round's tasks; a pure function of its arguments."""


def ops_of(executor: Executor) -> tuple[str, ...]:
    """Return the ops that an executor executes."""
    return executor.op if isinstance(executor.op, tuple) else (executor.op,)


def order_of(executor: Executor) -> str:
    """Return in which order an executor adds, one of ORDERS: by default `fixed`."""
    return getattr(executor, "order", "fixed")


def choices_of(executor: Executor) -> dict[str, tuple[str, ...]]:
    """Return what an executor can do on each level, its default first."""
    return dict(_levels(executor.algorithm))


@lru_cache(maxsize=256)
def _levels(algorithm: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    parts = (part.split(":", 1) for part in algorithm.split(";") if ":" in part)
    return tuple((level.strip(), tuple(words.strip().split("|"))) for level, words in parts)


def check_levels(executor: Executor, levels: Mapping[str, str]) -> None:
    """Raise ParameterError for algorithms that an executor does not do on `level1` or `level2`."""
    choices = choices_of(executor)
    for level, word in levels.items():
        words = choices.get(level, ()) if level in ("level1", "level2") else ()
        if word not in words:
            raise ParameterError(
                f"{executor_name(executor)} does not do {word} on {level}.",
                f"It does {', '.join(words)}." if words else did_you_mean(level, choices),
            )


def with_levels(executor: Executor, op: OpParam) -> OpParam:
    """Return the call with the executor's defaults for the levels that it leaves open."""
    choices = choices_of(executor)
    level1, level2 = (
        getattr(op, level) or choices.get(level, ("",))[0] for level in ("level1", "level2")
    )
    if (level1, level2) == (op.level1, op.level2):
        return op
    return replace(op, level1=level1, level2=level2)


def executor_name(executor: Executor) -> str:
    """Return the name by which an executor is selected: its class name."""
    return type(executor).__name__
