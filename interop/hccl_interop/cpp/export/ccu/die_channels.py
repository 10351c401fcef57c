"""The channels of a program by die: arrays of peers, each of them on one die."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hccl_interop.cpp.export.ccu.instruction_order import DIES
from hccl_interop.cpp.export.channels import ChannelGroups, JoinedPlane, planes_of
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

NETWORKS = ("Mesh", "Clos")
"""The networks of the dies."""


@dataclass(frozen=True)
class DieChannels:
    """The arrays of peers of each die; `die` and `array` have those of every end of a channel."""

    arrays: tuple[tuple[int, JoinedPlane], ...]
    die: IntArray
    array: IntArray

    @staticmethod
    def of(program: Program, topology: Topology) -> DieChannels:
        """Return the channels of a program."""
        t = program.transports
        groups = ChannelGroups.of(program)
        die = (topology.server[t.rank] != topology.server[t.peer]).astype(np.int64)
        array = np.full(len(t), -1, np.int64)
        found: list[tuple[int, JoinedPlane]] = []
        for plane in planes_of(program):
            mine = groups.number == groups.titles.index(plane.title)
            if plane.first_layer:
                die[mine] = 1
            for number in range(DIES):
                ends = mine & (die == number) & plane.joins[t.rank, t.peer]
                if ends.any():
                    array[ends] = len(found)
                    found.append((number, _on_die(plane, number, t.rank[ends], t.peer[ends])))
        if len(found) == 1:
            found = [(found[0][0], replace(found[0][1], name="peers"))]
        return DieChannels(tuple(found), die, array)

    def array_of(self, end: int) -> JoinedPlane:
        """Return the array that has an end's channel."""
        return self.arrays[int(self.array[end])][1]

    def on(self, die: int) -> list[JoinedPlane]:
        """Return the arrays of a die."""
        return [array for number, array in self.arrays if number == die]


def _on_die(plane: JoinedPlane, die: int, rank: IntArray, peer: IntArray) -> JoinedPlane:
    joins = np.zeros_like(plane.joins)
    joins[rank, peer] = True
    name = f"{plane.name}{NETWORKS[die]}"
    return replace(plane, title=f"{plane.title}, {NETWORKS[die]}", name=name, joins=joins)
