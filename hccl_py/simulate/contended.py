"""Contended walk: to be written."""

from __future__ import annotations

from hccl_py.program.program import Program
from hccl_py.simulate.cost import CostModel
from hccl_py.simulate.slow import EVEN, Slow
from hccl_py.simulate.timeline import Timeline
from hccl_py.topology.topology import Topology

__all__ = ["simulate_contended"]


def simulate_contended(
    program: Program, cost: CostModel, topology: Topology, slow: Slow = EVEN
) -> Timeline:
    """Time tasks that share the links of their routes."""
    raise NotImplementedError
