"""The contended simulation: tasks whose data is on the same links at the same time share them.

paths    which links data takes that it may have to share, found from the batches
engine   the events, and max-min fair rates of the flows on links, compiled
entry    simulate_contended: a program's timeline; shares_links: whether it may differ from the
         uncontended one
"""

from hccl_py.simulator.contended.entry import shares_links, simulate_contended

__all__ = ["shares_links", "simulate_contended"]
