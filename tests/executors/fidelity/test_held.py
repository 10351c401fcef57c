"""Every executor that is `same`, held against its model wherever HCCL may come to it."""

from importlib import import_module
from pathlib import Path

import pytest

from hccl_py.enums import Mode
from hccl_py.topology import Topology
from tests.executors.fidelity.held import SAME, Holder, compare, shapes_of

HERE = Path(__file__).parent
SMALL = 6
"""Ranks that are compared in every run; what is larger takes a sweep."""


def _declared() -> dict[str, list[Holder]]:
    """What the modules of this folder say in HELD."""
    found: dict[str, list[Holder]] = {}
    for path in sorted(HERE.glob("test_*.py")):
        module = import_module(f"{__package__ or 'tests.executors.fidelity'}.{path.stem}")
        for name, holder in getattr(module, "HELD", {}).items():
            found.setdefault(name, []).append(holder)
    return found


HOLDERS = _declared()


def check(name: str, shapes: list[tuple[Topology, Mode]]) -> None:
    """Compare the calls of a model at some shapes; there must be one at each."""
    for topology, mode in shapes:
        calls = [call for holder in HOLDERS[name] for call in holder(name, topology, mode)]
        assert calls, f"no model of {name} says what it does at {topology}, {mode.value}"
        for call in calls:
            assert call.op.mode is mode
            compare(name, topology, call)


def test_every_executor_that_is_same_has_a_model() -> None:
    assert sorted(HOLDERS) == SAME


def test_every_executor_that_is_same_is_compared_somewhere() -> None:
    assert [name for name in SAME if not shapes_of(name)] == []


@pytest.mark.parametrize("name", SAME)
def test_few_ranks(name: str) -> None:
    """At least one shape, if all are large."""
    shapes = sorted(shapes_of(name), key=lambda at: at[0].size)
    check(name, [at for at in shapes if at[0].size <= SMALL] or shapes[:1])


@pytest.mark.sweep
@pytest.mark.parametrize("name", SAME)
def test_many_ranks(name: str) -> None:
    check(name, [at for at in shapes_of(name) if at[0].size > SMALL])
