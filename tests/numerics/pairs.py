"""Random pairs of calls, and the emulator as the judge of what is proved about them.

`python -m tests.numerics.pairs 300` judges so many pairs; a test keeps some of them.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan, Planner
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.errors import HcclError
from hccl_py.numerics.bit_witness import run_elements, shown, tricky
from hccl_py.numerics.element_trees import ElementTrees, order_matters, trees_of
from hccl_py.numerics.proofs import same_bits
from hccl_py.numerics.sameness import Bits, Sameness
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from hccl_py.tuning.candidates import candidates

Array = npt.NDArray[Any]

SCHEDULES = (None, Schedule(1), *(Schedule(2, adversary) for adversary in Adversary))
PLACES = (
    ("atlas-800t-a2", {"ranks": 2}),
    ("atlas-800t-a2", {"ranks": 3}),
    ("atlas-800t-a2", {"ranks": 4}),
    ("atlas-800t-a2", {"ranks": 8}),
    ("atlas-800t-a2", {"servers": 2, "devices": 4}),
    ("atlas-800t-a2", {"servers": 4, "devices": 2}),
    ("atlas-800t-a2", {"servers": 3, "devices": 2}),
    ("atlas-900-a3", {"ranks": 4}),
    ("atlas-900-a3", {"ranks": 8}),
    ("atlas-900-a3", {"servers": 2, "devices": 4}),
    ("atlas-900-a3", {"superpods": 2, "servers": 2, "devices": 2}),
    ("atlas-800-9000", {"ranks": 8}),
    ("atlas-800-9000", {"servers": 2, "devices": 4}),
    ("atlas-200t-a2-box16", {"ranks": 8}),
    ("300i-duo", {"ranks": 4}),
)
COUNTS = (1, 7, 33, 64, 100, 257, 1000, 1025, 4099, 16384, 70001)
ELEMENTS = 12_000
"""Elements of a rank's input that the interleavings are run with; larger calls run once."""


@dataclass(frozen=True)
class Pair:
    """Two planned calls that add the same, and what they are in words."""

    one: Plan
    other: Plan
    text: str


def random_pairs(seed: int) -> Iterator[Pair]:
    """Yield pairs of calls without end: other sizes, executors or settings."""
    rng = random.Random(seed)
    while True:
        try:
            yield _pair(rng)
        except HcclError:  # no such call on this product: draw again
            continue


def _pair(rng: random.Random) -> Pair:
    name, numbers = rng.choice(PLACES)
    topology = topology_of(preset=name, **numbers)
    what = rng.choice(("all_reduce", "all_reduce", "reduce_scatter", "reduce"))
    dtype = rng.choice((DataType.FP32, DataType.BF16, DataType.FP16, DataType.FP32, DataType.INT32))
    reduce = rng.choice((ReduceOp.SUM,) * 6 + (ReduceOp.PROD, ReduceOp.MAX, ReduceOp.MIN))
    mode = rng.choice((Mode.OP_BASE,) * 3 + (Mode.GRAPH,))
    root = rng.randrange(topology.size) if what == "reduce" else None
    op = OpParam(what, 1, dtype, reduce, root=root, mode=mode)
    first = rng.choice(COUNTS)
    second = first if rng.random() < 0.4 else rng.choice(COUNTS)
    one, a = _planned(rng, replace(op, count=first), topology)
    other, b = _planned(rng, replace(op, count=second), topology)
    where = f"{topology.description}, {what} {reduce.spelling} {dtype.value} {mode.value}"
    return Pair(one, other, f"{where}: {first} by {a} | {second} by {b}")


def _planned(rng: random.Random, op: OpParam, topology: Topology) -> tuple[Plan, str]:
    settings = rng.choice((("false", ""), ("true", ""), ("strict", ""), ("false", "level1:NHR")))
    algo = f"level0:NA;{settings[1]}" if settings[1] else ""
    config = Config.load({}, buffsize_mb=1, deterministic=settings[0], mode=op.mode, algo=algo)
    planner = Planner(topology, config, installed_executors(), "pairs")
    if rng.random() < 0.3:
        plan = planner.plan(op, None)
        return plan, f"{plan.selection.executor} ({settings[0]} {algo})"
    chosen = rng.choice(candidates(op, topology, config, installed_executors()))
    return planner.plan(op, chosen.executor, chosen.levels), f"{chosen.name} ({settings[0]})"


