"""The contended simulation: tasks whose data is on the same links at the same time share them.

paths    which links every task's data takes, numbered densely
engine   the events, and max-min fair rates of the flows on links, compiled
entry    simulate_contended: a program's timeline
"""

from hccl_py.simulator.contended.entry import simulate_contended

__all__ = ["simulate_contended"]
