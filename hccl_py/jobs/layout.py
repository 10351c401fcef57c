"""The layout of a job: streams, notifies, memory and transports of its communicators.

A communicator has sub streams, local notifies and memory of its own, and each of its tags has its
own transports. Communicators that share no rank may have the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.enums import Buffer
from hccl_py.jobs.steps import JobGroup
from hccl_py.program.program import Declared
from hccl_py.program.transports import LocalNotifies, Transports
from hccl_py.topology.planes import PLANES
from hccl_py.values import IntArray

ALIGNMENT = 512
"""Bytes that the memory of every communicator begins at a multiple of."""


@dataclass(frozen=True, eq=False)
class PlanNumbers:
    """Numbers of a plan in the job: its ranks, streams and slots of local notifies, by their
    numbers in the plan; the bytes to add to offsets, by buffer; its first transport end.
    """

    members: IntArray
    streams: tuple[int, ...]
    slots: IntArray
    shifts: tuple[int, ...]
    first_end: int


class JobNumbers:
    """The numbers given out so far, the same at all ranks of a communicator."""

    def __init__(self, ranks: int, streams: int) -> None:
        self.ranks = ranks
        self._streams = np.full(ranks, streams)
        self._notifies: dict[int, IntArray] = {}
        self._slots: dict[tuple[int, int], int] = {}
        self._memory = np.zeros((ranks, len(Buffer)), np.int64)
        self._owned: dict[Communicator, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._local: dict[tuple[Communicator, int, int], int] = {}
        self._transports = _JointTransports()

    def add(self, group: JobGroup, main: int, plans: Iterable[Plan]) -> None:
        """Give a communicator streams and memory for all plans that it runs on a stream."""
        programs = [plan.program for plan in plans]
        subs = max(program.streams for program in programs) - 1
        sizes = np.max([program.buffer_sizes for program in programs], axis=0)
        first = int(self._streams[group.members].max())
        self._streams[group.members] = first + subs
        start = self._memory[group.members].max(axis=0)
        start = -(-start // ALIGNMENT) * ALIGNMENT * (sizes.max(axis=0) > 0)
        self._memory[group.members] = np.maximum(self._memory[group.members], start + sizes)
        owned = (main, *range(first, first + subs)), tuple(start.tolist())
        self._owned[group.communicator] = owned

    def place(self, group: JobGroup, plan: Plan) -> PlanNumbers:
        """Return the numbers of a communicator's plan."""
        streams, shifts = self._owned[group.communicator]
        slots = [
            self._local_slot(group, streams, stream, index)
            for stream, index in plan.program.local_notifies.slots
        ]
        first_end = self._transports.first_end(group, plan)
        return PlanNumbers(group.members, streams, np.array(slots, np.int64), shifts, first_end)

    def notify(self, stream: int, ranks: IntArray) -> int:
        """Return a slot for one more local notify of a stream, at some ranks."""
        used = self._notifies.setdefault(stream, np.zeros(self.ranks, np.int64))
        index = int(used[ranks].max())
        used[ranks] = index + 1
        return self._slots.setdefault((stream, index), len(self._slots))

    @property
    def local_notifies(self) -> LocalNotifies:
        """The slots of all local notifies."""
        return LocalNotifies(tuple(self._slots))

    @property
    def transports(self) -> Transports:
        """The transports of all communicators."""
        return self._transports.transports()

    @property
    def buffer_sizes(self) -> IntArray:
        """The bytes of all ranks' memories."""
        return self._memory

    @property
    def declared(self) -> Declared:
        """The resources of every rank."""
        counts = np.zeros((self.ranks, int(self._streams.max())), np.int64)
        for stream, used in self._notifies.items():
            counts[:, stream] = used
        return Declared(
            sub_streams=self._streams - 1,
            notifies=counts.sum(axis=1),
            scratch_bytes=self._memory[:, Buffer.SCRATCH].copy(),
            local_notifies=counts,
            stated=np.ones((self.ranks, 3), bool),
        )

    def _local_slot(
        self, group: JobGroup, streams: tuple[int, ...], stream: int, index: int
    ) -> int:
        key = group.communicator, stream, index
        if key not in self._local:
            self._local[key] = self.notify(streams[stream], group.members)
        return self._local[key]


class _JointTransports:
    """Transports one after the other; calls with the same tag share theirs."""

    def __init__(self) -> None:
        self._by_tag: dict[tuple[Communicator, str], list[tuple[Transports, int]]] = {}
        self._all: list[tuple[Transports, IntArray, IntArray]] = []
        self._ends = 0
        self._planes: dict[str, int] = {name: number for number, name in enumerate(PLANES)}

    def first_end(self, group: JobGroup, plan: Plan) -> int:
        """Return the first transport end of a plan."""
        tag, wanted = plan.selection.tag, plan.program.transports
        known = self._by_tag.setdefault((group.communicator, tag), [])
        for transports, first in known:
            if transports is wanted or _same(transports, wanted):
                return first
        first = self._ends
        known.append((wanted, first))
        self._all.append((wanted, group.members, self._fresh_planes(tag, wanted)))
        self._ends += len(wanted)
        return first

    def transports(self) -> Transports:
        """Return all of them with the numbers of the job."""
        if not self._all:
            return Transports.none(PLANES)
        firsts = np.cumsum([0, *(len(part) for part, _, _ in self._all)]).tolist()
        return Transports(
            planes=tuple(self._planes),
            rank=np.concatenate([members[part.rank] for part, members, _ in self._all]),
            peer=np.concatenate([members[part.peer] for part, members, _ in self._all]),
            plane=np.concatenate([planes[part.plane] for part, _, planes in self._all]),
            kind=np.concatenate([part.kind for part, _, _ in self._all]),
            far=np.concatenate(
                [p.far + n for (p, _, _), n in zip(self._all, firsts, strict=False)]
            ),
            exports=np.concatenate([part.exports for part, _, _ in self._all]),
            notifies=np.concatenate([part.notifies for part, _, _ in self._all]),
            slots=max(part.stride for part, _, _ in self._all),
        )

    def _fresh_planes(self, tag: str, transports: Transports) -> IntArray:
        """Return new numbers for the planes of a tag: no plane of the job joins two ranks twice."""
        numbers = np.zeros(len(transports.planes), np.int64)
        for plane in np.unique(transports.plane).tolist():
            name = f"{transports.planes[plane]} of {tag}"
            if name in self._planes:
                name = f"{name} ({len(self._all) + 1})"
            numbers[plane] = self._planes.setdefault(name, len(self._planes))
        return numbers


def _same(one: Transports, other: Transports) -> bool:
    names = ("rank", "peer", "plane", "kind", "exports", "notifies")
    return one.stride == other.stride and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )
