"""Some ranks of a batch with its instructions; columns go on sharing their arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hccl_py.program.instruction import COLUMNS, Batch, Instruction
from hccl_py.values import IntArray, PerRank, RankInt, values_of

_VARYING = (*COLUMNS, "duration_us")


class Narrower:
    """Keeps some ranks of columns, in any order; equal columns give the same object."""

    def __init__(self) -> None:
        # The wider columns are kept, too: keys are made of the ids of their arrays.
        self._bases: dict[tuple[int, bytes], tuple[IntArray, IntArray]] = {}
        self._columns: dict[object, tuple[RankInt, PerRank]] = {}

    def __call__(
        self, instructions: Iterable[Instruction], lanes: IntArray
    ) -> tuple[Instruction, ...]:
        """Return instructions for the ranks at these places of their batch."""
        key = lanes.tobytes()
        return tuple(self._narrowed(i, lanes, key) for i in instructions)

    def _narrowed(self, instruction: Instruction, lanes: IntArray, key: bytes) -> Instruction:
        columns = ((name, getattr(instruction, name)) for name in _VARYING)
        varying: dict[str, Any] = {
            name: self._kept(value, lanes, key)
            for name, value in columns
            if isinstance(value, PerRank)
        }
        return instruction._replace(**varying) if varying else instruction

    def _kept(self, value: PerRank, lanes: IntArray, key: bytes) -> RankInt:
        known = value.key(), key
        if known not in self._columns:
            kept = PerRank(self._base(value.base, lanes, key), value.add, value.mod, value.table)
            self._columns[known] = kept.values()[0].item() if len(lanes) == 1 else kept, value
        return self._columns[known][0]

    def _base(self, base: IntArray, lanes: IntArray, key: bytes) -> IntArray:
        known = id(base), key
        if known not in self._bases:
            self._bases[known] = base[lanes], base
        return self._bases[known][0]


def by_duration(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in parts, in each of which all ranks' kernels take as long."""
    kernels = [k for k, i in enumerate(batch.instructions) if isinstance(i.duration_us, PerRank)]
    if not kernels:
        yield batch
        return
    each = [values_of(batch.instructions[k].duration_us) for k in kernels]
    which = np.unique(np.stack(each, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    narrower = Narrower()
    for part in range(int(which.max()) + 1):
        lanes = np.flatnonzero(which == part)
        mine = list(narrower(batch.instructions, lanes))
        for k, us in zip(kernels, each, strict=True):
            mine[k] = mine[k]._replace(duration_us=float(us[lanes[0]]))
        yield Batch(batch.ranks[lanes], tuple(mine))
