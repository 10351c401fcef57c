"""What asking executors whether they suit costs: nothing that grows with the ranks."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy.typing as npt
import pytest

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.executor import with_levels
from hccl_py.selection import select
from hccl_py.topology import Topology, topology_of
from hccl_py.values import IntArray

SMALL, LARGE = 64, 4096


class Asked(Topology):
    """Counts the pairs of ranks whose link somebody asks for."""

    pairs = 0

    def link_kinds(self, ranks: IntArray, peers: IntArray) -> npt.NDArray[Any]:
        kinds = super().link_kinds(ranks, peers)
        self.pairs += kinds.size
        return kinds


def topologies(ranks: int) -> Iterator[Asked]:
    for preset in ("atlas-800t-a2", "atlas-800-9000", "atlas-900-a3", "300i-duo", "mesh", "ring"):
        plain = topology_of(ranks, preset=preset)
        yield Asked(plain.product, plain.servers, plain.superpods)
        yield Asked(plain.product, plain.servers, plain.superpods, intra_roce=True)


def calls(name: str, ranks: int) -> OpParam:
    operator = make_operator(name)
    reduce = ReduceOp.SUM if operator.reduces else None
    op = OpParam(name, 8, DataType.FP32, reduce)
    return operator.variants()[0](op, ranks)


def work(run: Callable[[], object]) -> int:
    """Return how many functions are called, in Python and in C."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", [n for n in OPERATORS if not n.endswith(("_v", "_vc"))])
def test_suits_costs_no_more_on_many_ranks(name: str) -> None:
    for small, large in zip(topologies(SMALL), topologies(LARGE), strict=True):
        for registered in installed_executors().for_op(name):
            spent = []
            for topology in (small, large):
                op = with_levels(registered.executor, calls(name, topology.size))
                spent.append(work(partial(registered.executor.suits, op, topology)))
            assert spent[1] <= 1.5 * spent[0] + 10, (registered.name, large.description)
        assert large.pairs == 0, large.description


def test_a_named_executor_is_the_only_one_that_is_asked() -> None:
    registry, asked = installed_executors().copy(), []

    class Curious:
        op = "all_reduce"
        algorithm = "level0:mesh"

        def suits(self, op: OpParam, topology: Topology) -> bool:
            asked.append(op.name)
            return True

        def resources(self, op: Any, rank: Any) -> Any: ...

        def orchestrate(self, op: Any, rank: Any) -> None: ...

    registry.add(Curious, "a test")
    op, topology = calls("all_reduce", 4), topology_of(4)
    for name in ("AllReduceComm", None):
        selection, _ = select(op, topology, Config.load({}), registry, name)
        assert not asked
        assert "Curious" in {r.executor for r in selection.rejected}
        assert {r.executor for r in selection.rejected} == {r.executor for r in selection.rejected}
        assert asked == ["all_reduce"]
        asked.clear()
