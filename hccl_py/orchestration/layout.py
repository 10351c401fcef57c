"""Slots laid out one after the other in one piece of memory, and the largest round that fits.

An author writes one function that asks for slots, given the number of elements of a round.
Recording calls it with the actual memory; `resources` hands it to `Layout.max_count`, which finds
the largest round whose slots fit. So the two cannot disagree.

    def slots(self, op, layout, count, ranks):
        part = -(-count // ranks) * op.unit
        return layout.slot("sum", part), layout.slots("packed", ranks - 1, part)
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.orchestration.region import SLICE_ALIGN, Chunks, Region
from hccl_py.values import OutOfBoundsError, PerRank

_MOST = 1 << 62
"""More elements than any call has."""


class Layout:
    """Gives out slots of `memory`, one behind the other, each at a multiple of `align` bytes.

    Slots have names, which errors and `repr` show. They lie at the same places on all ranks, so
    that `link.remote(slot)` is the peer's slot: sizes are plain numbers, and where ranks have parts
    of different sizes a slot holds the largest one, of which each rank takes the head. `used` is
    the number of bytes up to the end of the last slot.
    """

    def __init__(self, memory: Region, align: int = SLICE_ALIGN) -> None:
        if align < 1:
            raise ValueError(f"slots cannot be aligned to {align} bytes")
        self._memory, self._align = memory, align
        self._room = int(memory.size)
        self.used = 0
        self._taken: dict[str, tuple[int, int]] = {}

    def slot(self, name: str, size: int) -> Region:
        """Return the next `size` bytes.

        Raises OutOfBoundsError where they do not fit, OrchestrationError for a name that is taken
        and a size that differs by rank, and ValueError for one below 0.
        """
        start, size = self._take(name, size, 1)
        return self._memory[start : start + size]

    def slots(self, name: str, n: int, size: int) -> Chunks:
        """Return the next `n` slots of `size` bytes each, every one of them aligned; raises what
        `slot` does, and ValueError for `n` below 0.
        """
        n = operator.index(n)
        if n < 0:
            raise ValueError(f"there cannot be {n} slots {name}")
        start, size = self._take(name, size, n)
        offsets = int(self._memory.offset) + start + np.arange(n)[None, :] * self._aligned(size)
        return Chunks(self._memory.buffer, offsets, np.full((1, n), size), 0, self._memory.link)

    @staticmethod
    def max_count(
        room: int, place: Callable[[Layout, int], object], align: int = SLICE_ALIGN
    ) -> int:
        """Return the most elements whose slots fit `room` bytes, 0 where not even one does.

        `place(layout, count)` asks for the slots of a round of `count` elements; more elements
        never need less room. ValueError where its slots do not grow with the count.
        """

        def fits(count: int) -> bool:
            layout = Layout(Region(Buffer.CCL_IN, 0, 1 << 80), align)
            place(layout, count)
            return layout.used <= room

        low, high = 0, 1
        while fits(high):
            low, high = high, 2 * high
            if high > _MOST:
                raise ValueError("the slots of a layout do not grow with the count of a round")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _take(self, name: str, size: int, n: int) -> tuple[int, int]:
        """Take room for slots; return the offset of the first, and the size as a plain int."""
        if isinstance(size, PerRank):
            raise orchestration_error(
                f"Slot {name} has another size on every rank",
                "Give the largest: a slot lies at the same place everywhere. Each rank takes the "
                "head of it that it needs, slot.head(size).",
            )
        size = operator.index(size)
        if size < 0:
            raise ValueError(f"slot {name} cannot have {size} bytes")
        if name in self._taken:
            raise orchestration_error(
                f"The layout has a slot {name} already", "Give every slot a name of its own."
            )
        start = self._aligned(self.used)
        end = start + max(n - 1, 0) * self._aligned(size) + (size if n else 0)
        if end > self._room:
            taken = ", ".join(f"{key} {a} to {b}" for key, (a, b) in self._taken.items())
            raise OutOfBoundsError(
                f"slot {name} at bytes {start} to {end} of {self._room}"
                + (f", behind {taken}" if taken else "")
            )
        self._taken[name], self.used = (start, end), end
        return start, size

    def _aligned(self, number: int) -> int:
        return -(-number // self._align) * self._align

    def __repr__(self) -> str:
        slots = ", ".join(f"{name}={a}:{b}" for name, (a, b) in self._taken.items())
        return f"Layout({slots}; {self.used} of {self._room} bytes)"
