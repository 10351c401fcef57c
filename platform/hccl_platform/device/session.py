"""Sessions on devices: arrays of the host where the device is the CPU, tensors elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from hccl_platform.device.clocks import TaskClock
from hccl_platform.device.devices import Devices, Stream, Tensor
from hccl_platform.device.issue_order import IssueOrder, issue_order
from hccl_platform.device.issuing import Issuer
from hccl_platform.lowering.memory import Memory, user_arrays
from hccl_platform.lowering.session_state import SessionState
from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.plugins.platforms import DONE, TaskTimes, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program


class DeviceSession:
    """All ranks of a communicator. Rank r of the world is on device r modulo their number."""

    def __init__(self, devices: Devices, world_ranks: Sequence[int], ccl_bytes: int) -> None:
        self._devices = devices
        self._place = [rank % devices.count for rank in world_ranks]
        self._memory: Memory[Any] = Memory(
            ccl_bytes,
            lambda rank, size: devices.zeros(self._place[rank], size),
            drain=devices.synchronize,
        )
        self._issuer = Issuer(devices, self._place)
        self._state = SessionState()
        self._orders: WeakKeyDictionary[Program, IssueOrder] = WeakKeyDictionary()

    @property
    def local_ranks(self) -> range:
        return range(len(self._place))

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        return self._state.response(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        self._order(program)

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        stream: object = None,
    ) -> Work:
        self._run(tag, program, inputs, outputs, callers=self._streams_of(stream))
        return DONE

    def time_tasks(
        self, tag: str, program: Program, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> TaskTimes:
        clock = TaskClock(self._devices)
        self._run(tag, program, inputs, outputs, clock=clock)
        return clock.times(len(program.tasks))

    def gather(self, data: bytes) -> list[bytes]:
        return [data]

    def close(self) -> None:
        if self._state.close():
            self._devices.synchronize()
            self._orders.clear()
            self._memory.clear()

    def _run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        callers: Sequence[Stream] = (),
        clock: TaskClock | None = None,
    ) -> None:
        self._state.check()
        order = self._order(program)
        arrays = user_arrays(program, self.local_ranks, inputs, outputs, order.written)
        half = self._state.next_half(tag, program)
        slots = self._memory.slots(tag, program, order.used, half)
        slots |= {slot: bytes_of(array) for slot, array in arrays.items()}
        self._issuer.run(order, slots, callers, clock)

    def _streams_of(self, stream: object) -> Sequence[Stream]:
        if stream is None:
            return ()
        if not callable(getattr(stream, "wait_event", None)):
            raise ParameterError(
                f"stream is a {type(stream).__name__}.",
                f"Give a stream of torch.{self._devices.kind}, or none for the current one.",
            )
        return (stream,)

    def _order(self, program: Program) -> IssueOrder:
        if program not in self._orders:
            self._orders[program] = issue_order(program, self._place)
        return self._orders[program]


class AsynchronousSession(DeviceSession):
    """A session on devices with asynchronous streams: runs are enqueued between the earlier and the
    later work of the caller on its current stream of each device.
    """

    @property
    def likes(self) -> Sequence[DeviceArray]:
        return [
            DeviceArray(torch.empty(0, device=self._devices.device(index))) for index in self._place
        ]

    @property
    def inline_reductions(self) -> frozenset[tuple[DataType, ReduceOp]] | None:
        return None

    def synchronize(self) -> None:
        self._devices.synchronize()


def bytes_of(array: Any) -> Tensor:
    """Return the memory of a flat array as a tensor of bytes."""
    if isinstance(array, DeviceArray):
        return array.tensor.view(torch.uint8)
    flat = array.view(np.uint8)
    return torch.from_numpy(flat if flat.flags.writeable else _unlocked(flat))


class _Unlocked:
    """A read-only array that numpy takes for writable memory: torch warns of read-only arrays, even
    if it only reads them.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {
            "data": (array.__array_interface__["data"][0], False)
        }


def _unlocked(array: Any) -> Any:
    return np.asarray(_Unlocked(array))
