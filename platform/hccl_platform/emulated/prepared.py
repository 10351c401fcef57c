"""A program prepared for a session's runs: its moves, their cost and memory, plans of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from hccl_platform.emulated.tiling import TilePlan
from hccl_platform.lowering.moves import Bytes, Moves, address_of
from hccl_py.enums import Buffer, DataType
from hccl_py.program.program import Program
from hccl_py.values import IntArray

Overlaps: TypeAlias = tuple[tuple[int, int], ...]
"""Ranks whose input and output overlap, with the input's offset from the output in bytes."""

_STEP_US = 0.7
_BYTES_PER_US = 20_000
_PAGE = 4096


class Prepared:
    """All that the runs of a program share. It does not keep the program alive."""

    def __init__(self, program: Program, moves: Moves) -> None:
        self.moves = moves
        self.plans: dict[Overlaps, TilePlan | None] = {}
        self.slots: dict[tuple[str, int], list[Bytes]] = {}
        """The bytes of every slot by tag and half of alternating buffers; user memory is empty."""
        self.cost_us = len(moves) * _STEP_US + float(moves.size.sum()) / _BYTES_PER_US
        """Estimated cost of one run as numpy slices, in microseconds."""
        names, buffers = program.buffers, len(program.buffers)
        self._sizes = program.buffer_sizes.reshape(-1)
        self._ins = range(names.index(Buffer.USER_IN.spelling), len(self._sizes), buffers)
        self._outs = range(names.index(Buffer.USER_OUT.spelling), len(self._sizes), buffers)
        self.written_user_slots = self.moves.written_slots & {*self._ins, *self._outs}

    @cached_property
    def dtype(self) -> DataType | None:
        """The type of the reductions; None if there are none."""
        return next(iter(self.moves.reduce_dtypes), None)

    @cached_property
    def is_uniform(self) -> bool:
        """True if all reductions are in one type, so that one compiled kernel can run them; it
        rounds every sum.
        """
        moves = self.moves
        return len(moves) > 0 and len(moves.reduce_dtypes) <= 1 and not moves.adds_to_sum.any()

    def overlaps(self, slots: Sequence[Bytes]) -> Overlaps:
        """Return the overlaps of the caller's inputs with the outputs."""
        return tuple(
            (rank, address_of(slots[i]) - address_of(slots[o]))
            for rank, (i, o) in enumerate(zip(self._ins, self._outs, strict=True))
            if np.may_share_memory(slots[i], slots[o])
        )

    def origins(self, overlaps: Overlaps) -> IntArray:
        """Return fictitious addresses of all slots, far apart except for inputs that overlap
        outputs.
        """
        apart = 4 * (int(self._sizes.max(initial=0)) // _PAGE + 1) * _PAGE
        origins = np.arange(1, len(self._sizes) + 1, dtype=np.int64) * apart
        for rank, offset in overlaps:
            origins[self._ins[rank]] = origins[self._outs[rank]] + offset
        return origins
