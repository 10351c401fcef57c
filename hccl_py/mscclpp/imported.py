"""A plan as a program, and what is wrong with it.

plan = read_plan("plan.json")
imported = import_plan(plan, meaning_of(plan), size=1 << 20)
imported.report()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hccl_py.enums import DataType, ReduceOp
from hccl_py.msccl import Meaning
from hccl_py.msccl.checks import Defect
from hccl_py.msccl.imported_call import UNVERIFIED, ImportedCall
from hccl_py.mscclpp.build import PlanTasks, build
from hccl_py.mscclpp.call import PlanCall, call_of, usual_size
from hccl_py.mscclpp.checks import defects_of_call, defects_of_steps
from hccl_py.mscclpp.operations import FORMS
from hccl_py.mscclpp.plan import ExecutionPlan
from hccl_py.mscclpp.steps import steps_of
from hccl_py.mscclpp.structure import structure_of

if TYPE_CHECKING:  # who only times a program does without the verifier
    from hccl_py.verifier import Finding, Options, Report

__all__ = ["ImportedPlan", "import_plan"]


@dataclass(frozen=True)
class ImportedPlan(ImportedCall):
    """A call of a plan: `built` is None where defects leave no program to be made."""

    plan: ExecutionPlan
    call: PlanCall
    defects: tuple[Defect, ...]
    built: PlanTasks | None

    @property
    def notation(self) -> ExecutionPlan:
        """The plan."""
        return self.plan

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the plan itself; what is alike is counted."""
        alike: dict[tuple[str, str, bool], list[Finding]] = {}
        for defect in self.defects:
            key = defect.name, defect.hint, defect.is_warning
            alike.setdefault(key, []).append(defect.finding(self.plan.source(defect.line)))
        return tuple(_counted(found) for found in alike.values())

    def report(self, options: Options | None = None, target: str = "") -> Report:
        """Verify: what is wrong with the plan, and what the verifier finds in the program, in the
        plan's words.
        """
        from hccl_py.verifier import Options, Report, verify_program

        name = target or self.plan.file
        if self.built is None:
            return Report.of(name, self.findings, {}, cases=0, notes=(UNVERIFIED,))
        report = verify_program(self.built.program, options or Options(), name)
        found = (f.changed(self._explained) for f in report.findings if self._is_authors(f))
        programs, notes = {"": self.built.program}, (*self._notes(), *report.notes)
        return Report.of(name, [*self.findings, *found], programs, notes=notes)

    def _is_authors(self, finding: Finding) -> bool:
        """Whether it is about something that the author can change: the executor asks for streams
        and notifies, and hints about what it does inside of an operation say nothing about a plan.
        """
        from hccl_py.verifier import Severity

        if finding.name == "RESOURCE_UNUSED":
            return False
        if finding.severity is not Severity.HINT or finding.name != "REDUNDANT_SYNC":
            return True
        places = [self._words(t.rank, t.stream, t.index) for t in finding.tasks]
        return all("channel" in words or "semaphore" in words for words in places)

    def _explained(self, finding: Finding) -> Finding:
        """Return a finding that says of which operation its tasks are."""
        tasks = dict.fromkeys((t.rank, t.stream, t.index) for t in finding.tasks)
        known = [(task, self._words(*task)) for task in tasks]
        lines = [f"  r{r}.s{s}.t{i} is {words}." for (r, s, i), words in known if words]
        explained = replace(finding, message="\n".join([finding.message, *lines[:4]]))
        return _unflushed(explained) if finding.name == "STREAM_NOT_JOINED" else explained

    def _words(self, rank: int, stream: int, index: int) -> str:
        assert self.built is not None
        places = self.built.places[rank, stream]
        return places[index % len(places)].words(rank)

    def _notes(self) -> Iterator[str]:
        """Yield what cannot be judged."""
        relaxed = self._relaxed_after_data()
        if relaxed:
            yield (
                f"{relaxed} relaxed signals come after data of their threadblocks: they promise "
                "that the peer goes on, and not that it sees the data. They are taken as signals."
            )
        if self.plan.is_old:
            yield "The plan is of mscclpp before 0.8: it says no alignment, and 16 bytes are taken."

    def _relaxed_after_data(self) -> int:
        """Count relaxed signals with which nothing but them says that a threadblock wrote."""
        count = 0
        for gpu in self.plan.gpus:
            for block in gpu.blocks:
                wrote = False
                for op in block.every():
                    form = FORMS[op.name]
                    wrote = (wrote and op.name != "signal") or (form.moves and not form.has_packets)
                    count += wrote and op.name == "rlxsignal"
        return count


def import_plan(
    plan: ExecutionPlan,
    meaning: Meaning[ExecutionPlan],
    size: int | None = None,
    dtype: DataType = DataType.FP32,
    reduce: ReduceOp | None = None,
    root: int | None = None,
) -> ImportedPlan:
    """Return a call of a plan whose data has `size` bytes, as a program.

    `size` is rounded up to whole aligned chunks; without one it is 1 MiB, or the nearest that the
    plan is for. ParameterError for a call that is too large to be written out, and for a reduce op
    or a root that it does not have.
    """
    size = usual_size(plan, dtype) if size is None else size
    call = call_of(plan, meaning, size, dtype, reduce, root)
    defects = [*structure_of(call)]
    if defects:
        return ImportedPlan(plan, call, tuple(defects), None)
    steps = steps_of(call)
    defects += [*defects_of_call(call), *defects_of_steps(call, steps)]
    return ImportedPlan(plan, call, tuple(defects), build(call, steps))


def _unflushed(finding: Finding) -> Finding:
    """Return what it means that a proxy is not known to be over: plans leave it open as a rule, as
    callers do not touch their buffers that soon.
    """
    from hccl_py.verifier import Severity

    hint = "Flush the channel, or let the peer answer: the caller may change what is being sent."
    return replace(finding, severity=Severity.WARNING, hint=hint)


def _counted(found: list[Finding]) -> Finding:
    """Return the first of findings that are alike, with the others behind it."""
    first, *others = found
    return first.followed_by(len(others), lambda: others) if others else first
