"""Sessions on devices: arrays of the host where the device is the CPU, tensors elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch

from hccl_platform.device.clocks import Clock, EventClock, HostClock
from hccl_platform.device.devices import Devices, Stream
from hccl_platform.device.issue_order import IssueOrder, issue_order
from hccl_platform.device.issuing import Issuer
from hccl_platform.device.memory import DeviceMemory, user_slots
from hccl_platform.lowering.halves import Halves
from hccl_platform.lowering.responses import Responses
from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.plugins.platforms import DONE, TaskTimes, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program


class DeviceSession:
    """All ranks of a communicator; a rank is on the device of its number in the world, modulo their
    number.
    """

    def __init__(self, devices: Devices, world_ranks: Sequence[int], ccl_bytes: int) -> None:
        self._devices = devices
        self._place = [rank % devices.count for rank in world_ranks]
        self._memory = DeviceMemory(devices, self._place, ccl_bytes)
        self._issuer = Issuer(devices, self._place)
        self._responses = Responses()
        self._halves = Halves()
        self._orders: WeakKeyDictionary[Program, IssueOrder] = WeakKeyDictionary()
        self._is_closed = False

    @property
    def local_ranks(self) -> range:
        return range(len(self._place))

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        self._check_open()
        return self._responses.of(tag, program)

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
        clock: Clock
        clock = EventClock(self._devices) if self._devices.is_asynchronous else HostClock()
        self._run(tag, program, inputs, outputs, clock=clock)
        return clock.times(len(program.tasks))

    def gather(self, data: bytes) -> list[bytes]:
        return [data]

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._devices.synchronize()
            self._orders.clear()
            self._responses.clear()
            self._memory.clear()

    def _run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        callers: Sequence[Stream] = (),
        clock: Clock | None = None,
    ) -> None:
        self._check_open()
        order = self._order(program)
        self._check_writeable(order, inputs, outputs)
        half = self._halves.next(tag, program)
        slots = self._memory.slots(tag, program, order.used, half)
        slots |= user_slots(program, inputs, outputs)
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

    def _check_open(self) -> None:
        if self._is_closed:
            raise ParameterError("The session is closed.", "Open a new one.")

    def _check_writeable(
        self, order: IssueOrder, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        names = order.buffers
        for slot in order.written_user_slots:
            rank, buffer = divmod(slot, len(names))
            array = (inputs if names[buffer] == "IN" else outputs)[rank]
            if not array.flags.writeable:
                raise ParameterError(
                    f"{order.executor} writes rank {rank}'s {names[buffer]}, "
                    "and that array is read-only.",
                    "Give an array that can be written.",
                )


class AsynchronousSession(DeviceSession):
    """On devices whose streams go on by themselves: runs are enqueued between what the caller has
    put on its current stream of each device and what it puts there next.
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
