"""The cost table of an Ascend 950: HCCL's choice where HCCL_USE_NEW_SELECTOR is 1.

Of the executors whose engines are asked, rules and HCCL_ALGO strike some; the cheapest of the rest
is taken. For three ops; the others are chosen by rules all the same. Source: hicann/hccl @09300b7,
`op_common/selector/{selector_engine,cost_table,cost_model}.cc`, `alg_parse.cc`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hccl_py.call.algo_executors import (
    ALGORITHMS_950,
    KINDS_950,
    Algorithm,
    ExecutorChoice,
    is_executors,
    parse_executors,
)
from hccl_py.call.config import Config
from hccl_py.selection import launch_costs
from hccl_py.selection.facts_950 import BY_COST, Facts950
from hccl_py.selection.rules import Cost
from hccl_py.selection.tables import HCCL_170DDEE, hccl_170ddee
from hccl_py.selection.tables.hccl_2026_08 import costs
from hccl_py.selection.tables.hccl_2026_08.cost_rules import COST_RULES
from hccl_py.selection.tables.hccl_2026_08.costs import factor
from hccl_py.selection.tables.hccl_2026_08.text_tables import CostRule

PREFIXES = {"Aicpu": "AICPU_TS", "Aiv": "AIV", "CcuMS": "CCU_MS", "CcuSched": "CCU_SCHED"}
"""Engines of executors by the beginning of their names; others are of AICPU_TS."""

_LONGEST_FIRST = sorted(ALGORITHMS_950.values(), key=len, reverse=True)
_MESH, _CLOS = "mesh", "clos"


@dataclass(frozen=True)
class _TemplateUse:
    """A template's part in an executor: the ranks that it is for, its share of the data, the
    network, and whether it copies.
    """

    template: int
    ranks: int
    share: float
    net: str
    copies: bool = True


_Composed = tuple[list[_TemplateUse], tuple[int, ...], Callable[[Sequence[float]], float]]


def engine_of(executor: str) -> str:
    """Return the engine that a name says."""
    found = next((e for prefix, e in PREFIXES.items() if executor.startswith(prefix)), None)
    return found or "AICPU_TS"


def cost_table(op: str, engines: Sequence[str], facts: Facts950, config: Config) -> list[Cost]:
    """Return the executors that are left, in the order in which HCCL registers them."""
    known, rules = _known(op, facts, config)
    names = [name for name in known if engine_of(name) in engines]
    left = _by_rules(rules, left_of(op, names, engines, config), facts)
    return [Cost(name, engine_of(name), known[name]) for name in left]


def _known(
    op: str, facts: Facts950, config: Config
) -> tuple[dict[str, float], tuple[CostRule, ...]]:
    """Return the costs that the ruleset's HCCL knows, and the rules that strike executors."""
    if config.ruleset == HCCL_170DDEE:
        return launch_costs.seconds_by_launch(op, facts), hccl_170ddee.COST_RULES[op]
    known = {name: _seconds(op, name, *row, facts) for name, row in costs.EXECUTORS[op].items()}
    return {name: found for name, found in known.items() if found >= 0}, COST_RULES[op]


def cheapest(table: Sequence[Cost]) -> Cost | None:
    """Return the first of those that cost least."""
    return min(table, key=lambda cost: cost.seconds, default=None)


# ---- what is struck ----


def _by_rules(rules: Sequence[CostRule], names: Sequence[str], facts: Facts950) -> list[str]:
    holding = [rule for rule in rules if rule.holds(facts)]
    staying = [rule for rule in holding if rule.stay]
    if staying:
        return [name for name in names if any(rule.names(name) for rule in staying)]
    return [name for name in names if not any(rule.names(name) for rule in holding)]


def left_of(op: str, names: Sequence[str], engines: Sequence[str], config: Config) -> Sequence[str]:
    """Return the names that HCCL_ALGO leaves; all where it is unset or in the form of levels. A
    setting of executors strikes the names that do not begin with an engine besides.
    """
    if not is_executors(config.algo):
        return names
    names = [name for name in names if name.startswith(tuple(PREFIXES))]
    starts = [prefix for prefix, engine in PREFIXES.items() if engine in engines]
    for choice in reversed(parse_executors(config.algo)):
        if choice.op not in ("", BY_COST[op].lower()):
            continue
        prefixes = [f"{start}{BY_COST[op]}{KINDS_950[choice.kind]}" for start in starts]
        found = [name for name in names if _fits(name, prefixes, choice)]
        if found and choice.negated:
            return [name for name in names if name not in found]
        if found:
            return found
    return names


