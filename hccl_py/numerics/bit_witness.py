"""Witnesses: inputs that give two trees other bits, run on the emulator to show them.

Random values alone would do for most pairs. Beside them stand values that tell orders apart:
large ones that cancel, small ones that vanish beside them, halves of the last place, denormals.
What is found is then made simple: inputs become zero as long as the bits still differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.numerics.sameness import TreePair
from hccl_py.numerics.sum_trees import SumTree
from hccl_py.plugins.discovery import find_platform
from hccl_py.plugins.platforms import Adversary, Group, Schedule
from hccl_py.program.program import Program
from hccl_py.topology.factory import topology_of
from hccl_py.verifier.analysis.meaning import EVERYONE, expected_ranges

Array = npt.NDArray[Any]

TRIALS = 4096
"""Inputs that a search looks at."""

SAMPLES = 1 << 16
"""Elements of random data by which the share of differing ones is estimated."""

MOST_BYTES = 1 << 30
"""Memory of inputs and outputs up to which a witness is run."""

SEED = 17


_LIMITS = {
    DataType.FP16: (2.0**-10, 2.0**-24, 2.0**15),
    DataType.BF16: (2.0**-7, 2.0**-133, 2.0**127),
    DataType.FP32: (2.0**-23, 2.0**-149, 2.0**127),
    DataType.FP64: (2.0**-52, 2.0**-1074, 2.0**1023),
}
"""The step above 1, the smallest value, and the largest power of two of each type of floats."""


@dataclass(frozen=True)
class BitWitness:
    """One element whose bits differ: each rank's input, and the element in one call and in the
    other, as numbers and as bits; `turn` is the order of arrival that gives the second, where one
    call gives both.
    """

    rank: int
    element: int
    inputs: tuple[float, ...]
    one: float
    other: float
    bits: tuple[str, str]


def tricky(dtype: DataType, reduce: ReduceOp) -> list[float]:
    """Return values that tell orders of a sum or product apart, in a data type of floats."""
    one, eps, tiny, most = 1.0, *_LIMITS[dtype]
    if reduce is ReduceOp.PROD:
        return [one + eps, one - eps, one + 3 * eps, 3.0, -one / 3, tiny, 1 / eps]
    values = [one, eps / 2, eps * 0.75, one + eps, 1 / eps, 2 / eps + 2, most, tiny]
    return [sign * value for value in values for sign in (1.0, -1.0)]


def random_inputs(dtype: DataType, ranks: int, n: int) -> Array:
    """Return [ranks, n] values of the normal distribution, rounded to the data type."""
    found = np.random.default_rng(SEED).standard_normal((ranks, n), np.float32)
    return found.astype(dtype.numpy)


def witness_inputs(pair: TreePair, dtype: DataType, reduce: ReduceOp, ranks: int) -> Array | None:
    """Return a value for each rank with which two trees, or two orders of arrival, differ in bits;
    None where none was found.
    """
    trials = _trials(dtype, reduce, ranks)
    one, other, turn = *_sides(pair), _turn(pair)
    apart = np.flatnonzero(_differ(one.value(trials), other.value(trials, turn)))
    if not len(apart):
        return None
    found = trials[:, apart[:1]]
    for rank in range(ranks):
        simpler = found.copy()
        simpler[rank] = 1 if reduce is ReduceOp.PROD else 0
        if _differ(one.value(simpler), other.value(simpler, turn)).any():
            found = simpler
    column: Array = found[:, 0]
    return column


def _sides(pair: TreePair) -> tuple[SumTree, SumTree]:
    """Return the two trees to evaluate; of a pair in open order, the open one twice."""
    if pair.one.is_fixed and pair.other.is_fixed:
        return pair.one, pair.other
    tree = pair.other if pair.one.is_fixed else pair.one
    return tree, tree


def _turn(pair: TreePair) -> int:
    return 0 if pair.one.is_fixed and pair.other.is_fixed else 1


def _trials(dtype: DataType, reduce: ReduceOp, ranks: int) -> Array:
    rng = np.random.default_rng(SEED)
    values = np.array(tricky(dtype, reduce)).astype(dtype.numpy)
    found = values[rng.integers(0, len(values), (ranks, TRIALS))]
    found[:, ::2] = random_inputs(dtype, ranks, TRIALS // 2)
    return found


def _differ(one: Array, other: Array) -> npt.NDArray[np.bool_]:
    """Mark elements of other bits; two NaNs count as the same, since which one is handed on is not
    fixed.
    """
    words = np.dtype(f"u{one.dtype.itemsize}")
    found: npt.NDArray[np.bool_] = one.view(words) != other.view(words)
    wide = one.astype(np.float64), other.astype(np.float64)
    return found & ~(np.isnan(wide[0]) & np.isnan(wide[1]))


def share_of_differing(
    pairs: Sequence[TreePair], dtype: DataType, ranks: int, elements: int
) -> float:
    """Return the share of elements whose bits differ on random data, by their trees; an open order
    is taken once as it is and once turned.
    """
    changed, expected = [pair for pair in pairs if pair.one != pair.other or _turn(pair)], 0.0
    each = max(SAMPLES // max(len(changed), 1), 1024)
    values: dict[tuple[bytes, int], Array] = {}
    data = random_inputs(dtype, ranks, each)

    def value(tree: SumTree, turn: int) -> Array:
        if (tree.digest, turn) not in values:
            values[tree.digest, turn] = tree.value(data, turn)
        return values[tree.digest, turn]

    for pair in changed:
        apart = _differ(value(pair.one, 0), value(pair.other, _turn(pair)))
        expected += pair.elements * float(apart.mean())
    return expected / elements


def run_elements(
    program: Program, inputs: Sequence[Array], schedule: Schedule | None = None
) -> list[Array]:
    """Run a program on the emulator and return every rank's output."""
    op, names = program.op, program.buffers
    sizes = program.buffer_sizes[:, names.index(Buffer.USER_OUT.spelling)] // op.unit
    outputs = [np.zeros(size, op.dtype.numpy) for size in sizes.tolist()]
    given = [np.ascontiguousarray(array, op.dtype.numpy) for array in inputs]
    if op.in_place:
        memory = [
            np.zeros(max(len(a), len(b)), a.dtype) for a, b in zip(given, outputs, strict=True)
        ]
        for into, array in zip(memory, given, strict=True):
            into[: len(array)] = array
        given = [into[: len(array)] for into, array in zip(memory, given, strict=True)]
        outputs = [into[: len(array)] for into, array in zip(memory, outputs, strict=True)]
    topology = topology_of(program.ranks, preset="mesh")
    group = Group.world(program.ranks)
    session = find_platform("emulated").open(topology, Config(buffsize_mb=1), schedule, group)
    assert session is not None
    try:
        session.run("numerics", program, given, outputs)
    finally:
        session.close()
    return outputs


