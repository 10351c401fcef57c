"""Complaints of recorded ranks as findings: who, in which call, and how many ranks alike."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_interop.cpp.findings import findings_of, one_sided_channels
from hccl_interop.cpp.traces import ChannelTrace, Complaint, RankTrace, Traces


class Lines:
    """Lines of stacks: stack k is line k of op.cc, and stack 0 is none."""

    def line(self, stack: int) -> str | None:
        return f"op.cc:{stack}" if stack else None

    def above(self, stack: int) -> str:
        return f"Called from main.cc:{stack}." if stack > 5 else ""


LINES: Any = Lines()


def trace(rank: int, *complaints: Complaint, result: int | None = 0) -> RankTrace:
    return RankTrace(rank, complaints=list(complaints), result=result, was_run=True)


def found(*ranks: RankTrace, loading: RankTrace | None = None) -> list[Any]:
    traces = Traces(ranks, loading or trace(-1), ((), ()))
    return list(findings_of(traces, LINES, "HcclAllGather"))


WRONG = Complaint("WRONG_ADDRESS", 3, 0, "No buffer is at 0x10")


def test_a_complaint_names_the_rank_and_the_line() -> None:
    (one,) = found(trace(0), trace(1, WRONG))
    assert one.message == "Rank 1: No buffer is at 0x10."
    assert (one.name, one.ranks, one.source) == ("WRONG_ADDRESS", (1,), "op.cc:3")
    assert one.hint.startswith("Local addresses come from the call")


def test_a_later_call_and_the_callers_are_told() -> None:
    (one,) = found(trace(0, Complaint("CALL_FAILED", 7, 1, "It returned 3")))
    assert one.message == "Rank 0, in call 2: It returned 3. Called from main.cc:7."


def test_what_fails_while_the_op_is_loaded_is_no_ranks() -> None:
    (one,) = found(trace(0), loading=trace(-1, Complaint("CODE_CRASHED", 4, 0, "Signal 11")))
    assert (one.message, one.ranks) == ("Loading the op: Signal 11.", ())
    assert one.hint.startswith("The line is that of")


def test_the_same_complaint_of_several_ranks_is_one_finding() -> None:
    other = Complaint("WRONG_ADDRESS", 4, 0, "No buffer is at 0x20")
    first, second = found(trace(0, WRONG), trace(1, WRONG, other), trace(2, WRONG))
    assert (first.source, second.source) == ("op.cc:3", "op.cc:4")
    assert first.message.startswith("Rank 0: ")
    assert first.more == 2
    assert second.more == 0


@pytest.mark.parametrize(
    ("result", "was_run", "complaints", "count"),
    [(None, True, (), 1), (0, True, (), 0), (None, False, (), 0), (None, True, (WRONG,), 1)],
)
def test_a_process_that_just_ends_is_a_crash(
    result: int | None, was_run: bool, complaints: tuple[Complaint, ...], count: int
) -> None:
    ended = RankTrace(1, complaints=list(complaints), result=result, was_run=was_run)
    findings = found(trace(0), ended)
    assert len(findings) == count
    if count and not complaints:
        assert findings[0].message.startswith("Rank 1: The process ended inside HcclAllGather: ")
        assert findings[0].source is None
        assert findings[0].hint.startswith("Nothing tells the line")


def test_a_process_that_ends_in_a_constructor() -> None:
    (one,) = found(loading=trace(-1, result=None))
    assert one.message.startswith("Loading the op: The process ended in a constructor: ")
    assert one.ranks == ()


def test_channels_of_one_side_are_grouped_by_line() -> None:
    class Met:
        def one_sided(self) -> list[tuple[int, int, int]]:
            return [(0, 1, 2), (1, 0, 2), (2, 0, 0)]

    def ring(*stacks: int) -> RankTrace:
        made = trace(0)
        made.channels += [ChannelTrace(2, k, k, 1, 0, stack) for k, stack in enumerate(stacks)]
        return made

    traces = Traces((ring(1, 3), ring(3), ring(4)), trace(-1), ())
    met: Any = Met()
    first, second = one_sided_channels(met, traces, LINES)
    assert first.message == (
        "Rank 0 acquires a channel to rank 2 on layer 1, and rank 2 acquires none to rank 0 that "
        "would meet it."
    )
    assert (first.ranks, first.source, first.more) == ((0, 2), "op.cc:3", 1)
    assert (second.ranks, second.source, second.more) == ((2, 0), "op.cc:4", 0)
