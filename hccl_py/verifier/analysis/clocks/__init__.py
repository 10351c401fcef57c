"""What happens before what: one pass over the walk, with a clock for every chain.

arrays         the columns that the loop reads and changes
emissions      what the loop emits: pairs of nodes that are in no order
vector_clocks  what a chain knows to be over of the others
notifies       what a wait learns from the posts that it may have taken
accesses       the last accesses to every interval of memory
loop           the pass over the walk; with the files above, one compiled loop
"""

from hccl_py.verifier.analysis.clocks.loop import run_clocks

__all__ = ["run_clocks"]
