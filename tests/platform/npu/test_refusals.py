"""The fake refuses what CANN documents as refused, with its codes, and without falling over."""

import pytest

from tests.platform.npu.remote import (
    D2D,
    D2H,
    H2D,
    INT,
    KEY,
    LONG,
    POINTER,
    SUM,
    Npu,
    Refused,
)
from tests.platform.npu.runtime import Machine

pytestmark = pytest.mark.npu

INVALID, UNINITIALIZED, REPEATED = 100000, 100001, 100002
PARAMETER, NO_DEVICE, NO_CONTEXT, OTHER_STREAM, DEAD = 107000, 107001, 107002, 107003, 107017
UNSUPPORTED, NO_MEMORY, NO_NOTIFY = 207000, 207001, 207009
DRIVER = 507899
PAGE, HUGE_PAGE = 4096, 2 << 20
FP32, INT64, UINT8, FP64 = 0, 9, 4, 11


def test_what_comes_before_a_device_is_set(machine: Machine) -> None:
    with machine.process(device=None) as npu:
        assert npu.code("aclrtSetDevice", 0) == UNINITIALIZED
        npu.call("aclInit", None)
        assert npu.code("aclInit", None) == REPEATED
        assert npu.code("aclrtMalloc", POINTER, PAGE, 0) == NO_CONTEXT
        assert npu.code("aclrtCreateStream", POINTER) == NO_CONTEXT
        assert npu.code("aclrtSetDevice", 8) == NO_DEVICE
        assert npu.call("aclrtGetDeviceCount", INT) == 8


def test_null_handles(machine: Machine) -> None:
    with machine.process() as npu:
        stream = npu.stream()
        assert npu.code("aclrtRecordNotify", None, stream) == INVALID
        assert npu.code("aclrtWaitAndResetNotify", None, stream, 1) == INVALID
        assert npu.code("aclrtDestroyNotify", None) == INVALID
        assert npu.code("aclrtDestroyStream", None) == INVALID
        assert npu.code("aclrtDestroyEvent", None) == INVALID
        assert npu.code("aclrtMemcpyAsync", None, 8, None, 8, D2D, stream) == INVALID


def test_handles_that_are_dead_or_of_another_kind(machine: Machine) -> None:
    with machine.process() as npu:
        stream, other, notify = npu.stream(), npu.stream(), npu.notify()
        event = npu.call("aclrtCreateEventExWithFlag", POINTER, 1)
        npu.call("aclrtDestroyStream", other)
        npu.call("aclrtDestroyNotify", notify)
        npu.call("aclrtDestroyEvent", event)
        assert npu.code("aclrtRecordNotify", notify, stream) == DEAD
        assert npu.code("aclrtRecordNotify", stream, stream) == DEAD
        assert npu.code("aclrtDestroyNotify", notify) == DEAD
        assert npu.code("aclrtSynchronizeStream", other) == DEAD
        assert npu.code("aclrtDestroyStream", other) == DEAD
        assert npu.code("aclrtRecordEvent", event, stream) == DEAD
        assert npu.code("aclrtStreamWaitEvent", stream, notify) == DEAD


def test_streams_notifies_and_events_of_another_device(machine: Machine) -> None:
    with machine.process(device=1) as npu:
        stream, notify = npu.stream(), npu.notify()
        event = npu.call("aclrtCreateEventExWithFlag", POINTER, 1)
        memory = npu.malloc(PAGE)
        npu.call("aclrtSetDevice", 0)
        own = npu.stream()
        assert npu.code("aclrtSynchronizeStream", stream) == 0
        assert npu.code("aclrtDestroyStream", stream) == OTHER_STREAM
        assert npu.code("aclrtMemsetAsync", memory, PAGE, 0, PAGE, stream) == OTHER_STREAM
        assert npu.code("aclrtRecordNotify", notify, stream) == OTHER_STREAM
        assert npu.code("aclrtRecordNotify", notify, own) == PARAMETER
        assert npu.code("aclrtWaitAndResetNotify", notify, own, 1) == PARAMETER
        assert npu.code("aclrtRecordEvent", event, own) == OTHER_STREAM
        assert npu.code("aclrtStreamWaitEvent", own, event) == OTHER_STREAM


def test_what_went_wrong_is_told_once(machine: Machine) -> None:
    with machine.process() as npu:
        with pytest.raises(Refused) as refusal:
            npu.call("aclrtMalloc", POINTER, 0, 0)
        assert str(refusal.value) == "aclrtMalloc: a null pointer, or nothing to allocate (107000)"
        assert npu.ask("message") is None


