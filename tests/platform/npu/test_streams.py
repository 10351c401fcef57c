"""Streams of the fake: order, failures and who hears of them, events, pauses, faults, counts."""

import json
from pathlib import Path

import pytest

from tests.platform.npu.remote import INT, KEY, POINTER, Npu
from tests.platform.npu.runtime import Machine

pytestmark = pytest.mark.npu

TIMED_OUT, NOT_IN_TIME, LOST, BROKEN_COPY, DEAD = 107020, 507046, 507010, 507013, 107017
PAGE = 4096
KINDS = ("streams", "notifies", "imported_notifies", "memory", "imported_memory", "events")


def last_task(npu: Npu) -> int:
    task: int = npu.call("aclrtGetThreadLastTaskId", INT)
    return task


def test_tasks_run_in_order(machine: Machine) -> None:
    with machine.process(DELAY_US=300) as npu:
        memory, stream = npu.malloc(PAGE), npu.stream()
        for value in range(50):
            npu.call("aclrtMemsetAsync", memory, PAGE, value, PAGE, stream)
        npu.synchronize(stream)
        assert npu.peek(memory, PAGE) == bytes([49]) * PAGE


def test_a_synchronization_that_takes_too_long(machine: Machine) -> None:
    with machine.process() as npu:
        stream, notify, other = npu.stream(), npu.notify(), npu.stream()
        npu.wait(notify, stream, 0)
        assert npu.code("aclrtSynchronizeStreamWithTimeout", stream, 20) == NOT_IN_TIME
        npu.record(notify, other)
        npu.call("aclrtSynchronizeStreamWithTimeout", stream, 60_000)


def test_a_stream_is_destroyed_in_the_middle_of_a_wait(machine: Machine) -> None:
    with machine.process() as npu:
        stream = npu.stream()
        npu.exceptions()
        npu.wait(npu.notify(), stream, 0)
        npu.call("aclrtDestroyStreamForce", stream)
        assert npu.code("aclrtSynchronizeStream", stream) == DEAD
        assert npu.exceptions() == []


def test_a_failed_task_is_told_to_the_callback(machine: Machine) -> None:
    with machine.process(2) as npu:
        npu.exceptions()
        other, stream, notify = npu.stream(), npu.stream(), npu.notify()
        memory = npu.malloc(PAGE)
        npu.copy(memory, memory, 8, stream)
        npu.wait(notify, stream, 1)
        failed = last_task(npu)
        npu.copy(memory, memory, 8, stream)
        npu.copy(memory, memory, 8, other)
        assert npu.code("aclrtSynchronizeStream", stream) == TIMED_OUT
        (told,) = npu.exceptions()
        assert told.pop("ThreadId") == npu.process.pid  # the first thread's number is the process's
        stream_id = npu.call("aclrtStreamGetId", stream, INT)
        assert told == {
            "TaskId": failed,
            "StreamId": stream_id,
            "DeviceId": 2,
            "ErrorCode": TIMED_OUT,
        }
        npu.synchronize(other)


def test_what_waits_for_an_event_behind_a_failed_task_fails_as_well(machine: Machine) -> None:
    with machine.process() as npu:
        stream, other, notify = npu.stream(), npu.stream(), npu.notify()
        event = npu.call("aclrtCreateEventExWithFlag", POINTER, 1)
        npu.wait(notify, stream, 1)
        npu.call("aclrtRecordEvent", event, stream)
        npu.call("aclrtStreamWaitEvent", other, event)
        assert npu.code("aclrtSynchronizeStream", other) == TIMED_OUT
        assert npu.code("aclrtSynchronizeEvent", event) == TIMED_OUT


def test_events(machine: Machine) -> None:
    with machine.process() as npu:
        first, second, notify, gate = npu.stream(), npu.stream(), npu.notify(), npu.notify()
        event = npu.call("aclrtCreateEventExWithFlag", POINTER, 1)
        npu.call("aclrtStreamWaitEvent", second, event)  # never recorded: no wait
        npu.synchronize(second)
        assert npu.call("aclrtQueryEventStatus", event, INT) == 1
        npu.wait(gate, first)
        npu.call("aclrtRecordEvent", event, first)
        npu.call("aclrtStreamWaitEvent", second, event)
        npu.record(notify, second)
        assert npu.call("aclrtQueryEventStatus", event, INT) == 0
        assert npu.code("aclrtSynchronizeEventWithTimeout", event, 20) == 507047
        npu.record(gate, npu.stream())
        npu.call("aclrtSynchronizeEvent", event)
        npu.wait(notify, first)
        npu.synchronize(first)


def pauses(machine: Machine, **knobs: int) -> list[list[int]]:
    with machine.process(0, **knobs) as npu:
        streams = [npu.stream() for _ in range(3)]
        return [[npu.code("fakeacl_delay_us", one, task) for task in range(40)] for one in streams]


def test_pauses_are_drawn_from_the_seed(machine: Machine) -> None:
    first = pauses(machine, SEED=1, DELAY_US=1000)
    assert first == pauses(machine, SEED=1, DELAY_US=1000)
    assert first != pauses(machine, SEED=2, DELAY_US=1000)
    assert first[0] != first[1] != first[2]
    drawn = [pause for stream in first for pause in stream]
    assert 0 in drawn
    assert 500 < max(drawn) <= 1000
    assert pauses(machine) == [[0] * 40] * 3


def test_a_pause_lets_another_stream_overtake(machine: Machine) -> None:
    with machine.process(DELAY_US=500_000) as npu:
        memory, streams = npu.malloc(PAGE), [npu.stream() for _ in range(30)]
        pause = {one: npu.code("fakeacl_delay_us", one, 0) for one in streams}
        slow, fast = max(streams, key=pause.__getitem__), min(streams, key=pause.__getitem__)
        for value, stream in [(1, slow), (2, fast)]:
            npu.call("aclrtMemsetAsync", memory, 1, value, 1, stream)
        npu.synchronize(fast)
        assert npu.peek(memory, 1) == b"\x02"
        npu.synchronize(slow)
        assert npu.peek(memory, 1) == b"\x01"