def _fits(name: str, prefixes: Sequence[str], choice: ExecutorChoice) -> bool:
    """Return True if an executor is of the kind, and has the algorithms if the choice names any."""
    rests = [name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)]
    if not rests or not choice.algorithms:
        return bool(rests)
    if not choice.negated and any(algorithm.negated for algorithm in choice.algorithms):
        return any(_matches(rest, choice.algorithms) for rest in rests)
    return "".join(ALGORITHMS_950[algorithm.name] for algorithm in choice.algorithms) in rests


def _matches(rest: str, algorithms: Sequence[Algorithm]) -> bool:
    """Return True if the algorithms of a name fit those wanted, level by level."""
    for algorithm in algorithms:
        found = next((word for word in _LONGEST_FIRST if rest.startswith(word)), "")
        if not found or (found == ALGORITHMS_950[algorithm.name]) == algorithm.negated:
            return False
        rest = rest.removeprefix(found)
    return not rest


# ---- what it costs ----


def _seconds(op: str, name: str, kind: str, used: Sequence[str], facts: Facts950) -> float:
    """Return the cost of an executor; -1 where HCCL does not know it."""
    templates = [costs.TEMPLATES[template] for template in used]
    parts, sizes, joined = _composed(op, name, kind, facts)
    nets = [part.net for part in parts]
    known = [p for p in parts if not (templates[p.template].few and p.ranks > 8)]
    if not known or (op == "reduce_scatter" and len(known) < len(parts)):
        return -1
    extra = _extra(op, kind, name)
    found = iter(
        _cost(templates[part.template], part, net, name, facts) + extra
        for part, net in zip(known, nets, strict=False)
    )
    groups = [list(islice(found, size)) for size in sizes]
    total = sum(joined(group) for group in groups if group)
    is_floored = op != "all_gather" and engine_of(name) == "AICPU_TS"
    return max(total, costs.FLOOR) if is_floored else total


def _extra(op: str, kind: str, name: str) -> float:
    """Return the seconds that each part of a parallel all_gather has besides."""
    if (op, kind) != ("all_gather", "parallel"):
        return 0
    return 35e-6 if "CcuSched" in name else 70e-6


