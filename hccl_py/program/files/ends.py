"""Which transport end a task means, in the short form: one link between any two ranks.

Both forms name ends by keys, whole columns at a time, and lay the ends out as recording does:
sorted by plane, rank and peer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import at, defect
from hccl_py.enums import LinkKind
from hccl_py.program.files.checks import MAX_BUFFERS, Where, whole
from hccl_py.program.files.memory import Memory, a_buffer
from hccl_py.topology.topology import PLANES
from hccl_py.values import IntArray

__all__ = ["Ends", "PairEnds", "Wires", "check_other", "export_table", "exported_by", "planes_of"]


@dataclass(frozen=True, eq=False)
class Wires:
    """The columns of Transports, one row per end. `notifies` has what the links themselves state,
    -1 where the file says nothing.
    """

    planes: tuple[str, ...]
    keys: IntArray
    rank: IntArray
    peer: IntArray
    plane: IntArray
    kind: npt.NDArray[np.int8]
    far: IntArray
    exports: npt.NDArray[np.int8]
    notifies: IntArray

    def rows(self, keys: IntArray) -> IntArray:
        """Return the end of every key."""
        order = np.argsort(self.keys)
        return order[np.searchsorted(self.keys, keys, sorter=order)]


class Ends(Protocol):
    """What the short and the general form have in common.

    `states_notifies` says whether the links themselves say how many notifies they have.
    """

    states_notifies: ClassVar[bool]

    def keys(self, rank: IntArray, references: Sequence[Any], where: Where) -> IntArray:
        """Return the key of the end that each rank means by a peer's rank or `link:ID`."""

    def requested(self, rank: IntArray, references: Sequence[Any], where: Where) -> IntArray:
        """Return the same for ends that ranks request: the file must have the links."""

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""

    def wires(self, keys: IntArray) -> Wires:
        """Return the ends of all links, and those whose keys are given, with their other sides."""


@dataclass(frozen=True, eq=False)
class PairEnds:
    """The short form: all links are alike. A key is rank·ranks + peer."""

    states_notifies: ClassVar[bool] = False

    ranks: int
    kind: LinkKind
    exports: list[int]
    plane: str

    def keys(self, rank: IntArray, references: Sequence[Any], where: Where) -> IntArray:
        """Return the key of every pair."""
        peers = whole(references, where, "the rank of a peer", 0, self.ranks - 1)
        check_other(rank, peers, where)
        return rank * self.ranks + peers

    def requested(self, rank: IntArray, references: Sequence[Any], where: Where) -> IntArray:
        """Return the key of every pair: there is a link between any two ranks."""
        return self.keys(rank, references, where)

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""
        return keys % self.ranks

    def wires(self, keys: IntArray) -> Wires:
        """Return both ends of every pair that occurs."""
        keys = np.unique(np.concatenate([keys, self._twins(keys)]))
        planes = planes_of([self.plane])
        return Wires(
            planes=planes,
            keys=keys,
            rank=keys // self.ranks,
            peer=keys % self.ranks,
            plane=np.full(len(keys), planes.index(self.plane)),
            kind=np.full(len(keys), self.kind, np.int8),
            far=np.searchsorted(keys, self._twins(keys)),
            exports=export_table([self.exports] * len(keys)),
            notifies=np.full(len(keys), -1),
        )

    def _twins(self, keys: IntArray) -> IntArray:
        return keys % self.ranks * self.ranks + keys // self.ranks


def check_other(rank: IntArray, peers: IntArray, where: Where) -> None:
    """Refuse a rank that names itself as its peer."""
    for k in np.flatnonzero(rank == peers)[:1].tolist():
        hint = "Inside a rank, use copy, local_post and local_wait."
        raise defect(where(k), "another rank", f"rank {rank[k]} itself", hint)


def planes_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the planes that every program has, then others in the order of their appearance."""
    return tuple(dict.fromkeys([*PLANES, *names]))


def exported_by(names: Sequence[object], memory: Memory, path: str) -> list[int]:
    """Return the numbers of the buffers that an end exports, each once; a name that no rank has is
    no buffer that anybody could reach.
    """
    if len(names) > MAX_BUFFERS:
        hint = "Name each exported buffer once."
        raise defect(path, f"at most {MAX_BUFFERS} buffers", str(len(names)), hint)
    known = [a_buffer(name, at(path, k)) for k, name in enumerate(names)]
    return list(dict.fromkeys(memory.numbers[name] for name in known if name in memory.numbers))


def export_table(rows: Sequence[list[int]]) -> npt.NDArray[np.int8]:
    """Return Transports.exports, two columns or more: the last buffer repeats, -1 for none."""
    width = max([2, *map(len, rows)])
    padded = [row + (row[-1:] or [-1]) * (width - len(row)) for row in rows]
    return np.array(padded, np.int8).reshape(len(rows), width)
