"""Whether an executor adds in the order that HCCL_DETERMINISTIC asks for."""

from __future__ import annotations

from hccl_py.executor import Executor, order_of
from hccl_py.selection.facts import Facts
from hccl_py.selection.rules import Condition
from hccl_py.selection.tables.cells import IN_RANK_ORDER

__all__ = ["breaks_order"]

_RANK_ORDER = tuple(Condition(*cell) for cell in IN_RANK_ORDER)


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
