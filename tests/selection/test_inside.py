"""HCCL_ALGO's word for level0, from the setting to the program."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hccl_py import load
from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan, Planner
from hccl_py.enums import DataType, Mode
from hccl_py.plugins.discovery import installed_executors
from hccl_py.topology import topology_of
from tests.recording import same_tasks

PAIRWISE = "level0:pairwise;level1:pairwise"
STAGED = "RunAlltoAllVStaged"


def planned(
    algo: str = "", executor: str | None = None, preset: str = "atlas-800t-a2", **settings: Any
) -> Plan:
    """An all-to-all in graph mode over two servers."""
    config = Config.load({}, mode=Mode.GRAPH, algo=algo, **settings)
    topology = topology_of(servers=2, devices=4, preset=preset)
    op = OpParam("all_to_all", 64, DataType.FP32, mode=Mode.GRAPH)
    return Planner(topology, config, installed_executors(), GROUP_NAME).plan(op, executor)


def words(plan: Plan) -> tuple[str, str, str, int]:
    """What runs on level0, what HCCL would, what the program says, and how many streams it has."""
    found, program = plan.selection, plan.program
    level0 = found.algorithm["level0"], found.hccl_algorithm["level0"]
    return (*level0, program.op.level0, program.streams)


def test_both_words_for_all_ops_make_the_step_in_a_server_pairwise() -> None:
    usual, asked = planned(), planned(PAIRWISE)
    assert usual.selection.hccl_executor == asked.selection.hccl_executor == STAGED
    assert words(usual) == ("mesh", "mesh", "mesh", 3)
    assert words(asked) == ("pairwise", "pairwise", "pairwise", 1)
    assert usual.selection.is_same
    assert asked.selection.is_same
    assert asked.selection.source.endswith("coll_all_to_all_v_staged_executor.cc:260-273")
    assert "pairwise_inside is true" in asked.selection.reasons
    assert not [reason for reason in asked.selection.reasons if "ignored" in reason]


@pytest.mark.parametrize(
    ("algo", "why"),
    [
        (f"alltoall={PAIRWISE}", "looks at what is set for all ops"),
        ("level0:pairwise;level1:ring", "follows from the topology"),
        ("level0:fullmesh;level1:pairwise", "follows from the topology"),
    ],
)
def test_other_words_change_nothing(algo: str, why: str) -> None:
    plan = planned(algo)
    assert words(plan) == ("mesh", "mesh", "mesh", 3)
    assert plan.selection.levels == {}
    assert [reason for reason in plan.selection.reasons if "is ignored" in reason and why in reason]


def test_executors_that_do_not_look_at_it_say_so() -> None:
    plan = planned(PAIRWISE, "RunAlltoAllVFullMesh")
    assert "level0" not in plan.selection.levels
    ignored = "HCCL_ALGO's level0:pairwise is ignored: only the exchange in two steps looks at it"
    assert ignored in plan.selection.reasons


def test_an_executor_that_is_named_looks_at_it_too() -> None:
    """Here HCCL takes another one, which does not."""
    config = {"preset": "atlas-900-a3", "op_expansion_mode": "AI_CPU"}
    plan = planned(PAIRWISE, STAGED, **config)
    assert plan.selection.hccl_executor == "RunAlltoAllDirectFullmesh"
    assert plan.selection.hccl_algorithm["level0"] != "pairwise"
    assert plan.program.op.level0 == "pairwise"


def test_what_july_2025_read_at_once_is_told() -> None:
    config = {"preset": "atlas-900-a3", "op_expansion_mode": "HOST"}
    algo = "level0:fullmesh;level1:pairwise"
    plan = planned(algo, ruleset="cann-2025.07", **config)
    assert plan.selection.hccl_executor == STAGED
    assert [reason for reason in plan.selection.reasons if "would read at once" in reason]
    other = planned(algo, ruleset="cann-2026.08", **config)
    assert not [reason for reason in other.selection.reasons if "would read at once" in reason]


@pytest.mark.parametrize("form", ["json", "npz"])
def test_program_files_keep_the_word(form: str, tmp_path: Path) -> None:
    program = planned(PAIRWISE).program
    program.save(tmp_path / f"program.{form}")
    assert load(tmp_path / f"program.{form}").op == program.op


def test_program_files_from_before_there_was_the_word(tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    planned().program.save(path)
    program = load(path)
    document = json.loads(path.read_text("utf-8"))
    assert document["op"].pop("level0") == "mesh"
    path.write_text(json.dumps(document), "utf-8")
    old = load(path)
    assert old.op == replace(program.op, level0="")
    assert same_tasks(old, program)
