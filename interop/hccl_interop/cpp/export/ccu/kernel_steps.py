"""The steps of every kernel, by groups of ranks, and the registers that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hccl_interop.cpp.export.ccu.die_channels import DieChannels
from hccl_interop.cpp.export.ccu.instruction_order import AlikeRanks, InstructionOrder
from hccl_interop.cpp.export.ccu.kernel_phases import (
    BITS,
    Arrivals,
    IssuedNode,
    KernelAt,
    Sequenced,
)
from hccl_interop.cpp.export.ccu.lengths import LengthList
from hccl_interop.cpp.export.folding import CppStep
from hccl_interop.cpp.export.memory import Zone
from hccl_interop.cpp.export.points import Points
from hccl_interop.cpp.export.sizes import SIDES, SizeFields
from hccl_interop.cpp.export.steps import StepShape
from hccl_py.enums import READS, TaskKind
from hccl_py.program.program import Program
from hccl_py.values import IntArray, values_of


@dataclass
class GroupSteps:
    """The work of a group in a kernel: steps, lengths, and the registers of each sort."""

    group: AlikeRanks
    lengths: LengthList
    steps: list[CppStep] = field(default_factory=list)
    places: set[tuple[object, ...]] = field(default_factory=set)
    events: int = 0
    lines: int = 0


@dataclass(frozen=True)
class KernelSteps:
    """A kernel: its place and name, and what every group does."""

    at: KernelAt
    name: str
    groups: tuple[GroupSteps, ...]

    @cached_property
    def lengths(self) -> int:
        """The lengths of a launch: those of the group that has most."""
        return max(len(one.lengths.steps) for one in self.groups)

    @cached_property
    def events(self) -> int:
        """The events of the kernel."""
        return max(one.events for one in self.groups)


@dataclass(frozen=True)
class StepMaker:
    """Makes the steps of kernels from sequences of a program's instructions."""

    program: Program
    order: InstructionOrder
    channels: DieChannels
    sizes: SizeFields
    zones: Mapping[str, Zone]

    def kernel(
        self, at: KernelAt, name: str, sequences: Sequence[Sequence[Sequenced]]
    ) -> KernelSteps:
        """Return the steps of a kernel."""
        moved = self._moved(sequences)
        found = [
            self._group(group, sequence, moved, int(start))
            for group, sequence, start in zip(
                self.order.groups, sequences, self.order.first[:-1], strict=True
            )
        ]
        return KernelSteps(at, name, tuple(found))

    def _moved(self, sequences: Sequence[Sequence[Sequenced]]) -> set[tuple[str, bool]]:
        """Return the memories, each with whether it is the peer's, that some move uses behind their
        begin.
        """
        found = set()
        for group, sequence, start in zip(
            self.order.groups, sequences, self.order.first[:-1].tolist(), strict=True
        ):
            lengths = LengthList(group, self.sizes, self.zones)
            for number in _moves(self.order, sequence, start):
                for side, memory in self._memories(group, number):
                    zone = self.zones.get(memory[0])
                    if lengths.column(number, side).any() or (zone is not None and zone.offset):
                        found.add(memory)
        return found

    def _memories(self, group: AlikeRanks, number: int) -> Iterator[tuple[str, tuple[str, bool]]]:
        """Yield both sides of a move, with the memory and whether it is the peer's."""
        one = group.instructions[number]
        is_local = one.kind in (TaskKind.COPY, TaskKind.REDUCE)
        for side, buffer in zip(SIDES, (one.src_buffer, one.dst_buffer), strict=True):
            is_far = not is_local and (one.kind in READS) == (side == "src")
            yield side, (self.program.buffers[buffer], is_far)

    def _group(
        self,
        group: AlikeRanks,
        sequence: Sequence[Sequenced],
        moved: set[tuple[str, bool]],
        start: int,
    ) -> GroupSteps:
        found = GroupSteps(group, LengthList(group, self.sizes, self.zones))
        for one in sequence:
            if isinstance(one, Arrivals):
                shape = StepShape(TaskKind.NOTIFY_WAIT, is_local=True)
                numbers: dict[str, int | IntArray] = {"event": one.event, "mask": one.mask}
                found.lines += 1
            else:
                shape, numbers = self._issued(found, one, one.node - start, moved)
            fields = {
                name: Points.of_ranks(group.ranks, np.full(len(group.ranks), value))
                for name, value in numbers.items()
            }
            found.steps.append(CppStep(shape, fields))
        return found

    def _issued(
        self, found: GroupSteps, issued: IssuedNode, number: int, moved: set[tuple[str, bool]]
    ) -> tuple[StepShape, dict[str, int | IntArray]]:
        group, one = found.group, found.group.instructions[number]
        numbers: dict[str, int | IntArray] = {}
        plane = ""
        if np.any(np.asarray(values_of(one.end)) >= 0):
            width = len(self.program.batches[group.batch].ranks)
            ends, peers = (np.full(width, values_of(v))[group.places] for v in (one.end, one.peer))
            plane, numbers["peer"] = self.channels.array_of(int(ends[0])).title, peers
        if not one.kind.moves_data:
            cells = np.asarray(values_of(one.cell)) % self.program.transports.stride
            width = len(self.program.batches[group.batch].ranks)
            numbers["notify"] = np.full(width, cells)[group.places]
            found.lines += 1
            return StepShape(one.kind, plane=plane), numbers
        lengths, names = found.lengths, []
        for side, memory in self._memories(group, number):
            names.append(memory[0])
            at = -1
            if memory in moved:
                at = lengths.offset(self.program, number, side)
                numbers[side] = at
            peer = int(np.atleast_1d(numbers["peer"])[0]) if memory[1] else -1
            found.places.add((*memory, at, plane, peer))
        numbers |= {"size": lengths.size(number), "bit": issued.bit}
        found.events = max(found.events, issued.bit // BITS + 1)
        may_be_empty = lengths.may_be_empty(number)
        found.lines += 5 if may_be_empty else 1
        reduction = (one.reduce, one.dtype) if one.kind.reduces else (-1, -1)
        src, dst = names
        return StepShape(
            one.kind,
            is_local=not plane,
            plane=plane,
            src=src,
            dst=dst,
            reduce=reduction[0],
            dtype=reduction[1],
            may_be_empty=may_be_empty,
        ), numbers


def _moves(order: InstructionOrder, sequence: Sequence[Sequenced], start: int) -> Iterator[int]:
    """Yield the numbers of the moves of a sequence."""
    for one in sequence:
        if isinstance(one, IssuedNode) and order.instruction(one.node).kind.moves_data:
            yield one.node - start
