"""The driver of a device: memory, notifies, copies and reductions on streams, by CANN's runtime.

No other module of the platform programs hardware; another way to program it, such as HCCL's host
primitives, would be another class with these methods.

Addresses, streams and notifies are numbers. Posts, waits, copies and reductions are enqueued on a
stream; all other methods act at once.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hccl_platform.npu.acl import (
    ACL_TYPES,
    NO_NOTIFIES,
    REDUCE_KINDS,
    STREAM_TIMEOUT,
    AclError,
    ExceptionCallback,
    Library,
)
from hccl_platform.npu.peer_memory import (
    HUGE_FIRST,
    KEYS,
    KeyedMemory,
    MappedMemory,
    imported,
    listed,
    peer_memory,
)
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError

LOGGER = logging.getLogger("hccl_py.platforms.npu")

_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 1, 2, 3
_NOTIFY_WITHOUT_LIST = 2  # DISABLE_PID_VALIDATION
_NOTIFY_OF_PEER = 2  # ENABLE_PEER_ACCESS
_SYNC_EVENT = 1
_CAPTURES = 1

MOST_BYTES = 4 << 30
"""Most bytes that one task moves; larger moves are cut."""

HARDWARE_REDUCTIONS = frozenset(
    (DataType(name), ReduceOp.parse(op))
    for name in ("int8", "int16", "int32", "fp16", "fp32", "bf16")
    for op in REDUCE_KINDS
)
"""The reductions of aclrtReduceAsync."""


class TaskError(NamedTuple):
    """A task that failed on the device: its number, its stream's, the runtime's error code."""

    task: int
    stream: int
    error: int


class AclDriver:
    """One device of this process, and its peers' memory and notifies; torch_npu shares the runtime.

    Memory for peers is of `shared`; exported notifies name the processes that may open them if the
    driver `lists_processes`. Moves of more than `most_bytes` have to be cut.
    """

    def __init__(self, library: Library, device: int) -> None:
        self.most_bytes = MOST_BYTES
        self.lists_processes = False
        self.shared: KeyedMemory | MappedMemory = peer_memory(KEYS, library, device)
        self._acl, self._device = library, device
        self._callback: object = None
        self.enter()

    def enter(self) -> None:
        """Make this device the current one of the calling thread; the runtime needs that in every
        thread.
        """
        self._acl.aclrtSetDevice(self._device)

    def process(self) -> int:
        """Return this process's number in lists of processes."""
        return self._acl.number("aclrtDeviceGetBareTgid")

    def physical(self) -> int:
        """Return the device's number on the board, the same in all processes."""
        return self._acl.physical(self._device)

    def share(self, way: str) -> None:
        """Take memory for peers of one of MEMORY_WAYS from now on."""
        self.shared = peer_memory(way, self._acl, self._device)

    def reach(self, physical: int) -> bool:
        """Enable access to the memory of a device by its number on the board; False if the hardware
        has none. True where this process does not see the device, or the runtime refuses, which it
        also does where access is enabled already: then opening the peer's memory decides.
        """
        seen = {self._acl.physical(device): device for device in range(self._acl.count())}
        if physical not in seen:
            return True
        can = self._acl.can_access(self._device, seen[physical])
        if can:
            try:
                self._acl.aclrtDeviceEnablePeerAccess(seen[physical], 0)
            except AclError as error:
                LOGGER.info("access to NPU %d may be enabled already: %s", physical, error.message)
        return can

    def allocate(self, size: int, *, for_peers: bool) -> int:
        """Return the address of new memory; peers may open it if it is `for_peers`."""
        return (
            self.shared.allocate(size)
            if for_peers
            else self._acl.made("aclrtMalloc", size, HUGE_FIRST)
        )

    def free(self, address: int) -> None:
        """Release memory for peers."""
        self.shared.free(address)

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes of the host to the device, at once."""
        self._acl.aclrtMemcpy(address, len(data), data, len(data), _HOST_TO_DEVICE)

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes of the device to the host, at once."""
        found = ctypes.create_string_buffer(size)
        self._acl.aclrtMemcpy(found, size, address, size, _DEVICE_TO_HOST)
        return found.raw

    def export(self, address: int, size: int, processes: Sequence[int]) -> bytes:
        """Return a key with which these processes can open memory that begins an allocation."""
        return self.shared.export(address, size, processes)

    def open(self, key: bytes) -> int:
        """Return the address of a peer's memory."""
        return self.shared.open(key)

    def close(self, key: bytes) -> None:
        """Close a peer's memory, or end the export of this process's own."""
        self.shared.close(key)

    def make_notify(self) -> int:
        """Return a new notify, which this process waits for; NotSupportedError if none is left."""
        try:
            return self._acl.made("aclrtCreateNotify", 0)
        except AclError as error:
            if error.error != NO_NOTIFIES:
                raise
        raise NotSupportedError(
            f"Device {self._device} has no notify left: all processes on it share 8192.",
            "Close communicators that are not needed; each op's tag keeps its own.",
        )

    def export_notify(self, notify: int, processes: Sequence[int]) -> bytes:
        """Return a key with which these processes can open a notify."""
        flags = 0 if self.lists_processes else _NOTIFY_WITHOUT_LIST
        key = self._acl.key("aclrtNotifyGetExportKey", notify, flags=flags)
        if self.lists_processes:
            self._acl.aclrtNotifySetImportPid(notify, *listed(processes))
        return key

    def open_notify(self, key: bytes) -> int:
        """Return a peer's notify, which this process posts."""
        return imported(self._acl, "aclrtNotifyImportByKey", key, _NOTIFY_OF_PEER)

    def destroy_notify(self, notify: int) -> None:
        """Destroy a notify, made or opened."""
        self._acl.aclrtDestroyNotify(notify)

    def make_stream(self) -> int:
        """Return a new stream."""
        return self._acl.made("aclrtCreateStream")

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream, and drop the tasks that it has not done."""
        self._acl.aclrtDestroyStreamForce(stream)

    def stream_number(self, stream: int) -> int:
        """Return the number that the runtime's errors give a stream."""
        return self._acl.number("aclrtStreamGetId", stream)

    def is_captured(self, stream: int) -> bool:
        """True if tasks that are enqueued on a stream are captured into a graph."""
        status, model = ctypes.c_int32(), ctypes.c_void_p()
        self._acl.aclmdlRICaptureGetInfo(stream, ctypes.byref(status), ctypes.byref(model))
        return status.value == _CAPTURES

    def post(self, notify: int, stream: int) -> None:
        """Enqueue a post."""
        self._acl.aclrtRecordNotify(notify, stream)

    def wait(self, notify: int, stream: int, seconds: int) -> None:
        """Enqueue a wait, which takes the post away; 0 seconds for no limit."""
        self._acl.aclrtWaitAndResetNotify(notify, stream, seconds)

    def copy(self, dst: int, src: int, size: int, stream: int) -> None:
        """Enqueue a copy between memories of devices."""
        self._acl.aclrtMemcpyAsync(dst, size, src, size, _DEVICE_TO_DEVICE, stream)

    def reduce(
        self, dst: int, src: int, size: int, dtype: DataType, op: ReduceOp, stream: int
    ) -> None:
        """Enqueue an atomic reduction, one of HARDWARE_REDUCTIONS."""
        kind, number = REDUCE_KINDS[op.spelling], ACL_TYPES[dtype.value]
        self._acl.aclrtReduceAsync(dst, src, size, kind, number, stream, None)

    def follow(self, stream: int, earlier: int) -> None:
        """Let a stream go on after all tasks that another one has so far."""
        event = self._acl.made("aclrtCreateEventExWithFlag", _SYNC_EVENT)
        try:
            self._acl.aclrtRecordEvent(event, earlier)
            self._acl.aclrtStreamWaitEvent(stream, event)
        finally:
            self._acl.aclrtDestroyEvent(event)

    def is_idle(self, stream: int) -> bool:
        """True if a stream has done all its tasks."""
        return self._acl.number("aclrtStreamQuery", stream, kind=ctypes.c_uint32) == 0

    def synchronize(self, stream: int, seconds: float) -> bool:
        """Wait until a stream has done all its tasks; False after so many seconds."""
        try:
            self._acl.aclrtSynchronizeStreamWithTimeout(stream, max(1, int(seconds * 1e3)))
        except AclError as error:
            if error.error != STREAM_TIMEOUT:
                raise
            return False
        return True

    def last_task(self) -> int:
        """Return the number of the task that this thread enqueued last."""
        return self._acl.number("aclrtGetThreadLastTaskId", kind=ctypes.c_uint32)

    def watch(self, failed: Callable[[TaskError], None] | None) -> None:
        """Call a function, from any thread, for every task that fails on the device."""
        if failed is None:
            callback = ExceptionCallback()
        else:
            acl = self._acl

            def call(info: int) -> None:
                failed(
                    TaskError(
                        acl.aclrtGetTaskIdFromExceptionInfo(info),
                        acl.aclrtGetStreamIdFromExceptionInfo(info),
                        acl.aclrtGetErrorCodeFromExceptionInfo(info),
                    )
                )

            callback = ExceptionCallback(call)
        self._acl.aclrtSetExceptionInfoCallback(callback)
        self._callback = callback  # keeps it alive, as the runtime calls it
