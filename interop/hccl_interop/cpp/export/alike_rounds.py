"""Rounds: data that does not fit the HCCL buffer goes through it in rounds that are all alike.

A program of several rounds is, task by task, the program of one round after the other. In the
user's memory a round's data lies behind that of the rounds before it, and slots are as far from
each other as the whole data is long. That is compared for some counts with what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hccl_interop.cpp.export.memory import USER
from hccl_interop.cpp.export.memory_slots import DATA
from hccl_interop.cpp.export.sampling import outline_of
from hccl_interop.cpp.export.sizes import SIDES, SizeFields
from hccl_py.errors import HcclError
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.values import IntArray, values_of

MOST_ROUNDS = 32
"""Rounds up to which programs are compared."""


def most_in_rounds(
    record: Callable[[int], Program], sizes: SizeFields, most: int, others: Sequence[int] = ()
) -> int:
    """Return the most elements of a call in rounds of `most` elements, or `most` where rounds are
    not alike. `others` are counts to compare beside those chosen here.
    """
    comparison = _Comparison(record, sizes, most)
    last = MOST_ROUNDS * most
    counts = {most + 1, 2 * most + most // 3 + 1, 3 * most - 1, last}
    every = counts | {count for count in others if most < count < last}
    return last if all(comparison.is_alike(count) for count in sorted(every)) else most


class _Comparison:
    """Programs of several rounds against those of one."""

    def __init__(self, record: Callable[[int], Program], sizes: SizeFields, most: int) -> None:
        self._record, self._sizes, self._most = record, sizes, most
        self._full = record(most)

    def is_alike(self, count: int) -> bool:
        """Return True if the program of a count is that of its rounds, one after the other."""
        starts = range(0, count, self._most)
        try:
            program = self._record(count)
            rest = count - starts[-1]
            last = self._full if rest == self._most else self._record(rest)
        except HcclError:
            return False
        if len(program.batches) != len(last.batches):
            return False
        return program.rounds == len(starts) and all(
            self._is_round(program, number, last if start == starts[-1] else self._full, start)
            for number, start in enumerate(starts)
        )

    def _is_round(self, program: Program, number: int, one: Program, start: int) -> bool:
        for k, (batch, single) in enumerate(zip(program.batches, one.batches, strict=True)):
            length = len(single.instructions)
            if len(batch.instructions) != length * program.rounds or not np.array_equal(
                batch.ranks, single.ranks
            ):
                return False
            mine = batch.instructions[number * length : (number + 1) * length]
            if any(
                outline_of(a) != outline_of(b)
                for a, b in zip(mine, single.instructions, strict=True)
            ):
                return False
            if not all(
                self._is_moved(program, a, one, b, (k, at), start)
                for at, (a, b) in enumerate(zip(mine, single.instructions, strict=True))
                if a.kind.moves_data
            ):
                return False
        return True

    def _is_moved(
        self,
        program: Program,
        mine: Instruction,
        one: Program,
        single: Instruction,
        at: tuple[int, int],
        start: int,
    ) -> bool:
        """Return True if a task is that of the round, its sides in the user's memory moved on."""
        if (np.asarray(values_of(mine.size)) != values_of(single.size)).any():
            return False
        if not np.any(values_of(mine.size)):
            return True
        ahead = start * program.op.unit
        longer = program.op.size - one.op.size
        columns = (mine.src_offset, single.src_offset), (mine.dst_offset, single.dst_offset)
        buffers = mine.src_buffer, mine.dst_buffer
        for side, (new, old), buffer in zip(SIDES, columns, buffers, strict=True):
            moved = np.asarray(values_of(new)) - values_of(old)
            if program.buffers[buffer] not in USER:
                if moved.any():
                    return False
            elif (moved != ahead + longer * self._slots(at, side)).any():
                return False
        return True

    def _slots(self, at: tuple[int, int], side: str) -> IntArray:
        """Return the slots of the data's length before one side, by rank."""
        layout, numbers = self._sizes.fields(*at)
        assert layout is not None, "rounds are looked for where there are formulas"
        form = layout.src if side == "src" else layout.dst
        return numbers[f"{side}_many"] if form.slots.stride == DATA else np.zeros(1, np.int64)
