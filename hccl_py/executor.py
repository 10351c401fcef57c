"""The contract of an executor: three methods, in the order of the hello-world article.

    suits(op, topology)        算法选择   could it run correctly here?
    resources(op, rank)        资源计算   what does a rank need?
    orchestrate(op, rank)      算法编排   record the tasks of one round

`suits` is about correctness only; whether an executor is chosen is up to the selection tables, the
user, or cost.
"""

from __future__ import annotations

from typing import Any, Protocol

from hccl_py.enums import Mode
from hccl_py.op_param import OpParam
from hccl_py.orchestration.rank import Rank, RankView
from hccl_py.resources import PlaneRequest, ResourceRequest
from hccl_py.topology.topology import Topology

__all__ = [
    "Executor",
    "Mode",
    "OpParam",
    "PlaneRequest",
    "Rank",
    "RankView",
    "ResourceRequest",
    "Topology",
    "Unsuitable",
    "executor_name",
    "require",
]


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

    op: str
    """The op that it executes, such as `all_gather`."""
    algorithm: str
    """What it does on each level, in HCCL_ALGO's words, such as `level0:mesh`."""

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Say whether it would compute the right result for this call on this topology."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Return what each rank needs; computed once per tag."""

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Record one round's tasks; a pure function of its arguments."""


def executor_name(executor: Executor) -> str:
    """Return the name by which an executor is selected: its class name."""
    return type(executor).__name__
