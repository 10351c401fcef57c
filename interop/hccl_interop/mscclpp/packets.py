"""Pairs of writes and waits of packets. A flag is at an address, so a reader waits for every write
there in the call; the flags of two writes do not differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from hccl_interop.mscclpp.overlaps import Overlaps
from hccl_interop.mscclpp.steps import PlanSlice, PlanStep
from hccl_py.errors import ParameterError

MAX_FLAGS = 1 << 16
"""Notifies between writes of packets and who waits for them, that are written out."""


class StepKey(NamedTuple):
    """A step: the `position`-th of a threadblock of a rank."""

    rank: int
    block: int
    position: int


class PacketWrite(NamedTuple):
    """Packets that a step writes: its `target`-th slice of them."""

    step: StepKey
    target: int


class PacketFlags:
    """The packets of a call: `writers[reader]` and `readers[write]` say who waits for whom,
    `unwritten` has what is read and never written, `doubles` pairs of writes into the same packets.

    ParameterError where more wait for more than is written out.
    """

    def __init__(self, steps: Mapping[tuple[int, int], list[PlanStep]]) -> None:
        self.writers: dict[StepKey, list[PacketWrite]] = defaultdict(list)
        self.readers: dict[PacketWrite, list[StepKey]] = defaultdict(list)
        self.unwritten: list[tuple[StepKey, PlanSlice]] = []
        self.doubles: list[tuple[PacketWrite, PacketWrite, PlanSlice]] = []
        writes: dict[int, list[tuple[PlanSlice, PacketWrite]]] = defaultdict(list)
        reads: list[tuple[PlanSlice, StepKey]] = []
        self._count = 0
        for (rank, block), listed in steps.items():
            for position, step in enumerate(listed):
                key = StepKey(rank, block, position)
                reads += [(found, key) for found in step.reads if found.size]
                for target, found in enumerate(step.packets):
                    if found.size:
                        writes[found.rank].append((found, PacketWrite(key, target)))
        tables = {rank: _PacketWrites(found) for rank, found in writes.items()}
        for table in tables.values():
            self.doubles += table.doubles()
        for found, key in reads:
            self._read(found, key, tables.get(found.rank))

    def _read(self, found: PlanSlice, key: StepKey, table: _PacketWrites | None) -> None:
        covered = found.offset
        for slice_, write in [] if table is None else table.within(found):
            if slice_.offset <= covered:
                covered = max(covered, slice_.stop)
            if write.step != key and self.readers[write][-1:] != [key]:  # reads come step by step
                self.readers[write].append(key)
                self.writers[key].append(write)
                self._take_one()
        if covered < found.stop:
            self.unwritten.append((key, found))

    def _take_one(self) -> None:
        self._count += 1
        if self._count > MAX_FLAGS:
            raise ParameterError(
                "Operations of the plan wait for packets of so many others that this makes more "
                f"than {MAX_FLAGS:,} notifies, one for each two.",
                "Let operations read fewer chunks, each written by fewer operations.",
            )


class _PacketWrites:
    """Writes into the packets of a rank, by address."""

    def __init__(self, writes: list[tuple[PlanSlice, PacketWrite]]) -> None:
        self._writes = sorted(writes, key=lambda w: (w[0].offset, w[0].stop, w[1]))
        self._places = Overlaps((w[0].offset, w[0].stop, w) for w in self._writes)

    def within(self, found: PlanSlice) -> list[tuple[PlanSlice, PacketWrite]]:
        """Return the writes that overlap a slice, by address."""
        return [*self._places.with_bytes_of(found.offset, found.stop)][::-1]

    def doubles(self) -> Iterator[tuple[PacketWrite, PacketWrite, PlanSlice]]:
        """Yield writes of neighbours that overlap."""
        for (first, one), (second, other) in pairwise(self._writes):
            if first.overlaps(second):
                yield one, other, second
