"""The transports and notifies of a program: plain columns, one row per transport end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import LinkKind
from hccl_py.values import IntArray

__all__ = ["ACK", "DATA_ACK", "DATA_SIGNAL", "OWN_NOTIFIES", "LocalNotifies", "Transports"]

ACK, DATA_SIGNAL, DATA_ACK = 0, 1, 2
OWN_NOTIFIES = 3
"""Cells that every transport end has; an SDMA end never uses DataAck."""


@dataclass(frozen=True, eq=False)
class Transports:
    """One row per end: whose it is, whom it reaches, how, and which two memories it exposes to the
    peer.

    `plane` numbers the planes' names in `planes`; `far` is the row of the other end; `link` numbers
    the transports, the same for both ends. `exports` has shape [ends, 2]. The notifies of end e are
    cells e·stride .. e·stride + stride - 1.
    """

    planes: tuple[str, ...]
    rank: IntArray
    peer: IntArray
    plane: IntArray
    kind: npt.NDArray[np.int8]
    far: IntArray
    exports: npt.NDArray[np.int8]
    notifies: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def stride(self) -> int:
        """Cells reserved for each end."""
        return int(self.notifies.max()) if len(self) else OWN_NOTIFIES

    @property
    def cells(self) -> int:
        """Cells of all ends together."""
        return self.stride * len(self)

    @property
    def is_rdma(self) -> npt.NDArray[np.bool_]:
        """Per end: whether data is pushed by RDMA."""
        return np.equal(self.kind, LinkKind.RDMA)

    def counts(self, ranks: int) -> IntArray:
        """Return how many transports each rank has: distinct (peer, kind, memory pair)."""
        if not len(self):
            return np.zeros(ranks, np.int64)
        rows = np.column_stack([self.rank, self.peer, self.kind, self.exports])
        return np.bincount(np.unique(rows, axis=0)[:, 0], minlength=ranks)


@dataclass(frozen=True)
class LocalNotifies:
    """Notifies between the streams of one rank: slot k belongs to `slots[k]` = (owning stream,
    index there).

    Every rank has the same slots; slot k of rank r is cell `base + r·len(slots) + k`.
    """

    slots: tuple[tuple[int, int], ...]

    @staticmethod
    def of(sub_streams: int, notifies: int) -> LocalNotifies:
        """Lay out main's notifies (one per sub), one per sub, then extra ones of main."""
        slots = [(0, i) for i in range(sub_streams)] + [(i + 1, 0) for i in range(sub_streams)]
        slots += [(0, sub_streams + i) for i in range(notifies - 2 * sub_streams)]
        return LocalNotifies(tuple(slots))
