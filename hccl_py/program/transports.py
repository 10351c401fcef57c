"""The transports and notifies of a program: plain columns, one row per transport end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hccl_py.enums import LinkKind
from hccl_py.values import IntArray, count_up

ACK, DATA_SIGNAL, DATA_ACK = 0, 1, 2
OWN_NOTIFIES = 3
"""Cells that every transport end has; an SDMA end never uses DataAck."""

NOTIFY_NAMES = ("Ack", "DataSignal", "DataAck")
"""HCCL's names of the first notifies of a transport."""


@dataclass(frozen=True, eq=False)
class Transports:
    """One row per end: its rank, its peer, its kind, and the memories that it exposes to the peer.

    `plane` numbers the planes' names in `planes`; `kind` is a `LinkKind`; `far` is the row of the
    other end. `exports` has shape [ends, 2 or more], -1 for none. The notifies of end e are
    numbered e·stride .. e·stride + stride - 1.

    `notifies` is the number that the rank of each end requested, 0 for none. In a file the two ends
    of a transport may differ, and tasks may use notifies that no rank requested: then `slots` is
    the number of cells that every end needs for them. `notify_names` are the names of the first
    notifies of every end: HCCL's, unless a file says that its transports are numbered otherwise.
    """

    planes: tuple[str, ...]
    rank: IntArray
    peer: IntArray
    plane: IntArray
    kind: npt.NDArray[np.int8]
    far: IntArray
    exports: npt.NDArray[np.int8]
    notifies: npt.NDArray[np.int16]
    slots: int = 0
    notify_names: tuple[str, ...] = NOTIFY_NAMES

    @staticmethod
    def none(planes: tuple[str, ...]) -> Transports:
        """Return the transports of ranks that have none."""
        ends = np.zeros(0, np.int64)
        kind, exports, notifies = (
            np.zeros(0, np.int8),
            np.zeros((0, 2), np.int8),
            np.zeros(0, np.int16),
        )
        return Transports(planes, ends, ends, ends, kind, ends, exports, notifies)

    def __len__(self) -> int:
        return len(self.rank)

    @cached_property
    def turns(self) -> IntArray:
        """Per end: the number of ends of the same plane, rank and peer before it."""
        return turns_of(self.plane, self.rank, self.peer)

    @cached_property
    def stride(self) -> int:
        """Cells reserved for each end."""
        return max(int(self.notifies.max()), self.slots) if len(self) else OWN_NOTIFIES

    def name_of(self, index: int) -> str:
        """Return the name of a notify; what HCCL's transports have beyond their own is extra."""
        if index < len(self.notify_names):
            return self.notify_names[index]
        if self.notify_names == NOTIFY_NAMES:
            return f"extra notify {index - OWN_NOTIFIES}"
        return f"notify {index}"

    @property
    def cells(self) -> int:
        """Cells of all ends together."""
        return self.stride * len(self)

    @property
    def is_rdma(self) -> npt.NDArray[np.bool_]:
        """Per end: True if data is pushed by RDMA."""
        return np.equal(self.kind, LinkKind.RDMA)

    def counts(self, ranks: int, ends: IntArray | None = None) -> IntArray:
        """Return the number of transports of each rank, of all ends or of some: distinct (plane,
        peer, kind, memory pair), as HCCL makes the links of each plane anew.
        """
        rows = np.column_stack([self.rank, self.plane, self.peer, self.kind, self.exports])
        rows = rows if ends is None else rows[ends]
        if not len(rows):
            return np.zeros(ranks, np.int64)
        return np.bincount(np.unique(rows, axis=0)[:, 0], minlength=ranks)