def _composed(op: str, name: str, kind: str, facts: Facts950) -> _Composed:
    """Return the parts of an executor, the sizes of the groups that they form, and how the costs of
    a group become one.
    """
    n, l0 = facts.ranks, facts.local0
    l1 = n // l0
    l2 = n // (l0 * l1)
    if kind == "sole":
        share = 1 / n if op == "all_reduce" else 1.0
        clos = op == "all_gather" and ("NHR" in name or facts.net_levels > 1)
        return [_TemplateUse(0, n, share, _CLOS if clos else _MESH)], (1,), sum
    if kind == "pair":
        return [_TemplateUse(0, n, 1, _MESH), _TemplateUse(1, n, 1, _MESH)], (1, 1), sum
    if kind == "concurrent":
        if op == "all_reduce":
            return [_TemplateUse(0, n, 1, _MESH), _TemplateUse(1, n, 1, _CLOS)], (2,), sum
        split = costs.MESH_SPLIT["Aicpu" if name.startswith("Aicpu") else "Ccu"]
        return [_TemplateUse(0, n, split, _MESH), _TemplateUse(1, n, 1 - split, _CLOS)], (2,), max
    parts = list(_PARTS[op, kind](n, l0, l1, l2))
    if kind == "parallel":
        return parts, (2,) * (len(parts) // 2), max
    return parts, (1,) * len(parts), sum


def _all_reduce_parallel(n: int, l0: int, l1: int, l2: int) -> Iterator[_TemplateUse]:
    for first, outer, inner in ((0, 1 / l0, 1 / l1), (0, 1 / n, 1 / n), (2, 1 / n, 1 / n)):
        copies = outer != 1 / n
        yield _TemplateUse(first, l0, outer / 2, _MESH, copies)
        yield _TemplateUse(first + 1, l1, inner / 2, _CLOS, copies)
    yield _TemplateUse(2, l0, 1 / l0 / 2, _MESH, False)
    yield _TemplateUse(3, l1, 1 / l1 / 2, _CLOS, False)


def _all_reduce_sequence(n: int, l0: int, l1: int, l2: int) -> Iterator[_TemplateUse]:
    yield _TemplateUse(0, l0, 1 / l0, _MESH)
    yield _TemplateUse(1, l1, 1 / n, _CLOS)
    yield _TemplateUse(2, l1, 1 / n, _CLOS)
    yield _TemplateUse(3, l0, 1 / l0, _MESH)


def _all_reduce_sequence3(n: int, l0: int, l1: int, l2: int) -> Iterator[_TemplateUse]:
    for place, ranks in enumerate((l0, l1, l2) * 2):
        yield _TemplateUse(place, ranks, 1 / n, _CLOS if place % 2 else _MESH)


_PARTS: dict[
    tuple[str, str], Callable[[int, int, int, int], Iterator[_TemplateUse] | list[_TemplateUse]]
] = {
    ("all_reduce", "parallel"): _all_reduce_parallel,
    ("all_reduce", "sequence"): _all_reduce_sequence,
    ("all_reduce", "sequence3"): _all_reduce_sequence3,
    ("all_gather", "parallel"): lambda n, l0, l1, l2: [
        *(_TemplateUse(0, l0, 0.5, _MESH), _TemplateUse(1, l1, 0.5, _CLOS)),
        *(_TemplateUse(0, l0, 0.5 * l1, _MESH), _TemplateUse(1, l1, 0.5 * l0, _CLOS)),
    ],
    ("all_gather", "sequence"): lambda n, l0, l1, l2: [
        *(_TemplateUse(0, l0, l1, _MESH), _TemplateUse(1, l1, 1, _CLOS)),
    ],
    ("all_gather", "sequence3"): lambda n, l0, l1, l2: [
        *(
            _TemplateUse(0, l0, l2 * l1, _MESH),
            _TemplateUse(1, l1, l2, _CLOS),
            _TemplateUse(2, l2, 1, _CLOS),
        ),
    ],
    ("reduce_scatter", "parallel"): lambda n, l0, l1, l2: [
        *(_TemplateUse(0, l0, 0.5 * l1, _MESH), _TemplateUse(1, l1, 0.5 * l0, _CLOS)),
        *(_TemplateUse(1, l1, 0.5, _CLOS, False), _TemplateUse(0, l0, 0.5, _MESH, False)),
    ],
    ("reduce_scatter", "sequence"): lambda n, l0, l1, l2: [
        *(_TemplateUse(0, l0, l1, _MESH), _TemplateUse(1, l1, 1, _CLOS)),
    ],
    ("reduce_scatter", "sequence3"): lambda n, l0, l1, l2: [
        _TemplateUse(0, l0, l1 * l2 / n, _MESH),
        *(_TemplateUse(1, l1, l2 / n, _CLOS), _TemplateUse(2, l2, 1 / n, _CLOS)),
    ],
}


def _cost(
    template: costs.TemplateCost, part: _TemplateUse, net: str, name: str, facts: Facts950
) -> float:
    """Return the seconds of a template; `net` is the network whose use counts."""
    use = _use(net, facts, name)
    if template.fixed is not None:
        return template.fixed[0] / use * facts.bytes + template.fixed[1]
    ranks, share = part.ranks, part.share
    ring = template.net == "wide" and ranks > 8
    cores = "ring" if ring else template.cores
    copied = factor(template.copies, ranks) * share if part.copies or template.always else 0.0
    local = copied / costs.COPY[cores if cores != "ring" else "ccu"]
    local += factor(template.reduces, ranks) * share / costs.REDUCE[cores]
    sent = template.scale * _sent(template, part, name)
    tasks = factor(template.tasks, ranks) * costs.TASK[template.clock]
    return (sent / use + local) * facts.bytes + tasks


def _sent(template: costs.TemplateCost, part: _TemplateUse, name: str) -> float:
    """Return the seconds of transfers for each byte."""
    ranks, amount = part.ranks, factor(template.sends, part.ranks) * part.share
    if template.detour:
        clos = amount / 2 * (ranks - 1) / (template.detour * costs.LINK)
        return max(amount / 2 / costs.LINK, clos)
    net = template.net or part.net
    if net == "wide":
        net = _MESH if ranks <= 8 else _CLOS
    lone = template.lone_ports and name in costs.LONE
    ports = template.lone_ports if lone else template.ports if net == _CLOS else 1
    if net == _MESH and not template.nhr:
        return amount / costs.LINK
    return amount * (ranks - 1) / (ports * costs.LINK)


def _use(net: str, facts: Facts950, name: str) -> float:
    """Return the use that transfers make of the links of a network."""
    size = facts.bytes
    if net == _CLOS and facts.op.name == "all_gather":
        size = max(size, 1 << 20)
    sizes, uses = (
        (costs.CLOS_SIZES, costs.CLOS_USE) if net == _CLOS else (costs.MESH_SIZES, costs.MESH_USE)
    )
    found = uses[min(bisect_left(sizes, size), len(uses) - 1)]
    return found * costs.AIV_SHARE if engine_of(name) == "AIV" else found
