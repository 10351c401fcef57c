"""A call of a plan, imported, and the verifier's findings in the plan's words.

plan = read_plan("plan.json")
imported = import_plan(plan, meaning_of(plan), size=1 << 20)
imported.report()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hccl_interop.common.defects import Defect, findings_of
from hccl_interop.common.meaning import Meaning
from hccl_interop.common.places import PlacedProgram
from hccl_interop.mscclpp.build import build
from hccl_interop.mscclpp.call import call_of, usual_size_of
from hccl_interop.mscclpp.checks import defects_of_call, defects_of_steps
from hccl_interop.mscclpp.operations import FORMS
from hccl_interop.mscclpp.places import PlanPlace
from hccl_interop.mscclpp.plan import ExecutionPlan
from hccl_interop.mscclpp.steps import steps_of
from hccl_interop.mscclpp.structure import structure_of
from hccl_py.enums import DataType, ReduceOp
from hccl_py.importers import Imported

if TYPE_CHECKING:  # timing a program does without the verifier
    from hccl_py.verifier import Finding


def import_plan(
    plan: ExecutionPlan,
    meaning: Meaning[ExecutionPlan],
    size: int | None = None,
    dtype: DataType = DataType.FP32,
    reduce: ReduceOp | None = None,
    root: int | None = None,
) -> Imported:
    """Return a call of a plan whose data has `size` bytes, as a program.

    `size` is rounded up to whole aligned chunks; without one it is 1 MiB, or the nearest that the
    plan is for. ParameterError for a call that is too large to be written out, and for a reduce op
    or a root that it does not have.
    """
    size = usual_size_of(plan, dtype) if size is None else size
    call = call_of(plan, meaning, size, dtype, reduce, root)
    defects = [*structure_of(call)]
    if defects:
        return Imported(plan.file, None, partial(_findings, plan, defects))
    steps = steps_of(call)
    defects += [*defects_of_call(call), *defects_of_steps(call, steps)]
    built = build(call, steps)
    findings = partial(_findings, plan, defects)
    explain = partial(_explained, built)
    return Imported(
        plan.file,
        built.program,
        findings,
        notes=(*meaning.notes, *_notes(plan)),
        explain=explain,
        unknown=meaning.unknown,
        hang=partial(built.hang, f"{plan.file} at {call.message_bytes} bytes"),
    )


def _findings(plan: ExecutionPlan, defects: Sequence[Defect]) -> tuple[Finding, ...]:
    """Return the findings about the plan itself; findings that are alike are counted."""
    alike: dict[tuple[str, str, bool], list[Finding]] = {}
    for defect, finding in zip(defects, findings_of(defects, plan), strict=True):
        key = defect.name, defect.hint, defect.is_warning
        alike.setdefault(key, []).append(finding)
    return tuple(_counted(found) for found in alike.values())


def _explained(built: PlacedProgram[PlanPlace], finding: Finding) -> Finding | None:
    """Return a finding with the operations of its tasks; None for one that authors of plans cannot
    act upon.
    """
    explained = built.explained(finding)
    if explained is None or finding.name != "STREAM_NOT_JOINED":
        return explained
    return _unflushed(explained)


def _notes(plan: ExecutionPlan) -> Iterator[str]:
    """Yield properties of the plan that the verifier cannot judge."""
    relaxed = _relaxed_after_data(plan)
    if relaxed:
        yield (
            f"{relaxed} relaxed signals come after data of their threadblocks: they promise "
            "that the peer goes on, and not that it sees the data. They are taken as signals."
        )
    if plan.is_old:
        yield "The plan is of mscclpp before 0.8: it says no alignment, and 16 bytes are taken."


def _relaxed_after_data(plan: ExecutionPlan) -> int:
    """Count relaxed signals that are the only signal behind data of their threadblock."""
    count = 0
    for gpu in plan.gpus:
        for block in gpu.blocks:
            wrote = False
            for op in block.every():
                form = FORMS[op.name]
                wrote = (wrote and op.name != "signal") or (form.moves and not form.has_packets)
                count += wrote and op.name == "rlxsignal"
    return count


def _unflushed(finding: Finding) -> Finding:
    """Return the finding about a proxy that may still run at the end as a warning: plans leave
    that open as a rule, as callers do not touch their buffers that soon.
    """
    from hccl_py.verifier import Severity

    hint = "Flush the channel, or let the peer answer: the caller may change what is being sent."
    return replace(finding, severity=Severity.WARNING, hint=hint)


def _counted(found: list[Finding]) -> Finding:
    """Return the first of findings that are alike, which counts the rest."""
    first, *others = found
    return first.followed_by(len(others), lambda: others) if others else first
