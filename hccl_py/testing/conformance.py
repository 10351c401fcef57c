"""The conformance suite: the properties that every executor must have, one at a time.

    check_executor(MyExecutor)      all of them; ConformanceError names each violation

Four properties are views on one sweep over the calls that the executor suits: semantics, races,
deadlock, resources. `batches` and `numeric` look at the same sweep's recordings and runs with data,
`rounds` and `in_place` look closer where executors are often wrong, `ends` asks whether a platform
may return before a run is over, and `sync_deletion` asks the reverse: is all of the executor's
synchronisation needed?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from hccl_py.errors import HcclError, OrchestrationError, ParameterError, did_you_mean
from hccl_py.plugins.discovery import Registry
from hccl_py.plugins.executor import Executor
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.ends import check_ends
from hccl_py.program.program import Program
from hccl_py.testing.calls import recorded
from hccl_py.testing.deletion import Deletions, small_cases
from hccl_py.testing.schedules import shortest
from hccl_py.verifier.classes import CLASSES
from hccl_py.verifier.finding import Report
from hccl_py.verifier.numeric import WrongResult, run_numeric
from hccl_py.verifier.subject import Options
from hccl_py.verifier.sweeps.cases import LARGE_CCL, Case, Cases
from hccl_py.verifier.sweeps.space import Space, space_of
from hccl_py.verifier.sweeps.sweep import RUN_WITH_DATA, verify_executor
from hccl_py.verifier.terminal import format_report
from hccl_py.verifier.verifier import verify_program

SEEDS = 2
"""Interleavings of every program of a sweep that run with data."""

CLOSER = 10
"""Calls that `rounds` and `in_place` look at."""

GROUPS = {
    "races": (
        *("RACE_RW", "RACE_WW", "REDUCE_ORDER_NONDET", "RDMA_SOURCE_REUSE", "INPLACE_CLOBBER"),
        *("STREAM_NOT_STARTED", "STREAM_NOT_JOINED", "CONNECTION_UNORDERED", "CONCURRENT_OPS"),
        "REDUNDANT_SYNC",
    ),
    "deadlock": (
        *("WAIT_WITHOUT_POST", "DEADLOCK_CYCLE", "UNMATCHED_POST", "NOTIFY_OVERRUN"),
        *("WAITS_UNORDERED", "SILENT_RANK"),
    ),
    "resources": (
        *("NOTIFY_INDEX_OUT_OF_RANGE", "UNDECLARED_CHANNEL", "UNDECLARED_STREAM"),
        *("RESOURCE_MISMATCH", "RESOURCE_EXCEEDED", "RESOURCE_UNUSED", "OUT_OF_BOUNDS"),
        *("REMOTE_NOT_EXPORTED", "TRANSFER_TOO_LARGE", "UNSUPPORTED_INLINE_REDUCE", "UNALIGNED"),
    ),
}
"""The classes of findings of each view; `semantics` has all others."""


class ConformanceError(AssertionError):
    """An executor lacks a property; the text names the violation."""


class InapplicableError(Exception):
    """A property concerns none of the executor's calls; the text says why."""


