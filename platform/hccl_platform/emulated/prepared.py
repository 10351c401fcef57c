"""What a session works out about a program once: its moves, their cost and memory, plans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from hccl_platform.emulated.tiling import TilePlan
from hccl_platform.lowering.moves import Bytes, Moves, Step, address_of, steps_of
from hccl_py.enums import Buffer, DataType
from hccl_py.program.program import Program
from hccl_py.values import IntArray

Overlaps: TypeAlias = tuple[tuple[int, int], ...]
"""Ranks whose input and output overlap, and where the input begins in the output, in bytes."""

_STEP_US = 0.7
_BYTES_PER_US = 20_000
_PAGE = 4096


class Prepared:
    """All that does not depend on the data of a call. It does not keep the program alive."""

    def __init__(self, program: Program, moves: Moves) -> None:
        self.moves = moves
        self.plans: dict[Overlaps, TilePlan | None] = {}
        self.slots: dict[tuple[str, int], list[Bytes]] = {}
        """Per tag and half of what alternates: the bytes of every slot; the caller's are still
        empty.
        """
        self.cost_us = len(moves) * _STEP_US + float(moves.size.sum()) / _BYTES_PER_US
        """What one run is estimated to cost as numpy slices."""
        names, buffers = program.buffers, len(program.buffers)
        self._sizes = program.buffer_sizes.reshape(-1)
        self._ins = range(names.index(Buffer.USER_IN.spelling), len(self._sizes), buffers)
        self._outs = range(names.index(Buffer.USER_OUT.spelling), len(self._sizes), buffers)

    @cached_property
    def steps(self) -> list[Step]:
        """The moves, to be run with numpy."""
        return steps_of(self.moves)

    @cached_property
    def used(self) -> list[int]:
        """The slots that the moves touch."""
        used: list[int] = np.unique(np.concatenate([self.moves.dst, self.moves.src])).tolist()
        return used

    @cached_property
    def written_user_slots(self) -> list[int]:
        """The caller's slots that the program writes."""
        return sorted({*self._ins, *self._outs} & set(np.unique(self.moves.dst).tolist()))

    @cached_property
    def dtype(self) -> DataType | None:
        """The type of all reductions; None if there are none."""
        found = self.moves.reduce_dtypes
        return found[0] if found else None

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all reductions are in one type, so that one compiled kernel can run them."""
        return len(self.moves) > 0 and len(self.moves.reduce_dtypes) <= 1

    def overlaps(self, slots: Sequence[Bytes]) -> Overlaps:
        """Return where the caller's inputs lie in the outputs."""
        found = []
        for rank, (i, o) in enumerate(zip(self._ins, self._outs, strict=True)):
            if np.may_share_memory(slots[i], slots[o]):
                found.append((rank, address_of(slots[i]) - address_of(slots[o])))
        return tuple(found)

    def origins(self, overlaps: Overlaps) -> IntArray:
        """Return made-up addresses of all slots, far apart but for inputs that overlap outputs."""
        apart = 4 * (int(self._sizes.max(initial=0)) // _PAGE + 1) * _PAGE
        origins = np.arange(1, len(self._sizes) + 1, dtype=np.int64) * apart
        for rank, offset in overlaps:
            origins[self._ins[rank]] = origins[self._outs[rank]] + offset
        return origins
