"""The second opinion: a program run on real data, in many interleavings, against numpy.

It shares nothing with the verifier but the meaning of ops. It can only miss: a run that goes well
proves nothing, a run that goes wrong proves a defect. Every run is

    op 1, op 2, op 1, op 2      back to back on the same buffers, each pair as one program, so that
                                a rank may be an op ahead of its peers; the two have data of their
                                own, and find the leftovers of earlier ops in CCL and scratch memory

Where buffers alternate from op to op there are three in place of two: the third meets the first.

Values depend on rank, element, op and seed, and every partial result is exact in the data type, so
that outputs are compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.call.config import Config
from hccl_py.communicator.data import inputs_of_sizes
from hccl_py.enums import Buffer, InPlace
from hccl_py.errors import DeadlockError, NotSupportedError, OrchestrationError
from hccl_py.operators.base import UFUNCS
from hccl_py.plugins.discovery import find_platform
from hccl_py.plugins.platforms import Adversary, Group, Schedule, Session
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.topology.factory import topology_of
from hccl_py.verifier.analysis.meaning import EVERYONE, expected_ranges, in_place_offsets

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]

_ALIGN = 128
_INPUTS = 64
"""Different inputs; more seeds repeat them."""


@dataclass(frozen=True)
class WrongResult:
    """The first run that went wrong, and the schedule that repeats it.

    `rank`, `op` (from 1) and `element` are -1 where the run did not end, as `message` says.
    """

    message: str
    schedule: Schedule
    rank: int = -1
    op: int = -1
    element: int = -1
    expected: int | float = 0
    found: int | float = 0
    case: str = ""

    def document(self) -> dict[str, object]:
        """Return the result as JSON."""
        found: dict[str, object] = {
            "message": self.message,
            "seed": self.schedule.seed,
            "schedule": self.schedule.adversary.value,
        }
        if self.rank >= 0:
            found |= {"rank": self.rank, "op": self.op, "element": self.element}
            found |= {"expected": self.expected, "found": self.found}
        return found | {"case": self.case} if self.case else found


@dataclass(frozen=True)
class NumericResult:
    """The outcome of running with data, over `runs` runs of `programs` programs."""

    runs: int
    wrong: WrongResult | None = None
    programs: int = 1

    @property
    def ok(self) -> bool:
        """True if no run went wrong."""
        return self.wrong is None

    def document(self) -> dict[str, object]:
        """Return the outcome as the entry `numeric` of a `hccl-py.check/1` report."""
        wrong = self.wrong.document() if self.wrong else None
        return {"ok": self.ok, "programs": self.programs, "runs": self.runs, "wrong": wrong}


def schedules_of(seeds: int) -> list[Schedule]:
    """Return every adversary with every seed."""
    return [Schedule(seed, adversary) for seed in range(seeds) for adversary in Adversary]


def run_numeric(
    program: Program,
    schedules: Sequence[Schedule] | None = None,
    *,
    seeds: int = 8,
    in_place: bool | InPlace = False,
) -> NumericResult:
    """Run a program under the given schedules, by default `seeds` of every adversary, until a run
    goes wrong.

    Raises NotSupportedError where the program has no IN or OUT, or no known op.
    """
    if not program.has_op:
        raise NotSupportedError(
            "what the program is to compute is not known.", "State the op that it performs."
        )
    for name in (Buffer.USER_IN.spelling, Buffer.USER_OUT.spelling):
        if name not in program.buffers:
            raise NotSupportedError(
                f"{program.op.name} cannot run with data: the program has no buffer {name}.",
                "Data comes from IN and results are read from OUT.",
            )
    runs = 0
    trials = list(_trials(program, in_place or program.op.in_place))
    for schedule in schedules_of(seeds) if schedules is None else schedules:
        for trial in trials:
            runs += 1
            wrong = trial.run(schedule)
            if wrong is not None:
                return NumericResult(runs, wrong)
    return NumericResult(runs)


def repeated(program: Program, copies: int, stride: int) -> Program:
    """Return the program that runs an op several times back to back on the same resources.

    IN and OUT of copy k begin `k · stride` bytes later. All other memory is shared, but for buffers
    that alternate: odd copies have theirs behind that of even ones.
    """
    user = [
        program.buffers.index(b.spelling)
        for b in (Buffer.USER_IN, Buffer.USER_OUT)
        if b.spelling in program.buffers
    ]

    sizes = program.buffer_sizes.copy()
    alternating = [program.buffers.index(name) for name in program.alternating]
    largest = {buffer: int(sizes[:, buffer].max(initial=0)) for buffer in alternating}

    def copy(instruction: Instruction, number: int) -> Instruction:
        shifts = {buffer: number % 2 * size for buffer, size in largest.items()}
        shifts |= dict.fromkeys(user, number * stride)
        if instruction.src_buffer in shifts:
            shift = shifts[instruction.src_buffer]
            instruction = instruction._replace(src_offset=instruction.src_offset + shift)
        if instruction.dst_buffer in shifts:
            shift = shifts[instruction.dst_buffer]
            instruction = instruction._replace(dst_offset=instruction.dst_offset + shift)
        return instruction

    batches = tuple(
        Batch(b.ranks, tuple(copy(i, k) for k in range(copies) for i in b.instructions))
        for b in program.batches
    )
    sizes[:, user] += (copies - 1) * stride
    for buffer, size in largest.items():
        sizes[:, buffer] += size * (sizes[:, buffer] > 0)
    return replace(program, batches=batches, buffer_sizes=sizes, alternating=())


def _trials(program: Program, in_place: bool | InPlace) -> Iterator[_Trial]:
    """Yield one trial, or one for each layout in which IN and OUT share memory."""
    layouts = in_place_offsets(program.op, program.ranks, in_place) if in_place else [("", None)]
    data = _Data(program)
    for _, offsets in layouts:
        yield _Trial(program, data, offsets)


class _Data:
    """The inputs and right outputs of ranks, for each copy; those of the last seed are kept."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.copies = 3 if program.alternating else 2
        names, sizes = program.buffers, program.buffer_sizes
        self._sizes: list[int] = sizes[:, names.index(Buffer.USER_IN.spelling)].tolist()
        self.of = lru_cache(maxsize=1)(self._of)

    def _of(self, seed: int) -> tuple[list[list[Bytes]], list[list[tuple[Bytes, Bytes]]]]:
        inputs = [self._inputs(seed * self.copies + copy) for copy in range(self.copies)]
        return inputs, [_right(self._program, data) for data in inputs]

    def _inputs(self, number: int) -> list[Bytes]:
        """Return the input of every rank; other numbers give other values."""
        op, most = self._program.op, max(self._sizes) // self._program.op.unit
        number %= _INPUTS
        pools = inputs_of_sizes(op, [most + number] * self._program.ranks)
        parts = zip(pools, self._sizes, strict=True)
        return [pool[number:].view(np.uint8)[:size] for pool, size in parts]


