"""Engines of an Ascend 950, in the order in which HCCL asks them for an algorithm.

HCCL_OP_EXPANSION_MODE, or the communicator's own mode, names the first; an engine that leaves a
call hands it to the next. Source: hicann/hccl @09300b7, `auto_selector_base.cc:18-80`,
`op_common.cc:79-141`.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.errors import HcclResult
from hccl_py.selection.cost_table import cheapest, cost_table
from hccl_py.selection.facts_950 import Facts950, is_by_cost
from hccl_py.selection.launch_costs import is_known
from hccl_py.selection.rules import Decision, Rule, refuse, unknown
from hccl_py.selection.tables import HCCL_170DDEE
from hccl_py.selection.tables.hccl_170ddee import SOURCE

CHAINS = {
    "CCU_MS": ("CCU_MS", "CCU_SCHED", "AICPU_TS"),
    "CCU_SCHED": ("CCU_SCHED", "AICPU_TS"),
    "AIV": ("AIV", "AICPU_TS"),
    "AIV_ONLY": ("AIV",),
    "AICPU_TS": ("AICPU_TS",),
}
"""By mode: the engines that are asked, one after the other."""

SINGLE = "SingleRankProc"
"""HCCL's name for the copy that is all of a call of one rank; op_common.cc:3042-3091."""

_COMMON = "hicann/hccl@09300b7:src/ops/op_common/op_common.cc:"
_ENGINE = "hicann/hccl@09300b7:src/ops/op_common/selector/selector_engine.cc:"
_TOPOLOGY = "hicann/hccl@09300b7:src/ops/op_common/topo/topo_host.cc:"


def chain_of(mode: str | None) -> tuple[str, ...]:
    """Return the engines that a mode asks."""
    return CHAINS.get(mode or "AICPU_TS", CHAINS["AICPU_TS"])


def decide(op: OpParam, rows: tuple[Rule, ...], facts: Facts950, config: Config) -> Decision:
    """Return the decision on a call; `rows` are those of its op for all engines."""
    chain = chain_of(config.op_expansion_mode)
    if config.ruleset == HCCL_170DDEE:
        heeded = config.new_selector and not config.algo
        known = heeded and is_known(op.name, chain, facts)
        return _by_cost(op, rows, facts, config) if known else Decision(rows, rows[0])
    before = _before_engines(op, rows, facts, chain)
    if before is not None:
        return Decision((before,), before)
    if is_by_cost(op.name, config):
        return _by_cost(op, rows, facts, config)
    if facts.rolls_back and "AICPU_TS" in chain:
        chain = (*chain[:-1], "AIV")
        facts = replace(facts, aiv_only=True)
    asked = tuple(row for engine in chain for row in rows if row.engine == engine)
    left: list[str] = []
    for engine in chain:
        own = (row for row in asked if row.engine == engine and row.holds(facts))
        row = next(own, None)
        if row is not None and row.executor is not None:
            return Decision(asked, row, tuple(left))
        left.append(f"{engine} leaves it: {row.leaves if row else f'{op.name} is not for it'}")
    last = refuse("; ".join(left))
    return Decision((*asked, last), last)


def _by_cost(op: OpParam, rows: tuple[Rule, ...], facts: Facts950, config: Config) -> Decision:
    """Return the decision of the cost table; the rows of its engines follow, for what may run in
    the place of its choice.
    """
    engines = chain_of(config.op_expansion_mode)
    table = cost_table(op.name, engines, facts, config)
    best = cheapest(table)
    if best is None:
        row = replace(
            refuse("the cost table has no executor for the call"), source=f"{_ENGINE}286-293"
        )
    else:
        source = SOURCE if config.ruleset == HCCL_170DDEE else f"{_ENGINE}245-312"
        row = Rule(best.executor, (), source, engine=best.engine)
    asked = (other for engine in engines for other in rows if other.engine == engine)
    return Decision((row, *asked), row, costs=tuple(table))


def _before_engines(
    op: OpParam, rows: tuple[Rule, ...], facts: Facts950, chain: tuple[str, ...]
) -> Rule | None:
    """Return a row that no engine is asked for, if there is one."""
    if not any(row.engine for row in rows):
        return rows[0]
    if facts.ranks == 1:
        if chain == CHAINS["AIV_ONLY"]:
            reason = "AIV_ONLY is for more than one rank"
            return replace(refuse(reason), source=f"{_COMMON}3046-3051")
        return Rule(SINGLE, (), f"{_COMMON}3042-3091")
    if not facts.shape0:
        reason = "a device shares no mesh with all others of its server, and no Clos network"
        return Rule(None, (), f"{_TOPOLOGY}592-600", refusal=reason, result=HcclResult.E_INTERNAL)
    if op.name == "barrier" and chain != CHAINS["AICPU_TS"]:
        return unknown("only AICPU_TS has a barrier in hccl; an older one of hcomm runs")
    return None
