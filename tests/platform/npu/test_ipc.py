"""Memory of other processes: keys, lists of processes, and what a killed one leaves."""

from pathlib import Path

import pytest

from tests.platform.npu.remote import D2D, H2D, KEY, POINTER, Npu
from tests.platform.npu.runtime import Machine

pytestmark = pytest.mark.npu

UNVALIDATED, PEER = 1, 1
UNSUPPORTED, DRIVER = 207000, 507899
MIB = 1 << 20


def exported(npu: Npu, flags: int = UNVALIDATED, size: int = MIB) -> tuple[int, bytes]:
    memory = npu.malloc(size)
    return memory, npu.call("aclrtIpcMemGetExportKey", memory, size, KEY, 65, flags)


def imported(npu: Npu, key: bytes, flags: int = PEER) -> int:
    address: int = npu.call("aclrtIpcMemImportByKey", POINTER, key, flags)
    return address


def test_both_see_the_same_bytes(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        memory, key = exported(one)
        there, own, stream = imported(two, key), two.malloc(MIB), two.stream()
        one.poke(memory, b"first")
        two.copy(own, there, 5, stream)
        two.synchronize(stream)
        assert two.peek(own, 5) == b"first"
        two.poke(own, b"again")
        two.copy(there + 100, own, 5, stream)
        two.synchronize(stream)
        assert one.peek(memory + 100, 5) == b"again"
        two.call("aclrtIpcMemClose", key)
        assert two.code("aclrtIpcMemClose", key) == 107000
        one.call("aclrtIpcMemClose", key)
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER
        assert one.complaints() == two.complaints() == []


def test_fresh_memory_holds_no_zeros(machine: Machine) -> None:
    with machine.process() as npu:
        assert npu.peek(npu.malloc(MIB), 4) == b"\xff" * 4


def test_keys_without_lists(machine: Machine) -> None:
    with machine.process(0, IPC="free") as one, machine.process(1, IPC="free") as two:
        _, key = exported(one, UNVALIDATED)
        imported(two, key)
        _, key = exported(one, 0)
        assert one.code("aclrtIpcMemSetImportPid", key, [two.bare_tgid()], 1) == DRIVER
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER


def test_keys_with_lists(machine: Machine) -> None:
    with machine.process(0, IPC="list") as one, machine.process(1, IPC="list") as two:
        assert two.bare_tgid() != two.process.pid
        _, key = exported(one, 0)
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER
        one.call("aclrtIpcMemSetImportPid", key, [two.process.pid, one.bare_tgid()], 2)
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER
        one.call("aclrtIpcMemSetImportPid", key, [two.bare_tgid()], 1)
        imported(two, key)
        _, key = exported(one, UNVALIDATED)
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER


@pytest.mark.parametrize("mode", ["free", "list"])
def test_keys_of_notifies(machine: Machine, mode: str) -> None:
    with machine.process(0, IPC=mode) as one, machine.process(1, IPC=mode) as two:
        outcomes = []
        for flags in (0, 2):
            notify = one.notify()
            key = one.call("aclrtNotifyGetExportKey", notify, KEY, 65, flags)
            before = two.code("aclrtNotifyImportByKey", POINTER, key, 2)
            listed = one.code("aclrtNotifySetImportPid", notify, [two.bare_tgid()], 1)
            after = two.code("aclrtNotifyImportByKey", POINTER, key, 2)
            outcomes.append((before, listed, after))
        with_list, without = outcomes
        if mode == "list":
            assert with_list == (DRIVER, 0, 0)
            assert without[0] == DRIVER
        else:
            assert with_list == (DRIVER, DRIVER, DRIVER)
            assert without == (0, DRIVER, 0)


def test_no_keys(machine: Machine) -> None:
    with machine.process(IPC="none") as npu:
        memory, notify = npu.malloc(MIB), npu.notify()
        assert npu.code("aclrtIpcMemGetExportKey", memory, MIB, KEY, 65, 1) == UNSUPPORTED
        assert npu.code("aclrtNotifyGetExportKey", notify, KEY, 65, 2) == UNSUPPORTED


def test_imports_without_peer_access(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two, machine.process(0) as beside:
        _, key = exported(one)
        there, own, stream = imported(two, key, 0), two.malloc(MIB), two.stream()
        assert two.code("aclrtMemcpyAsync", own, 8, there, 8, D2D, stream) == DRIVER
        two.call("aclrtDeviceEnablePeerAccess", 0, 0)
        two.copy(own, there, 8, stream)
        two.synchronize(stream)
        same = imported(beside, key, 0)  # on the same device there is nothing to enable
        beside.copy(beside.malloc(MIB), same, 8, beside.stream())


def test_records_without_peer_access(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        notify = one.notify()
        key = one.call("aclrtNotifyGetExportKey", notify, KEY, 65, 2)
        there, stream = two.call("aclrtNotifyImportByKey", POINTER, key, 0), two.stream()
        assert two.code("aclrtRecordNotify", there, stream) == DRIVER
        two.call("aclrtDeviceEnablePeerAccess", 0, 0)
        two.record(there, stream)
        two.synchronize(stream)


def test_imports_where_devices_do_not_reach_each_other(machine: Machine) -> None:
    with machine.process(0, P2P=0) as one, machine.process(1, P2P=0) as two:
        _, key = exported(one)
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == UNSUPPORTED


def test_imported_memory_is_copied_between_devices_only(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        _, key = exported(one)
        there, own, stream = imported(two, key), two.malloc(MIB), two.stream()
        host = two.call("aclrtMallocHost", POINTER, MIB)
        assert two.code("aclrtMemcpyAsync", there, 8, host, 8, H2D, stream) == UNSUPPORTED
        assert two.code("aclrtMemcpyAsync", there, 8, own, 8, 4, stream) == UNSUPPORTED
        assert two.code("aclrtMemcpy", own, 8, there, 8, D2D) == DRIVER


def test_closing_and_freeing_too_early_is_kept(machine: Machine) -> None:
    with machine.process(0) as one, machine.process(1) as two:
        memory, key = exported(one)
        imported(two, key)
        one.call("aclrtIpcMemClose", key)
        assert one.complaints() == ["a key closed before its importers closed it"]
        memory, key = exported(one)
        one.call("aclrtFree", memory)
        assert one.complaints()[1:] == ["memory freed while exported"]
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER


def test_a_killed_process_leaves_nothing(machine: Machine) -> None:
    with machine.process(0, NOTIFIES=3) as one, machine.process(0, NOTIFIES=3) as two:
        _, key = exported(one)
        there = imported(two, key)
        stream = one.stream()
        for _ in range(3):
            one.wait(one.notify(), stream, 0)
        assert two.code("aclrtCreateNotify", POINTER, 0) == 207009
        assert files_of(one.process.pid) == set()
        one.kill()
        assert two.peek(there, 1) == b"\xff"
        assert two.code("aclrtIpcMemImportByKey", POINTER, key, PEER) == DRIVER
        for _ in range(3):
            two.notify()


def files_of(pid: int) -> set[str]:
    """Files with names that a process has mapped to write to: those would stay."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    shared = [line.split(maxsplit=5) for line in lines]
    writable = {line[5] for line in shared if line[1].endswith("s") and "w" in line[1]}
    assert any("memfd:fakeacl" in name for name in writable)
    return {name for name in writable if not name.startswith("/memfd:")}
