"""Every call of the API, one at a time: what it records, or how it is refused, and where."""

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hccl_interop.cpp.run import RankLimits, own_folder
from hccl_interop.cpp.traces import read_traces
from hccl_py.errors import ParameterError
from hccl_py.formats import to_json
from hccl_py.importers import Imported
from hccl_py.verifier.verdict import format_verdict
from tests.interop.cpp.kit import check, line_of, record

IN, OUT, CCL = ["IN", 0, 64], ["OUT", 0, 64], ["CCL", 0, 64]

TASKS = {
    "HcommLocalCopyOnThread": [["copy", IN, OUT]],
    "HcommLocalReduceOnThread": [["reduce", "max", IN, OUT]],
    "HcommThreadNotifyRecordOnThread": [["local_post", 2, 0]],
    "HcommThreadNotifyWaitOnThread": [["local_wait", 1]],
    "HcommThreadNotifyWaitOnThreadWithDefaultTimeout": [["local_wait", 1]],
    "HcommWriteOnThread": [["write", 1, IN, CCL]],
    "HcommWriteNbiOnThread": [["write", 1, IN, CCL]],
    "HcommReadOnThread": [["read", 1, CCL, OUT]],
    "HcommReadNbiOnThread": [["read", 1, CCL, OUT]],
    "HcommWriteReduceOnThread": [["write_reduce", 1, "sum", IN, CCL]],
    "HcommReadReduceOnThread": [["read_reduce", 1, "min", CCL, OUT]],
    "HcommWriteWithNotifyOnThread": [["write", 1, IN, CCL], ["post", 1, 3]],
    "HcommWriteWithNotifyNbiOnThread": [["write", 1, IN, CCL], ["post", 1, 3]],
    "HcommWriteReduceWithNotifyOnThread": [["write_reduce", 1, "sum", IN, CCL], ["post", 1, 3]],
    "HcommBatchTransferOnThread": [
        ["write", 1, IN, CCL],
        ["read", 1, CCL, OUT],
        ["write_reduce", 1, "sum", IN, CCL],
        ["read_reduce", 1, "sum", CCL, OUT],
        ["post", 1, 2],
        ["write", 1, IN, CCL],
        ["post", 1, 1],
        ["write_reduce", 1, "sum", IN, CCL],
        ["post", 1, 3],
    ],
    "HcommChannelNotifyRecordOnThread": [["post", 1, 2]],
    "HcommChannelNotifyWaitOnThread": [["wait", 1, 2]],
    "HcommChannelNotifyWaitOnThreadWithDefaultTimeout": [["wait", 1, 2]],
    "HcommChannelGetNotifyNum": [],
    "fences": [],
    "brackets": [],
    "time-outs, new and old": [],
    "HcommThreadJoin": [],
    "HcommAicpuTsTaskCache": [],
    "nothing moved": [],
    "600 MiB": [
        ["read", 1, ["CCL", start << 20, size << 20], ["OUT", start << 20, size << 20]]
        for start, size in ((0, 256), (256, 256), (512, 88))
    ],
    "fork": [["copy", IN, OUT]],  # by one of the two processes
}

FINE = (
    *("HcclGetRankId", "HcclGetRankSize", "HcclGetCommName", "HcclGetErrorString"),
    *("HcclGetHcclBuffer", "HcclThreadAcquire", "HcclThreadAcquireWithConfig"),
    *("HcclThreadAcquireWithStream", "HcclThreadExportToCommEngine", "HcclEngineCtx"),
    *("HcclDevMemAcquire", "HcclCommMemReg", "HcclChannelDestroy", "HcclChannelGetRemoteMems"),
    *("HcclRankGraphGetLayers", "HcclRankGraphGetRanksByLayer"),
    *("HcclRankGraphGetRankSizeByLayer", "HcclRankGraphGetTopoTypeByLayer"),
    *("HcclRankGraphGetInstSizeListByLayer", "HcclRankGraphGetLinks"),
    *("HcclRankGraphGetTopoInstsByLayer", "HcclRankGraphGetEndpointDesc", "HcclConfigGetInfo"),
    *(
        "HcclChannelAcquireWithConfig",
        "reports",
        "acl",
        "securec",
        "the kernels' description",
        "fork while loading",
    ),
)
"""Calls of host code that give the right answer and put nothing on a thread."""

HOST, KERNEL = "op_host/op.cc", "op_kernel_aicpu/kernel.cc"

