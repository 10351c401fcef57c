"""The device platform: all ranks in this process, their streams on torch's devices."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hccl_py.call.config import Config
from hccl_py.errors import NotSupportedError
from hccl_py.plugins.platforms import Check, Group, Schedule
from hccl_py.topology.topology import Topology

if TYPE_CHECKING:
    from hccl_platform.device.devices import Devices
    from hccl_platform.device.session import DeviceSession


class DevicePlatform:
    """Runs programs on `cpu`, `cuda` or `npu`: rank r on device r modulo their number, every stream
    of a rank on a stream of its device. `devices` replaces the devices of torch, for tests.
    """

    name = "device"
    clock = "wall"

    def __init__(self, devices: Devices | None = None) -> None:
        self._devices = devices

    def checks(self) -> Sequence[Check]:
        from hccl_platform.checks import TORCH

        return (TORCH,)

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> DeviceSession:
        if schedule is not None:
            raise NotSupportedError(
                "The device platform runs streams as devices do: it takes no schedule.",
                "Leave the schedule out, or take the emulated platform.",
            )
        if find_spec("torch") is None:
            raise NotSupportedError(
                "The device platform needs torch, which is not installed.",
                "pip install 'hccl-py[torch]', or take the emulated platform.",
            )
        from hccl_platform.device.devices import devices_of
        from hccl_platform.device.session import AsynchronousSession, DeviceSession

        devices = self._devices or devices_of(config.device)
        kind = AsynchronousSession if devices.is_asynchronous else DeviceSession
        return kind(devices, group.world_ranks, config.ccl_bytes)
