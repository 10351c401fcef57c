"""A contest's AllReduce on two servers of eight NPUs: its variants, and the choice by size."""

from contest_all_reduce.common import TwoServers
from contest_all_reduce.large import Packed, Striped, TwoAxes, TwoLanes, TwoLanesSafe, TwoSlots
from contest_all_reduce.small import Halving, OneThread, TwoAxesOnce
from hccl_py.plugins.executor import BySize

__all__ = [
    *("EXECUTORS", "ContestAllReduce", "OneThread", "Halving", "TwoAxesOnce", "TwoSlots"),
    *("Packed", "Striped", "TwoAxes", "TwoLanes", "TwoLanesSafe"),
]


class ContestAllReduce(BySize):
    """The variants that the measured times recommend."""

    op = TwoServers.op
    algorithm = TwoServers.algorithm
    sizes = ((0, Halving), ((1 << 20) + 1, TwoLanesSafe))


EXECUTORS = (
    *(ContestAllReduce, OneThread, Halving, TwoAxesOnce),
    *(TwoSlots, Packed, Striped, TwoAxes, TwoLanes, TwoLanesSafe),
)
