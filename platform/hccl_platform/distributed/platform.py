"""The distributed platform: one process for every rank."""

from __future__ import annotations

from collections.abc import Callable

from hccl_platform.distributed.between_hosts import MessageSession
from hccl_platform.distributed.launch import launch
from hccl_platform.distributed.messages import open_messages
from hccl_platform.distributed.session import SharedSession
from hccl_platform.distributed.world import World, is_started, world_of_environment
from hccl_py.config import Config
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.platforms import Group, Schedule
from hccl_py.topology.topology import Topology

__all__ = ["DistributedPlatform"]


class DistributedPlatform:
    """Runs programs in processes of their own, which somebody has started: every process owns one
    rank. `world` says which; without it whoever started the process is asked.
    """

    name = "distributed"
    clock = "wall"

    def __init__(self, world: World | None = None) -> None:
        self._world = world

    def launch(self, ranks: int, work: Callable[[], int]) -> int | None:
        """Start the processes, unless somebody has started this one as one of several."""
        if self._world is not None or is_started():
            return None
        return launch(ranks, work)

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> SharedSession | None:
        if schedule is not None:
            raise NotSupportedError(
                "The distributed platform runs streams as they come: it takes no schedule.",
                "Leave the schedule out, or take the emulated platform.",
            )
        world = self._world or world_of_environment()
        if max(group.world_ranks) >= world.size:
            raise ParameterError(
                f"The communicator has {max(group.world_ranks) + 1} ranks, and the job "
                f"{world.size} processes.",
                "Start as many processes as there are ranks.",
            )
        if world.rank not in group.world_ranks:
            return None
        hosts = world.hosts_of(group.world_ranks)
        rank, key = group.world_ranks.index(world.rank), world.key_of(group.name)
        limit_s = config.wait_seconds(topology.product)
        settings = f"{topology!r}, HCCL_BUFFSIZE {config.buffsize_mb}"
        if len(set(hosts)) == 1 and config.wire is None:
            return SharedSession(
                rank, len(hosts), world.store, key, config.ccl_bytes, limit_s, settings
            )
        if config.wire is not None:  # messages even where memory could be shared
            hosts = tuple(map(str, group.world_ranks))
        numbers = [hosts.index(host) for host in hosts]
        messages = open_messages(config.wire, world, group, key, limit_s)
        return MessageSession(
            rank, numbers, world.store, key, config.ccl_bytes, messages, limit_s, settings
        )
