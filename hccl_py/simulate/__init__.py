"""Time: what a program would take, by the α-β-γ model, alone on its links or sharing them.

    timeline = hccl_py.simulate(program, topology, cost, network="contended")

The package can be called, like its function `simulate`.
"""

import sys
from types import ModuleType
from typing import Any

from hccl_py.simulate.batches import Clocks, simulate_batches
from hccl_py.simulate.contended import simulate_contended
from hccl_py.simulate.cost import CostModel, LinkCost
from hccl_py.simulate.cost_files import find_cost, read_cost, write_cost
from hccl_py.simulate.entry import simulate
from hccl_py.simulate.presets import COSTS
from hccl_py.simulate.slow import Slow
from hccl_py.simulate.tasks import simulate_tasks
from hccl_py.simulate.timeline import Timeline

__all__ = [
    "COSTS",
    "Clocks",
    "CostModel",
    "LinkCost",
    "Slow",
    "Timeline",
    "find_cost",
    "read_cost",
    "simulate",
    "simulate_batches",
    "simulate_contended",
    "simulate_tasks",
    "write_cost",
]


class _Callable(ModuleType):
    """`hccl_py.simulate` is this package, and for users the function of the same name."""

    def __call__(self, *args: Any, **options: Any) -> Timeline:
        return simulate(*args, **options)


sys.modules[__name__].__class__ = _Callable
