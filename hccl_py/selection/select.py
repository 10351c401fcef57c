"""Choosing the executor of a call, with the reasons for it and against every other one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hccl_py.config import Config
from hccl_py.discovery import Registered, Registry
from hccl_py.enums import Mode
from hccl_py.errors import NotSupportedError
from hccl_py.executor import Unsuitable
from hccl_py.op_param import OpParam
from hccl_py.orchestration.author_errors import told_of
from hccl_py.selection.facts import Facts, gather_facts
from hccl_py.selection.rules import RULES, RULESET, Rule
from hccl_py.topology.topology import Topology

__all__ = ["Rejected", "Selection", "select"]

GROUP_NAME = "hccl_world_group"

_LEVEL1_NAMES = {"H-D_R": "H-D"}


@dataclass(frozen=True)
class Rejected:
    """An executor that was not chosen, and why."""

    executor: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """What runs, what HCCL would run, and why.

    `algorithm` is by level; `tag` is the key under which resources are reused. `hccl_executor`
    differs from `executor` only where HCCL's is not offered here or the user named another one.
    """

    op: str
    executor: str
    hccl_executor: str
    algorithm: Mapping[str, str]
    tag: str
    reasons: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    ruleset: str = RULESET


def select(
    op: OpParam, topology: Topology, config: Config, registry: Registry, executor: str | None = None
) -> tuple[Selection, Registered]:
    """Choose by the tables, or take `executor`; raise where nothing suits.

    Raises ParameterError for an unknown executor and NotSupportedError for one that does not suit,
    with its reason.
    """
    facts = gather_facts(op, topology, config)
    table = RULES[topology.product.device, op.name]
    row = next(rule for rule in table if not rule.missing(facts))
    if executor is not None:
        chosen = registry.find(executor, op.name)
        against = _unsuitable(chosen, op, topology)
        if against:
            suiting = [r.name for r in registry.for_op(op.name) if not _unsuitable(r, op, topology)]
            raise NotSupportedError(
                f"{executor} does not suit this call: {against}.",
                f"These do: {', '.join(suiting) or 'none'}.",
            )
        reasons = ["named by the caller"]
    else:
        chosen, reasons = _by_table(table, row, facts, op, topology, registry)
    selection = Selection(
        op=op.name,
        executor=chosen.name,
        hccl_executor=row.executor,
        algorithm=_levels(chosen.executor.algorithm),
        tag=_tag(op, facts, chosen.name),
        reasons=tuple(reasons),
        rejected=tuple(_rejected(chosen.name, row, table, facts, op, topology, registry)),
    )
    return selection, chosen


def _by_table(
    table: tuple[Rule, ...],
    row: Rule,
    facts: Facts,
    op: OpParam,
    topology: Topology,
    registry: Registry,
) -> tuple[Registered, list[str]]:
    """Take the row's executor, or the next one of the table that is offered and suits, or any that
    suits.
    """
    reasons = [condition.spell(facts) for condition in row.when] or [
        "no other row of the table matches"
    ]
    later = [rule.executor for rule in table[table.index(row) :]]
    candidates = [registry.executors[name] for name in later if name in registry.executors]
    candidates += [r for r in registry.for_op(op.name) if r not in candidates]
    fitting = next((r for r in candidates if not _unsuitable(r, op, topology)), None)
    if fitting is None:
        raise NotSupportedError(
            f"No executor suits {op.name} on {topology.description}.", "See `hccl-py list`."
        )
    if fitting.name != row.executor:
        offered = row.executor in registry.executors
        why = (
            f"does not suit: {_unsuitable(registry.executors[row.executor], op, topology)}"
            if offered
            else "is not offered"
        )
        reasons.append(
            f"HCCL would take {row.executor}, which {why} here; "
            f"{fitting.name} is the next that suits"
        )
    return fitting, reasons


def _rejected(
    chosen: str,
    row: Rule,
    table: tuple[Rule, ...],
    facts: Facts,
    op: OpParam,
    topology: Topology,
    registry: Registry,
) -> list[Rejected]:
    found = []
    for other in registry.for_op(op.name):
        if other.name == chosen:
            continue
        against = _unsuitable(other, op, topology)
        rows = [rule for rule in table if rule.executor == other.name]
        if against:
            reason = against
        elif not rows:
            reason = f"suits, but no row of {RULESET} names it"
        elif all(rule.missing(facts) for rule in rows):
            reason = rows[-1].missing(facts)
        elif other.name == row.executor:
            reason = "the tables' choice, but the caller named another one"
        else:
            reason = f"suits, but {row.executor} comes first in {RULESET}"
        found.append(Rejected(other.name, reason))
    return found


def _unsuitable(registered: Registered, op: OpParam, topology: Topology) -> str:
    """Return why an executor cannot run this call; empty where it can."""
    try:
        verdict: object = registered.executor.suits(op, topology)
    except (Exception, SystemExit) as error:
        told = told_of(error)
        return f"its suits() raised {told.text} ({told.line})"
    if isinstance(verdict, Unsuitable):
        return verdict.reason
    if not isinstance(verdict, (bool, np.bool_)):
        return f"its suits() returned a {type(verdict).__name__} instead of True or False"
    return "" if verdict else "its suits() says no"


def _levels(algorithm: str) -> dict[str, str]:
    return dict(part.split(":", 1) for part in algorithm.split(";") if ":" in part)


def _tag(op: OpParam, facts: Facts, executor: str) -> str:
    """Return HCCL's newTag: ranks that run the same tag again reuse its resources."""
    if facts.ranks == 1:
        return ""
    base = "".join(word.capitalize() for word in op.name.split("_")) + f"_{GROUP_NAME}"
    if op.mode is Mode.GRAPH:
        return f"{base}_host"
    return f"{base}{_LEVEL1_NAMES.get(facts.level1, facts.level1)}{executor}_host"
