"""Sweeping executors: what is wrong is reported once, as the smallest call shows it, with what such
calls have in common.

`walk` stands for the verifier: it reports what the untimed walk finds, and nothing else.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hccl_executors.flat import AllGatherComm, AllReduceComm
from hccl_py.enums import DataType, InPlace, Mode, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError, OrchestrationError
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import Executor, OpParam, Rank, RankView, ResourceRequest, Topology
from hccl_py.program.program import Program
from hccl_py.topology import PRESETS
from hccl_py.values import values_of
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.finding import Finding, Report
from hccl_py.verifier.subject import Options, Subject
from hccl_py.verifier.sweeps.cases import LARGE_CCL, SMALL_CCL, Case, Cases
from hccl_py.verifier.sweeps.common import Ran, common_of
from hccl_py.verifier.sweeps.sweep import verify_executor
from tests.recording import CHOSEN

SMALL = Cases(ranks=(1, 2, 3, 4))


def walk(program: Program, options: Options, target: str) -> Report:
    subject, linked = Subject(program, options), program.linked
    found = [
        subject.finding("UNMATCHED_POST", "left over", rows=[(row, 0)])
        for row in linked.leftover.tolist()
    ]
    found += [
        subject.finding("WAIT_WITHOUT_POST", "stuck", rows=[(row, 0)])
        for row in linked.stuck.tolist()
    ]
    return Report.of(target, found, {"": program})


def swept(executor: Executor, cases: Cases = SMALL, **rest: object) -> Report:
    return verify_executor(executor, cases, verify=walk, **rest)  # type: ignore[arg-type]


class Ring(AllGatherComm):
    """A ring, and no other choice."""

    algorithm = "level0:NA;level1:ring"


class Gather(Ring):
    """A ring that goes on to do something wrong where a test says so."""

    def __init__(self, wrong: Callable[[OpParam, Rank[Region, Chunks]], object]) -> None:
        self.wrong = wrong

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        super().orchestrate(op, rank)
        self.wrong(op, rank)


def post(rank: Rank[Region, Chunks]) -> bool:
    if rank.size > 1:
        rank.flat.right.tx_ack(rank.main)
    return True


@pytest.mark.parametrize("cls", CHOSEN)
def test_a_clean_executor_gives_a_clean_report(cls: type[Executor]) -> None:
    seen: list[tuple[int, int]] = []
    report = swept(cls(), progress=lambda done, total: seen.append((done, total)))
    assert report.ok
    assert report.target == cls.__name__
    assert not report.findings
    assert not report.programs
    assert not report.failures
    assert report.numeric is None
    assert seen == [(n + 1, report.cases) for n in range(report.cases)]
    assert "failures" not in report.document()


@pytest.mark.parametrize(
    ("wrong", "common", "case"),
    [
        (
            lambda op, rank: post(rank),
            "only with 2 or more ranks",
            "2 ranks, count 0, ",
        ),
        (
            lambda op, rank: rank.size == 3 and post(rank),
            "only with odd rank counts from 3",
            "3 ranks, count 0, ",
        ),
        (
            lambda op, rank: op.mode is Mode.GRAPH and post(rank),
            "only in graph mode, with 2 or more ranks",
            "2 ranks",
        ),
        (
            lambda op, rank: (
                rank.user_in.size % 128 and rank.user_in.size != op.size and post(rank)
            ),
            "only where the last round is shorter (of those with data and several ranks)",
            "2 ranks",
        ),
        (
            lambda op, rank: rank.user_in.size != op.size and post(rank),
            "only in several rounds (of those with data and several ranks)",
            "2 ranks",
        ),
        (
            lambda op, rank: op.count and post(rank),
            "every case with data and several ranks",
            "2 ranks, count 1, ",
        ),
        (
            lambda op, rank: op.dtype is DataType.INT8 and op.count and post(rank),
            "only with int8 (of those with data and several ranks)",
            "2 ranks",
        ),
    ],
)
def test_what_failing_calls_have_in_common(
    wrong: Callable[[OpParam, Rank[Region, Chunks]], object], common: str, case: str
) -> None:
    report = swept(Gather(wrong))
    (finding,) = report.errors
    assert not report.ok
    assert finding.name == "UNMATCHED_POST"
    assert finding.common == common
    assert finding.case.startswith(case)
    assert finding.source is not None
    assert finding.source.startswith("verifier/test_sweep.py:")
    assert finding.more == program_ranks(report, finding) - 1
    assert set(report.programs) == {finding.case}


def program_ranks(report: Report, finding: Finding) -> int:
    return report.programs[finding.case].ranks


def test_findings_at_two_lines_are_two() -> None:
    def wrong(op: OpParam, rank: Rank[Region, Chunks]) -> None:
        if rank.size > 1:
            rank.flat.right.tx_ack(rank.main)
            rank.flat.right.tx_data_signal(rank.main)

    lines = [finding.source for finding in swept(Gather(wrong)).errors]
    mine = [line for line in lines if line and line.startswith("verifier/test_sweep.py")]
    assert len(set(mine)) == 2


def test_an_impossible_recording_is_a_finding_where_a_class_fits() -> None:
    def wrong(op: OpParam, rank: Rank[Region, Chunks]) -> None:
        if op.in_place:
            rank.main.copy(rank.ccl_in[: rank.ccl_bytes + 1], rank.ccl_in)

    report = swept(Gather(wrong))
    (finding,) = report.errors
    assert finding.name == "OUT_OF_BOUNDS"
    assert finding.common == "only in place"
    assert finding.source is not None
    assert "test_sweep.py:" in finding.source
    assert "Gather.orchestrate" in finding.message
    assert not report.failures


def test_a_recording_that_fails_in_some_calls_is_a_failure() -> None:
    def wrong(op: OpParam, rank: Rank[Region, Chunks]) -> None:
        if op.mode is Mode.GRAPH:
            rank.flat.rihgt.tx_ack(rank.main)  # type: ignore[attr-defined]

    report = swept(Gather(wrong))
    assert not report.findings
    assert not report.ok
    (failure,) = report.failures
    assert "AttributeError" in failure.message
    assert "right" in failure.hint
    assert failure.common == "only in graph mode"
    assert failure.source is not None
    assert "graph" in failure.case
    assert report.document()["failures"] == [failure.document()]


def test_a_recording_that_fails_in_every_call_raises() -> None:
    def wrong(op: OpParam, rank: Rank[Region, Chunks]) -> None:
        rank.flat.rihgt.tx_ack(rank.main)  # type: ignore[attr-defined]

    with pytest.raises(OrchestrationError, match=r"Gather\.orchestrate, .*AttributeError"):
        swept(Gather(wrong))


class Counts(AllGatherComm):
    """Keeps state between calls."""

    def __init__(self) -> None:
        self.calls = 0

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        self.calls += 1
        super().orchestrate(op, rank)
        for _ in range(self.calls):
            rank.main.copy(rank.ccl_in, rank.ccl_in)


class Peeks(AllGatherComm):
    """Takes the number of the first rank of a batch for all of them."""

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        first = int(np.atleast_1d(values_of(rank.id))[0])
        rank.main.copy(rank.user_out[first], rank.user_in)


class Requests(AllGatherComm):
    """Asks for more where it is asked for one rank alone."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        alone = np.size(values_of(rank.id)) == 1
        return replace(super().resources(op, rank), scratch_bytes=int(alone))


