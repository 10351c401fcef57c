"""Reasons for the algorithm of each level, words of HCCL_ALGO that do not count, and the conditions
by which a choice changes with size.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection.hccl import HcclChoice
from hccl_py.selection.select import select
from hccl_py.selection.spans import reason_of_change
from hccl_py.topology import topology_of

MACHINES: tuple[dict[str, Any], ...] = (
    {"preset": "atlas-800t-a2", "servers": 4, "devices": 8},
    {"preset": "atlas-800t-a2", "ranks": 8},
    {"preset": "atlas-900-a3", "servers": 12, "devices": 4},
    {"preset": "atlas-900-a3", "servers": 2, "devices": 4, "superpods": 3},
    {"preset": "atlas-800-9000", "servers": 3, "devices": 8},
    {"preset": "300i-duo", "ranks": 4},
)

WORDS = ("", "ring", "H-D_R", "NHR", "NB", "AHC", "pipeline")
OPS = ("all_reduce", "all_gather", "reduce_scatter")


def op_of(name: str, count: int) -> OpParam:
    reduce = None if name == "all_gather" else ReduceOp.SUM
    return OpParam(name, count, DataType.FP32, reduce)


def config_of(word: str) -> Config:
    return Config(algo=f"level0:NA;level1:{word}" if word else "")


@settings(max_examples=100)
@given(
    machine=st.sampled_from(MACHINES),
    name=st.sampled_from(OPS),
    power=st.integers(0, 26),
    word=st.sampled_from(WORDS),
)
def test_each_level_has_a_reason_and_no_word_goes_missing(
    machine: dict[str, Any], name: str, power: int, word: str
) -> None:
    topology = topology_of(**machine)
    found, _ = select(op_of(name, 1 << power), topology, config_of(word), installed_executors())
    assert list(found.why_levels) == list(found.algorithm)
    assert all(found.why_levels.values())
    runs = found.algorithm.get("level1")
    is_joined = {runs, word} == {"AHC", "AHC_BROKE"}
    if word and runs != word and not is_joined:
        assert any(f"level1:{word}" in text for text in found.overruled)
    if runs == word or not word:
        assert not any("overruled" in text for text in found.overruled)


@pytest.mark.parametrize(
    ("machine", "name", "word", "level1", "reason"),
    [
        (0, "all_reduce", "", "NHR", "the cheapest by HCCL's formulas for 4 servers"),
        (0, "all_reduce", "ring", "ring", "HCCL_ALGO asks for ring"),
        (2, "all_reduce", "", "NHR", "the default for 12 servers, 8 or more, where 910_93 takes"),
        (4, "all_reduce", "", "ring", "the default for 3 servers, fewer than 8"),
        (2, "all_reduce", "H-D_R", "NHR", "the row of the table takes NHR"),
    ],
)
def test_reasons_by_hand(machine: int, name: str, word: str, level1: str, reason: str) -> None:
    topology = topology_of(**MACHINES[machine])
    found, _ = select(op_of(name, 1 << 18), topology, config_of(word), installed_executors())
    assert found.algorithm["level1"] == level1
    assert found.why_levels["level1"].startswith(reason)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", OPS)
def test_a_choice_that_changes_has_a_condition_with_the_size(
    machine: dict[str, Any], name: str
) -> None:
    topology, config = topology_of(**machine), Config()
    for power in range(26):
        small, large = op_of(name, 1 << power), op_of(name, 2 << power)
        rows = [HcclChoice(op, topology, config) for op in (small, large)]
        reason = reason_of_change(small, large, topology, config)
        same = rows[0].row is rows[1].row and rows[0].levels == rows[1].levels
        assert bool(reason) is not same
        sizes = numbers_of(rows[1].facts)
        assert same or any(str(number) in reason for number in sizes), reason


def numbers_of(facts: Any) -> set[int]:
    """Return the sizes that a condition may name: of a rank, a server, all ranks, a block."""
    names = ("bytes", "total_bytes", "server_bytes", "device_bytes", "pipeline_block")
    return {getattr(facts, name) for name in (*names, "device_total")}


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((4 << 20, 5 << 20), "CCU_SCHED leaves it: AICPU_TS is faster at this size"),
        ((5 << 20, 4 << 20), "CCU_SCHED leaves smaller calls: AICPU_TS is faster"),
    ],
)
def test_an_engine_that_leaves_calls_of_other_sizes(counts: tuple[int, int], reason: str) -> None:
    topology, config = topology_of(4, preset="ascend950"), Config(op_expansion_mode="CCU_SCHED")
    small, large = (op_of("all_reduce", count) for count in counts)
    assert reason_of_change(small, large, topology, config).startswith(reason)
