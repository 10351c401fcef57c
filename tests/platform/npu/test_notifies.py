"""Notifies of the fake: one bit, which a record sets and a wait clears, in either order."""

import pytest

from tests.platform.npu.remote import KEY, POINTER, Npu
from tests.platform.npu.runtime import Machine

pytestmark = pytest.mark.npu

TIMED_OUT, PARAMETER, DRIVER = 107020, 107000, 507899


def shared(owner: Npu, importer: Npu) -> tuple[int, int]:
    """A notify, and the same one in another process."""
    notify = owner.notify()
    key = owner.call("aclrtNotifyGetExportKey", notify, KEY, 65, 2)
    return notify, importer.call("aclrtNotifyImportByKey", POINTER, key, 2)


def is_running(npu: Npu, stream: int) -> bool:
    status: int = npu.call("aclrtStreamQuery", stream, "<int>")
    return status == 1


def test_the_wait_comes_first(machine: Machine) -> None:
    with machine.process() as npu:
        waiting, recording, notify = npu.stream(), npu.stream(), npu.notify()
        npu.wait(notify, waiting)
        npu.synchronize(recording)
        assert is_running(npu, waiting)
        npu.record(notify, recording)
        npu.synchronize(waiting)
        assert npu.complaints() == []


def test_the_record_comes_first_and_wakes_one_wait_only(machine: Machine) -> None:
    with machine.process() as npu:
        waiting, recording, notify = npu.stream(), npu.stream(), npu.notify()
        npu.record(notify, recording)
        npu.synchronize(recording)
        npu.wait(notify, waiting)
        npu.synchronize(waiting)
        npu.wait(notify, waiting)
        npu.synchronize(recording)
        assert is_running(npu, waiting)
        npu.record(notify, recording)
        npu.synchronize(waiting)


def test_two_processes(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        notify, there = shared(one, two)
        first, second = one.stream(), two.stream()
        for _ in range(20):
            one.wait(notify, first)
            two.record(there, second)
            one.synchronize(first)
        assert one.complaints() == two.complaints() == []


def test_only_the_creator_waits(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        _, there = shared(one, two)
        assert two.code("aclrtWaitAndResetNotify", there, two.stream(), 1) == PARAMETER


def test_a_lost_post_is_kept(machine: Machine) -> None:
    with machine.process() as npu:
        stream, notify = npu.stream(), npu.notify()
        npu.record(notify, stream)
        npu.synchronize(stream)
        assert npu.code("fakeacl_lost_posts") == 0
        npu.record(notify, stream)
        npu.synchronize(stream)
        assert npu.code("fakeacl_lost_posts") == 1
        assert npu.complaints() == ["notify 0 of device 0 was set already: device 0, stream 0"]


def test_a_post_that_nobody_waited_for_is_kept(machine: Machine) -> None:
    with machine.process() as npu:
        stream, notify = npu.stream(), npu.notify()
        npu.record(notify, stream)
        npu.synchronize(stream)
        npu.call("aclrtDestroyNotify", notify)
        assert npu.complaints() == [
            "notify 0 of device 0 destroyed with a post that nobody waited for"
        ]


def test_a_wait_that_takes_too_long_fails_its_stream(machine: Machine) -> None:
    with machine.process() as npu:
        stream, other, notify, late = npu.stream(), npu.stream(), npu.notify(), npu.notify()
        npu.wait(notify, stream, 1)
        npu.record(late, stream)
        assert npu.code("aclrtSynchronizeStream", stream) == TIMED_OUT
        assert npu.code("aclrtSynchronizeStream", stream) == TIMED_OUT
        npu.wait(late, other, 1)  # what is behind the failed task never runs
        assert npu.code("aclrtSynchronizeStream", other) == TIMED_OUT


def test_a_destroyed_notify_is_not_imported_nor_is_its_successor(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        notify = one.notify()
        key = one.call("aclrtNotifyGetExportKey", notify, KEY, 65, 2)
        one.call("aclrtDestroyNotify", notify)
        assert two.code("aclrtNotifyImportByKey", POINTER, key, 2) == DRIVER
        one.notify()  # in the same place
        assert two.code("aclrtNotifyImportByKey", POINTER, key, 2) == DRIVER


def test_a_notify_lives_as_long_as_anybody_holds_it(machine: Machine) -> None:
    with machine.process(0, NOTIFIES=1) as one, machine.process(1, NOTIFIES=1) as two:
        notify, there = shared(one, two)
        one.call("aclrtDestroyNotify", notify)
        assert one.code("aclrtCreateNotify", POINTER, 0) == 207009
        two.call("aclrtDestroyNotify", there)
        one.notify()
