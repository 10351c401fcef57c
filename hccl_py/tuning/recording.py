"""Recording and timing of one candidate, for selection by cost and for comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.communicator.planning import BatchingWarning, ExecutorChoice, Plan, Planner, idle
from hccl_py.program.program import Program
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.load import busiest_us
from hccl_py.topology.topology import Topology


def recorded(
    planner: Planner,
    op: OpParam,
    executor: ExecutorChoice = None,
    levels: Mapping[str, str] | None = None,
) -> Plan:
    """Record a call, by HCCL's rules where no executor is given; raises as `Planner.plan`.

    Many batches cost time, which callers count: there is no warning of them.
    """
    if idle(op):
        return planner.nothing(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BatchingWarning)
        return planner.plan(op, executor, levels or None)


def uncontended_us(
    program: Program, topology: Topology, cost: CostModel, slow: Stragglers = EVEN
) -> tuple[float, float]:
    """Return the simulated time, and that of the program's busiest link, which may be longer."""
    given = program, topology, cost, slow
    return simulate_batches(*given).total_us, busiest_us(*given)


def rounded_us(us: float) -> float:
    """Return a time to compare: those that differ in the last digits only are equal."""
    return float(f"{us:.9g}")
