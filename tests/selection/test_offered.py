"""docs/selection.md lists HCCL's executors that are not offered, and those that are ours."""

import re
from pathlib import Path

import pytest

from hccl_executors import EXECUTORS
from hccl_py.selection.tables import TABLES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "selection.md"
REGISTERED = 98 + 55
"""Executors that HCCL registers: in July 2025, and those that April 2026 adds."""

OFFERED = {executor.__name__ for executor in EXECUTORS}


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


@pytest.mark.parametrize("device", TABLES)
def test_what_tables_name_is_offered_or_listed(device: str) -> None:
    missing, ours = listed()
    named = {row.executor for rows in TABLES[device].rows.values() for row in rows} - {None}
    assert named <= OFFERED | set(missing)
    assert not named & set(ours)
    # What is not offered is for vector cores, but on devices that no preset has.
    absent = [name for name in named - OFFERED if device != "310P"]
    assert all(name and "aiv" in name.lower() for name in absent)
