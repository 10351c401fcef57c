#!/usr/bin/env python3
"""Write the tables of docs/numerics.md and its Chinese page on HCCL_DETERMINISTIC: the executors
that HCCL's rules choose for sums of floats, and whether their order is fixed in the model.

    scripts/determinism.py            write the tables
    scripts/determinism.py --check    fail where it is old
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Planner
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import HcclError
from hccl_py.numerics import trees_of
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection.rulesets import RULESETS
from hccl_py.topology import Topology, topology_of

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN = "<!-- Written by scripts/determinism.py from here on. -->"

SETTINGS = ("false", "true", "strict")
OPS = ("all_reduce", "reduce_scatter", "reduce_scatter_v", "reduce")
COUNTS = (64, 1 << 14, 1 << 18, 1 << 21)
PLACES = (
    ("atlas-800t-a2", {"ranks": 4}),
    ("atlas-800t-a2", {"servers": 2, "devices": 4}),
    ("atlas-800t-a2", {"servers": 4, "devices": 2}),
    ("atlas-900-a3", {"ranks": 8}),
    ("atlas-900-a3", {"servers": 2, "devices": 4}),
    ("atlas-900-a3", {"superpods": 2, "servers": 2, "devices": 2}),
    ("atlas-800-9000", {"ranks": 8}),
    ("atlas-800-9000", {"servers": 2, "devices": 8}),
    ("300i-duo", {"ranks": 4}),
)


Recorded: TypeAlias = tuple[Topology, str, OpParam]
"""A key of programs: most settings and releases choose the same one."""


def chosen(
    topology: Topology, op: OpParam, setting: str, ruleset: str, known: dict[Recorded, str]
) -> tuple[str, str] | None:
    """Return the executor that a release's rules run, and `yes` or `no`: is its order fixed? Keep
    the answer for the program in `known`.
    """
    config = Config.load({}, deterministic=setting, ruleset=ruleset, buffsize_mb=8)
    planner = Planner(topology, config, installed_executors(), "table")
    try:
        selection, _ = planner.select(op, None)
        served = config.ordered(op.with_words(selection.levels))
        recorded = (planner.topology, selection.executor, served)
        if recorded not in known:
            found = trees_of(planner.plan(op, None).program, is_trusted=True)
            known[recorded] = "yes" if found.is_fixed else "no"
    except HcclError:  # HCCL refuses the call, or it is none of this product
        return None
    return selection.executor, known[recorded]


def _call(name: str, count: int, ranks: int) -> OpParam:
    """Return a sum of so many elements, for each rank where they differ by rank."""
    if name == "reduce_scatter_v":
        return OpParam(name, 0, DataType.FP32, ReduceOp.SUM, counts=(count,) * ranks)
    root = 0 if name == "reduce" else None
    return OpParam(name, count, DataType.FP32, ReduceOp.SUM, root=root)


def found_by_executor() -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return by op and executor, for every setting, whether the orders that were seen are fixed."""
    found: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    known: dict[Recorded, str] = {}
    for preset, numbers in PLACES:
        topology = topology_of(preset=preset, **numbers)
        for name in OPS:
            for count in COUNTS:
                op = _call(name, count, topology.size)
                for setting in SETTINGS:
                    for ruleset in RULESETS:
                        row = chosen(topology, op, setting, ruleset, known)
                        if row is not None:
                            found[name, row[0]][setting].add(row[1])
    return found


class Words(NamedTuple):
    """The words of a page: a sentence on the whole, the head of the table, and those of cells."""

    sentence: str
    head: str
    fixed: str
    open: str
    some: str


PAGES = {
    "numerics.md": Words(
        "Of {whole} pairs of an op and an executor that the rules of both releases choose, {open} "
        "add in the order of arrival without the setting, and {broken} with `true` or `strict`.",
        "| Op | Executor | `false` | `true` | `strict` |",
        "fixed",
        "of arrival",
        "fixed at some sizes",
    ),
    "numerics.zh.md": Words(
        "两个版本的规则选择了 {whole} 对算子与执行器，其中 {open} 对在没有该设置时按到达次序相加，"
        "`true` 或 `strict` 时 {broken} 对。",
        "| 算子 | 执行器 | `false` | `true` | `strict` |",
        "固定",
        "按到达次序",
        "部分数据量下固定",
    ),
}


def lines(found: dict[tuple[str, str], dict[str, set[str]]], words: Words) -> Iterator[str]:
    """Yield the lines of the table."""
    numbers = {
        "whole": len(found),
        "open": sum("no" in by["false"] for by in found.values()),
        "broken": sum("no" in by["true"] | by["strict"] for by in found.values()),
    }
    yield words.sentence.format(**numbers)
    yield ""
    yield words.head
    yield "| --- | --- | --- | --- | --- |"
    cells = {frozenset(): "–", frozenset({"yes"}): words.fixed, frozenset({"no"}): words.open}
    for (op, executor), by in sorted(found.items()):
        texts = [cells.get(frozenset(by[s]), words.some) for s in SETTINGS]
        yield f"| {op} | `{executor}` | {' | '.join(texts)} |"


def main() -> int:
    """Write the tables, or compare them with what the pages have."""
    found, status = found_by_executor(), 0
    for name, words in PAGES.items():
        page = (DOCS / name).read_text("utf-8")
        text = f"{page.partition(BEGIN)[0]}{BEGIN}\n\n" + "\n".join(lines(found, words)) + "\n"
        if "--check" in sys.argv[1:]:
            status |= text != page
        else:
            (DOCS / name).write_text(text, "utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
