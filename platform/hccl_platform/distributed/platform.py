"""The distributed platform: one process for every rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from hccl_py.call.config import Config
from hccl_py.errors import NotSupportedError
from hccl_py.plugins.platforms import Check, Group, Schedule, Store
from hccl_py.topology.topology import Topology

if TYPE_CHECKING:
    from hccl_platform.distributed.session import SharedSession
    from hccl_platform.processes.world import World


class DistributedPlatform:
    """Runs programs in processes of their own, each with one rank. `world` has the rank of this
    process; without it the environment does, as set by the launcher.

    Modules are imported on first use: commands that name another platform do not wait for them.
    """

    name = "distributed"
    clock = "wall"

    def __init__(self, world: World | None = None) -> None:
        self._world = world

    def launch(
        self,
        work: Callable[[], int],
        topology: Topology,
        config: Config,
        schedule: Schedule | None,
    ) -> int | None:
        """Start the processes; None if this one was started as one of several."""
        from hccl_platform.distributed.messages import needs_mpi
        from hccl_platform.processes.launch import launch
        from hccl_platform.processes.world import is_started

        if self._world is not None or is_started():
            return None
        import_module("hccl_platform.distributed.between_hosts")  # once, before the fork
        _refuse(schedule)  # once, and not by every process
        if config.wire == "mpi":
            raise needs_mpi()
        return launch(topology.size, work)

    def checks(self) -> Sequence[Check]:
        from hccl_platform.distributed.checks import CHECKS

        return CHECKS

    def joined(
        self, rank: int, size: int, store: Store, connect_s: float, device: int | None = None
    ) -> DistributedPlatform:
        from hccl_platform.processes.world import World

        return DistributedPlatform(World(rank, size, store, connect_s=connect_s))

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> SharedSession | None:
        _refuse(schedule)
        from hccl_platform.processes.world import world_of_environment

        world = self._world or world_of_environment()
        rank = world.rank_in(group)
        return None if rank is None else _session(world, rank, topology, config, group)


def _refuse(schedule: Schedule | None) -> None:
    if schedule is not None:
        raise NotSupportedError(
            "The distributed platform runs streams as they come: it takes no schedule.",
            "Leave the schedule out, or take the emulated platform.",
        )


def _session(
    world: World, rank: int, topology: Topology, config: Config, group: Group
) -> SharedSession:
    """Open the session of one rank: on shared memory if all are on one host, else with messages."""
    from hccl_platform.distributed.between_hosts import MessageSession
    from hccl_platform.distributed.messages import open_messenger
    from hccl_platform.distributed.session import SharedSession

    hosts = world.hosts_of(group.world_ranks)
    numbers = [hosts.index(host) for host in hosts]
    key = world.key_of(group.name)
    limit_s = config.wait_seconds(topology.product)
    settings = f"{topology!r}, HCCL_BUFFSIZE {config.buffsize_mb}"
    rest = world.store, key, config.ccl_bytes
    if len(set(hosts)) == 1 and config.wire is None:
        return SharedSession(rank, len(hosts), *rest, limit_s, settings, connect_s=world.connect_s)
    if len(set(hosts)) == 1:  # HCCL_PY_WIRE asks for messages
        numbers = list(range(len(hosts)))
    messenger = open_messenger(config.wire, world, group, key, limit_s)
    return MessageSession(rank, numbers, *rest, messenger, limit_s, settings, world.connect_s)