def shown(one: Program, other: Program, pair: TreePair, shift: int = 0) -> BitWitness | None:
    """Find an input and run both programs on it; None where none shows a difference, or where the
    runs would take too much memory.
    """
    op = one.op
    assert op.reduce is not None
    inputs = witness_inputs(pair, op.dtype, op.reduce, one.ranks)
    room = sum(int(p.buffer_sizes[:, _user(p)].sum()) for p in (one, other))
    if inputs is None or room > MOST_BYTES:
        return None
    if pair.bits.value == "open":
        return _two_runs(one if not pair.one.is_fixed else other, pair, inputs)
    found = [
        _run_at(program, pair.rank, pair.element + moved, inputs, None)
        for program, moved in ((one, 0), (other, shift))
    ]
    return _witness(pair, inputs, *found)


def _two_runs(program: Program, pair: TreePair, inputs: Array) -> BitWitness | None:
    """Run one call in many interleavings until two of them give other bits."""
    first = None
    for seed in range(64):
        for adversary in Adversary:
            schedule = Schedule(seed, adversary)
            value = _run_at(program, pair.rank, pair.element, inputs, schedule)
            first = value if first is None else first
            if _differ(first, value).any():
                return _witness(pair, inputs, first, value)
    return None


def _witness(pair: TreePair, inputs: Array, one: Array, other: Array) -> BitWitness | None:
    if not _differ(one, other).any():
        return None
    bits = tuple(np.array(value).view(f"u{value.itemsize}").item() for value in (one, other))
    width = 2 * one.itemsize
    return BitWitness(
        pair.rank,
        pair.element,
        tuple(float(value) for value in inputs),
        float(one[0]),
        float(other[0]),
        (f"0x{bits[0]:0{width}x}", f"0x{bits[1]:0{width}x}"),
    )


def _run_at(
    program: Program, rank: int, element: int, inputs: Array, schedule: Schedule | None
) -> Array:
    """Run a program whose inputs are zero but for one element; return that of a rank's output."""
    op = program.op
    sizes = program.buffer_sizes[:, program.buffers.index(Buffer.USER_IN.spelling)] // op.unit
    data = [np.zeros(size, op.dtype.numpy) for size in sizes.tolist()]
    at = element + _offset(op, program.ranks, rank)
    for array, value in zip(data, inputs, strict=True):
        array[at] = value
    found: Array = run_elements(program, data, schedule)[rank][element : element + 1]
    return found


def _offset(op: OpParam, ranks: int, rank: int) -> int:
    """Return the element of the input that the first one of a rank's output is the sum of."""
    rows = expected_ranges(op, ranks, np.array([rank]))
    chosen = np.flatnonzero(rows.source == EVERYONE)[0]
    return int(rows.offset[chosen] - rows.start[chosen]) // op.unit


def _user(program: Program) -> list[int]:
    return [program.buffers.index(name) for name in ("IN", "OUT") if name in program.buffers]
