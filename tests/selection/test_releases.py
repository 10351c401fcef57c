"""Rulesets by name, what changes between two for a call, and the page of all changes."""

import json
from pathlib import Path
from typing import get_args

import pytest

from hccl_py import Communicator
from hccl_py.call.config import Config, RulesetName
from hccl_py.cli import main
from hccl_py.errors import ConfigError
from hccl_py.selection.releases import page
from hccl_py.selection.rulesets import RULESETS
from hccl_py.selection.tables import HCCL_170DDEE as NAME

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rulesets.md"
OLD, NEW = "cann-2025.07", "cann-2026.08"
CALL = ["explain", "all_reduce", "--servers", "2", "--devices", "8", "-b", "1K"]


def test_settings_know_the_rulesets() -> None:
    assert get_args(RulesetName) == tuple(RULESETS) == (OLD, NEW, NAME)
    assert Config.load({}).ruleset == NEW
    assert Config.load({"HCCL_PY_RULESET": OLD}).ruleset == OLD
    with Communicator(2, ruleset=OLD) as comm:
        assert comm.config.ruleset == OLD


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cann-2024", "Expected: cann-2025.07, cann-2026.08 or hccl-170ddee"),
        ("classic-910B/1", "cann-2025.07 has its tables"),
    ],
)
def test_a_ruleset_that_there_is_not(name: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load({}, ruleset=name)
    assert says in f"{caught.value} {caught.value.hint}"


def test_explain_says_which_ruleset_chose(capsys: pytest.CaptureFixture[str]) -> None:
    for ruleset, executor in (
        (OLD, "AllReduceMeshExecutor"),
        (NEW, "AllReduceMeshOpbaseSmallCountDeterministicExecutor"),
    ):
        assert main([*CALL, "--json", "--ruleset", ruleset]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["ruleset"], document["hccl_executor"]) == (ruleset, executor)
        found = RULESETS[ruleset]
        start = f"{found.repository}@{found.commit}:{found.folder}/algorithm/impl/operator/"
        assert document["source"].startswith(start)
        assert document["against"] is None


def test_explain_against_another_ruleset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CALL, "--json", "--against", OLD]) == 0
    against = json.loads(capsys.readouterr().out)["against"]
    assert (against["ruleset"], against["same"]) == (OLD, False)
    assert against["hccl_executor"] == "AllReduceMeshExecutor"
    assert against["hccl_algorithm"] == {"level0": "mesh", "level1": "ring"}
    assert "devices is 8 (is more than 2)" in against["reasons"]
    assert main([*CALL, "--against", OLD]) == 0
    text = capsys.readouterr().out
    assert "cann-2025.07 takes AllReduceMeshExecutor, level0 mesh, level1 ring" in text
    assert main([*CALL, "--against", NEW]) == 0
    assert "cann-2026.08 takes the same" in capsys.readouterr().out
    assert main([*CALL, "--against", "cann-2026.80"]) == 2
    assert "Did you mean cann-2026.08" in capsys.readouterr().err


def test_explain_against_a_ruleset_that_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["explain", "all_gather_v", "--servers", "2", "--devices", "8", "-b", "1K"]
    assert main([*call, "--json", "--against", OLD]) == 0
    against = json.loads(capsys.readouterr().out)["against"]
    assert against["hccl_executor"] is None
    assert against["refusal"] == "AllGatherV stays within one module"


def test_the_page_of_changes_is_what_the_tables_say() -> None:
    assert PAGE.read_text("utf-8") == page(), (
        "python -m hccl_py.selection.releases > docs/rulesets.md"
    )