class Streams(Requests):
    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        asked = super().resources(op, rank)
        return replace(asked, sub_streams=asked.scratch_bytes, scratch_bytes=0)


class Raises(AllGatherComm):
    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        super().orchestrate(op, rank)
        if rank.size > 1 and np.size(values_of(rank.id)) == 1:
            raise RuntimeError("alone")


HEAD = "Recording all ranks together and rank by rank gives different programs: "


@pytest.mark.parametrize(
    ("cls", "message", "common"),
    [
        (Counts, "rank 0 main task 2 is not there, and rank by rank `copy CCL_In[", None),
        (Peeks, "rank 1 main task 0 is `copy user_in[0:0] to user_out[0:0]`, and rank by", None),
        (Requests, "their requests differ.", "only with 2 or more ranks"),
        (Streams, "1 and 2 streams a rank.", "only with 2 or more ranks"),
    ],
)
def test_recording_rank_by_rank_must_give_the_same(
    cls: type[Executor], message: str, common: str | None
) -> None:
    report = swept(cls())
    failure = report.failures[0]
    assert failure.message.startswith(HEAD)
    if cls is not Peeks:
        assert failure.message.startswith(HEAD + message)
    if common is not None:
        assert failure.common == common
    assert failure.hint.startswith("resources() and orchestrate() depend on their arguments alone")
    assert not report.ok


