"""Verifying an executor: over a selection of calls, smallest first, in one report.

Each call is recorded, verified, and recorded once more rank by rank, which must give the same
program. A finding is kept once per class and source line, from the smallest call that shows it,
with the features that all such calls share (gathering.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hccl_py.enums import Mode, TaskKind
from hccl_py.errors import HcclError, NotSupportedError, OrchestrationError, TooManyTasksError
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import Executor, executor_name
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.verifier.classes import CLASSES
from hccl_py.verifier.finding import Failure, Finding, Report
from hccl_py.verifier.numeric import NumericResult, run_numeric
from hccl_py.verifier.subject import Options
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.common import Ran
from hccl_py.verifier.sweeps.difference import difference
from hccl_py.verifier.sweeps.gathering import CallOutcome, gathered
from hccl_py.verifier.sweeps.rounds import elements_per_round, round_limit
from hccl_py.verifier.sweeps.space import Space, space_of
from hccl_py.verifier.verifier import verify_program

Progress = Callable[[int, int], None]
"""Called with the number of calls done and their total."""

Verify = Callable[[Program, Options, str], Report]

RECORDED_TWICE = 1500
"""Tasks up to which a call is recorded rank by rank, too: differences do not need many."""

RUN_WITH_DATA = 3000
"""Tasks up to which a call runs with data: the scheduler takes microseconds for each."""


def verify_executor(
    executor: Executor,
    cases: Cases = Cases(),  # noqa: B008 - frozen
    options: Options = Options(),  # noqa: B008 - frozen
    *,
    progress: Progress | None = None,
    seeds: int = 0,
    verify: Verify = verify_program,
) -> Report:
    """Verify an executor on a selection of the calls that it suits.

    `seeds` also runs each call with data that often, in interleavings of different kinds. Without a
    product in the options, hardware checks are those of each call's own product.

    Raises the error of recording if no call can be recorded and no class of findings fits it,
    PluginError if `suits` fails, and the operator's error if no call of the narrowed space is
    legal.
    """
    if options.in_place and cases.in_place is None:
        cases = replace(cases, in_place=options.in_place)
    space = space_of(executor, cases)
    sweep = _Sweep(executor, options, seeds, verify)
    for number, case in enumerate(space.cases):
        sweep.run(case)
        if progress is not None:
            progress(number + 1, len(space.cases))
    return sweep.report(space)


@dataclass
class _Sweep:
    """One sweep: its outcomes so far, and the programs that findings may show."""

    executor: Executor
    options: Options
    seeds: int
    verify: Verify
    outcomes: list[CallOutcome] = field(default_factory=list)
    programs: dict[str, Program] = field(default_factory=dict)
    numeric: NumericResult | None = None
    _seen: set[tuple[object, ...]] = field(default_factory=set)
    _first_error: HcclError | None = None

    def run(self, case: Case) -> None:
        """Verify one call."""
        try:
            program = self._record(case)
        except TooManyTasksError:
            raise  # every further case would take as long
        except HcclError as error:
            self.outcomes.append(self._unrecorded(case, error))
            return
        options = self.options
        if options.product is None:
            options = replace(options, product=case.topology.product)
        try:
            report = self.verify(program, options, case.text)
        except NotSupportedError as error:
            report = Report.of(case.text, (), {}, notes=(error.message,))
        self.outcomes.append(
            CallOutcome(
                self._ran(case, program),
                tuple(f if self._is_new(case, f) else f.released() for f in report.findings),
                self._compare(case, program),
                _busy_lines(program),
                report.notes,
            )
        )
        self._keep(case, program, report.findings)
        if self.seeds and program.task_count <= RUN_WITH_DATA:
            self._run_with_data(case, program)

    def report(self, space: Space) -> Report:
        """Gather everything; raise where nothing could be recorded."""
        if self._first_error is not None and all(o.failures for o in self.outcomes):
            raise self._first_error
        findings, failures, notes = gathered(self.outcomes)
        shown = {finding.case for finding in findings}
        return Report.of(
            executor_name(self.executor),
            findings,
            {text: program for text, program in self.programs.items() if text in shown},
            cases=len(self.outcomes),
            notes=(*_refusals(space), *notes),
            failures=failures,
            numeric=self.numeric,
        )

    def _record(self, case: Case, *, by_rank: bool = False) -> Program:
        operator = make_operator(case.op.name)
        return record(
            self.executor, case.op, case.topology, operator, case.ccl_bytes, by_rank=by_rank
        )

    def _unrecorded(self, case: Case, error: HcclError) -> CallOutcome:
        """Turn an error of recording into a finding, or a failure where no class fits."""
        source = error.line or None if isinstance(error, OrchestrationError) else None
        if isinstance(error, OrchestrationError) and error.finding in CLASSES:
            finding = Finding(
                error.finding,
                error.message,
                error.hint,
                CLASSES[error.finding].severity,
                ranks=tuple(error.ranks),
                source=source,
            )
            return CallOutcome(self._would_run(case), (finding,))
        self._first_error = self._first_error or error
        failure = Failure(error.message, error.hint, source)
        return CallOutcome(self._would_run(case), failures=(failure,))

    def _would_run(self, case: Case) -> Ran:
        """Return a call that cannot be recorded, with the rounds that its request asks for."""
        op = case.op
        limit = round_limit(self.executor, op, case.topology, case.ccl_bytes)
        if op.mode is Mode.GRAPH or not limit or limit >= op.extent:
            return Ran(case)
        return Ran(case, -(-op.extent // limit), tail=op.extent % limit > 0)

    def _compare(self, case: Case, program: Program) -> tuple[Failure, ...]:
        if program.task_count > RECORDED_TWICE:
            return ()
        try:
            other = self._record(case, by_rank=True)
        except HcclError as error:
            message = f"Recorded rank by rank, it fails: {error.message}"
            source = error.line if isinstance(error, OrchestrationError) else ""
            return (Failure(message, error.hint, source or None),)
        found = difference(program, other)
        return (found,) if found else ()

    def _keep(self, case: Case, program: Program, findings: Sequence[Finding]) -> None:
        """Keep the program if it is the first with one of the findings: cases come smallest first.

        Hints prefer a case that is not trivial.
        """
        if any(self._is_new(case, finding) for finding in findings):
            self.programs[case.text] = program
            self._seen |= {(f.name, f.source, case.is_trivial) for f in findings}

    def _is_new(self, case: Case, finding: Finding) -> bool:
        return (finding.name, finding.source, case.is_trivial) not in self._seen

    def _run_with_data(self, case: Case, program: Program) -> None:
        known = self.numeric or NumericResult(0, programs=0)
        if known.wrong is not None:
            return
        found = run_numeric(program, self._schedules(known.programs))
        wrong = replace(found.wrong, case=case.text) if found.wrong else None
        self.numeric = NumericResult(known.runs + found.runs, wrong, known.programs + 1)

    def _schedules(self, number: int) -> list[Schedule]:
        """Return `seeds` schedules, rotating through the adversaries from program to program."""
        kinds = tuple(Adversary)
        return [Schedule(seed, kinds[(number + seed) % len(kinds)]) for seed in range(self.seeds)]

    def _ran(self, case: Case, program: Program) -> Ran:
        if program.rounds == 1:
            return Ran(case)
        each = elements_per_round(self.executor, case.op, case.topology, case.ccl_bytes)
        return Ran(case, program.rounds, tail=case.op.extent % each > 0)


def _busy_lines(program: Program) -> frozenset[str]:
    """Return the author's lines with a task that moves bytes or synchronises."""
    tasks, table = program.tasks, program.tasks.table
    busy = (tasks.size > 0) | (table.kind[tasks.instruction] > TaskKind.RDMA_WRITE_REDUCE)
    numbers = np.unique(table.line[tasks.instruction[busy]]).tolist()
    return frozenset(program.lines[number] for number in numbers if number >= 0)


def _refusals(space: Space) -> list[str]:
    """Return a note about the calls that the executor refuses."""
    refused = space.refused.total()
    if not refused:
        return []
    reasons = "; ".join(f"{reason} ({n})" for reason, n in space.refused.most_common(3))
    more = f"; and {len(space.refused) - 3} more reasons" if len(space.refused) > 3 else ""
    if not space.cases:
        return [
            f"nothing was verified: suits() refuses all {refused} kinds of calls: {reasons}{more}"
        ]
    return [f"suits() refuses {refused} of {space.kinds} kinds of calls: {reasons}{more}"]
