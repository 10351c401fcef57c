"""The loop in which one number stands for all lanes: the same bits, and it stops in time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.errors import OrchestrationError
from hccl_py.program.program import Program
from hccl_py.simulator import Stragglers, simulate_batches
from hccl_py.simulator.batches import kernels, uniform
from hccl_py.topology import Topology, topology_of
from tests.program.authors import Notifies
from tests.recording import op_of, recorded
from tests.simulator.costs import COST
from tests.suited import SuitedCall, suited


class Counted:
    """The kernel, and how many tasks its runs did."""

    def __init__(self) -> None:
        self.kernel = kernels.in_unison
        self.done: list[int] = []

    def sized(self, steps: int) -> Any:
        run = self.kernel.sized(steps)

        def counted(*given: Any) -> int:
            self.done.append(run(*given))
            return self.done[-1]

        return counted


def both(program: Program, topology: Topology, slow: Stragglers) -> tuple[int, bool]:
    """Return the tasks that the uniform loop did, and whether the times are those without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "_USES", 0)
        counted = Counted()
        patch.setattr(uniform, "in_unison", counted)
        found = simulate_batches(program, topology, COST, slow)
    wanted = simulate_batches(program, topology, COST, slow, lockstep=False)
    same = np.array_equal(found.end_us, wanted.end_us)
    return sum(counted.done), same and np.array_equal(found.connection_us, wanted.connection_us)


@given(
    call=suited(("mesh", "atlas-800t-a2", "atlas-900-a3"), counts=(0, 1, 1024, 5000)),
    slow=st.sampled_from([(), ("rank=0:2x",), ("link=0-1:3x",)]),
)
def test_the_same_bits_whatever_is_uniform(call: SuitedCall, slow: tuple[str, ...]) -> None:
    program, topology = recorded(*call, 1 << 15), call.topology
    done, same = both(program, topology, Stragglers.parse(slow if topology.size > 1 else ()))
    assert same
    assert done <= program.task_count


@pytest.mark.parametrize("servers", [1, 12])
def test_even_rings_are_uniform_to_the_end(servers: int) -> None:
    topology = topology_of(servers=servers, devices=12 // servers, preset="mesh")
    program = recorded("AllReduceComm", op_of("all_reduce", 32 * 12), topology)
    assert both(program, topology, Stragglers()) == (program.task_count, True)


def test_a_straggler_ends_uniformity() -> None:
    topology = topology_of(12, preset="mesh")
    program = recorded("AllReduceComm", op_of("all_reduce", 32 * 12), topology)
    done, same = both(program, topology, Stragglers.parse(["rank=3:2x"]))
    assert same
    assert done < program.task_count / 10


def test_cells_that_only_some_columns_share_are_not_grouped() -> None:
    columns = np.array([0, 1, 2, 3])
    lanes = np.array([3, 3, 2, 2])
    formulas = np.array([[0, 1, 0, 0, -1], [0, 1, 1, 3, -1], [3, 1, 0, 0, -1], [5, 1, 0, 0, -1]])
    ints = np.array([0, 1, 2, 5, 6, 6, 7])
    by_cell = np.full(9, -1)
    found, broken = uniform.labelled(columns, lanes, formulas, ints, by_cell)
    assert found.tolist() == [0, 0, 2, -1]
    assert broken.tolist() == [False, False, True, False]


def test_overruns_are_found() -> None:
    late = recorded(Notifies("tx_ack", "tx_ack"), op_of("all_gather"), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "_USES", 0)
        with pytest.raises(OrchestrationError, match=r"overrun: Ack of rank \d from rank \d"):
            simulate_batches(late, None, COST)
