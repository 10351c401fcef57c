"""How executors stand to HCCL: what they may state, and what is made of it."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_py import DataType, OpParam, ReduceOp, Topology, topology_of
from hccl_py.call.config import Config
from hccl_py.errors import PluginError
from hccl_py.plugins import executor as executor_module
from hccl_py.plugins import platforms
from hccl_py.plugins.discovery import Registered, Registry, installed_executors
from hccl_py.plugins.executor import cases_of
from hccl_py.plugins.fidelity import (
    Fidelity,
    Proof,
    SourceFile,
    is_uneven_tree,
    joined,
    kind_and_proof,
    ours,
    same,
    steps,
)
from hccl_py.selection import Selection, select

FILE = SourceFile("owner/name", "0123abc", "src/all_gather.cc")
OTHER = replace(FILE, file="src/ring.cc")
A3 = "atlas-900-a3"


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


def registered(executor: type) -> Registered:
    """Return the record of an executor in a new registry."""
    return Registry().add(executor, "plugin")


def test_a_plugin_that_states_nothing_is_ours() -> None:
    assert registered(Quiet).fidelity.kind == "ours"
    assert registered(Quiet).fidelity.among(["ring"]).kind == "ours"


def test_a_proof_is_of_calls_that_are_same() -> None:
    proof = Proof("owner/name@0123abc", 30, 4, "fewer copies here")
    found = replace(Stated.fidelity, proof=proof)
    assert found.among(["ring"]).proof == proof
    assert found.among(["ring", "NB"]).proof is None
    shown = [kind_and_proof(found.among(cases).document()) for cases in ([], ["NB"], ["NHR"])]
    assert shown == ["same (run)", "steps", "ours"]
    assert kind_and_proof(same(FILE).document()) == "same (read)"
    assert str(proof) == (
        "equal in 30 calls that HCCL's own code ran, owner/name@0123abc; in 4 but for copies "
        "inside a rank: fewer copies here"
    )
    assert str(replace(proof, but_for_copies=0)).endswith("ran, owner/name@0123abc")


def test_a_case_takes_part_with_its_own_standing() -> None:
    found = registered(Stated).fidelity
    assert found.among(["ring"]) == same(FILE)
    assert found.among(["ring", "NB"]) == steps("No barrier.", FILE, OTHER)
    assert found.document() == {
        "kind": "same",
        "deviation": None,
        "sources": ["owner/name@0123abc:src/all_gather.cc"],
        "proof": None,
        "cases": {
            "NB": {
                "kind": "steps",
                "deviation": "No barrier.",
                "sources": ["owner/name@0123abc:src/ring.cc"],
                "proof": None,
            }
        },
    }


def test_the_weakest_part_counts() -> None:
    parts = [same(FILE), ours("HCCL has none."), steps("No barrier.", OTHER)]
    assert joined(parts) == ours("HCCL has none. No barrier.", FILE, OTHER)


def test_a_case_may_have_cases() -> None:
    tree = same(FILE).with_cases({"uneven_tree": steps("Some slices are left out.", FILE)})
    found = same(OTHER).with_cases({"NHR": tree})
    assert found.among(["ring", "uneven_tree"]).is_same
    assert found.among(["NHR"]) == same(OTHER, FILE)
    assert found.among(["uneven_tree", "NHR"]) == steps("Some slices are left out.", OTHER, FILE)
    whole = joined([same(OTHER), tree])
    assert whole.is_same
    assert not whole.among(["uneven_tree"]).is_same


def test_uneven_trees_are_those_whose_senders_lack_slices() -> None:
    """In a step of width w a sender at distance d below w has every 2w-th of the ranks behind d."""
    for members in range(2, 130):
        widths = [1 << step for step in range((members - 1).bit_length())]
        counts = [
            {(members - 1 - d + width) // (2 * width) for d in range(min(width, members - width))}
            for width in widths
        ]
        assert is_uneven_tree(members) == any(len(found) > 1 for found in counts), members
    assert [n for n in range(2, 23) if is_uneven_tree(n)] == [7, 11, 13, 14, 15, 19, 21, 22]


@pytest.mark.parametrize(
    ("executor", "topology", "is_uneven"),
    [
        ("BroadCastComm", topology_of(servers=1, devices=7, preset="atlas-800t-a2"), True),
        ("ScatterRingFor91093Executor", topology_of(servers=7, devices=2, preset=A3), True),
        ("ScatterRingFor91093Executor", topology_of(servers=2, devices=14, preset=A3), False),
        (
            "ScatterRingFor91093Executor",
            topology_of(superpods=7, servers=2, devices=2, preset=A3),
            True,
        ),
    ],
)
def test_a_tree_is_uneven_on_its_own_plane(
    executor: str, topology: Topology, is_uneven: bool
) -> None:
    chosen = installed_executors().find(executor, None)
    op = OpParam("scatter", 1024, DataType.FP32, root=0)
    found = cases_of(chosen.executor, op, topology, {"level1": "NHR", "level2": "NHR"})
    assert ("uneven_tree" in found) == is_uneven


@pytest.mark.parametrize(("deterministic", "kind"), [("false", "same"), ("true", "steps")])
def test_sums_in_a_fixed_order_are_a_case(deterministic: str, kind: str) -> None:
    topology = topology_of(devices=4, preset="atlas-800t-a2")
    op = OpParam("all_reduce", 1 << 24, DataType.FP32, ReduceOp.SUM)
    config = Config.load({}, deterministic=deterministic)
    selection, _ = select(op, topology, config, installed_executors(), "AllReduceMeshExecutor")
    assert selection.fidelity.kind == kind


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


def test_old_names_of_functions_work_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"declarations_of\(executor\)\.order now"):
        assert executor_module.order_of(Quiet()) == "fixed"
    with pytest.warns(DeprecationWarning, match="zero_copy now"):
        assert not executor_module.is_zero_copy(Quiet())
    with pytest.warns(DeprecationWarning, match="fidelity"):
        assert executor_module.fidelity_of(Stated(), ["NB"]).kind == "steps"
    with pytest.warns(DeprecationWarning, match="Diagnosed is DiagnosticsProvider now"):
        assert platforms.Diagnosed is platforms.DiagnosticsProvider
    with pytest.raises(AttributeError, match="has no attribute 'Odd'"):
        platforms.Odd  # noqa: B018
