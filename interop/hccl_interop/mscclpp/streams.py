"""The streams of a rank, and the notifies between them: main, a sub stream for every threadblock,
and one for every proxy of a port channel.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from hccl_interop.common.places import PlacedStream
from hccl_interop.mscclpp.layout import PlanLayout
from hccl_interop.mscclpp.places import PlanPlace
from hccl_interop.mscclpp.plan import PlanGpu
from hccl_py.program.builder import ProgramBuilder, TaskNote
from hccl_py.program.builder.streams import NO_NOTE

START = 0
"""The notify of a sub stream by which main starts a threadblock, or a proxy is asked."""


class LocalCell(NamedTuple):
    """A local notify: its stream, and its number there."""

    stream: int
    number: int


@dataclass
class PortProxy:
    """The proxy of a threadblock on a port channel. `is_open` says that data was sent and not
    flushed, `is_late` that anything was done since the last flush.
    """

    stream: int
    flushed: LocalCell
    is_open: bool = False
    is_late: bool = False


@dataclass
class RankStreams:
    """The streams of a rank, empty but for what main does before all threadblocks."""

    layout: PlanLayout
    gpu: PlanGpu
    builder: ProgramBuilder
    queues: list[PlacedStream[PlanPlace]] = field(default_factory=list)
    proxies: dict[tuple[int, int], PortProxy] = field(default_factory=dict)
    _used: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for _ in range(1 + len(self.gpu.blocks)):
            self._stream()
        self.flags = {
            (write, key): self._cell(1 + key.block)
            for key, writes in self.layout.flags.writers.items()
            for write in writes
            if key.rank == write.step.rank == self.gpu.id
        }
        self.semaphores, self._left = self._semaphores()
        self.barriers: dict[int, dict[int, LocalCell]] = defaultdict(dict)
        for block in self.gpu.blocks:
            for op in block.every():
                if op.name == "barrier" and block.id not in self.barriers[op.barrier]:
                    self.barriers[op.barrier][block.id] = self._cell(1 + block.id)
        for block in self.gpu.blocks:
            self.queues[0].at(PlanPlace()).local_post(1 + block.id, START)
            self.queues[1 + block.id].at(PlanPlace()).local_wait(START)

    def _stream(self) -> int:
        """Add a stream: main, then sub streams, of which each has the notify START."""
        number = len(self.queues)
        self.queues.append(PlacedStream(self.builder.stream(self.gpu.id, number)))
        self._used[number] = 1 if number else 0
        return number

    def _cell(self, stream: int) -> LocalCell:
        """Return another notify of a stream."""
        self._used[stream] += 1
        return LocalCell(stream, self._used[stream] - 1)

    def proxy(self, block: int, channel: int) -> PortProxy:
        """Return the proxy of a threadblock's port channel."""
        found = self.proxies.get((block, channel))
        if found is None:
            found = PortProxy(self._stream(), self._cell(1 + block))
            self.proxies[block, channel] = found
        return found

    def _semaphores(self) -> tuple[dict[int, LocalCell], dict[int, int]]:
        """Let semaphores begin as the plan says. Return their notifies, and what the call leaves.

        A first value that no operation acquires makes no difference.
        """
        acquired: Counter[int] = Counter()
        released: Counter[int] = Counter()
        owners: dict[int, int] = {}
        for block in self.gpu.blocks:
            for step in self.layout.steps[self.gpu.id, block.id]:
                acquires = step.op.name == "sem_acquire"
                for number in step.op.semaphores:
                    (acquired if acquires else released)[number] += 1
                    if acquires:
                        owners.setdefault(number, 1 + block.id)
        cells, left = {}, {}
        for number in sorted({*acquired, *released}):
            cells[number] = self._cell(owners.get(number, 0))
            first = min(self.gpu.semaphores[number], acquired[number])
            for _ in range(first):
                place = PlanPlace(what=f"the first value of semaphore {number}")
                self.queues[0].at(place).local_post(*cells[number])
            left[number] = max(0, first + released[number] - acquired[number])
        return cells, left

    def finish(self) -> None:
        """Let main join the threadblocks, and proxies that have only signalled since their last
        flush; then semaphores are taken back to nothing.
        """
        late = [p.stream for p in self.proxies.values() if p.is_late and not p.is_open]
        for stream in (*(1 + block.id for block in self.gpu.blocks), *late):
            join = self._cell(0)
            self.queues[stream].at(PlanPlace()).local_post(*join)
            self.queues[0].at(PlanPlace()).local_wait(join.number)
        for number, left in self._left.items():
            for _ in range(left):
                self.wait(
                    0, self.semaphores[number], PlanPlace(what=f"semaphore {number} as it is left")
                )

    def wait(
        self, stream: int, cell: LocalCell, place: PlanPlace, note: TaskNote = NO_NOTE
    ) -> None:
        """Let a stream wait for a notify, which may be another stream's."""
        self.queues[stream].at(place).local_wait(cell.number, note, owner=cell.stream)

    def post(
        self, stream: int, cell: LocalCell, place: PlanPlace, note: TaskNote = NO_NOTE
    ) -> None:
        """Let a stream post a notify of another one."""
        self.queues[stream].at(place).local_post(*cell, note)
