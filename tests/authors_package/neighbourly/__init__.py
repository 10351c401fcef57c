"""The executors that this package brings to hccl-py."""

from neighbourly.gather import MeshGather, NeighborExchange, Turns
from neighbourly.levels import TwoLevelGather, TwoPartRing
from neighbourly.personal import Letters, SpinAllToAll, Star
from neighbourly.reductions import HandMadeSum, RingAllReduce

__all__ = ["EXECUTORS"]

EXECUTORS = (
    MeshGather,
    NeighborExchange,
    Turns,
    TwoLevelGather,
    TwoPartRing,
    RingAllReduce,
    HandMadeSum,
    SpinAllToAll,
    Star,
    Letters,
)
