"""Time: what a program would take, by the α-β-γ model, alone on its links or sharing them.

timeline = hccl_py.simulate(program, topology, cost, network="contended")
"""

from hccl_py.clocks.cost import COSTS, CostModel, LinkCost, SharedPort
from hccl_py.clocks.cost_files import find_cost, read_cost, write_cost
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.simulator.batches import Clocks, simulate_batches
from hccl_py.simulator.contended import simulate_contended
from hccl_py.simulator.entry import simulate
from hccl_py.simulator.tasks import simulate_tasks
from hccl_py.simulator.timeline import Timeline

__all__ = [
    "COSTS",
    "Clocks",
    "CostModel",
    "LinkCost",
    "SharedPort",
    "Stragglers",
    "Timeline",
    "find_cost",
    "read_cost",
    "simulate",
    "simulate_batches",
    "simulate_contended",
    "simulate_tasks",
    "write_cost",
]


def __getattr__(name: str) -> object:
    if name == "Slow":
        raise ImportError("Slow is Stragglers: write `from hccl_py.simulator import Stragglers`.")
    raise AttributeError(f"module 'hccl_py.simulator' has no attribute {name!r}")
