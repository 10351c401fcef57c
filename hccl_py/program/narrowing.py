"""Some ranks of a batch with its instructions; columns go on sharing their arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hccl_py.program.instruction import COLUMNS, Instruction
from hccl_py.values import IntArray, PerRank, RankInt

__all__ = ["Narrower"]


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
        columns = ((name, getattr(instruction, name)) for name in COLUMNS)
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
            self._columns[known] = int(kept) if len(lanes) == 1 else kept, value
        return self._columns[known][0]

    def _base(self, base: IntArray, lanes: IntArray, key: bytes) -> IntArray:
        known = id(base), key
        if known not in self._bases:
            self._bases[known] = base[lanes], base
        return self._bases[known][0]