def judged(pair: Pair) -> tuple[Bits, str]:
    """Return the verdict on a pair, and what the emulator holds against it ("" for nothing)."""
    verdict = same_bits(pair.one, pair.other)
    programs = pair.one.program, pair.other.program
    maps = [trees_of(program) for program in programs]
    runs = [_runs(program, _inputs(program)) for program in programs]
    for found, outputs, program in zip(maps, runs, programs, strict=True):
        wrong = _against_trees(found, outputs, program)
        if wrong:
            return verdict.bits, wrong
    if verdict.bits is Bits.SAME:
        return verdict.bits, _against_same(maps, runs)
    return verdict.bits, _against_differing(verdict, programs)


def _inputs(program: Program) -> list[Array]:
    """Return inputs that tell orders apart, the same for elements with the same number."""
    op, ranks = program.op, program.ranks
    slots = ranks if op.name == "reduce_scatter" else 1
    data = []
    for rank in range(ranks):
        parts = [
            _values(op, np.random.default_rng((rank, slot)), op.count) for slot in range(slots)
        ]
        data.append(np.concatenate(parts))
    return data


def _values(op: OpParam, rng: np.random.Generator, count: int) -> Array:
    """Return values of a stream that does not depend on how many are drawn."""
    blocks = rng.integers(0, 1 << 30, 80_000)[:count]
    if not op.dtype.is_float:
        return blocks.astype(op.dtype.numpy)
    assert op.reduce is not None
    normal = rng.standard_normal(80_000)[:count]
    special = np.array([*tricky(op.dtype, op.reduce), 0.0, -0.0, np.inf, -np.inf, np.nan])
    chosen = special[blocks % len(special)]
    return np.where(blocks % 3 == 0, chosen, normal).astype(op.dtype.numpy)


def _runs(program: Program, inputs: list[Array]) -> list[list[Array]]:
    small = len(inputs[0]) <= ELEMENTS and program.task_count < 20_000
    schedules = SCHEDULES if small else SCHEDULES[:1]
    return [run_elements(program, inputs, schedule) for schedule in schedules]


def bits_of(values: Array) -> Array:
    """Return the bits of values, all NaNs alike, and zeros alike where signs are open."""
    words = values.view(f"u{values.itemsize}").copy()
    if values.dtype.kind == "f" or values.dtype.kind == "V" or values.dtype.name == "bfloat16":
        words[np.isnan(values.astype(np.float64))] = 1
    return words


def _against_trees(found: ElementTrees, runs: list[list[Array]], program: Program) -> str:
    """Compare every element with the value of its tree."""
    op, inputs = found.op, _inputs(program)
    columns = (found.rank, found.start, found.stop, found.tree)
    for rank, start, stop, number in zip(*(c.tolist() for c in columns), strict=True):
        tree = found.trees[number]
        if not tree.is_fixed or not order_matters(op):
            continue
        shift = rank * op.count if op.name == "reduce_scatter" else 0
        part = np.stack([data[start + shift : stop + shift] for data in inputs])
        wanted = bits_of(tree.value(part))
        for outputs in runs:
            if (bits_of(outputs[rank][start:stop]) != wanted).any():
                return f"rank {rank} elements {start} to {stop}: not the value of {tree.formula()}"
    return ""


def _against_same(maps: list[ElementTrees], runs: list[list[list[Array]]]) -> str:
    """Compare the common elements of all runs of both calls."""
    op, first = maps[0].op, runs[0][0]
    for rank in sorted({*maps[0].rank.tolist()}):
        for outputs in (*runs[0], *runs[1]):
            common = min(len(first[rank]), len(outputs[rank]))
            one, other = first[rank][:common], outputs[rank][:common]
            if order_matters(op) or not op.dtype.is_float:
                differ = bits_of(one) != bits_of(other)
            else:
                wide = one.astype(np.float64), other.astype(np.float64)
                differ = (wide[0] != wide[1]) & ~(np.isnan(wide[0]) & np.isnan(wide[1]))
            if differ.any():
                return f"rank {rank} element {int(np.argmax(differ))}: other bits"
    return ""


def _against_differing(verdict: Sameness, programs: tuple[Program, Program]) -> str:
    """Demand a witness, run on the emulator."""
    if verdict.bits is Bits.UNKNOWN:
        return "no input was found that tells the trees apart"
    return "" if shown(*programs, verdict.changed[0]) else "no run shows that bits differ"


def main(number: int, seed: int) -> int:
    """Judge so many pairs and print what was wrong; return how many were."""
    verdicts: Counter[str] = Counter()
    wrong = 0
    for pair, _ in zip(random_pairs(seed), range(number), strict=False):
        try:
            bits, problem = judged(pair)
        except HcclError as error:
            bits, problem = Bits.UNKNOWN, f"refused: {error.message}"
        verdicts[bits.value] += 1
        if problem:
            wrong += 1
            print(f"{pair.text}\n    {bits.value}: {problem}")
    print(dict(verdicts), f"{wrong} of {number} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) else 0)
