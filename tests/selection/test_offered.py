"""docs/selection.md lists HCCL's executors that are not offered, and those that are ours."""

import re
from pathlib import Path

import pytest

from hccl_executors import EXECUTORS
from hccl_py.selection.rulesets import RULESETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "selection.md"
REGISTERED = 98 + 55 + 5
"""Executors that HCCL registers: in July 2025, and those that April and August 2026 add."""

OFFERED = {executor.__name__ for executor in EXECUTORS if executor.__module__.count(".aicpu") == 0}
"""The classic ones: those of the Ascend 950 are in a package of their own."""


def listed() -> tuple[list[str], list[str]]:
    """Return the names of the page's two lists."""
    section = PAGE.read_text("utf-8").partition("## HCCL's executors that are not offered")[2]
    missing, _, ours = section.partition("offered beyond HCCL's:")
    names = re.compile(r"`(\w+)`")
    return names.findall(missing), names.findall(ours)


def test_the_lists_and_the_executors_make_up_hccl_s() -> None:
    missing, ours = listed()
    assert len(set(missing)) == len(missing)
    assert not OFFERED & set(missing)
    assert set(ours) <= OFFERED
    assert len(OFFERED - set(ours)) + len(missing) == REGISTERED


TABLES = [
    (name, device)
    for name, found in RULESETS.items()
    for device in found.tables
    if device != "950"  # rows by engine: test_ascend950.py
]


@pytest.mark.parametrize(("ruleset", "device"), TABLES)
def test_what_tables_name_is_offered_or_listed(ruleset: str, device: str) -> None:
    missing, ours = listed()
    tables = RULESETS[ruleset].tables[device]
    named = {row.executor for rows in tables.values() for row in rows} - {None}
    assert named <= OFFERED | set(missing)
    assert not named & set(ours)
    if ruleset == "cann-2025.07" and device != "310P":  # no preset has a 310P
        absent = [name for name in named - OFFERED if name and "aiv" not in name.lower()]
        assert not absent


@pytest.mark.parametrize(("ruleset", "device"), TABLES)
def test_every_op_of_a_table_ends_with_a_row_for_all_calls(ruleset: str, device: str) -> None:
    for op, rows in RULESETS[ruleset].tables[device].items():
        assert rows[-1].when == (), op
        assert all(row.when for row in rows[:-1]), op


@pytest.mark.parametrize(("ruleset", "device"), TABLES)
def test_rows_say_where_they_are_from(ruleset: str, device: str) -> None:
    """All but that of gather, which HCCL's API does not have."""
    rows = RULESETS[ruleset].tables[device]
    sources = [row.source for op, found in rows.items() if op != "gather" for row in found]
    where = re.compile(
        r"(algorithm/impl/(operator|coll_executor/\w+)|framework/[a-z/]+)/\w+\.cc:\d+(-\d+)?"
    )
    assert all(where.fullmatch(source) for source in sources)
    assert all(_ascends(source) for source in sources)


def _ascends(source: str) -> bool:
    first, _, last = source.partition(":")[2].partition("-")
    return not last or int(first) < int(last)