class Suite:
    """One executor and its calls; results that several properties need are computed once.

    `kept` names synchronisation that stays although nothing needs it, with the reason: the author's
    line as `file.py:line`, as in the property's text.
    """

    def __init__(
        self,
        executor: Executor | type[Executor],
        *,
        cases: Cases | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        registered = Registry().add(executor, getattr(executor, "__module__", "the caller"))
        self.executor = registered.executor
        self.name = registered.name
        self.cases = Cases() if cases is None else cases
        self.kept = dict(kept or {})

    @cached_property
    def space(self) -> Space:
        """The calls of the sweep, smallest first."""
        return space_of(self.executor, self.cases)

    @cached_property
    def report(self) -> Report:
        """The sweep's findings, with runs on data."""
        return verify_executor(self.executor, self.cases, seeds=SEEDS)

    def record(self, case: Case) -> Program:
        """Record a call."""
        return recorded(self.executor, case)


@dataclass(frozen=True)
class Property:
    """A property of every executor; `find` returns the text of a violation, or an empty one."""

    name: str
    meaning: str
    find: Callable[[Suite], str] = field(repr=False)

    def check(self, suite: Suite) -> None:
        """Raise ConformanceError if the executor violates the property, InapplicableError if none
        of its calls is concerned.
        """
        try:
            if not suite.space.cases:
                raise ConformanceError(format_report(suite.report))
            wrong = self.find(suite)
        except HcclError as error:
            raise ConformanceError(f"{suite.name} cannot be examined.\n{error}") from error
        if wrong:
            raise ConformanceError(f"{suite.name}[{self.name}]: not so: {self.meaning}.\n{wrong}")


def check_executor(
    executor: Executor | type[Executor],
    *,
    cases: Cases | None = None,
    properties: Iterable[str] = (),
    kept: Mapping[str, str] | None = None,
) -> None:
    """Check that an executor has every property, or the named ones.

    `cases` narrows the sweep, `kept` lists synchronisation that stays although nothing needs it, as
    {"my_ring.py:31": "why"}. Raises ConformanceError with all violations.
    """
    __tracebackhide__ = True  # pytest shows the violation, not this frame
    suite, texts = Suite(executor, cases=cases, kept=kept), []
    for chosen in _chosen(properties):
        try:
            chosen.check(suite)
        except ConformanceError as error:
            texts.append(str(error))
        except InapplicableError:
            continue
    if texts:
        raise ConformanceError("\n\n".join(dict.fromkeys(texts)))


def _chosen(names: Iterable[str]) -> list[Property]:
    known = {chosen.name: chosen for chosen in PROPERTIES}
    for name in names:
        if name not in known:
            raise ParameterError(f"Property {name!r} is unknown.", did_you_mean(name, known))
    return [known[name] for name in names] or list(PROPERTIES)


# ---- views on the sweep ----


def _view(suite: Suite, *names: str) -> str:
    """Return the errors of some classes as text."""
    found = tuple(f for f in suite.report.errors if f.name in names)
    return _only_errors(replace(suite.report, findings=found)) if found else ""


def _only_errors(report: Report) -> str:
    return format_report(replace(report, findings=report.errors, failures=(), numeric=None))


def _semantics(suite: Suite) -> str:
    elsewhere = {name for names in GROUPS.values() for name in names}
    return _view(suite, *(name for name in CLASSES if name not in elsewhere))


def _batches(suite: Suite) -> str:
    view = replace(suite.report, findings=(), numeric=None)
    return format_report(view) if view.failures else ""


def _numeric(suite: Suite) -> str:
    found = suite.report.numeric
    if found is None or found.wrong is None:
        return ""
    cases = {case.text: case for case in suite.space.cases}
    return _format_wrong(suite, cases[found.wrong.case], found.wrong)


# ---- a closer look ----


def _rounds(suite: Suite) -> str:
    several = [case for case in suite.space.cases if _takes_rounds(suite, case)]
    if not several:
        raise InapplicableError(f"{suite.name} does everything in one round")
    return _closer(suite, several, lambda case: replace(case, ccl_bytes=LARGE_CCL))


def _takes_rounds(suite: Suite, case: Case) -> bool:
    try:
        return suite.record(case).rounds > 1
    except HcclError:
        return True  # _closer reports the error


def _in_place(suite: Suite) -> str:
    in_place = [case for case in suite.space.cases if case.op.in_place and not case.is_trivial]
    if not in_place:
        raise InapplicableError(f"{suite.name} takes no call in place")
    return _closer(suite, in_place, lambda case: replace(case, op=replace(case.op, in_place=False)))


def _closer(suite: Suite, cases: list[Case], plain: Callable[[Case], Case]) -> str:
    """Look at some of the calls, from all over the list; return the defects of the first wrong one,
    unless its plain twin is wrong, too, which the sweep has reported already.
    """
    for case in cases[:: -(-len(cases) // CLOSER)]:
        wrong = _wrong(suite, case)
        if wrong and (suite.report.ok or not _wrong(suite, plain(case))):
            return wrong
    return ""


def _wrong(suite: Suite, case: Case) -> str:
    """Return the defects of a call, by the verifier or by runs with data under every adversary."""
    try:
        program = suite.record(case)
    except HcclError as error:
        return f"{case.text}:\n{error}"
    report = verify_program(program, Options(product=case.topology.product), case.text)
    if not report.ok:
        return _only_errors(report)
    if program.task_count > RUN_WITH_DATA:
        return ""
    found = run_numeric(program, [Schedule(1, adversary) for adversary in Adversary])
    return _format_wrong(suite, case, found.wrong) if found.wrong is not None else ""


def _format_wrong(suite: Suite, case: Case, wrong: WrongResult) -> str:
    """Return the text of a wrong run, with the shortest schedule that repeats it."""
    program = suite.record(case)
    schedule = shortest(lambda s: not run_numeric(program, [s]).ok, wrong.schedule)
    found = run_numeric(program, [schedule]).wrong or wrong
    return f"{case.text}:\n{found.message}\nunder {format_schedule(schedule)}"


def format_schedule(schedule: Schedule) -> str:
    """Return a schedule as a Python expression."""
    adversary = f"Adversary.{schedule.adversary.name}"
    slow = f", slow={schedule.slow}" if schedule.slow else ""
    if schedule.choices is None:
        return f"Schedule({schedule.seed}, {adversary}{slow})"
    named = "" if schedule.adversary is Adversary.RANDOM else f", adversary={adversary}"
    return f"Schedule(choices={schedule.choices}{named}{slow})"


def _sync_deletion(suite: Suite) -> str:
    if not suite.report.ok:
        return "Not tried: a wrong executor tells nothing here. Fix the other errors first."
    deletions = Deletions(suite.space.cases, suite.record, suite.kept)
    return "\n".join(map(str, deletions.needless))


def _ends(suite: Suite) -> str:
    for case in small_cases(suite.space.cases):
        try:
            program = suite.record(case)
            program.linked.check(program)
        except HcclError:
            continue  # `batches` or `deadlock` reports it
        try:
            check_ends(program)
        except OrchestrationError as error:
            return f"{case.text}:\n{error}"
    return ""


PROPERTIES: tuple[Property, ...] = (
    Property("semantics", "every byte of every output is right", _semantics),
    Property(
        "races",
        "accesses to the same memory are ordered",
        lambda suite: _view(suite, *GROUPS["races"]),
    ),
    Property(
        "deadlock",
        "every wait gets its post, and every post its wait",
        lambda suite: _view(suite, *GROUPS["deadlock"]),
    ),
    Property(
        "resources",
        "used resources were requested, and exist",
        lambda suite: _view(suite, *GROUPS["resources"]),
    ),
    Property(
        "ends",
        "when a rank's main stream ends, its other streams and all access to its memory are over",
        _ends,
    ),
    Property("batches", "recording succeeds, in batches as rank by rank", _batches),
    Property(
        "rounds", "several rounds through small CCL buffers give what one round gives", _rounds
    ),
    Property("in_place", "with IN and OUT in the same memory, results are the same", _in_place),
    Property("numeric", "runs with data are right in every interleaving", _numeric),
    Property("sync_deletion", "synchronisation that is deleted is missed", _sync_deletion),
)
"""Every property, in the order in which a suite checks them."""
