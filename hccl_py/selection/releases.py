"""Differences between two releases: for one call, and in all tables.

`python -m hccl_py.selection.releases` writes the page of all changes, docs/rulesets.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL, OPS
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.selection.hccl import HcclChoice
from hccl_py.selection.levels import LevelRules
from hccl_py.selection.rules import Condition, Multiple, Rule
from hccl_py.selection.rulesets import RULESETS, Ruleset
from hccl_py.topology.topology import Topology


@dataclass(frozen=True)
class ReleaseChange:
    """HCCL's choice for one call under two rulesets."""

    here: HcclChoice
    there: HcclChoice

    @staticmethod
    def between(op: OpParam, topology: Topology, config: Config, ruleset: str) -> ReleaseChange:
        """Return the choices of the settings' ruleset and of another; ParameterError where there is
        none of this name.
        """
        if ruleset not in RULESETS:
            raise ParameterError(
                f"Ruleset {ruleset!r} is unknown.", did_you_mean(ruleset, RULESETS)
            )
        other = replace(config, ruleset=ruleset)  # type: ignore[arg-type]
        return ReleaseChange(HcclChoice(op, topology, config), HcclChoice(op, topology, other))

    @property
    def same(self) -> bool:
        """True if both take the same executor and the same algorithms on all levels."""
        return _choice_of(self.here) == _choice_of(self.there)

    def document(self) -> dict[str, Any]:
        """Return the JSON document of the other ruleset's choice."""
        choice = self.there
        return {
            "ruleset": choice.ruleset.name,
            "same": self.same,
            "hccl_executor": choice.executor,
            "hccl_algorithm": choice.levels,
            "refusal": choice.refusal[0] or None,
            "reasons": _reasons(choice),
            "source": choice.source or None,
        }

    def sentences(self) -> list[str]:
        """Return the other ruleset's choice as sentences."""
        choice = self.there
        if choice.unknown:
            return [f"not known: {choice.unknown}"]
        if self.same:
            return [f"{choice.ruleset.name} takes the same", choice.source]
        refusal, result = choice.refusal
        if refusal:
            return [f"{choice.ruleset.name} refuses with HCCL_{result.name}: {refusal}"]
        levels = [f"{level} {word}" for level, word in choice.levels.items()]
        taken = ", ".join([f"{choice.ruleset.name} takes {choice.executor}", *levels])
        return [taken, *_reasons(choice), choice.source]


def _choice_of(choice: HcclChoice) -> tuple[str | None, dict[str, str], str]:
    return choice.executor, choice.levels, choice.refusal[0]


def _reasons(choice: HcclChoice) -> list[str]:
    return [condition.format_condition(choice.facts) for condition in choice.row.when]


# ---- the page ----

_HEADER = """# Rulesets

What HCCL's selection was in each release that hccl-py knows, and every row of its decision tables
that is not in the other one. [Selection](selection.md) says how tables are read. This page is
generated from them:

```text
python -m hccl_py.selection.releases
```
"""

_LEVEL_RULES = {
    "ahc_ops": "ops that take AHC",
    "automatic": "ops of 910B whose level1 is chosen by the call",
    "pipelined": "devices that take `level1:pipeline`",
    "ahc_tolerance": "part by which groups of AHC may differ and be alike",
    "rings_uneven": "ops that keep A3's servers where they differ (ARS)",
    "level2": "default between superpods, by their number where there is none",
    "cuts_pods": "unequal superpods are cut to equal ones, unless AHC is set",
    "fixed_pipelines": "deterministic sums have pipelines",
    "joins_exchange": "HCCL_ALGO counts for all-to-all between unequal superpods",
    "keeps_ring": "broadcast leaves one ring through all ranks as it is",
}
"""Row titles of the page for the members of `LevelRules`."""

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))