def turns_of(plane: IntArray, rank: IntArray, peer: IntArray) -> IntArray:
    """Return for each end the number of ends of the same plane, rank and peer before it."""
    order = np.lexsort((peer, rank, plane))
    columns = np.stack([plane, rank, peer])[:, order]
    begins = np.ones(len(order), bool)
    begins[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    turns = np.empty(len(order), np.int64)
    turns[order] = count_up(np.diff(np.append(np.flatnonzero(begins), len(order))))
    return turns


@dataclass(frozen=True)
class LocalNotifies:
    """Notifies between the streams of one rank: slot k belongs to `slots[k]` = (owning stream,
    index there).

    Every rank has the same slots; slot k of rank r is notify
    `Transports.cells` + r·len(slots) + k.
    """

    slots: tuple[tuple[int, int], ...]

    @staticmethod
    def of(sub_streams: int, notifies: int) -> LocalNotifies:
        """Lay out main's notifies (one per sub), one per sub, then extra ones of main."""
        slots = [(0, i) for i in range(sub_streams)] + [(i + 1, 0) for i in range(sub_streams)]
        slots += [(0, sub_streams + i) for i in range(notifies - 2 * sub_streams)]
        return LocalNotifies(tuple(slots))

    @staticmethod
    def least(most: IntArray, sub_streams: int) -> IntArray:
        """Return the notifies of streams that need `most`, with those of `of` for so many sub
        streams.
        """
        found = most.copy()
        found[0] = max(found[0], sub_streams)
        found[1 : sub_streams + 1] = np.maximum(found[1 : sub_streams + 1], 1)
        return found

    @staticmethod
    def ordered(most: IntArray, sub_streams: int) -> tuple[LocalNotifies, IntArray]:
        """Lay out so many notifies of each stream as `of` does; return the slot of each as well,
        stream by stream.
        """
        count, first = int(most.sum()), np.cumsum(most) - most
        owner = np.repeat(np.arange(len(most)), most)
        number = np.arange(count) - first[owner]
        of_main = (owner == 0) & (number < sub_streams)
        of_sub = (owner > 0) & (owner <= sub_streams) & (number == 0)
        order = np.lexsort((number, owner, np.where(of_main, 0, np.where(of_sub, 1, 2))))
        slot = np.empty(count, np.int64)
        slot[order] = np.arange(count)
        pairs = zip(owner[order].tolist(), number[order].tolist(), strict=True)
        return LocalNotifies(tuple(pairs)), slot

    def in_order(self, sub_streams: int) -> tuple[LocalNotifies, IntArray]:
        """Return the same notifies in the order of `of`, and the slot there of every slot here."""
        owner, number = np.array(self.slots, np.int64).reshape(-1, 2).T
        most = np.zeros(max(sub_streams, int(owner.max(initial=0))) + 1, np.int64)
        np.maximum.at(most, owner, number + 1)
        most = LocalNotifies.least(most, sub_streams)
        notifies, slot = LocalNotifies.ordered(most, sub_streams)
        return notifies, slot[(np.cumsum(most) - most)[owner] + number]

    @staticmethod
    def requested(sub_streams: int, notifies: int, most: int) -> list[int]:
        """Return the slots of a rank that has fewer sub streams than the `most` of the layout:
        main's, the subs', then extra ones of main.
        """
        extra = notifies - 2 * sub_streams
        mine = [*range(sub_streams), *range(most, most + sub_streams)]
        return [*mine, *range(2 * most, 2 * most + extra)][:notifies]

    def counts(self, sub_streams: IntArray, notifies: IntArray) -> IntArray:
        """Return the notifies that each rank requested for each stream, [ranks, streams]; both
        arguments have one number per rank.

        A rank that has notify k of a stream counts as having those before it.
        """
        most = int(sub_streams.max(initial=0))
        counts = np.zeros((len(sub_streams), most + 1), np.int64)
        for subs, wanted in set(zip(sub_streams.tolist(), notifies.tolist(), strict=True)):
            mine = (sub_streams == subs) & (notifies == wanted)
            for slot in self.requested(subs, wanted, most):
                stream, index = self.slots[slot]
                counts[mine, stream] = np.maximum(counts[mine, stream], index + 1)
        return counts
