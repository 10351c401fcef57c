"""A call of an algorithm, imported, and the verifier's findings in MSCCL's words.

algorithm, = read_algorithms("ring.xml")
imported = import_algorithm(algorithm, meaning_of(algorithm), size=1 << 20)
imported.report()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from hccl_interop.msccl.algorithm import XmlAlgorithm
from hccl_interop.msccl.build import ImportedTasks, build
from hccl_interop.msccl.checks import defects_of, findings_of
from hccl_interop.msccl.operation import Meaning, MscclCall
from hccl_interop.msccl.places import Place, Role
from hccl_interop.msccl.repetition import Repetition
from hccl_py.enums import DataType, ReduceOp
from hccl_py.importers import Case, Imported
from hccl_py.program.program import Program

if TYPE_CHECKING:  # timing a program does without the verifier
    from hccl_py.verifier import Finding


def import_algorithm(
    algorithm: XmlAlgorithm,
    meaning: Meaning[XmlAlgorithm],
    size: int = 1 << 20,
    dtype: DataType = DataType.FP32,
    reduce: ReduceOp | None = None,
    root: int | None = None,
    slice_bytes: int | None = None,
    *,
    repeats: bool = False,
) -> Imported:
    """Return a call of an algorithm whose data has `size` bytes, as a program.

    `size` is rounded up to whole chunks of whole elements. With `slice_bytes` a message is written,
    received and sent on slice by slice. What would be too large a program has a `repetition`
    where `repeats`. ParameterError where not, and for a reduce op or a root that the op does not
    have.
    """
    call = meaning.call(size, dtype, reduce, root)._replace(slice_bytes=slice_bytes)
    defects = tuple(defects_of(algorithm, meaning.op))
    findings = partial(findings_of, defects, algorithm)
    if any(defect.is_fatal for defect in defects):
        return Imported(algorithm.file, None, findings)
    repetition = Repetition.of(meaning, call) if repeats else None
    written = call if repetition is None else repetition.checked()
    built = build(algorithm, written)
    return Imported(
        algorithm.file,
        built.program,
        findings,
        notes=tuple(_notes(algorithm, call, repetition, built.program)),
        cases=partial(_placements, meaning, written, built),
    )


def _placements(
    meaning: Meaning[XmlAlgorithm], call: MscclCall, built: ImportedTasks
) -> Iterator[Case]:
    """Yield the program in every placement that the algorithm is for, with a name where there are
    two.
    """
    algorithm = meaning.algorithm
    if algorithm.outofplace or not algorithm.inplace:
        yield Case(built.program, _Explanation(algorithm, built).explained)
    if algorithm.inplace:
        op = replace(call.op, in_place=meaning.placement)
        within = build(algorithm, call._replace(op=op), keeps_own=False)
        name = "in place" if algorithm.outofplace else ""
        yield Case(within.program, _Explanation(algorithm, within).explained, name)


def _notes(
    algorithm: XmlAlgorithm, call: MscclCall, repetition: Repetition | None, program: Program
) -> Iterator[str]:
    """Yield differences between the runtime and the program."""
    size = call.chunk * algorithm.chunks
    low, high = algorithm.min_bytes or 0, algorithm.max_bytes or 0
    if size < low or (0 < high < size):
        yield (
            f"{size} bytes are not between minBytes and maxBytes, {low} and {high}: the "
            "runtime would take another algorithm."
        )
    if repetition is not None:
        yield (
            f"{repetition.passes} passes, of which {program.rounds} were verified: "
            "all do the same on other bytes."
        )
    if any(gpu.copies for gpu in algorithm.gpus):
        yield "MSCCL's runtime passes over <copy>: the copies are done first here."


@dataclass(frozen=True)
class _Explanation:
    """Findings of the verifier in MSCCL's words."""

    algorithm: XmlAlgorithm
    built: ImportedTasks

    def explained(self, finding: Finding) -> Finding | None:
        """Return a finding with the step and the message of each of its tasks; None for one about
        the runtime's own streams and signals, which authors of algorithms cannot change.
        """
        from hccl_py.verifier import Severity

        if finding.name == "RESOURCE_UNUSED":
            return None
        is_of_signals = finding.severity is Severity.HINT and finding.name == "REDUNDANT_SYNC"
        tasks = dict.fromkeys((t.rank, t.stream, t.index) for t in finding.tasks)
        if is_of_signals and any(self._place(*t).role != Role.DEPENDENCY for t in tasks):
            return None
        lines = [text for text in dict.fromkeys(self._words(*task) for task in tasks) if text]
        message = "\n".join([finding.message, *(f"  {text}" for text in lines[:4])])
        return replace(finding, message=message)

    def _place(self, rank: int, stream: int, index: int) -> Place:
        places = self.built.places[rank, stream]
        return places[index % len(places)]

    def _words(self, rank: int, stream: int, index: int) -> str:
        place = self._place(rank, stream, index)
        at = f"r{rank}.s{stream}.t{index}"
        if place.block is None or place.role == Role.FORK:
            return ""
        if place.position < 0:
            step = f"the start of threadblock {place.block.id} of GPU {rank}"
        else:
            found = place.block.steps[place.position]
            step = (
                f"step {place.position} ({found.type}) of threadblock {place.block.id} of GPU "
                f"{rank}, line {found.line}"
            )
        return f"{at} is {self._role(place)}{step}."

    @staticmethod
    def _role(place: Place) -> str:
        if place.connection is None:
            return "a dependency of " if place.role == Role.DEPENDENCY else ""
        message = f"message {place.number} of {place.connection}"
        role = {Role.DATA: message, Role.MOVE: message, Role.CREDIT: f"the free slot for {message}"}
        return f"{role[place.role]}, "
