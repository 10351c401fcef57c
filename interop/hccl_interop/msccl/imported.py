"""A call of an algorithm, imported, and the verifier's findings in MSCCL's words.

algorithm, = read_algorithms("ring.xml")
imported = import_algorithm(algorithm, meaning_of(algorithm), size=1 << 20)
imported.report()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hccl_interop.common.defects import findings_of
from hccl_interop.common.meaning import Meaning, MscclCall
from hccl_interop.common.places import PlacedProgram
from hccl_interop.msccl.algorithm import XmlAlgorithm
from hccl_interop.msccl.build import build, place_of_call
from hccl_interop.msccl.checks import defects_of
from hccl_interop.msccl.places import Place
from hccl_interop.msccl.repetition import RepeatedPasses
from hccl_py.enums import DataType, ReduceOp
from hccl_py.importers import Imported, ProgramCase
from hccl_py.program.program import Program


def import_algorithm(
    algorithm: XmlAlgorithm,
    meaning: Meaning[XmlAlgorithm],
    size: int = 1 << 20,
    dtype: DataType = DataType.FP32,
    reduce: ReduceOp | None = None,
    root: int | None = None,
    slice_bytes: int | None = None,
    slices: int | None = None,
    *,
    repeats: bool = False,
) -> Imported:
    """Return a call of an algorithm whose data has `size` bytes, as a program.

    `size` is rounded up to whole chunks of whole elements. With `slice_bytes` a message is written,
    received and sent on slice by slice, in at most so many `slices`. What would be too large a
    program has a `repetition` where `repeats`. ParameterError where not, and for a reduce op or a
    root that the op does not have.
    """
    call = meaning.call(size, dtype, reduce, root)
    call = call._replace(slice_bytes=slice_bytes, slices=slices)
    defects = tuple(defects_of(algorithm, meaning.op))
    findings = partial(findings_of, defects, algorithm)
    if any(defect.is_fatal for defect in defects):
        return Imported(algorithm.file, None, findings)
    repetition = RepeatedPasses.of(meaning, call) if repeats else None
    written = call if repetition is None else repetition.checked()
    built = build(algorithm, written)
    return Imported(
        algorithm.file,
        built.program,
        findings,
        notes=(*meaning.notes, *_notes(algorithm, call, repetition, built.program)),
        cases=partial(_placements, meaning, written, built),
        unknown=meaning.unknown,
        hang=partial(built.hang, place_of_call(algorithm, call)),
    )


def _placements(
    meaning: Meaning[XmlAlgorithm], call: MscclCall, built: PlacedProgram[Place]
) -> Iterator[ProgramCase]:
    """Yield the program in every placement that the algorithm is for, with a name where there are
    two.
    """
    algorithm = meaning.algorithm
    if algorithm.outofplace or not algorithm.inplace or meaning.unknown:
        yield ProgramCase(built.program, built.explained)
    if algorithm.inplace and not meaning.unknown:
        op = replace(call.op, in_place=meaning.placement)
        within = build(algorithm, call._replace(op=op), keeps_own=False)
        name = "in place" if algorithm.outofplace else ""
        yield ProgramCase(within.program, within.explained, name)


def _notes(
    algorithm: XmlAlgorithm, call: MscclCall, repetition: RepeatedPasses | None, program: Program
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
