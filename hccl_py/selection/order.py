"""Whether an executor adds in the order that HCCL_DETERMINISTIC asks for."""

from __future__ import annotations

from hccl_py.plugins.executor import Executor, order_of
from hccl_py.selection.facts import Facts


def breaks_order(executor: Executor, facts: Facts) -> str:
    """Return why an executor's sums would not be what HCCL_DETERMINISTIC asks; empty if they are.

    Two operands commute, and so do integers, max and min.
    """
    order = order_of(executor)
    strict = facts.deterministic == "strict" and facts.symmetric
    if strict and _adds_differently(facts):
        return "" if order == "rank" else "does not add in rank order"
    sums = facts.op.dtype.is_float and facts.reduce in ("sum", "prod")
    fixed = facts.deterministic != "false" and facts.ranks > 2
    if fixed and sums and facts.inline and order == "arrival":
        return "adds in the order in which data arrives"
    return ""


def _adds_differently(facts: Facts) -> bool:
    """Whether sums depend on the order of ranks: two commute, and so do integers, max and min."""
    return facts.ranks >= 3 and facts.reduce == "sum" and facts.dtype in ("fp16", "fp32", "bf16")
