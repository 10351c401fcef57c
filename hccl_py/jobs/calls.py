"""Collectives in a job: the tasks that a communicator recorded, under the numbers of the job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.jobs.layout import JobNumbers, PlanNumbers
from hccl_py.jobs.pieces import Mapping, Piece, Shift, joined, ordered
from hccl_py.jobs.steps import Communicate, JobGroup, Step
from hccl_py.program.instruction import Instruction, Texts
from hccl_py.program.program import Program
from hccl_py.values import IntArray, PerRank, RankInt


@dataclass(frozen=True, eq=False)
class Cells:
    """Notify cells of a program: those of the transports, then every rank's local ones."""

    stride: int
    first_local: int
    slots: int

    @staticmethod
    def of(program: Program) -> Cells:
        """Return the cells of a program."""
        transports = program.transports
        return Cells(transports.stride, transports.cells, len(program.local_notifies.slots))

    def local(self, slot: int, ranks: IntArray) -> RankInt:
        """Return the cell of a slot at every rank."""
        return PerRank.of(self.first_local + ranks * self.slots + slot)


class Calls:
    """Calls of a job: the constructor lays out its communicators, `pieces` gives a call's tasks."""

    def __init__(self, layout: JobNumbers, steps: Sequence[Step]) -> None:
        self.phases, self.lines = Texts[str](), Texts[str]()
        self._pieces: dict[object, list[Piece]] = {}
        runs = [step for step in steps if isinstance(step, Communicate)]
        users: dict[Communicator, tuple[JobGroup, int, dict[int, Plan]]] = {}
        for step in runs:
            for group, plan in step.parts:
                first = (group, step.stream, dict[int, Plan]())
                users.setdefault(group.communicator, first)[2][id(plan)] = plan
        for group, stream, plans in users.values():
            layout.add(group, stream, plans.values())
        self._places = {
            (group.communicator, number): layout.place(group, plan)
            for group, _, plans in users.values()
            for number, plan in plans.items()
        }

    def pieces(self, step: Communicate, cells: Cells) -> list[Piece]:
        """Return the tasks of all parts of a step, with numbers of phases as labels; parts that
        differ in ranks only are one piece.
        """
        keys = tuple((group.communicator, id(plan)) for group, plan in step.parts)
        if keys not in self._pieces:
            found = [
                piece
                for key, (_, plan) in zip(keys, step.parts, strict=True)
                for piece in self._moved(plan.program, self._places[key], cells)
            ]
            self._pieces[keys] = ordered(joined(found) if len(step.parts) > 1 else found)
        return self._pieces[keys]

    def _moved(self, program: Program, place: PlanNumbers, cells: Cells) -> list[Piece]:
        """Return the batches of a program under the numbers of the job."""
        labels = [self.phases[label] for label in program.labels] + [self.phases[""]]
        lines = [self.lines[line] for line in program.lines] + [-1]
        cell, end = _cells(Cells.of(program), place, cells), Shift(place.first_end)
        peer = Mapping(lambda ranks: place.members[ranks])
        shifts = [*map(Shift, place.shifts), Shift(0)]

        def moved(i: Instruction) -> Instruction:
            linked = _is_some(i.end)
            return i._replace(
                stream=place.streams[i.stream],
                label=labels[i.label],
                line=lines[i.line],
                cell=cell(i.cell) if _is_some(i.cell) else i.cell,
                end=end(i.end) if linked else i.end,
                peer=peer(i.peer) if _is_some(i.peer) else i.peer,
                src_offset=shifts[i.src_buffer](i.src_offset),
                dst_offset=shifts[i.dst_buffer](i.dst_offset),
            )

        return [
            Piece(place.members[batch.ranks], tuple(map(moved, batch.instructions)))
            for batch in program.batches
            if batch.instructions
        ]


def _is_some(value: RankInt) -> bool:
    return isinstance(value, PerRank) or value >= 0


def _cells(old: Cells, place: PlanNumbers, new: Cells) -> Mapping:
    """Return the mapping from cells of a communicator's program to cells of the job."""

    def moved(cells: IntArray) -> IntArray:
        end, index = np.divmod(cells, old.stride)
        remote = (end + place.first_end) * new.stride + index
        if not old.slots:
            return remote
        is_local = cells >= old.first_local
        rank, slot = np.divmod(np.where(is_local, cells - old.first_local, 0), old.slots)
        local = new.first_local + place.members[rank] * new.slots + place.slots[slot]
        return np.where(is_local, local, remote)

    return Mapping(moved)