def test_events_that_streams_do_not_wait_for(machine: Machine) -> None:
    with machine.process() as npu:
        stream, progress = npu.stream(), npu.call("aclrtCreateEventExWithFlag", POINTER, 2)
        npu.call("aclrtRecordEvent", progress, stream)
        assert npu.code("aclrtStreamWaitEvent", stream, progress) == PARAMETER
        npu.call("aclrtSynchronizeEvent", progress)


def test_memory(machine: Machine) -> None:
    with machine.process(MEMORY=4 * HUGE_PAGE) as npu:
        assert npu.code("aclrtMalloc", POINTER, 0, 0) == PARAMETER
        memory = npu.malloc(2 * HUGE_PAGE + 1)  # of huge pages: 3 of 4
        assert memory % HUGE_PAGE == 0
        assert npu.call("aclrtGetMemInfo", 1, LONG, LONG) == [HUGE_PAGE, 4 * HUGE_PAGE]
        assert npu.code("aclrtMalloc", POINTER, HUGE_PAGE + 1, 0) == NO_MEMORY
        assert npu.code("aclrtFree", memory + PAGE) == PARAMETER
        npu.call("aclrtFree", memory)
        assert npu.code("aclrtFree", memory) == PARAMETER


def test_copies_and_fills(machine: Machine) -> None:
    with machine.process(MOST_BYTES=PAGE) as npu:
        stream = npu.stream()
        a, b, host = (
            npu.malloc(2 * PAGE),
            npu.malloc(2 * PAGE),
            npu.call("aclrtMallocHost", POINTER, PAGE),
        )
        copy = ("aclrtMemcpyAsync", a, 2 * PAGE, b)
        assert npu.code(*copy, PAGE, D2D, stream) == 0
        assert npu.code(*copy, PAGE + 1, D2D, stream) == PARAMETER  # more than one copy moves
        assert npu.code("aclrtMemcpyAsync", a, 8, b, 9, D2D, stream) == PARAMETER
        assert npu.code("aclrtMemcpyAsync", a, 8, b, 8, H2D, stream) == PARAMETER
        assert npu.code("aclrtMemcpyAsync", a, 8, b, 8, D2H, stream) == PARAMETER
        assert npu.code("aclrtMemcpyAsync", a, 8, host, 8, H2D, stream) == 0
        assert npu.code("aclrtMemcpyAsync", a, 8, host, 8, D2D, stream) == PARAMETER
        end = a + 2 * PAGE - 4
        assert npu.code("aclrtMemcpyAsync", end, 8, b, 8, D2D, stream) == PARAMETER
        assert npu.code("aclrtMemsetAsync", end, 8, 0, 8, stream) == PARAMETER
        assert npu.code("aclrtMemsetAsync", a, 4, 0, 8, stream) == PARAMETER
        npu.synchronize(stream)


def test_reduces(machine: Machine) -> None:
    with machine.process(MOST_BYTES=PAGE) as npu:
        stream, a, b = npu.stream(), npu.malloc(2 * PAGE), npu.malloc(2 * PAGE)

        def code(count: int, kind: int, number: int, reserved: int | None = None) -> int:
            return npu.code("aclrtReduceAsync", a, b, count, kind, number, stream, reserved)

        assert code(8, SUM, FP32) == 0
        assert code(8, 13, FP32) == PARAMETER  # no PROD
        assert [code(8, SUM, one) for one in (INT64, UINT8, FP64)] == [
            INVALID,
            UNSUPPORTED,
            INVALID,
        ]
        assert code(6, SUM, FP32) == PARAMETER  # bytes, and no half of a number
        assert code(PAGE + 4, SUM, FP32) == PARAMETER
        assert code(8, SUM, FP32, stream) == INVALID
        npu.synchronize(stream)


def test_reduces_of_local_memory_only(machine: Machine) -> None:
    with machine.process(REDUCE="local") as npu:
        near = npu.malloc(PAGE)
        npu.call("aclrtSetDevice", 1)
        far = npu.malloc(PAGE)
        npu.call("aclrtSetDevice", 0)
        npu.call("aclrtDeviceEnablePeerAccess", 1, 0)
        stream = npu.stream()
        assert npu.code("aclrtReduceAsync", near, near, 8, SUM, FP32, stream, None) == 0
        assert npu.code("aclrtReduceAsync", far, near, 8, SUM, FP32, stream, None) == PARAMETER
        assert npu.code("aclrtReduceAsync", near, far, 8, SUM, FP32, stream, None) == PARAMETER
        npu.synchronize(stream)


