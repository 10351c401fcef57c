"""Time: what a program would take, by the α-β-γ model, without contention."""

from hccl_py.simulate.batches import Clocks, simulate_batches
from hccl_py.simulate.cost import CostModel, LinkCost
from hccl_py.simulate.tasks import Timeline, simulate_tasks

__all__ = ["Clocks", "CostModel", "LinkCost", "Timeline", "simulate_batches", "simulate_tasks"]
