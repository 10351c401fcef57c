"""What the verifier finds in C++, one mistake at a time: every class that a recording can have, at
its line.
"""

from typing import Any

import pytest

from hccl_py.verifier import Options, Report
from hccl_py.verifier.classes import CLASSES, IMPORTING, RECORDING
from tests.interop.cpp.kit import line_of, record

KERNEL = "op_kernel_aicpu/kernel.cc"

HERE = (
    *("WAIT_WITHOUT_POST", "DEADLOCK_CYCLE", "UNMATCHED_POST", "NOTIFY_OVERRUN", "REDUNDANT_SYNC"),
    *("STREAM_NOT_STARTED", "STREAM_NOT_JOINED", "RACE_WW", "REDUCE_ORDER_NONDET"),
    *("OUT_OF_BOUNDS", "REMOTE_NOT_EXPORTED", "UNSUPPORTED_INLINE_REDUCE", "SELF_OVERLAP"),
    *("DTYPE_MISMATCH", "READ_UNDEFINED", "REDUCE_INTO_UNDEFINED", "DEAD_TRANSFER"),
    *("DOUBLE_CONTRIBUTION", "MISSING_CONTRIBUTION", "WRONG_REDUCE_OP"),
)
"""Mistakes of an all_reduce on an Ascend 950 whose finding names the line."""

NOWHERE = ("OUTPUT_MISSING", "RESOURCE_MISMATCH", "RESOURCE_EXCEEDED", "RESOURCE_UNUSED")
"""What no line does."""

ELSEWHERE = {
    "SILENT_RANK": "test_calls.py",
    "RACE_RW": "test_ops.py",
    "NOTIFY_INDEX_OUT_OF_RANGE": "test_calls.py",
}

NEVER = {
    "UNDECLARED_CHANNEL": "handles of channels come from acquiring them",
    "UNDECLARED_STREAM": "handles of threads, too",
    "CONCURRENT_OPS": "a recording has one stream of the caller",
    "SLICE_LEN_MISMATCH": "the API has one length for both sides",
    "WAITS_UNORDERED": "notifies of NPUs hold one bit",
}


def judged(
    case: str,
    monkeypatch: pytest.MonkeyPatch,
    op: str = "all_reduce",
    servers: int = 0,
    size: int = 1 << 12,
    options: Options | None = None,
) -> Report:
    """Record two ranks of an Ascend 950, or of Atlas 800T A2 on one server or two, and verify."""
    monkeypatch.setenv("CASE", case)
    where: dict[str, Any] = {"topology": "ascend950", "ranks": 2}
    if servers:
        where = {"topology": "atlas-800t-a2", "servers": servers, "devices": 2 // servers}
    recording = record("mistakes", op=op, size=size, **where)
    assert not recording.findings
    return recording.report(options or Options(repeat=1))


def lines(report: Report, name: str) -> set[str | None]:
    return {finding.source for finding in report.of_class(name)}


@pytest.mark.parametrize("op", ["all_reduce", "all_gather"])
def test_without_a_mistake_there_is_no_error(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged("", monkeypatch, op, options=Options()).ok


@pytest.mark.parametrize("case", HERE)
def test_a_mistake_is_found_at_its_line(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line_of("mistakes", KERNEL, case) in lines(judged(case, monkeypatch), case)


@pytest.mark.parametrize("case", NOWHERE)
def test_what_no_line_does_is_found(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(case, monkeypatch).of_class(case)


@pytest.mark.parametrize("case", ["WRONG_SOURCE", "WRONG_OFFSET"])
def test_data_in_the_wrong_place(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(case, monkeypatch, "all_gather")
    assert line_of("mistakes", KERNEL, "WRONG") in lines(found, case)


@pytest.mark.parametrize("case", ["CONNECTION_UNORDERED", "RDMA_SOURCE_REUSE"])
def test_mistakes_over_roce(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(case, monkeypatch, servers=2)
    assert line_of("mistakes", KERNEL, case) in lines(found, case)


@pytest.mark.parametrize(
    ("case", "call"),
    [
        ("UNALIGNED", {"servers": 1}),
        ("TRANSFER_TOO_LARGE", {"size": 5 << 30}),
        ("INPLACE_CLOBBER", {"options": Options(repeat=1, in_place=True)}),
    ],
)
def test_mistakes_of_some_calls(
    case: str, call: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(case, monkeypatch, **call)
    assert line_of("mistakes", KERNEL, case) in lines(found, case)


def test_every_class_has_its_mistake_or_a_reason() -> None:
    more = {"WRONG_SOURCE", "WRONG_OFFSET", "CONNECTION_UNORDERED", "RDMA_SOURCE_REUSE"}
    more |= {"UNALIGNED", "TRANSFER_TOO_LARGE", "INPLACE_CLOBBER"}
    of_programs = set(CLASSES) - {*RECORDING, *IMPORTING}
    assert {*HERE, *NOWHERE, *more, *ELSEWHERE, *NEVER} == of_programs
