"""An algorithm as a program, and what is wrong with it.

algorithm, = read_algorithms("ring.xml")
imported = import_algorithm(algorithm, meaning_of(algorithm), size=1 << 20)
imported.report()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hccl_py.enums import DataType, ReduceOp
from hccl_py.msccl.algorithm import XmlAlgorithm
from hccl_py.msccl.build import ImportedTasks, build
from hccl_py.msccl.checks import Defect, defects_of
from hccl_py.msccl.imported_call import UNVERIFIED, ImportedCall
from hccl_py.msccl.operation import Meaning, MscclCall
from hccl_py.msccl.places import Place, Role
from hccl_py.msccl.repetition import Repetition

if TYPE_CHECKING:  # who only times a program does without the verifier
    from hccl_py.verifier import Finding, Options, Report

__all__ = ["Imported", "import_algorithm"]


@dataclass(frozen=True)
class Imported(ImportedCall):
    """A call of an algorithm: `built` is None where defects leave no program to be made. With a
    `repetition` it has only the passes that show what any pass does wrong.
    """

    algorithm: XmlAlgorithm
    meaning: Meaning[XmlAlgorithm]
    call: MscclCall
    defects: tuple[Defect, ...]
    built: ImportedTasks | None
    repetition: Repetition | None = None

    @property
    def notation(self) -> XmlAlgorithm:
        """The algorithm."""
        return self.algorithm

    def report(self, options: Options | None = None, target: str = "") -> Report:
        """Verify: what is wrong with the algorithm, and what the verifier finds in the program, in
        MSCCL's words. An algorithm for both placements is verified in both.
        """
        from hccl_py.verifier import Options, Report, verify_program

        options = options or Options()
        name = target or self.algorithm.file
        findings = [*self.findings]
        if self.built is None:
            return Report.of(name, findings, {}, cases=0, notes=(UNVERIFIED,))
        programs, notes, known = {}, [*self._notes()], set()
        for case, built in self._placements():
            report = verify_program(built.program, options, name)
            programs[case] = built.program
            notes += [note for note in report.notes if note not in notes]
            words = _Explained(self.algorithm, built)
            for finding in report.findings:
                key = finding.name, finding.source, finding.message
                if words.is_authors(finding) and key not in known:
                    known.add(key)
                    findings.append(finding.changed(words.finding).of_case(case, ""))
        return Report.of(name, findings, programs, notes=tuple(notes))

    def _placements(self) -> Iterator[tuple[str, ImportedTasks]]:
        """Yield the program in every placement that the algorithm is for, named where there are
        two.
        """
        assert self.built is not None
        if self.algorithm.outofplace or not self.algorithm.inplace:
            yield "", self.built
        if self.algorithm.inplace:
            call = self.call if self.repetition is None else self.repetition.checked()
            op = replace(call.op, in_place=self.meaning.placement)
            built = build(self.algorithm, call._replace(op=op), keeps_own=False)
            yield "in place" if self.algorithm.outofplace else "", built

    def _notes(self) -> Iterator[str]:
        """Yield what the runtime would do otherwise."""
        algorithm, size = self.algorithm, self.call.chunk * self.algorithm.chunks
        low, high = algorithm.min_bytes or 0, algorithm.max_bytes or 0
        if size < low or (0 < high < size):
            yield (
                f"{size} bytes are not between minBytes and maxBytes, {low} and {high}: the "
                "runtime would take another algorithm."
            )
        if self.repetition is not None and self.program is not None:
            yield (
                f"{self.repetition.passes} passes, of which {self.program.rounds} were verified: "
                "all do the same on other bytes."
            )
        if any(gpu.copies for gpu in algorithm.gpus):
            yield "MSCCL's runtime passes over <copy>: the copies are done first here."


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
    whole = not any(defect.is_fatal for defect in defects)
    if not whole:
        return Imported(algorithm, meaning, call, defects, None)
    repetition = Repetition.of(meaning, call) if repeats else None
    written = call if repetition is None else repetition.checked()
    built = build(algorithm, written)
    return Imported(algorithm, meaning, call, defects, built, repetition)


@dataclass(frozen=True)
class _Explained:
    """Findings of the verifier in MSCCL's words."""

    algorithm: XmlAlgorithm
    built: ImportedTasks

    def is_authors(self, finding: Finding) -> bool:
        """Whether it is about something that the author can change: no hint about the runtime's
        own signals is.
        """
        from hccl_py.verifier import Severity

        if finding.name == "RESOURCE_UNUSED":
            return False
        if finding.severity is not Severity.HINT or finding.name != "REDUNDANT_SYNC":
            return True
        return all(
            self._place(t.rank, t.stream, t.index).role == Role.DEPENDENCY for t in finding.tasks
        )

    def finding(self, finding: Finding) -> Finding:
        """Return a finding that says which step and message its tasks are."""
        explained = list(
            dict.fromkeys(self._words(t.rank, t.stream, t.index) for t in finding.tasks)
        )
        known = [words for words in explained if words]
        message = "\n".join([finding.message, *(f"  {words}" for words in known[:4])])
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
        what = {Role.DATA: message, Role.MOVE: message, Role.CREDIT: f"the free slot for {message}"}
        return f"{what[place.role]}, "