def test_recording_rank_by_rank_may_not_raise_either() -> None:
    (failure,) = swept(Raises()).failures
    assert failure.message.startswith("Recorded rank by rank, it fails: Raises.orchestrate, rank 1")
    assert failure.common == "only with 2 or more ranks"
    assert failure.source is not None


class Refuses(AllGatherComm):
    def suits(self, op: OpParam, topology: Topology) -> bool:
        return False


def test_an_executor_that_suits_nothing_is_not_ok() -> None:
    report = swept(Refuses())
    assert not report.ok
    assert report.cases == 0
    (note,) = report.notes
    assert re.fullmatch(
        r"nothing was verified: suits\(\) refuses all (\d+) kinds of calls: "
        r"its suits\(\) says no \(\1\)",
        note,
    )


class Picky(AllGatherComm):
    def suits(self, op: OpParam, topology: Topology) -> bool:
        return topology.size == 2


def test_refused_calls_are_noted() -> None:
    (note,) = swept(Picky()).notes
    assert note.startswith("suits() refuses ")
    assert note.endswith(")")


def line_hint(wanted: Callable[[Program], bool]) -> Callable[[Program, Options, str], Report]:
    """Return a verifier that gives a hint at the program's first post."""

    def verify(program: Program, options: Options, target: str) -> Report:
        rows = np.flatnonzero(program.tasks.kind == TaskKind.NOTIFY_POST)[:1].tolist()
        subject = Subject(program, options)
        hints = [subject.finding("REDUNDANT_SYNC", "needless", rows=[(row, 0)]) for row in rows]
        return Report.of(target, hints if wanted(program) else [], {"": program})

    return verify


def test_a_hint_that_holds_everywhere_is_listed_once() -> None:
    report = verify_executor(Ring(), SMALL, verify=line_hint(lambda program: True))
    (hint,) = report.findings
    assert hint.severity is Severity.HINT
    assert hint.case.startswith("2 ranks")
    assert hint.common == "only with 2 or more ranks"
    assert report.ok
    assert not report.notes
    assert set(report.programs) == {hint.case}


def test_a_hint_of_calls_without_data_is_left_out_and_counted() -> None:
    verify = line_hint(lambda program: program.op.count == 0)
    report = verify_executor(Ring(), SMALL, verify=verify)
    assert not report.findings
    assert report.notes == ("1 hint that holds in some calls only left out",)


def test_where_only_trivial_calls_run_their_hints_are_listed() -> None:
    cases = Cases(ranks=(2,), counts=(0,))
    report = verify_executor(AllGatherComm(), cases, verify=line_hint(lambda program: True))
    assert report.of_class("REDUNDANT_SYNC")


def test_warnings_are_kept_where_some_calls_show_them() -> None:
    def verify(program: Program, options: Options, target: str) -> Report:
        is_sum = program.op.reduce is ReduceOp.SUM and program.op.dtype.is_float
        subject = Subject(program, options)
        warnings = [subject.finding("REDUCE_ORDER_NONDET", "any order")]
        return Report.of(target, warnings if is_sum and program.ranks > 2 else [], {"": program})

    report = verify_executor(AllReduceComm(), SMALL, verify=verify)
    (warning,) = report.findings
    assert warning.common.startswith("only")
    assert "with 3 or more ranks" in warning.common
    assert report.ok


