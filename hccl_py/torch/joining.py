"""A process joins a group: from torch's options for a backend to communicators."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.domain import Domain
from hccl_py.communicator.pending import CallQueue
from hccl_py.communicator.planning import ExecutorChooser
from hccl_py.errors import NotSupportedError, ParameterError, PeerLostError
from hccl_py.plugins.discovery import Registered, Registry, find_platform, installed_executors
from hccl_py.plugins.platforms import Group, ProcessPlatform
from hccl_py.topology import Topology, topology_of
from hccl_py.torch.presence import Presence
from hccl_py.torch.repeats import TensorCommunicator
from hccl_py.torch.settings import Settings
from hccl_py.torch.store import TorchStore, answering, store_of_attempt

if TYPE_CHECKING:
    from hccl_py.selection import Selection

PLATFORMS = {"cpu": "distributed", "npu": "npu"}
"""The platform that carries tensors, by kind of device."""
_LAST_REQUEST_S = 1.0
MESSAGE_MB = 8
"""Size of the CCL buffers of a sender and a receiver, in MB: such pairs are many, a message that is
longer goes in rounds, and what fits a cache is copied faster.
"""


@dataclass
class Member:
    """One process in a group: `rank` of `size`, on a `topology` of the group's ranks."""

    rank: int
    size: int
    name: str
    seconds: float
    settings: Settings
    topology: Topology
    config: Config
    registry: Registry
    platform: ProcessPlatform
    store: dist.Store
    presence: Presence
    gate: threading.Lock
    """Held by the thread that uses the store."""
    is_over: threading.Event = field(default_factory=threading.Event)
    """Set when the group was closed: no thread may wait for it any more."""

    @property
    def others(self) -> list[int]:
        """The ranks of the group but this one."""
        return [rank for rank in range(self.size) if rank != self.rank]

    def communicator(self, device: torch.device, calls: CallQueue) -> TensorCommunicator:
        """Open the group's communicator for tensors of a device; all its ranks do so."""
        return self._open(tuple(range(self.size)), self.name, device, self.config, calls)

    def pair(
        self, source: int, destination: int, name: str, device: torch.device, calls: CallQueue
    ) -> TensorCommunicator:
        """Open the communicator of a sender, its rank 0, and a receiver; both do so."""
        self.check_other(destination if source == self.rank else source)
        size = min(self.config.buffsize_mb, MESSAGE_MB)
        config = replace(self.config, buffsize_mb=size)
        return self._open((source, destination), name, device, config, calls)

    def check_other(self, rank: int) -> None:
        """Refuse a message of this rank to itself."""
        if rank == self.rank:
            raise ParameterError(
                f"Rank {self.rank} sends to itself.", "Copy the tensor: torch has no such message."
            )

    def shut(self) -> None:
        """Keep all threads out of the store for good: the process ends."""
        self.gate.acquire(timeout=_LAST_REQUEST_S)

    def look(self, ranks: Sequence[int]) -> None:
        """Raise PeerLostError where this group is over, or the process of one of these ranks."""
        if self.is_over.is_set():
            raise PeerLostError(
                "The process group was closed while its ranks met.",
                "Wait for calls before the group is destroyed.",
            )
        self.presence.check(ranks)

    def announce(self, destination: int, tag: int) -> None:
        """Count one message more from here."""
        with answering(self.gate):
            self.store.add(f"sent/{self.rank}/{destination}/{tag}", 1)

    def announced(self, source: int, tag: int) -> int:
        """Return the number of messages that a rank has begun to send here."""
        with answering(self.gate):
            return int(self.store.add(f"sent/{source}/{self.rank}/{tag}", 0))

    @property
    def _chooser(self) -> ExecutorChooser | None:
        return _Named(self.settings.executor) if self.settings.executor else None

    def _platform_of(self, device: torch.device) -> ProcessPlatform:
        if device.type == "cpu":
            return self.platform
        if device.type not in PLATFORMS:
            raise NotSupportedError(
                f"The tensor is on {device}.",
                f"The backend hccl_py takes tensors of {' and '.join(PLATFORMS)}.",
            )
        found = find_platform(PLATFORMS[device.type])
        assert isinstance(found, ProcessPlatform)
        return found

    def _open(
        self,
        ranks: tuple[int, ...],
        name: str,
        device: torch.device,
        config: Config,
        calls: CallQueue,
    ) -> TensorCommunicator:
        """Open the communicator of some ranks, which are a world of their own for the platform."""
        topology, rank = self.topology.subset(ranks), ranks.index(self.rank)
        config = replace(config, exec_timeout=max(1, ceil(self.seconds)))
        store = TorchStore(self.store, f"hccl_py/{name}", partial(self.look, ranks), self.gate)
        platform = self._platform_of(device).joined(
            rank, topology.size, store, self.seconds, device.index
        )
        group = Group.world(topology.size, name)
        domain = Domain(
            topology=topology,
            config=config,
            registry=self.registry,
            chooser=self._chooser,
            platform=platform,
            schedule=None,
            group=group,
            ranks=group.world_ranks,
            name=name,
        )
        return TensorCommunicator(domain, calls)


class _Named:
    """Chooses the executors that the program names for some ops, else as HCCL does."""

    def __init__(self, executors: Mapping[str, str]) -> None:
        self._executors = executors

    def select(
        self, op: OpParam, topology: Topology, config: Config, registry: Registry, *, group: str
    ) -> tuple[Selection, Registered]:
        from hccl_py.selection import select

        return select(op, topology, config, registry, self._executors.get(op.name), group=group)


def member_of(options: Any, settings: Any, world: Member | None) -> Member:
    """Return this process's place in a group that torch makes; nothing is opened yet. The settings
    are those of the world, where it is a group of ours and none are given.
    """
    settings = settings if isinstance(settings, Settings) else None
    found = settings or (world.settings if world else Settings())
    size = options.group_size
    world_size = dist.get_world_size() if dist.is_initialized() else size
    members = tuple(options.global_ranks_in_group) or tuple(range(size))
    topology = found.topology
    if isinstance(topology, str):
        topology = topology_of(world_size, preset=topology)
    if topology.size < world_size:
        raise ParameterError(
            f"The topology has {topology.size} ranks, the world {world_size} processes.",
            "Give hccl_py.torch.Settings a topology of as many ranks.",
        )
    # Plugins are loaded here, not in the threads of queues.
    platform = find_platform(PLATFORMS["cpu"])
    assert isinstance(platform, ProcessPlatform)
    registry = installed_executors().copy()
    for executor in found.executors:
        registry.add(executor, "this process group")
    config = Config.load(
        algo=found.algo,
        buffsize_mb=found.buffsize_mb,
        deterministic=found.deterministic,
        op_expansion_mode=found.expansion_mode,
    )
    gate, store = threading.Lock(), store_of_attempt(options.store)
    return Member(
        rank=options.group_rank,
        size=size,
        name=f"torch_{options.group_id}"[:100],
        seconds=options.timeout.total_seconds(),
        settings=found,
        topology=topology.subset(members),
        config=config,
        registry=registry,
        platform=platform,
        store=store,
        presence=Presence(store, options.group_rank, gate),
        gate=gate,
    )
