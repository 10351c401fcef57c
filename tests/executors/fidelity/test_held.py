"""Every executor that is `same`, held against its model wherever HCCL may come to it."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
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


def check(name: str, shapes: list[tuple[Topology, Mode]], holders: Sequence[Holder]) -> None:
    """Compare the calls of a model at some shapes; there must be one at each."""
    for topology, mode in shapes:
        calls = [call for holder in holders for call in holder(name, topology, mode)]
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
    check(name, [at for at in shapes if at[0].size <= SMALL] or shapes[:1], HOLDERS[name])


@pytest.mark.sweep
@pytest.mark.parametrize("name", SAME)
def test_many_ranks(name: str) -> None:
    check(name, [at for at in shapes_of(name) if at[0].size > SMALL], HOLDERS[name])


def test_what_is_left_out_is_seen() -> None:
    """One post, one stream, and a shape that a model says nothing of."""
    name, at = "AllReduceMeshExecutor", topology_of(servers=2, devices=3)
    [call, *_] = HOLDERS[name][0](name, at, Mode.GRAPH)
    compare(name, at, call)
    shorter = call._replace(model=lambda rank: [stream[:-1] for stream in call.model(rank)])
    fewer = call._replace(model=lambda rank: call.model(rank)[:-1])
    more = call._replace(model=lambda rank: [*call.model(rank), [("post", 0, 9)]])
    for wrong in (shorter, fewer, more):
        with pytest.raises(AssertionError, match="rank 0 of"):
            compare(name, at, wrong)
    with pytest.raises(AssertionError, match="no model of AllGatherMixExecutor"):
        check("AllGatherMixExecutor", [(at, Mode.OP_BASE)], [lambda name, at, mode: iter(())])
