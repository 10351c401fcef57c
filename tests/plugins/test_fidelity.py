"""How executors stand to HCCL: what they may state, and what is made of it."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_py.errors import PluginError
from hccl_py.plugins.discovery import Registry
from hccl_py.plugins.fidelity import (
    Fidelity,
    SourceFile,
    declared,
    fidelity_of,
    joined,
    ours,
    same,
    steps,
)
from hccl_py.selection import Selection

FILE = SourceFile("owner/name", "0123abc", "src/all_gather.cc")
OTHER = replace(FILE, file="src/ring.cc")


class Quiet:
    """States nothing."""

    op = "all_gather"
    algorithm = "level0:NA;level1:ring|NB"

    def suits(self, op: Any, topology: Any) -> bool:
        """Suits everywhere."""
        return True

    def resources(self, op: Any, rank: Any) -> Any:
        """Ask for nothing."""

    def orchestrate(self, op: Any, rank: Any) -> None:
        """Record nothing."""


class Stated(Quiet):
    """Is HCCL's, but for a word."""

    fidelity = same(FILE).with_cases({"NB": steps("No barrier.", OTHER), "NHR": ours("None.")})


def test_a_plugin_that_states_nothing_is_ours() -> None:
    assert fidelity_of(Quiet()).kind == "ours"
    assert fidelity_of(Quiet(), ["ring"]).kind == "ours"


def test_a_case_takes_part_with_its_own_standing() -> None:
    assert fidelity_of(Stated(), ["ring"]) == same(FILE)
    assert fidelity_of(Stated(), ["ring", "NB"]) == steps("No barrier.", FILE, OTHER)
    assert declared(Stated()).document() == {
        "kind": "same",
        "deviation": None,
        "sources": ["owner/name@0123abc:src/all_gather.cc"],
        "cases": {
            "NB": {
                "kind": "steps",
                "deviation": "No barrier.",
                "sources": ["owner/name@0123abc:src/ring.cc"],
            }
        },
    }


def test_the_weakest_part_counts() -> None:
    parts = [same(FILE), ours("HCCL has none."), steps("No barrier.", OTHER)]
    assert joined(parts) == ours("HCCL has none. No barrier.", FILE, OTHER)


@pytest.mark.parametrize(
    ("kind", "sources", "deviation", "message"),
    [
        ("alike", (FILE,), "", "fidelity 'alike' is unknown: one of same, steps, ours"),
        ("same", (), "", "fidelity same names no source"),
        ("same", (FILE,), "No barrier.", "fidelity same has no deviation"),
        ("steps", (FILE,), "", "fidelity steps says what deviates, and why"),
        ("ours", (), "", "fidelity ours says what deviates, and why"),
    ],
)
def test_what_is_stated_is_whole(
    kind: str, sources: tuple[SourceFile, ...], deviation: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Fidelity(kind, sources, deviation)


def test_a_plugin_cannot_state_just_anything() -> None:
    class Wrong(Quiet):
        """States a word."""

        fidelity = "same"

    with pytest.raises(PluginError, match="executor 'Wrong': fidelity 'same' is none"):
        Registry().add(Wrong, "plugin")


@pytest.mark.parametrize(
    ("hccl", "words", "fidelity", "is_same"),
    [
        ("Mine", "ring", same(FILE), True),
        ("Mine", "NHR", same(FILE), False),
        ("Other", "ring", same(FILE), False),
        ("Mine", "ring", steps("No barrier.", FILE), False),
    ],
)
def test_the_same_is_the_executor_its_words_and_its_steps(
    hccl: str, words: str, fidelity: Fidelity, is_same: bool
) -> None:
    found = Selection(
        op="all_gather",
        executor="Mine",
        hccl_executor=hccl,
        algorithm={},
        tag="",
        reasons=(),
        ruleset="",
        hccl_algorithm={"level0": "mesh", "level1": "ring"},
        levels={"level1": words},
        fidelity=fidelity,
    )
    assert found.is_same == is_same
