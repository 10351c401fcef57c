"""The happens-before order: one pass over the walk, with a vector clock for every chain.

arrays         the columns that the loop reads and changes, and their one-letter names
emissions      the loop's findings: pairs of nodes that are in no order
vector_clocks  the progress of other chains that a chain knows of
notifies       the knowledge that posts carry to waits
accesses       the last accesses to every interval of memory
loop           the pass over the walk; with the files above, one compiled loop
"""

from hccl_py.verifier.analysis.clocks.loop import run_clocks

__all__ = ["run_clocks"]