REFUSED = {
    "HcclThreadAcquire of AIV": "UNSUPPORTED_CALL",
    "HcclThreadAcquireWithConfig uninitialised": "INVALID_ARGUMENT",
    "HcclThreadExportToCommEngine of no thread": "UNKNOWN_HANDLE",
    "HcclEngineCtxCopy beyond": "INVALID_ARGUMENT",
    "HcclEngineCtxDestroy of none": "UNKNOWN_HANDLE",
    "HcclCommMemReg of host memory": "WRONG_ADDRESS",
    "HcclChannelDestroy twice": "UNKNOWN_HANDLE",
    "HcclChannelGetHcclBuffer of no channel": "UNKNOWN_HANDLE",
    "HcclRankGraphGetRankSizeByLayer of no layer": "INVALID_ARGUMENT",
    "HcclGroupStart": "UNSUPPORTED_CALL",
    "aclrtMemcpy of a buffer": "UNSUPPORTED_CALL",
    "aclrtBinaryGetFunction of no kernel": "INVALID_ARGUMENT",
    "null pointer": "CODE_CRASHED",
    "copy from nowhere": "CODE_CRASHED",
    "terminate": "CODE_CRASHED",
    "input read by the host": "DEVICE_MEMORY_TOUCHED",
    "context read by the host": "DEVICE_MEMORY_TOUCHED",
}
"""By host code; a comment marks the line."""

REFUSED_IN_KERNELS = {
    "HcommAicpuTsTaskCacheExecute": "UNSUPPORTED_CALL",
    "HcommAclrtNotifyRecordOnThread": "UNSUPPORTED_CALL",
    "HcommAclrtNotifyWaitOnThread": "UNSUPPORTED_CALL",
    "HcommWriteNbi": "UNSUPPORTED_CALL",
    "HcommWriteWithNotifyNbi": "UNSUPPORTED_CALL",
    "HcommReadNbi": "UNSUPPORTED_CALL",
    "HcommChannelNotifyRecord": "UNSUPPORTED_CALL",
    "HcommChannelNotifyWait": "UNSUPPORTED_CALL",
    "HcommChannelFence": "UNSUPPORTED_CALL",
    "join of no thread": "UNKNOWN_HANDLE",
    "unknown thread": "UNKNOWN_HANDLE",
    "unknown channel": "UNKNOWN_HANDLE",
    "host address": "WRONG_ADDRESS",
    "local address of a peer": "WRONG_ADDRESS",
    "own address over a channel": "WRONG_ADDRESS",
    "no such reduction": "INVALID_ARGUMENT",
    "no such data type": "INVALID_ARGUMENT",
    "no such transfer": "INVALID_ARGUMENT",
    "notify of a channel beyond": "NOTIFY_INDEX_OUT_OF_RANGE",
    "notify of a thread beyond": "NOTIFY_INDEX_OUT_OF_RANGE",
    "notify of another thread beyond": "NOTIFY_INDEX_OUT_OF_RANGE",
    "output written by the kernel": "DEVICE_MEMORY_TOUCHED",
    "call of no function": "CODE_CRASHED",
    "illegal instruction": "CODE_CRASHED",
    "kernel returns 3": "CALL_FAILED",
}


def probe(limits: RankLimits | None = None) -> Imported:
    return record("probe", servers=2, devices=2, op="all_gather", limits=limits)


@pytest.fixture
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CASE", request.param)
    return str(request.param)


@pytest.mark.parametrize("case", TASKS, indirect=True)
def test_a_primitive_becomes_tasks(case: str) -> None:
    recording = probe()
    assert not recording.findings
    assert recording.program is not None
    tasks = json.loads(to_json(recording.program))["tasks"]["0"].get("1", [])
    assert [task[:-1] for task in tasks] == TASKS[case]
    assert all(KERNEL in task[-1]["source"] for task in tasks)


@pytest.mark.parametrize("case", FINE, indirect=True)
def test_a_call_of_the_host_answers(case: str) -> None:
    recording = probe()
    assert not recording.findings
    assert recording.program is not None
    assert recording.program.task_count == 0


@pytest.mark.parametrize("case", REFUSED, indirect=True)
def test_a_call_of_the_host_is_refused_at_its_line(case: str) -> None:
    (finding,) = probe().findings
    assert finding.name == REFUSED[case]
    assert finding.source == line_of("probe", HOST, case)
    assert finding.more == 3
    assert "HcclAllGather at" in finding.message


