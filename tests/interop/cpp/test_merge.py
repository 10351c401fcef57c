"""Traces of ranks joined to one program."""

from hccl_interop.cpp.merge import joined_channels
from hccl_interop.cpp.traces import ChannelTrace, RankTrace


def channel_to(peer: int) -> ChannelTrace:
    return ChannelTrace(peer, layer=0, network=0, notifies=1, shown=0, stack=0)


def test_a_channel_of_one_side_names_its_rank_and_the_peer() -> None:
    """Ranks 0 and 1 meet. Rank 1 alone acquires one to the higher rank 2, as its second; rank 2
    alone one to the lower rank 0.
    """
    ranks = [
        RankTrace(0, channels=[channel_to(1)]),
        RankTrace(1, channels=[channel_to(0), channel_to(2)]),
        RankTrace(2, channels=[channel_to(0)]),
    ]
    assert joined_channels(ranks).one_sided() == [(1, 1, 2), (2, 0, 0)]
