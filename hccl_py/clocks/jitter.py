"""Jitter: factors by which tasks take longer by chance, the same on every machine.

A task's factor follows from the model's seed, its rank, its stream and its place there. Of a number
u, evenly spread from 0 to 1, it is 1 + jitter·u³/σ, where σ is the standard deviation of u³: most
tasks take hardly longer, few take much longer, and none is faster than without, so that lower
bounds are bounds still. u comes from whole numbers of 32 bits, and the rest is products, which have
the same bits everywhere; logarithms and powers have not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.cost import CostModel
from hccl_py.program.program import Program
from hccl_py.values import Floats, IntArray

_DEVIATION = sqrt(1 / 7 - 1 / 16)
"""That of u³: its mean is 1/4, that of u⁶ 1/7."""

_BITS = 0xFFFFFFFF


def mixed(x: IntArray) -> IntArray:
    """Return a number of 32 bits that looks like chance, for one of up to 62."""
    x = (x ^ (x >> 32)) & _BITS
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & _BITS
    x = ((x ^ (x >> 15)) * 0x735A2D97) & _BITS
    return x ^ (x >> 15)


def longer(seed: IntArray, index: IntArray, spread: float) -> Floats:
    """Return the factor of a task on its stream, from 1 to 1 + spread."""
    u = mixed(seed + index * 0x9E3779B1) / 4294967296.0
    return 1.0 + spread * (u * u * u)


@dataclass(frozen=True, eq=False)
class Jitter:
    """The source of the factors of tasks: `spread` is by how much the largest is above 1; `seeds`
    has a number for every stream, rank · streams + stream.
    """

    spread: float
    seeds: IntArray

    @staticmethod
    def of(program: Program, cost: CostModel) -> Jitter:
        """Return that of a program by a cost model."""
        if not cost.jitter:
            return Jitter(0.0, np.zeros(program.ranks * program.streams, np.int64))
        ranks, streams = np.arange(program.ranks), np.arange(program.streams)
        of_rank = mixed(mixed(np.array(cost.jitter_seed)) ^ ranks)
        seeds = mixed(of_rank[:, None] + streams)
        return Jitter(cost.jitter / _DEVIATION, seeds.reshape(-1))

    def of_rows(self, program: Program, rows: npt.NDArray[np.integer] | slice) -> Floats | float:
        """Return the factors of tasks; 1 where there is no chance."""
        if not self.spread:
            return 1.0
        tasks = program.tasks
        stream = tasks.rank[rows].astype(np.int64) * program.streams + tasks.stream[rows]
        index = tasks.index[rows].astype(np.int64)
        return np.asarray(longer(self.seeds[stream], index, self.spread))
