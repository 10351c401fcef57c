"""Recording as on HCCL's C++ programming API: threads, channels and one HCCL buffer per rank.

An executor whose `resources` returns `ChannelResources` gets a `ChannelRank` in `orchestrate`. What
it records is a program like any other.
"""

from hccl_py.orchestration.channels.channel import Channel
from hccl_py.orchestration.channels.rank import ChannelRank
from hccl_py.orchestration.channels.thread import Thread

__all__ = ["Channel", "ChannelRank", "Thread"]