@pytest.mark.parametrize("case", REFUSED_IN_KERNELS, indirect=True)
def test_a_call_of_a_kernel_is_refused_at_its_line(case: str) -> None:
    (finding,) = probe().findings
    assert finding.name == REFUSED_IN_KERNELS[case]
    assert finding.source == line_of("probe", KERNEL, case)
    assert "HcclAllGather at" in finding.message


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("HcclChannelAcquire to itself", "INVALID_ARGUMENT: Rank 0: HcclChannelAcquire: a channel"),
        ("HcclChannelAcquire uninitialised", "INVALID_ARGUMENT: Rank 0: HcclChannelAcquire: the"),
        ("exception", "CODE_CRASHED: Rank 0: host code throws an uncaught exception: no"),
        ("exit", "CODE_CRASHED: Rank 0: The process ended inside HcclAllGather"),
        ("exit while loading", "CODE_CRASHED: Loading the op: The process ended in a constructor"),
        ("terminate", "CODE_CRASHED: Rank 0: host code ends in signal 6 (Aborted)"),
        (
            "endless memory",
            "CODE_CRASHED: Rank 0: host code throws an uncaught exception: std::bad_all",
        ),
        ("op returns 5", "CALL_FAILED: Rank 0: HcclAllGather returned 5."),
    ],
    indirect=["case"],
)
def test_other_ends(case: str, said: str) -> None:
    recording = probe()
    (finding,) = recording.findings
    assert f"{finding.name}: {finding.message}".startswith(said)
    assert ("Nothing tells the line" in finding.hint) == (finding.source is None)
    assert ("5, HCCL_E_NOT_SUPPORT" in finding.hint) == (finding.name == "CALL_FAILED")
    report = check(recording)
    assert (report.ok, report.cases) == (False, 0)
    assert "nothing" not in format_verdict(report)


@pytest.mark.parametrize("case", ["thread"], indirect=True)
def test_a_thread_of_the_host_code_makes_no_calls(case: str) -> None:
    (finding,) = probe().findings
    assert (finding.name, finding.more) == ("UNSUPPORTED_CALL", 3)
    assert finding.source == line_of("probe", HOST, case)
    assert finding.message.startswith("Rank 0: host code makes this call from a thread that it has")
    assert "/usr/" not in finding.message


@pytest.mark.parametrize("case", ["HcclChannelAcquire by one side"], indirect=True)
def test_a_channel_of_one_side(case: str) -> None:
    recording = probe()
    (finding,) = recording.findings
    assert finding.name == "ONE_SIDED_CHANNEL"
    assert finding.ranks == (0, 1)
    assert finding.source == line_of("probe", HOST, "one-sided")
    report = check(recording)  # the program is there, and judged
    assert not report.ok
    assert report.of_class("SILENT_RANK")


@pytest.mark.parametrize("case", ["endless loop", "sleep", "endless tasks"], indirect=True)
def test_code_that_does_not_end(case: str) -> None:
    recording = probe(RankLimits(cpu_seconds=1, wall_seconds=2, tasks=10_000))
    assert recording.findings[0].name == "CODE_ENDLESS"
    assert str(recording.findings[0].source).rpartition(":")[0].endswith((HOST, KERNEL))
    assert "The program was not verified" in check(recording).notes[-1]
    assert recording.notes[0].endswith("were not recorded.") or len(recording.notes) == 1


@pytest.mark.long
@pytest.mark.parametrize("case", ["sleep without alarm"], indirect=True)
def test_a_rank_that_puts_its_limits_off_is_ended(case: str) -> None:
    recording = probe(RankLimits(wall_seconds=1))
    assert recording.findings[0].name == "CODE_CRASHED"
    assert "a signal that cannot be caught" in recording.findings[0].message


def test_a_process_that_is_asked_to_end_leaves_no_folder() -> None:
    assert threading.current_thread() is threading.main_thread()
    folders = []

    def ended() -> None:
        with own_folder() as folder:
            folders.append(folder)
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
            ended()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [folder.exists() for folder in folders] == [False]


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "rank0.txt").write_text("S\t0\th:10\nN\t2\t0\nS\t1")
    (tmp_path / "rank0.tasks").touch()
    traces = read_traces(tmp_path, 1)
    assert traces.ranks[0].threads == [(2, 1)]
    assert traces.stacks == ((), ("h:10",))


@pytest.mark.parametrize("case", ["op returns 5"], indirect=True)
def test_requiring_a_program_names_the_first_finding(case: str) -> None:
    recording = replace(probe(), title="my op")
    with pytest.raises(ParameterError, match=r"op_host.*: CALL_FAILED: ") as caught:
        recording.require()
    assert caught.value.hint


@pytest.mark.parametrize("case", ["prints"], indirect=True)
def test_what_code_prints_is_shown_once(case: str) -> None:
    assert probe().printed == "hello from rank 0\n"
