"""The order of an executor's sums against the one that HCCL_DETERMINISTIC demands."""

from __future__ import annotations

from hccl_py.plugins.discovery import Registered
from hccl_py.selection.facts import Facts


def breaks_order(executor: Registered, facts: Facts) -> str:
    """Return the reason why an executor's sums break HCCL_DETERMINISTIC; empty if they keep it.

    Two operands commute, and so do integers, max and min.
    """
    order = executor.order
    strict = facts.deterministic == "strict" and facts.symmetric
    if strict and _adds_differently(facts):
        return "" if order == "rank" else "does not add in rank order"
    sums = facts.op.dtype.is_float and facts.reduce in ("sum", "prod")
    fixed = facts.deterministic != "false" and facts.ranks > 2
    if fixed and sums and facts.inline and order == "arrival":
        return "adds in the order in which data arrives"
    return ""


def _adds_differently(facts: Facts) -> bool:
    """Return True if sums depend on the order of ranks: three operands or more, of a float type."""
    return facts.ranks >= 3 and facts.reduce == "sum" and facts.dtype in ("fp16", "fp32", "bf16")