def page() -> str:
    """Return docs/rulesets.md."""
    lines = [_HEADER]
    lines += ["| Ruleset | Repository | Commit | Folder of its rows |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{r.name}` ({r.date}) | {r.repository} | `{r.commit}` | `{r.folder}` |"
        for r in RULESETS.values()
    ]
    for old, new in pairwise(found for found in RULESETS.values() if found.has_rules):
        lines += ["", f"## From {old.name} to {new.name}", "", *_level_changes(old, new)]
        for device in (device for device in new.tables if device in old.tables):
            lines += _device_changes(device, old, new)
        added = ", ".join(device for device in new.tables if device not in old.tables)
        if added:
            lines += ["", f"{old.name} has no table of {added}."]
    return "\n".join(lines) + "\n"


def _level_changes(old: Ruleset, new: Ruleset) -> Iterator[str]:
    yield "### Levels"
    yield ""
    yield f"| | {old.name} | {new.name} |"
    yield "| --- | --- | --- |"
    for member in fields(LevelRules):
        values = [getattr(found.levels, member.name) for found in (old, new)]
        if values[0] != values[1]:
            yield f"| {_LEVEL_RULES[member.name]} | {_words(values[0])} | {_words(values[1])} |"
    yield f"| words of HCCL_DETERMINISTIC for sums | {_words(old.orders)} | {_words(new.orders)} |"
    made = [_words(found.unfolds_a2) for found in (old, new)]
    yield f"| the AI CPU of 910B makes tasks where it is asked to | {made[0]} | {made[1]} |"


def _device_changes(device: str, old: Ruleset, new: Ruleset) -> Iterator[str]:
    yield ""
    yield f"### {device}"
    groups: dict[tuple[str, ...], list[str]] = {}
    for op in OPS:
        changed = tuple(_op_changes(old.rows(device, op), new.rows(device, op), old, new))
        if changed and op != "barrier":
            groups.setdefault(changed, []).append(op)
    for changed, ops in groups.items():
        yield ""
        yield "**" + ("all-to-all" if tuple(ops) == ALL_TO_ALL else ", ".join(ops)) + "**"
        yield ""
        yield "| Ruleset | HCCL takes | where | Source |"
        yield "| --- | --- | --- | --- |"
        yield from changed


def _op_changes(
    before: tuple[Rule, ...], after: tuple[Rule, ...], old: Ruleset, new: Ruleset
) -> Iterator[str]:
    for rows, others, ruleset in ((before, after, old), (after, before, new)):
        known = {_row_text(row) for row in others}
        for row in rows:
            if _row_text(row) not in known:
                taken, where = _row_text(row)
                source = row.source.rpartition("/")[2]
                yield f"| {ruleset.name} | {taken} | {where} | {source} |"


def _row_text(row: Rule) -> tuple[str, str]:
    if row.executor is None:
        taken = f"refuses: {row.refusal}"
    else:
        taken = f"`{row.executor}`"
        if row.level0:
            taken += f", {row.level0} inside"
        if row.keeps is not None:
            kept = f" unless {' or '.join(row.keeps)}" if row.keeps else ""
            taken += f", {row.level1}{kept}"
    return taken, ", ".join(map(_cell_text, row.when)) or "else"


def _cell_text(cell: Condition) -> str:
    if cell.relation == "==" and isinstance(cell.value, bool):
        return cell.fact if cell.value else f"not {cell.fact}"
    value = cell.value
    if isinstance(value, Multiple):
        return f"{cell.fact} {cell.relation} {_size(value.factor)} x {value.fact}"
    shown = _size(value) if "bytes" in cell.fact else _words(value)
    return f"{cell.fact} {cell.relation} {shown}"


def _size(value: Any) -> str:
    for unit, name in _UNITS:
        if isinstance(value, int) and value and value % unit == 0:
            return f"{value // unit} {name}"
    return str(value)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(map(str, value)) if isinstance(value, tuple) else str(value)) or "none"


if __name__ == "__main__":
    sys.stdout.write(page())
