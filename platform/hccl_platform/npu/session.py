"""A session of one rank on one NPU.

    run ──► enqueue on main, which is the caller's stream, and on streams of our own ──► return
                                       │
    the devices                        └─► copies, reductions and notifies, device to device

The host never waits for a run. So a program must be over for a rank, and for its memory, when its
main stream is (`check_ends`): then whatever the caller enqueues next comes after it, and so does
the next op, whose first tasks touch the same CCL buffers.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from hccl_platform.lowering.part import part_of
from hccl_platform.lowering.responses import Responses
from hccl_platform.npu.acl import AclError
from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.capabilities import Neighbourhood, probe
from hccl_platform.npu.driver import Driver, TaskError
from hccl_platform.npu.failures import History, Run
from hccl_platform.npu.issue import Bound, enqueue
from hccl_platform.npu.resources import Resources
from hccl_platform.npu.streams import Streams
from hccl_platform.processes.world import check_process
from hccl_py.communicator.device_arrays import DeviceArray, address_of
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import (
    ExecTimeoutError,
    HcclError,
    NotSupportedError,
    ParameterError,
    PeerLostError,
)
from hccl_py.plugins.platforms import Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.ends import check_ends
from hccl_py.program.program import Program

LOGGER = logging.getLogger(__name__)

_LOOK_S = 1.0
"""How often a rank that waits for its device looks whether another one has failed."""


class NpuSession:
    """Memory, notifies and streams of one rank. All ranks open it together, and make the same calls
    in the same order. An error of a device ends it.
    """

    def __init__(
        self,
        agreement: Agreement,
        device: int,
        driver: Driver,
        streams: Streams,
        ccl_bytes: int,
        limit_s: float | None = None,
    ) -> None:
        self._agreement, self._driver, self._streams = agreement, driver, streams
        self._rank, self._process = agreement.rank, os.getpid()
        self._limit_s = math.ceil(limit_s or 0)  # Ascend's waits take whole seconds
        self._lock = threading.RLock()
        self._error: HcclError | None = None
        self._is_closed = False
        self._last: int | None = None
        found = agreement.gather("to open its device", [device, driver.process()])
        devices, processes = zip(*found, strict=True)
        self._check_devices(devices)
        around = Neighbourhood(self._rank, devices, processes)
        self.capabilities = probe(driver, agreement, around)
        self._history = History(self._rank, self._limit_s)
        if self.capabilities.exception_info:
            driver.watch(self._task_failed)
        self._resources = Resources(driver, agreement, around, ccl_bytes)
        self._responses = Responses()
        self._bounds: WeakKeyDictionary[Program, dict[str, Bound]] = WeakKeyDictionary()
        self._tags: set[str] = set()
        self._numbers: dict[int, int] = {}

    @property
    def local_ranks(self) -> range:
        return range(self._rank, self._rank + 1)

    @property
    def likes(self) -> Sequence[DeviceArray]:
        return [self._streams.like()]

    @property
    def inline_reductions(self) -> frozenset[tuple[DataType, ReduceOp]]:
        return self.capabilities.inline_reduce

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        self._check_usable()
        return self._responses.of(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        """Nothing is prepared before the first run, which all ranks begin together."""
        self._check_usable()

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        stream: object = None,
    ) -> Work:
        with self._lock:
            self._check_usable()
            self._check_arrays(program, inputs, outputs)
            self._driver.enter()
            main = self._streams.main(stream)
            try:
                bound = self._bound(tag, program, main)
                if self._last not in (None, main):
                    self._driver.follow(main, self._last)
                self._last = main
                self._enqueue(tag, bound, main, (address_of(inputs[0]), address_of(outputs[0])))
            except AclError as error:
                raise self._failed(self._history.error(error.message)) from error
            except (PeerLostError, ExecTimeoutError) as error:
                self._ended(error)
                raise
            return Enqueued(self, main)

    def synchronize(self) -> None:
        with self._lock:
            self._check_usable()
            if self._last is not None:
                self._driver.enter()
                self._wait_for(self._last)

    def gather(self, data: bytes) -> list[bytes]:
        with self._lock:
            self._check_usable()
            try:
                return self._agreement.exchange("to gather values", data)
            except (PeerLostError, ExecTimeoutError) as error:
                self._ended(error)
                raise

    def abort(self, error: BaseException) -> None:
        """Let all ranks know; what their devices are at ends when its waits take too long."""
        self._agreement.fail(str(error))

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if os.getpid() != self._process:
            return
        in_step = self._error is None
        self._driver.enter()
        try:
            if in_step and self._last is not None:
                self._wait_for(self._last)
        except HcclError:
            in_step = False
            LOGGER.exception("closing rank %d's session", self._rank)
        try:
            if self.capabilities.exception_info:
                self._driver.watch(None)
            self._resources.close(in_step=in_step)
            self._streams.close()
        except AclError:
            if in_step:
                raise
        finally:
            self._bounds.clear()
            self._responses.clear()

    def is_idle(self, main: int) -> bool:
        """Whether the device has done all that was enqueued on a main stream."""
        return self._driver.is_idle(main)

    def _bound(self, tag: str, program: Program, main: int) -> Bound:
        """Return a program with addresses and notifies: all ranks make them at its first run."""
        bounds = self._bounds.setdefault(program, {})
        if tag not in bounds:
            self._check_program(program)
            if self._driver.is_captured(main):
                raise NotSupportedError(
                    f"{program.executor} runs for the first time while a graph is captured.",
                    "Make the call once before the capture: its resources come with the first run.",
                )
            if tag in self._tags and self._last is not None:
                self._wait_for(self._last)  # a larger program may replace what the tag has
            part = part_of(program, self._rank)
            sizes = self._responses.of(tag, program).scratch_bytes
            places, notifies = self._resources.provide(tag, program, part, sizes)
            bounds[tag] = Bound.of(program, part, places, notifies, self._driver.most_bytes)
            self._tags.add(tag)
        return bounds[tag]

    def _enqueue(self, tag: str, bound: Bound, main: int, user: tuple[int, int]) -> None:
        driver = self._driver
        handles = [main, *(self._streams.sub(k) for k in range(1, bound.streams))]
        numbers = tuple(self._number(handle) for handle in handles)
        run = Run(bound, tag, numbers)
        self._history.begin(run)
        note = None
        if self.capabilities.exception_info:
            tasks, last_task = run.tasks, driver.last_task

            def note() -> None:
                tasks.append(last_task())

        enqueue(bound, driver, user, handles, self._limit_s, self._streams.reduce, note)

    def _number(self, handle: int) -> int:
        if handle not in self._numbers:
            self._numbers[handle] = self._driver.stream_number(handle)
        return self._numbers[handle]

    def _wait_for(self, main: int) -> None:
        """Wait for a main stream; meanwhile look whether another rank has failed."""
        try:
            while not self._driver.synchronize(main, _LOOK_S):
                failure = self._agreement.failure()
                if failure is not None and failure[0] != self._rank:
                    rank, text = failure
                    error = PeerLostError(f"Rank {rank} has failed: {text}", "Start the job anew.")
                    raise self._ended(error)
        except AclError as error:
            raise self._failed(self._history.error(error.message)) from error
        if self._history.has_failed:
            raise self._failed(self._history.error("a task has failed."))

    def _task_failed(self, failed: TaskError) -> None:
        """Called by the runtime, from a thread of its own."""
        self._history.note(failed)

    def _failed(self, error: HcclError) -> HcclError:
        """End the session with an error of this rank's, and let all ranks know."""
        is_first = self._error is None
        self._ended(error)
        if is_first:
            self._agreement.fail(error.message)
        return error

    def _ended(self, error: HcclError) -> HcclError:
        """Note the error that ends the session: the first one stays."""
        if self._error is None:
            self._error = error
            LOGGER.error("rank %d: %s", self._rank, error.message)
        return error

    def _check_devices(self, devices: Sequence[int]) -> None:
        for rank, device in enumerate(devices):
            if device in devices[:rank]:
                other = devices.index(device)
                raise ParameterError(
                    f"Ranks {other} and {rank} are both on NPU {device}.",
                    "Start one process for every NPU; LOCAL_RANK says which is whose.",
                )

    def _check_program(self, program: Program) -> None:
        """Refuse what NPUs cannot run, before anything is made for it."""
        for is_there, what, instead in (
            (program.counts_posts, "has notifies that count posts", "notifies hold one bit"),
            (program.alternating, "has buffers that alternate", "programs keep their memory"),
        ):
            if is_there:
                raise NotSupportedError(
                    f"{program.executor or program.op.name} {what}, and on NPUs {instead}.",
                    "Run it on the emulated, distributed or device platform.",
                )
        tasks = program.tasks
        if (tasks.kind == TaskKind.COMPUTE).any():
            raise NotSupportedError(
                f"{program.executor} has compute tasks, which stand for kernels of its author's.",
                "The npu platform moves and reduces data only; simulate this one.",
            )
        check_ends(program)
        remote = (TaskKind.READ_REDUCE, TaskKind.WRITE_REDUCE)
        reducing = [(b, i) for b in program.batches for i in b.instructions if i.kind in remote]
        for _, i in reducing:
            way = (DataType.from_number(int(i.dtype)), ReduceOp(int(i.reduce)))
            if way not in self.capabilities.inline_reduce:
                raise NotSupportedError(
                    f"{program.executor} reduces {way[0].value} by {way[1].spelling} on the way, "
                    "and these NPUs do not.",
                    "Plan it with this communicator, which records it without; an executor that "
                    "asks `rank.inline_reduce` can do so.",
                )

    def _check_arrays(
        self, program: Program, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        for what, arrays, name in (("input", inputs, "IN"), ("output", outputs, "OUT")):
            if len(arrays) != 1:
                raise ParameterError(
                    f"There are {len(arrays)} {what}s for rank {self._rank}.", "Give one array."
                )
            needed = int(program.buffer_sizes[self._rank, program.buffers.index(name)])
            if arrays[0].nbytes != needed:
                raise ParameterError(
                    f"Rank {self._rank}'s {what} has {arrays[0].nbytes} bytes, the program needs "
                    f"{needed}.",
                    "Record a program for this count and data type.",
                )
            if isinstance(arrays[0], DeviceArray) and arrays[0].size:
                self._streams.check(arrays[0])

    def _check_usable(self) -> None:
        if self._is_closed:
            raise ParameterError("The session is closed.", "Open a new one.")
        check_process(self._process)
        if self._error is None and self._history.has_failed:
            raise self._failed(self._history.error("a task has failed."))
        if self._error is not None:
            raise HcclError(
                f"The session has failed: {self._error.message}",
                "Close it, and start the job anew.",
            )


class Enqueued:
    """A run on the caller's stream: what is enqueued there next comes after it."""

    def __init__(self, session: NpuSession, main: int) -> None:
        self._session, self._main = session, main

    def wait(self, timeout_s: float | None = None) -> None:
        """Return at once: the caller's stream waits, and the host need not."""

    def is_completed(self) -> bool:
        """Whether the device has done all that was enqueued on the stream."""
        return self._session.is_idle(self._main)
