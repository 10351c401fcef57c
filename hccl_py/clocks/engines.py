"""The engine that runs a program, and the least time of its calls.

A recording of C++ says which engine its kernels are for. Executors say nothing: they run on what
HCCL takes by default on the product (HCCL_OP_EXPANSION_MODE): the AI CPU on Ascend 950 and on Atlas
A3, the host on the others. Networks for study, graphs and programs of other runtimes have none.
"""

from __future__ import annotations

from hccl_py.clocks.cost import CostModel
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology

_USUAL = {
    "ascend950": "aicpu_ts",
    "atlas-900-a3": "aicpu_ts",
    "atlas-800t-a2": "host",
    "atlas-200t-a2-box16": "host",
    "atlas-800-9000": "host",
    "300i-duo": "host",
}
"""The engine that HCCL takes by default, by product."""


def engine_of(program: Program, topology: Topology | None) -> str:
    """Return one of `clocks.cost.ENGINES`, or "" where none is known."""
    if program.engine or program.protocol or topology is None:
        return program.engine
    return usual_engine(topology)


def usual_engine(topology: Topology) -> str:
    """Return the engine that HCCL takes by default; "" where none is known."""
    return _USUAL.get(topology.product.name, "")


def call_us(program: Program, topology: Topology | None, cost: CostModel) -> float:
    """Return the least time of a program: that of as many calls of its engine as it makes."""
    calls = max(len(program.calls), 1)
    return calls * cost.engines.of(engine_of(program, topology)).call_us


def launch_us(program: Program, topology: Topology | None, cost: CostModel) -> float:
    """Return when the first tasks of a program may start: after the launch by its protocol, and by
    its engine.
    """
    engine = cost.engines.of(engine_of(program, topology))
    return cost.protocols.of(program.protocol).launch_us + engine.launch_us
