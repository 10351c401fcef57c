"""Tables of the Ascend 950 as text: a line for each row, nested as HCCL's selectors are.

    if net_levels > 1:
        434 AicpuAllReduceSoleNHRAicpuReduce if special
        466 leave no branch is for this shape of layer 0

A row has lines of the op's selector, an executor, or the reason why the engine leaves the call to
the next one, and conditions, with commas between them. Those of a branch are in front of its rows'.
A condition is a fact that is true (`special`), is not (`not uboe`), or compares with a number or a
word: `bytes >= 8M`, `total_bytes < 8M x ranks`, `dtype in uint64|fp64`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hccl_py.selection.facts import Facts
from hccl_py.selection.rules import Condition, DecisionTable, Multiple, OperatorFile, Rule

_SELECTORS = {
    "all_to_all": "all_to_all_v/selector/alltoall",
    "all_to_all_v": "all_to_all_v/selector/alltoallv",
    "all_to_all_vc": "all_to_all_v/selector/alltoallvc",
    "send_recv": "send/selector/send",
}
"""Folders and beginnings of names of the ops' selectors, where they do not follow from the op."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}
_ROW = re.compile(r"([\d, -]+\d) (leave )?(.+?)(?: if (.+))?")
_COMPARED = re.compile(r"(\w+) (==|!=|<=|>=|<|>|in) (.+)")
_NUMBER = re.compile(r"(\d+)([KMG]?)(?: x (\w+))?")


def read_table(engine: str, texts: Mapping[str, str]) -> DecisionTable:
    """Return the rows of an engine from the texts of its ops."""
    return {op: tuple(_rows(_file(engine, op), text)) for op, text in texts.items()}


def _file(engine: str, op: str) -> OperatorFile:
    place = _SELECTORS.get(op, f"{op}/selector/{op}")
    return OperatorFile(f"hicann/hccl@09300b7:src/ops/{place}_auto_selector.cc", engine)


def _rows(file: OperatorFile, text: str) -> Iterator[Rule]:
    branches: list[tuple[int, tuple[Condition, ...]]] = []
    for line in filter(str.strip, text.splitlines()):
        depth, words = len(line) - len(line.lstrip()), line.strip()
        while branches and branches[-1][0] >= depth:
            branches.pop()
        if words.startswith("if "):
            branches.append((depth, _conditions(words[3:].removesuffix(":"))))
            continue
        found = _ROW.fullmatch(words)
        assert found is not None, words
        when = sum((branch for _, branch in branches), ()) + _conditions(found[4] or "")
        executor, reason = (None, found[3]) if found[2] else (found[3], "")
        source = f"{file.path}:{found[1]}"
        yield Rule(executor, when, source, engine=file.engine, leaves=reason)


def _conditions(text: str) -> tuple[Condition, ...]:
    return tuple(_condition(part) for part in text.split(", ") if part)


def _condition(text: str) -> Condition:
    compared = _COMPARED.fullmatch(text)
    if compared is None:
        return Condition(text.removeprefix("not "), "==", not text.startswith("not "))
    fact, relation, value = compared.groups()
    number = _NUMBER.fullmatch(value)
    if number is None:
        return Condition(fact, relation, tuple(value.split("|")) if relation == "in" else value)
    size = int(number[1]) * _UNITS[number[2]]
    return Condition(fact, relation, Multiple(size, number[3]) if number[3] else size)


@dataclass(frozen=True)
class CostRule:
    """Executors, as patterns, that are struck from the cost table where the conditions hold, or all
    `others`; or, where they `stay`, the only ones left, though other rules strike them.
    """

    patterns: tuple[str, ...]
    when: tuple[Condition, ...]
    stay: bool
    others: bool = False

    def holds(self, facts: Facts) -> bool:
        """Return True if all conditions hold."""
        return all(condition.holds(facts) for condition in self.when)

    def names(self, executor: str) -> bool:
        """Return True if an executor fits one of the patterns; of a rule on others, none."""
        fits = any(fnmatchcase(executor, pattern) for pattern in self.patterns)
        return fits != self.others


def read_cost_rules(texts: Mapping[str, str]) -> dict[str, tuple[CostRule, ...]]:
    """Return rules by op: `strike PATTERNS if CONDITIONS`, or `strike not`, or `stay`."""
    return {op: tuple(map(_cost_rule, text.split("\n")[1:-1])) for op, text in texts.items()}


def _cost_rule(text: str) -> CostRule:
    verb, _, rest = text.partition(" ")
    patterns, _, when = rest.removeprefix("not ").partition(" if ")
    others = rest.startswith("not ")
    return CostRule(tuple(patterns.split()), _conditions(when), verb == "stay", others)


def read_executors(texts: Mapping[str, str]) -> dict[str, dict[str, tuple[str, tuple[str, ...]]]]:
    """Return the composition and the templates of executors by op, from `NAME KIND: A+B`."""
    return {op: dict(map(_executor, text.split("\n")[1:-1])) for op, text in texts.items()}


def _executor(text: str) -> tuple[str, tuple[str, tuple[str, ...]]]:
    head, _, templates = text.partition(": ")
    name, kind = head.split()
    return name, (kind, tuple(templates.split("+")))
