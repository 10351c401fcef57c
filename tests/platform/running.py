"""Running recorded programs on the emulated platform, for tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_platform.emulated.fast import Thresholds
from hccl_platform.emulated.session import EmulatedSession
from hccl_platform.emulated.tiling import TileLimits
from hccl_platform.lowering.memory import Memory, user_arrays
from hccl_platform.lowering.moves import Bytes
from hccl_py.call.op_param import OpParam
from hccl_py.enums import ReduceOp
from hccl_py.operators import make_operator
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.verifier.analysis.meaning import expected_ranges

Array = npt.NDArray[Any]

UNTOUCHED = 77

TINY_TILES = Thresholds(0, 0, TileLimits(cache=1024, least=64, most=256, alone=0))
"""Runs everything in tiles, even the smallest program."""

ONLY_NUMPY = Thresholds(run_us=float("inf"))


@dataclass(frozen=True)
class Way:
    """One way to run a program."""

    schedule: Schedule | None = None
    thresholds: Thresholds | None = None
    threads: int = 1

    def session(self, program: Program) -> EmulatedSession:
        return EmulatedSession(
            program.ranks,
            int(program.buffer_sizes[0, program.buffers.index("CCL_IN")]),
            self.schedule,
            threads=self.threads,
            thresholds=self.thresholds,
        )


NUMPY = Way(thresholds=ONLY_NUMPY)
TILES = Way(thresholds=TINY_TILES)
THREADS = Way(thresholds=TINY_TILES, threads=2)
FAST = (NUMPY, TILES, THREADS)


def scheduled(seed: int = 0, adversary: Adversary = Adversary.RANDOM) -> Way:
    """Return the way of the scheduler."""
    return Way(Schedule(seed, adversary))


def run(program: Program, inputs: Sequence[Array], way: Way = NUMPY) -> list[Array]:
    """Run a program in a session of its own; outputs begin as 77s."""
    sizes = program.buffer_sizes[:, program.buffers.index("OUT")] // program.op.unit
    outputs = [np.full(size, UNTOUCHED, program.op.dtype.numpy) for size in sizes]
    session = way.session(program)
    try:
        session.run("tag", program, inputs, outputs)
    finally:
        session.close()
    return outputs


def slots_of(
    program: Program, used: Sequence[int], inputs: Sequence[Array], outputs: Sequence[Array]
) -> list[Bytes]:
    """Return the bytes of all slots: zeros, but for the caller's arrays."""
    memory = Memory(1 << 20, lambda _, size: np.zeros(size, np.uint8))
    slots = memory.slots("tag", program, used)
    arrays = user_arrays(program, range(program.ranks), inputs, outputs)
    slots |= {slot: array.view(np.uint8) for slot, array in arrays.items()}
    return [slots.get(slot, np.zeros(0, np.uint8)) for slot in range(program.buffer_sizes.size)]


def whole_numbers(op: OpParam, ranks: int, seed: int = 0) -> list[Array]:
    """Return inputs that differ by rank and element and that every order of reduction keeps exact.

    Integers have all values of their type, sums and products wrap; what is only moved has any bits.
    """
    rng = np.random.default_rng(seed)
    dtype = op.dtype.numpy
    sizes = (make_operator(op.name).user_bytes(op, ranks)[0] // op.unit).tolist()
    if op.dtype.is_moved:
        return [np.frombuffer(rng.bytes(size * op.unit), dtype) for size in sizes]
    if not op.dtype.is_float:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return [rng.integers(low, high, size, dtype, endpoint=True) for size in sizes]
    low, high = (1, 2) if op.reduce is ReduceOp.PROD else (-7, 7)
    return [rng.integers(low, high, size, endpoint=True).astype(dtype) for size in sizes]


def expected(op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
    """Return the operator's right outputs in the op's type, None where anything may stand; what an
    op leaves out stays untouched.
    """
    right = make_operator(op.name).expected(op, inputs)
    outputs = [
        None if array is None else np.full(np.size(array), UNTOUCHED, op.dtype.numpy)
        for array in right
    ]
    rows = expected_ranges(op, len(inputs))
    for rank, start, stop in zip(rows.rank, rows.start, rows.stop, strict=True):
        output, array = outputs[rank], right[rank]
        if output is not None and array is not None:
            part = slice(start // op.unit, stop // op.unit)
            output[part] = np.asarray(array)[part].astype(op.dtype.numpy)
    return outputs


def same_bits(got: Sequence[Array], wanted: Sequence[Array | None]) -> bool:
    """Whether all arrays agree bit for bit, but for those that may hold anything."""
    pairs = zip(got, wanted, strict=True)
    return all(w is None or g.tobytes() == w.tobytes() for g, w in pairs)


Change = Callable[[Instruction], Instruction | None]


def changed(program: Program, batch: int, index: int, change: Change) -> Program:
    """Return the program with one instruction of one batch changed, or gone where that is None."""
    batches = list(program.batches)
    instructions = list(batches[batch].instructions)
    new = change(instructions[index])
    instructions[index : index + 1] = [] if new is None else [new]
    batches[batch] = Batch(batches[batch].ranks, tuple(instructions))
    return replace(program, batches=tuple(batches))


def moved(instruction: Instruction, field: str, offset: int) -> Instruction:
    """Return the instruction with `src_offset` or `dst_offset` set."""
    return Instruction(**(instruction._asdict() | {field: offset}))