def test_what_the_verifier_notes_is_passed_on_with_its_number_of_calls() -> None:
    def verify(program: Program, options: Options, target: str) -> Report:
        if program.op.in_place:
            raise NotSupportedError("Too many segments.")
        return Report.of(target, [], {}, notes=("half judged",))

    report = verify_executor(AllGatherComm(), Cases(ranks=(2,), counts=(5,)), verify=verify)
    notes = {note.partition(" (")[0] for note in report.notes}
    assert notes == {"half judged", "Too many segments."}
    assert all(note.endswith(f"of {report.cases} cases)") for note in report.notes)


def test_options_reach_the_verifier_with_the_product_of_the_call() -> None:
    seen: list[tuple[Options, bool | InPlace]] = []

    def verify(program: Program, options: Options, target: str) -> Report:
        seen.append((options, program.op.in_place))
        return Report.of(target, [], {"": program})

    verify_executor(AllGatherComm(), Cases(ranks=(2,), topology="ring"), verify=verify)
    assert {options.product for options, _ in seen} == {PRESETS["ring"]}
    assert {in_place for _, in_place in seen} == {False, True}
    seen.clear()
    options = Options(repeat=3, in_place=True, product=PRESETS["mesh"])
    verify_executor(AllGatherComm(), Cases(ranks=(2,), topology="ring"), options, verify=verify)
    assert seen
    assert all(given == (options, True) for given in seen)


def test_numeric_runs_every_call_in_the_sweep() -> None:
    report = swept(AllGatherComm(), Cases(ranks=(3,), counts=(5,)), seeds=4)
    assert report.ok
    assert report.numeric is not None
    assert report.numeric.programs == report.cases
    assert report.document()["numeric"] == report.numeric.document()


def test_numeric_finds_what_the_stand_in_cannot() -> None:
    def wrong(op: OpParam, rank: Rank[Region, Chunks]) -> None:
        if op.mode is Mode.GRAPH:
            rank.main.copy(rank.user_out[0], rank.user_in)

    report = swept(Gather(wrong), Cases(ranks=(1, 3)), seeds=2)
    assert not report.findings
    assert not report.ok
    assert report.numeric is not None
    assert report.numeric.wrong is not None
    assert "graph" in report.numeric.wrong.case


def test_illegal_narrowings_are_the_users_error() -> None:
    with pytest.raises(NotSupportedError, match="does not take uint8"):
        swept(AllReduceComm(), Cases(dtypes=(DataType.UINT8,)))


def ran(ranks: int, count: int = 8, **op: object) -> Ran:
    call = OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM)
    topology = Topology(PRESETS["mesh"], (ranks,))
    return Ran(Case(topology, replace(call, **op), LARGE_CCL))  # type: ignore[arg-type]


def test_where_nothing_fits_cases_are_counted() -> None:
    cases = [ran(n, count) for n in (2, 3, 4, 5) for count in (8, 16, 24, 40)]
    failing = [n in (1, 6, 11) for n in range(len(cases))]
    assert common_of(cases, failing) == "3 of 16 cases"


def test_where_something_holds_for_failing_calls_among_others_it_is_said() -> None:
    cases = [ran(n, 8, in_place=p) for n in (2, 3, 4, 5, 6, 7) for p in (False, True)]
    failing = [case.case.op.in_place and case.ranks in (2, 3, 4, 7) for case in cases]
    assert common_of(cases, failing) == "4 of 12 cases, all in place"


def test_one_failing_call_is_not_described_by_many_features() -> None:
    cases = [ran(n, count) for n in (2, 4, 8) for count in (8, 16)]
    assert common_of(cases, [n == 2 for n in range(6)]) == "1 of 6 cases, all with 3 or more ranks"


def test_rounds_and_root_are_features() -> None:
    case = ran(4).case
    several = [Ran(case), Ran(replace(case, ccl_bytes=SMALL_CCL), 3), Ran(case, 2, tail=True)]
    assert common_of(several, [False, True, True]) == "only in several rounds"
    assert common_of(several, [False, False, True]) == "only where the last round is shorter"
    roots = [ran(4, root=root) for root in (0, 1, 3)]
    assert common_of(roots, [False, True, True]) == "only where the root is not rank 0"
