"""Sessions of the npu platform on the fake runtime, without torch: one process for every rank.

Device memory is the process's own memory on the fake, so arrays of numpy's lie in it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_platform.npu.acl import load
from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.driver import AclDriver
from hccl_platform.npu.session import NpuSession
from hccl_platform.processes.world import World
from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import DataType, ReduceOp
from tests.platform.npu.runtime import Machine, library

KINDS = ("streams", "notifies", "imported_notifies", "memory", "imported_memory", "events")

Array = npt.NDArray[Any]


class DriverStreams:
    """Streams of the driver's own: `current` is the caller's."""

    def __init__(self, driver: AclDriver) -> None:
        self._driver = driver
        self.current = driver.make_stream()
        self._subs: list[int] = []

    def main(self, stream: object) -> int:
        return self.current if stream is None else int(stream)  # type: ignore[call-overload]

    def sub(self, number: int) -> int:
        while len(self._subs) < number:
            self._subs.append(self._driver.make_stream())
        return self._subs[number - 1]

    def like(self) -> DeviceArray:
        raise NotImplementedError

    def check(self, array: DeviceArray) -> None:
        raise NotImplementedError

    def reduce(
        self, dst: int, src: int, size: int, dtype: DataType, op: ReduceOp, stream: int
    ) -> None:
        raise NotImplementedError(f"{op} of {dtype} takes torch_npu")

    def close(self) -> None:
        for stream in self._subs:
            self._driver.destroy_stream(stream)
        self._subs.clear()

    def end(self) -> None:
        """Let go of the caller's stream, too."""
        self._driver.destroy_stream(self.current)


class Device:
    """One rank's device, session and memory."""

    def __init__(self, world: World, driver: AclDriver, session: NpuSession, streams: Any) -> None:
        self.world, self.driver, self.session, self.streams = world, driver, session, streams
        self.made = 0  # blocks of memory

    def memory(self, size: int, dtype: npt.DTypeLike) -> Array:
        """Return new memory of the device as an array."""
        self.made += 1
        return device_array(self.driver, size, np.dtype(dtype))

    def put(self, into: Array, values: Array) -> None:
        """Let a copy into memory of the device be enqueued on the caller's stream."""
        staging = self.memory(values.size, values.dtype)
        staging[:] = values
        size, stream = values.nbytes, self.streams.current
        if size:
            self.driver.copy(_address(into), _address(staging), size, stream)


def device_array(driver: AclDriver, size: int, dtype: np.dtype[Any]) -> Array:
    address = driver.allocate(max(size, 1) * dtype.itemsize, for_peers=False)
    block = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(block), np.uint8).view(dtype) if size else np.empty(0, dtype)


def open_device(
    world: World,
    machine: Machine,
    knobs: Mapping[str, object] = {},
    ccl_bytes: int = 1 << 20,
    limit_s: int = 20,
    name: str = "group",
    number: int | None = None,
) -> Device:
    """Open the session of one rank, in a process that has not used the runtime yet."""
    os.environ.update(machine.environment(**knobs))
    number = world.rank if number is None else number
    driver = AclDriver(load(str(machine.folder / "libascendcl.so")), number)
    streams = DriverStreams(driver)
    agreement = Agreement(world.store, name, world.rank, world.size, 30.0)
    session = NpuSession(agreement, number, driver, streams, ccl_bytes, limit_s)
    return Device(world, driver, session, streams)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def live(kinds: Sequence[str] = KINDS) -> dict[str, int]:
    """Return how many of the fake runtime's handles of each kind this process has."""
    fake = ctypes.CDLL(_library())
    return {kind: fake.fakeacl_live(kind.encode()) for kind in kinds}


def lost_posts() -> int:
    """Return how often this process has posted a notify that was posted already."""
    found: int = ctypes.CDLL(_library()).fakeacl_lost_posts()
    return found


def _library() -> str:
    """The fake runtime of this process, which is loaded."""
    return str(library() / "libascendcl.so")
