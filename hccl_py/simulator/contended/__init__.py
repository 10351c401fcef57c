"""The contended simulation: tasks whose data is on the same links at the same time share them.

paths      which links data takes that it may have to share, found from the batches
classes    ranks that do the same over links that carry the same, found from the batches
chosen     one of each class in the place of all
coupling   which links are on a route together
state      the columns that the event loop reads and changes
heap       events in the order of their times
members    who is on a link, and which other links its members are on
dirty      which links have their levels found anew next
rates      max-min fair rates of the flows on links
engine     the events; with the files above, one compiled loop
entry      simulate_contended: a program's timeline; Contention: the same in two steps, the first of
           which says whether it may differ from the uncontended one
"""

from hccl_py.simulator.contended.entry import Contention, simulate_contended

__all__ = ["Contention", "simulate_contended"]