def test_keys_are_of_whole_allocations(machine: Machine) -> None:
    with machine.process() as npu:
        memory = npu.malloc(2 * HUGE_PAGE)
        export = "aclrtIpcMemGetExportKey"
        assert npu.code(export, memory + HUGE_PAGE, PAGE, KEY, 65, 1) == PARAMETER
        assert npu.code(export, memory, PAGE, KEY, 64, 1) == PARAMETER
        assert npu.code(export, memory, 2 * HUGE_PAGE + 1, KEY, 65, 1) == PARAMETER
        key = npu.call(export, memory, 2 * HUGE_PAGE, KEY, 65, 1)
        assert len(key) == 64
        assert npu.code("aclrtIpcMemImportByKey", POINTER, key[:-1], 1) == PARAMETER
        assert npu.code("aclrtIpcMemClose", b"nobody's") == PARAMETER


def exhausted(npu: Npu) -> int:
    """How many notifies a process gets until there are none."""
    for count in range(8193):
        code = npu.code("aclrtCreateNotify", POINTER, 0)
        if code:
            assert code == NO_NOTIFY
            return count
    raise AssertionError("no end of notifies")


def test_notifies_are_exhausted_over_all_processes_of_a_device(machine: Machine) -> None:
    with (
        machine.process(NOTIFIES=5) as one,
        machine.process(NOTIFIES=5) as two,
        machine.process(device=1, NOTIFIES=5) as other,
    ):
        notifies = [one.notify(), one.notify()]
        assert exhausted(two) == 3
        assert one.code("aclrtCreateNotify", POINTER, 0) == NO_NOTIFY
        one.call("aclrtDestroyNotify", notifies[0])
        assert exhausted(two) == 1
        assert exhausted(other) == 5


def test_a_device_has_8192_notifies(machine: Machine) -> None:
    with machine.process() as npu:
        assert exhausted(npu) == 8192


@pytest.mark.parametrize("kind", ["aclrtMemcpyAsync", "aclrtReduceAsync"])
def test_memory_out_of_reach(machine: Machine, kind: str) -> None:
    with machine.process(device=1) as npu:
        far = npu.malloc(PAGE)
        npu.call("aclrtSetDevice", 0)
        near, stream = npu.malloc(PAGE), npu.stream()
        ends = {
            "aclrtMemcpyAsync": (near, 8, far, 8, D2D, stream),
            "aclrtReduceAsync": (near, far, 8, SUM, FP32, stream, None),
        }
        assert npu.code(kind, *ends[kind]) == DRIVER
        npu.call("aclrtDeviceEnablePeerAccess", 1, 0)
        assert npu.code(kind, *ends[kind]) == 0
        npu.synchronize(stream)
        npu.call("aclrtDeviceDisablePeerAccess", 1)
        assert npu.code(kind, *ends[kind]) == DRIVER


def test_no_peer_access_at_all(machine: Machine) -> None:
    with machine.process(P2P=0) as npu:
        assert npu.call("aclrtDeviceCanAccessPeer", INT, 0, 1) == 0
        assert npu.code("aclrtDeviceEnablePeerAccess", 1, 0) == UNSUPPORTED
    with machine.process() as npu:
        assert npu.call("aclrtDeviceCanAccessPeer", INT, 0, 1) == 1
        assert npu.call("aclrtDeviceCanAccessPeer", INT, 1, 1) == 0
        assert npu.code("aclrtDeviceEnablePeerAccess", 0, 0) == NO_DEVICE
        assert npu.code("aclrtDeviceEnablePeerAccess", 1, 7) == PARAMETER


def test_where_memory_is(machine: Machine) -> None:
    with machine.process(device=3) as npu:
        near, host = npu.malloc(HUGE_PAGE), npu.call("aclrtMallocHost", POINTER, PAGE)
        where = (
            npu.ask("attributes", near),
            npu.ask("attributes", host),
            npu.ask("attributes", 4096),
        )
        assert where == ((3, 1, HUGE_PAGE), (0, 0, 0), (0, 2, 0))


def test_a_captured_stream(machine: Machine) -> None:
    with machine.process() as npu:
        stream, notify = npu.stream(), npu.notify()
        assert npu.call("aclmdlRICaptureGetInfo", stream, INT, POINTER) == [0, None]
        npu.call("aclmdlRICaptureBegin", stream, 0)
        assert npu.call("aclmdlRICaptureGetInfo", stream, INT, POINTER) == [1, None]
        assert npu.code("aclrtRecordNotify", notify, stream) == UNSUPPORTED
        assert npu.code("aclrtSynchronizeStream", stream) == 107027
        npu.call("aclmdlRICaptureEnd", stream, POINTER)
        npu.synchronize(stream)
