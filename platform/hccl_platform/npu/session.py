"""A session of one rank on one NPU.

    run ──► enqueue on main, which is the caller's stream, and on sub streams ──► return
                                       │
    the devices                        └─► copies, reductions and notifies, device to device

The host never waits for a run. So a program must be over for a rank, and for its memory, when its
main stream is (`check_ends`): then the next work of the caller comes after it, and so does the next
op, whose first tasks touch the same CCL buffers.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from hccl_platform.lowering.memory import user_arrays
from hccl_platform.lowering.part import part_of
from hccl_platform.lowering.session_state import SessionState
from hccl_platform.npu.acl import AclError
from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.capabilities import Neighbourhood, probe
from hccl_platform.npu.driver import AclDriver, TaskError
from hccl_platform.npu.failed_tasks import History, IssuedRun
from hccl_platform.npu.issue import IssueList, enqueue
from hccl_platform.npu.resources import Resources
from hccl_platform.npu.streams import SessionStreams
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
"""Seconds between two looks of a rank that waits for its device for a rank that has failed."""


class NpuSession:
    """Memory, notifies and streams of one rank. All ranks open it together, and make the same calls
    in the same order. An error of a device ends it.
    """

    def __init__(
        self,
        agreement: Agreement,
        device: int,
        driver: AclDriver,
        streams: SessionStreams,
        ccl_bytes: int,
        limit_s: float | None = None,
    ) -> None:
        self._agreement, self._driver, self._streams = agreement, driver, streams
        self._rank = agreement.rank
        self._state = SessionState(is_of_process=True)
        self._limit_s = math.ceil(limit_s or 0)  # Ascend's waits take whole seconds
        self._lock = threading.RLock()
        self._last: int | None = None
        found = agreement.gather("to open its device", [driver.physical(), driver.process()])
        devices, processes = zip(*found, strict=True)
        self._check_devices(devices)
        around = Neighbourhood(self._rank, devices, processes)
        self.capabilities = probe(driver, agreement, around)
        self._history = History(self._rank, self._limit_s)
        if self.capabilities.exception_info:
            driver.watch(self._task_failed)
        self._resources = Resources(driver, agreement, around, ccl_bytes)
        self._issued: WeakKeyDictionary[Program, dict[str, IssueList]] = WeakKeyDictionary()
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
        return self._state.response(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        """Check the session only: resources are made in the first run, which all ranks begin
        together.
        """
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
            arrays = user_arrays(program, self.local_ranks, inputs, outputs)
            for array in arrays.values():
                if isinstance(array, DeviceArray) and array.size:
                    self._streams.check(array)
            self._driver.enter()
            main = self._streams.main(stream)
            try:
                issued = self._issue_list(tag, program, main)
                if self._last not in (None, main):
                    self._driver.follow(main, self._last)
                self._last = main
                user = address_of(inputs[0]), address_of(outputs[0])
                self._enqueue(tag, issued, main, user)
            except AclError as error:
                raise self._failed(self._history.error(error.message)) from error
            except (PeerLostError, ExecTimeoutError) as error:
                self._ended(error)
                raise
            return StreamWork(self._driver, main)

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
        """Publish the error to all ranks; tasks on their devices end when a wait times out."""
        self._agreement.fail(error)

    def close(self) -> None:
        if not self._state.close() or not self._state.is_in_owner:
            return
        in_step = self._state.error is None
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
            self._issued.clear()

    def _issue_list(self, tag: str, program: Program, main: int) -> IssueList:
        """Return a program with addresses and notifies, which all ranks make in its first run."""
        of_tags = self._issued.setdefault(program, {})
        if tag not in of_tags:
            self._check_program(program)
            if self._driver.is_captured(main):
                raise NotSupportedError(
                    f"{program.executor} runs for the first time while a graph is captured.",
                    "Make the call once before the capture: its resources come with the first run.",
                )
            if tag in self._tags and self._last is not None:
                self._wait_for(self._last)  # a larger program may replace the tag's scratch
            part = part_of(program, self._rank)
            sizes = self._state.response(tag, program).scratch_bytes
            places, notifies = self._resources.provide(tag, program, part, sizes)
            most = self._driver.most_bytes
            of_tags[tag] = IssueList.of(program, part, places, notifies, most)
            self._tags.add(tag)
        return of_tags[tag]

    def _enqueue(self, tag: str, issued: IssueList, main: int, user: tuple[int, int]) -> None:
        driver = self._driver
        handles = [main, *(self._streams.sub(k) for k in range(1, issued.streams))]
        numbers = tuple(self._number(handle) for handle in handles)
        run = IssuedRun(issued, tag, numbers)
        self._history.begin(run)
        note = None
        if self.capabilities.exception_info:
            tasks, last_task = run.tasks, driver.last_task

            def note() -> None:
                tasks.append(last_task())

        enqueue(issued, driver, user, handles, self._limit_s, self._streams.reduce, note)

    def _number(self, handle: int) -> int:
        if handle not in self._numbers:
            self._numbers[handle] = self._driver.stream_number(handle)
        return self._numbers[handle]

    def _wait_for(self, main: int) -> None:
        """Wait for a main stream; PeerLostError if another rank fails meanwhile."""
        try:
            while not self._driver.synchronize(main, _LOOK_S):
                self._agreement.check_peers()
        except PeerLostError as error:
            raise self._ended(error) from None
        except AclError as error:
            raise self._failed(self._history.error(error.message)) from error
        if self._history.has_failed:
            raise self._failed(self._history.error("a task has failed."))

    def _task_failed(self, failed: TaskError) -> None:
        """Note a failed task; the runtime calls this from a thread of its own."""
        self._history.note(failed)

    def _failed(self, error: HcclError) -> HcclError:
        """End the session with an error of this rank, and publish it to all ranks."""
        is_first = self._state.error is None
        self._ended(error)
        if is_first:
            self._agreement.fail(error)
        return error

    def _ended(self, error: HcclError) -> HcclError:
        """Keep the first error, which ends the session."""
        if self._state.error is None:
            self._state.error = error
            LOGGER.error("rank %d: %s", self._rank, error.message)
        return error

    def _check_devices(self, devices: Sequence[int]) -> None:
        for rank, device in enumerate(devices):
            if device in devices[:rank]:
                other = devices.index(device)
                raise ParameterError(
                    f"Ranks {other} and {rank} are both on NPU {device}.",
                    "Start one process for every NPU; LOCAL_RANK numbers them.",
                )

    def _check_program(self, program: Program) -> None:
        """Refuse a program that NPUs cannot run, before any resource is made for it."""
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

    def _check_usable(self) -> None:
        self._state.check()
        if self._history.has_failed:
            raise self._failed(self._history.error("a task has failed."))


class StreamWork:
    """A run on the caller's stream: the next work there comes after it."""

    def __init__(self, driver: AclDriver, main: int) -> None:
        self._driver, self._main = driver, main

    def wait(self, timeout_s: float | None = None) -> None:
        """Return at once: the caller's stream waits, and the host need not."""

    def is_completed(self) -> bool:
        """True if the device has done all tasks on the stream."""
        return self._driver.is_idle(self._main)