class _Trial:
    """A program with the memory of its ranks, IN and OUT apart or in one another."""

    def __init__(
        self, program: Program, data: _Data, offsets: npt.NDArray[np.int64] | None
    ) -> None:
        names, sizes = program.buffers, program.buffer_sizes
        self._program = program
        self._data = data
        self._in = sizes[:, names.index(Buffer.USER_IN.spelling)].tolist()
        self._out = sizes[:, names.index(Buffer.USER_OUT.spelling)].tolist()
        self._offsets = None if offsets is None else offsets.tolist()
        reach = max(*self._in, *self._out)
        reach += 0 if offsets is None else int(np.abs(offsets).max(initial=0))
        self._stride = -(-reach // _ALIGN) * _ALIGN
        self._repeated = repeated(program, data.copies, self._stride)

    def run(self, schedule: Schedule) -> WrongResult | None:
        """Run under one schedule and compare."""
        inputs, rights = self._data.of(schedule.seed)
        topology = topology_of(self._program.ranks, preset="mesh")
        group = Group.world(self._program.ranks)
        session = find_platform("emulated").open(topology, Config(buffsize_mb=1), schedule, group)
        assert session is not None
        try:
            for _ in range(2):
                wrong = self._run_once(session, schedule, inputs, rights)
                if wrong is not None:
                    return wrong
        except (DeadlockError, OrchestrationError) as error:
            return WrongResult(error.message, schedule)
        finally:
            session.close()
        return None

    def _run_once(
        self,
        session: Session,
        schedule: Schedule,
        inputs: Sequence[Sequence[Bytes]],
        rights: Sequence[list[tuple[Bytes, Bytes]]],
    ) -> WrongResult | None:
        given, taken = self._memory()
        for copy, (data, right) in enumerate(zip(inputs, rights, strict=True)):
            for rank, (value, _) in enumerate(right):
                np.invert(value, out=self._part(taken[rank], copy, len(value)))
            for rank, value in enumerate(data):
                self._part(given[rank], copy, len(value))[:] = value
        session.run("numeric", self._repeated, given, taken)
        for copy, right in enumerate(rights):
            for rank, (value, known) in enumerate(right):
                found = self._part(taken[rank], copy, len(value))
                if ((found != value) & (known > 0)).any():
                    return self._wrong(schedule, rank, copy, value, found, known)
        return None

    def _memory(self) -> tuple[list[Bytes], list[Bytes]]:
        """Return fresh memory of IN and OUT of every rank for all copies."""
        more = (self._data.copies - 1) * self._stride
        given, taken = [], []
        for rank, (size_in, size_out) in enumerate(zip(self._in, self._out, strict=True)):
            if self._offsets is None:
                given.append(np.zeros(size_in + more, np.uint8))
                taken.append(np.zeros(size_out + more, np.uint8))
                continue
            at_in, at_out = max(-self._offsets[rank], 0), max(self._offsets[rank], 0)
            memory = np.zeros(max(at_in + size_in, at_out + size_out) + more, np.uint8)
            given.append(memory[at_in : at_in + size_in + more])
            taken.append(memory[at_out : at_out + size_out + more])
        return given, taken

    def _part(self, memory: Bytes, copy: int, size: int) -> Bytes:
        return memory[copy * self._stride : copy * self._stride + size]

    def _wrong(
        self, schedule: Schedule, rank: int, copy: int, value: Bytes, found: Bytes, known: Bytes
    ) -> WrongResult:
        op = self._program.op
        element = int(((found != value) & (known > 0)).argmax()) // op.unit
        place = slice(element * op.unit, (element + 1) * op.unit)
        # As an array of one element: slices of bytes need not be aligned to the data type.
        want = np.array(value[place]).view(op.dtype.numpy)[0].item()
        have = np.array(found[place]).view(op.dtype.numpy)[0].item()
        message = f"rank {rank} element {element} of op {copy + 1}: expected {want}, found {have}"
        return WrongResult(message, schedule, rank, copy + 1, element, want, have)


def _right(program: Program, inputs: Sequence[Bytes]) -> list[tuple[Bytes, Bytes]]:
    """Return by rank the right output, and 1 for every byte of it that the op determines."""
    op, rows = program.op, expected_ranges(program.op, program.ranks)
    sizes = program.buffer_sizes[:, program.buffers.index(Buffer.USER_OUT.spelling)].tolist()
    right = [(np.zeros(size, np.uint8), np.zeros(size, np.uint8)) for size in sizes]
    total: Bytes | None = None
    columns = (rows.rank, rows.start, rows.stop, rows.source, rows.offset)
    for rank, start, stop, source, offset in zip(*(c.tolist() for c in columns), strict=True):
        if source == EVERYONE and total is None:
            assert op.reduce is not None
            total = _reduced([data.view(op.dtype.numpy) for data in inputs], UFUNCS[op.reduce])
        data = total if source == EVERYONE else inputs[source]
        assert data is not None
        value, known = right[rank]
        value[start:stop] = data[offset : offset + stop - start]
        known[start:stop] = 1
    return right


def _reduced(inputs: Sequence[Array], ufunc: np.ufunc) -> Bytes:
    total = inputs[0].copy()
    with np.errstate(all="ignore"):
        for other in inputs[1:]:
            ufunc(total, other, out=total)
    return total.view(np.uint8)
