"""Tables of the Ascend 950 as text."""

import pytest

from hccl_py.selection.rules import Condition, Multiple
from hccl_py.selection.tables.hccl_2026_08.text_tables import (
    read_cost_rules,
    read_executors,
    read_table,
)

TEXT = """
if net_levels > 1:
    434 First if special
    if not uboe, bytes < 8M:
        440, 442 Second if total_bytes >= 4K x ranks
    466 leave no branch is for it
517-518 Third if dtype in uint64|fp64
519 Fourth if shape0 == mesh
520 Last
"""


def test_rows_have_the_conditions_of_their_branches() -> None:
    rows = read_table("AIV", {"all_to_all_v": TEXT})["all_to_all_v"]
    levels = Condition("net_levels", ">", 1)
    small = (Condition("uboe", "==", False), Condition("bytes", "<", 8 << 20))
    assert [row.executor for row in rows] == ["First", "Second", None, "Third", "Fourth", "Last"]
    assert rows[0].when == (levels, Condition("special", "==", True))
    bound = Condition("total_bytes", ">=", Multiple(4096, "ranks"))
    assert rows[1].when == (levels, *small, bound)
    assert (rows[2].when, rows[2].leaves) == ((levels,), "no branch is for it")
    assert rows[3].when == (Condition("dtype", "in", ("uint64", "fp64")),)
    assert rows[4].when == (Condition("shape0", "==", "mesh"),)
    assert rows[5].when == ()


def test_rows_have_an_engine_and_the_file_of_their_op() -> None:
    row = read_table("AIV", {"all_to_all_v": TEXT})["all_to_all_v"][1]
    file = "all_to_all_v/selector/alltoallv_auto_selector.cc"
    assert row.source == f"hicann/hccl@09300b7:src/ops/{file}:440, 442"
    assert row.engine == "AIV"


def test_a_line_without_a_number_is_no_row() -> None:
    with pytest.raises(AssertionError, match="Second"):
        read_table("AIV", {"reduce": "\nSecond if special\n"})


def test_cost_rules_and_executors() -> None:
    strike, stay = read_cost_rules({"reduce": "\nstrike Ccu* Aiv* if wide\nstay A if wide\n"})[
        "reduce"
    ]
    assert (strike.stay, stay.stay) == (False, True)
    assert [strike.names(name) for name in ("CcuMSX", "AivX", "AicpuX")] == [True, True, False]
    found = read_executors({"reduce": "\nA sole: RS\nB parallel: RS+RS NHR\n"})["reduce"]
    assert found == {"A": ("sole", ("RS",)), "B": ("parallel", ("RS", "RS NHR"))}
