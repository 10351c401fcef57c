"""The npu platform: one process for every NPU of one server."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_py.call.config import Config
from hccl_py.enums import Mode
from hccl_py.errors import HcclError, NotSupportedError
from hccl_py.plugins.platforms import Check, Group, Schedule, Store
from hccl_py.topology.topology import Topology

if TYPE_CHECKING:
    from hccl_platform.npu.session import NpuSession
    from hccl_platform.processes.world import World

_LOCAL = "LOCAL_RANK"


class NpuPlatform:
    """Runs programs on NPUs in processes of their own, each with one rank and one NPU. `world` has
    the rank of this process, `device` its NPU; without them the environment does, as set by the
    launcher.

    CANN's runtime and torch_npu are loaded when a session is opened.
    """

    name = "npu"
    clock = "wall"

    def __init__(self, world: World | None = None, device: int | None = None) -> None:
        self._world, self._device = world, device

    def launch(
        self,
        work: Callable[[], int],
        topology: Topology,
        config: Config,
        schedule: Schedule | None,
    ) -> int | None:
        """Start the processes; None if this one was started as one of several."""
        from hccl_platform.npu.streams import import_torch_npu
        from hccl_platform.processes.launch import launch
        from hccl_platform.processes.world import is_started

        if self._world is not None or is_started():
            return None
        _refuse(topology, config, schedule)  # once, and not by every process
        import_torch_npu()  # before the fork; its device is opened after it
        return launch(topology.size, work)

    def checks(self) -> Sequence[Check]:
        from hccl_platform.npu.checks import CHECKS

        return CHECKS

    def joined(
        self, rank: int, size: int, store: Store, connect_s: float, device: int | None = None
    ) -> NpuPlatform:
        from hccl_platform.processes.world import World

        return NpuPlatform(World(rank, size, store, connect_s=connect_s), device)

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> NpuSession | None:
        _refuse(topology, config, schedule)
        from hccl_platform.npu.acl import load
        from hccl_platform.npu.agreement import Agreement
        from hccl_platform.npu.driver import AclDriver
        from hccl_platform.npu.session import NpuSession
        from hccl_platform.npu.streams import TorchStreams, import_torch_npu
        from hccl_platform.processes.world import world_of_environment

        import_torch_npu()
        library = load()
        world = self._world or world_of_environment()
        rank = world.rank_in(group)
        if rank is None:
            return None
        device = self._device_of(world, len(group.world_ranks), library.count())
        streams = TorchStreams(device)
        size = len(group.world_ranks)
        key = f"npu/{world.key_of(group.name)}"
        agreement = Agreement(world.store, key, rank, size, world.connect_s)
        limit_s = config.wait_seconds(topology.product)
        try:
            return NpuSession(
                agreement, device, AclDriver(library, device), streams, config.ccl_bytes, limit_s
            )
        except BaseException as error:
            with suppress(HcclError):
                agreement.fail(error)
            raise

    def _device_of(self, world: World, ranks: int, found: int) -> int:
        """Return the NPU of this process: the only one that it sees, else the given one, or
        torchrun's local rank, or the rank among its host's.
        """
        local = os.environ.get(_LOCAL, "")
        device = self._device
        if device is None:
            device = int(local) if local.isdigit() else world.local_rank
        if found == 1:
            return 0
        if max(device + 1, ranks) > found:
            raise NotSupportedError(
                f"Rank {world.rank} of {ranks} takes NPU {device}, and this process sees {found} "
                "NPUs.",
                "Start at most as many processes as there are NPUs, and let each see all of them "
                "or one of its own (ASCEND_RT_VISIBLE_DEVICES).",
            )
        return device


def _refuse(topology: Topology, config: Config, schedule: Schedule | None) -> None:
    """Refuse calls that the platform does not run on NPUs, before anything is loaded."""
    if schedule is not None:
        raise NotSupportedError(
            "NPUs run streams as they come: the npu platform takes no schedule.",
            "Leave the schedule out, or take the emulated platform.",
        )
    if config.mode is Mode.GRAPH:
        raise NotSupportedError(
            "In graph mode peers touch user memory, and processes share CCL buffers only.",
            "Take mode op_base, or the distributed platform.",
        )
    if config.zero_copy:
        raise NotSupportedError(
            "Processes on NPUs share CCL buffers only, so no user memory is registered.",
            "Leave zero_copy out, or take the distributed platform.",
        )
    if topology.has_rdma or len(topology.servers) > 1:
        raise NotSupportedError(
            f"The npu platform runs inside one server, over SDMA: {topology.description}.",
            "Between servers take --platform distributed.",
        )
