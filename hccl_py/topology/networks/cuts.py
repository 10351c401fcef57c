"""Cuts: how much can leave a group of ranks at most, for lower bounds on time.

The ranks inside can send out, and get in, no more than the links across let through. A bound
needs some cuts only, if their capacity is never below the true one; so networks name those that
follow from how they are built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.values import IntArray


@dataclass(frozen=True, eq=False)
class Cut:
    """`inside` is a mask [ranks]; at most `gbps` GB/s leave those inside, and as much enters."""

    name: str
    inside: npt.NDArray[np.bool_]
    gbps: float


class Partition(NamedTuple):
    """One way to put every rank into a group: each group against all others is a cut.

    `of` [ranks] is the group of each rank, `gbps` [groups] what its links to all others let through
    in GB/s, each way (inf: anything).
    """

    name: str
    of: IntArray
    gbps: npt.NDArray[np.float64]

    @staticmethod
    def alike(name: str, of: IntArray, gbps: float) -> Partition:
        """Return groups that are all as fast."""
        return Partition(name, of, np.full(int(of.max()) + 1, gbps))

    @staticmethod
    def summed(name: str, of: IntArray, gbps: npt.NDArray[np.float64]) -> Partition:
        """Return groups by what each of their ranks lets through, `gbps` [ranks]."""
        return Partition(name, of, np.bincount(of, gbps).astype(np.float64))

    def faster(self, gbps: float) -> Partition:
        """Return groups that let through so much more."""
        return self._replace(gbps=self.gbps + gbps)

    def of_some(self, ranks: IntArray) -> Partition:
        """Return the same groups with some of the ranks only."""
        return self._replace(of=self.of[ranks])


def slowest(ways: list[Partition]) -> list[Cut]:
    """Return a cut for every way and every number of ranks inside: the slowest group, the first of
    several.
    """
    found = []
    for way in ways:
        inside = np.bincount(way.of, minlength=len(way.gbps))
        for count in np.unique(inside):
            if 0 < count < len(way.of):
                among = np.flatnonzero(inside == count)
                group = int(among[np.argmin(way.gbps[among])])
                found.append(Cut(f"{way.name} {group}", way.of == group, float(way.gbps[group])))
    return found
