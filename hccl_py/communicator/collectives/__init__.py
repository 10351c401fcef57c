"""From the arguments of a collective to its parameters and the shapes of its outputs.

    reduce-scatter, all-to-all, scatter      inputs split along the first axis, one part per rank
    all-gather, gather                       outputs joined along the first axis, in rank order
    v-ops                                    the same with parts of their own sizes, in rows
    send-recv                                messages, packed at both ends in the order of a list

A row is what lies behind one index of the first axis; in flat arrays, an element. What HCCL checks
of the parameters, the operators check; here is what only the arrays tell.
"""

from hccl_py.communicator.collectives.equal import barrier, from_root, same
from hccl_py.communicator.collectives.messages import batch, ring
from hccl_py.communicator.collectives.parts import blocks, exchange
from hccl_py.communicator.collectives.ranks import Inputs, Ranks, index_of
from hccl_py.communicator.collectives.reductions import averaged, check_average, reduction

__all__ = [
    "Inputs",
    "Ranks",
    "averaged",
    "barrier",
    "batch",
    "blocks",
    "check_average",
    "exchange",
    "from_root",
    "index_of",
    "reduction",
    "ring",
    "same",
]
