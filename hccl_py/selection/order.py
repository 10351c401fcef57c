"""In which order executors add, for HCCL_DETERMINISTIC.

`arrival`: as data comes in, so that the sums of floats differ from run to run; `fixed`: the same in
every run; `rank`: a left fold in rank order. An executor says so in an attribute `order`; without
one, HCCL's names tell.
"""

from __future__ import annotations

from hccl_py.executor import Executor, executor_name
from hccl_py.selection.facts import Facts
from hccl_py.selection.rules import Condition
from hccl_py.selection.tables.cells import IN_RANK_ORDER

__all__ = ["breaks_order", "order_of"]

_ARRIVAL = (
    "AllReduceMeshOpbaseLoopExecutor",
    "AllReduceMeshOpbasePipelineExecutor",
    "ReduceScatterMeshDmaEliminationExecutor",
    "ReduceScatterMeshOpbasePipelineExecutor",
)

_RANK_ORDER = tuple(Condition(*cell) for cell in IN_RANK_ORDER)


def order_of(executor: Executor) -> str:
    """Return `arrival`, `fixed` or `rank`."""
    name = executor_name(executor)
    by_name = "rank" if "OrderPreserved" in name else "arrival" if name in _ARRIVAL else "fixed"
    return str(getattr(executor, "order", by_name))


def breaks_order(executor: Executor, facts: Facts) -> str:
    """Return why an executor's sums would not be what HCCL_DETERMINISTIC asks; empty if they are.

    Two operands commute, and so do integers, max and min.
    """
    order = order_of(executor)
    if all(condition.holds(facts) for condition in _RANK_ORDER) and facts.symmetric:
        return "" if order == "rank" else "does not add in rank order"
    sums = facts.op.dtype.is_float and facts.reduce in ("sum", "prod")
    if facts.deterministic and sums and facts.inline and facts.ranks > 2 and order == "arrival":
        return "adds in the order in which data arrives"
    return ""