def test_a_device_is_lost(machine: Machine) -> None:
    with machine.process(1, FAULT="device=1:kind=lost:after=3") as npu:
        npu.exceptions()
        memory, stream, waiting, notify = npu.malloc(PAGE), npu.stream(), npu.stream(), npu.notify()
        npu.wait(notify, waiting, 0)
        npu.copy(memory, memory, 8, stream)
        npu.copy(memory, memory, 8, stream)
        npu.synchronize(stream)
        npu.copy(memory, memory, 8, stream)
        assert npu.code("aclrtSynchronizeStream", stream) == LOST
        assert npu.code("aclrtMalloc", POINTER, PAGE, 0) == LOST
        assert npu.code("aclrtCreateNotify", POINTER, 0) == LOST
        assert npu.code("aclrtDestroyStream", waiting) == LOST  # and yet it is gone
        assert npu.live("streams") == 1
        assert {told["ErrorCode"] for told in npu.exceptions()} == {LOST}
        npu.call("aclrtSetDevice", 0)  # the others are there
        npu.stream()


def test_a_copy_fails(machine: Machine) -> None:
    with machine.process(0, FAULT="device=0:kind=copy:after=2") as npu:
        npu.exceptions()
        memory, stream = npu.malloc(PAGE), npu.stream()
        for _ in range(4):
            npu.copy(memory, memory + 100, 8, stream)
        assert npu.code("aclrtSynchronizeStream", stream) == BROKEN_COPY
        (told,) = npu.exceptions()
        assert (told["TaskId"], told["ErrorCode"]) == (2, BROKEN_COPY)


def test_a_record_never_happens(machine: Machine) -> None:
    fault = "device=3:kind=copy:after=9,device=0:kind=silent:after=1"
    with machine.process(0, FAULT=fault) as npu:
        stream, waiting, first, second = npu.stream(), npu.stream(), npu.notify(), npu.notify()
        npu.record(first, stream)
        npu.record(second, stream)
        npu.wait(first, waiting, 1)
        npu.synchronize(stream, waiting)
        npu.wait(second, waiting, 1)
        assert npu.code("aclrtSynchronizeStream", waiting) == TIMED_OUT


def test_counts_go_back_to_zero(machine: Machine, tmp_path: Path) -> None:
    report = tmp_path / "report"
    with (
        machine.process(0, REPORT=report) as one,
        machine.process(1, REPORT=report) as two,
    ):
        memory, notify = one.malloc(PAGE), one.notify()
        memory_key = one.call("aclrtIpcMemGetExportKey", memory, PAGE, KEY, 65, 1)
        notify_key = one.call("aclrtNotifyGetExportKey", notify, KEY, 65, 2)
        two.call("aclrtIpcMemImportByKey", POINTER, memory_key, 1)
        there = two.call("aclrtNotifyImportByKey", POINTER, notify_key, 2)
        stream = two.stream()
        event = two.call("aclrtCreateEventExWithFlag", POINTER, 1)
        assert [one.live(kind) for kind in KINDS] == [0, 1, 0, 1, 0, 0]
        assert [two.live(kind) for kind in KINDS] == [1, 0, 1, 0, 1, 1]
        assert two.live("anything") == -1
        two.call("aclrtDestroyEvent", event)
        two.call("aclrtDestroyStream", stream)
        two.call("aclrtDestroyNotify", there)
        two.call("aclrtIpcMemClose", memory_key)
        one.call("aclrtDestroyNotify", notify)
        one.call("aclrtIpcMemClose", memory_key)
        one.call("aclrtFree", memory)
        assert [npu.live(kind) for npu in (one, two) for kind in KINDS] == [0] * 12
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert {line["pid"] for line in lines} == {one.process.pid, two.process.pid}
    assert [line[kind] for line in lines for kind in KINDS] == [0] * 12
    assert [(line["lost_posts"], line["complaints"]) for line in lines] == [(0, [])] * 2


def test_the_report_names_what_stayed(machine: Machine, tmp_path: Path) -> None:
    report = tmp_path / "report"
    with machine.process(REPORT=report) as npu:
        stream, notify = npu.stream(), npu.notify()
        npu.record(notify, stream)
        npu.record(notify, stream)
        npu.synchronize(stream)
    line = json.loads(report.read_text())
    assert (line["streams"], line["notifies"], line["lost_posts"]) == (1, 1, 1)
    assert "was set already" in line["complaints"][0]


def test_memory_freed_under_a_task_is_kept_and_stays(machine: Machine) -> None:
    with machine.process() as npu:
        memory, stream, notify = npu.malloc(PAGE), npu.stream(), npu.notify()
        npu.wait(notify, stream)
        npu.copy(memory, memory, 8, stream)
        npu.call("aclrtFree", memory)
        npu.record(notify, npu.stream())
        npu.synchronize(stream)
        assert npu.complaints() == ["memory freed while tasks use it"]


def test_resetting_a_device_ends_its_streams(machine: Machine) -> None:
    with machine.process() as npu:
        stream = npu.stream()
        npu.wait(npu.notify(), stream, 0)
        npu.call("aclrtResetDevice", 0)
        assert npu.code("aclrtMalloc", POINTER, PAGE, 0) == 107002
        npu.call("aclrtSetDevice", 0)
        assert npu.live("streams") == 0
        npu.call("aclFinalize")
        assert npu.code("aclFinalize") == 100037
