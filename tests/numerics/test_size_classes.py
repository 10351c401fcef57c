"""Classes of sizes: sizes that were not looked at have the trees of their class."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan, Planner
from hccl_py.enums import DataType, ReduceOp
from hccl_py.numerics.element_trees import trees_of
from hccl_py.numerics.size_classes import SizeClass, TreesBySize, calls_of, selection_bounds
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection import Selection
from hccl_py.topology import Topology, topology_of

LAST = 1 << 22
MACHINES = (
    ("atlas-800t-a2", {"ranks": 4}),
    ("atlas-800t-a2", {"servers": 2, "devices": 2}),
    ("atlas-900-a3", {"ranks": 8}),
)


class Sizes:
    """The calls of an op at all counts, on one machine."""

    def __init__(self, topology: Topology, **settings: str) -> None:
        self.topology, self.config = topology, Config.load({}, **settings)
        self._planner = Planner(topology, self.config, installed_executors(), "sizes")
        self.op = OpParam("all_reduce", 1, DataType.FP32, ReduceOp.SUM)

    def plan(self, count: int) -> Plan:
        return self._planner.plan(self._at(count), None)

    def select(self, count: int) -> Selection:
        return self._planner.select(self._at(count), None)[0]

    def _at(self, count: int) -> OpParam:
        return OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM)

    def classes(self) -> list[SizeClass]:
        bounds = selection_bounds(self.op, self.topology, self.config)
        return TreesBySize(calls_of(self.plan, self.select)).classes(1, LAST, bounds)


@pytest.mark.parametrize("deterministic", ["false", "true"])
@pytest.mark.parametrize(("preset", "numbers"), MACHINES)
def test_sizes_between_have_the_executor_and_the_trees_of_their_class(
    preset: str, numbers: dict[str, int], deterministic: str
) -> None:
    sizes = Sizes(topology_of(preset=preset, **numbers), deterministic=deterministic)
    classes = sizes.classes()
    assert classes[0].first == 1
    assert classes[-1].last == LAST
    for one, following in pairwise(classes):
        assert following.first == one.last + 1
    random = Random(preset + deterministic)
    for found in classes:
        for _ in range(6):
            count = random.randint(found.first, found.last)
            trees = trees_of(sizes.plan(count).program)
            assert sizes.select(count).executor == found.selection.executor
            assert set(trees.trees) <= set(found.trees), f"{count} elements by {found.executor}"
            assert trees.is_fixed == found.is_fixed or not found.is_fixed


def test_a_class_ends_where_selection_does() -> None:
    sizes = Sizes(topology_of(ranks=4))
    for one, following in pairwise(sizes.classes()):
        before, behind = sizes.select(one.last), sizes.select(following.first)
        changes = before.executor != behind.executor
        assert changes or set(one.trees) != set(following.trees)
