"""One rank of each class in the place of all of them, and back.

The program of the representatives has their tasks only. Their posts reach, in the place of the rank
that waits for them, the one that stands for it. Links are classes of links; a flow weighs
there what the flows of its whole class do on one link of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hccl_py.clocks.durations import identity
from hccl_py.program.instruction import Batch
from hccl_py.program.narrowing import Narrower
from hccl_py.program.program import Program
from hccl_py.simulator.contended.classes import Classes
from hccl_py.simulator.contended.paths import SharedLinks, Users
from hccl_py.simulator.timeline import Timeline
from hccl_py.values import IntArray, PerRank, values_of


@dataclass(frozen=True, eq=False)
class Representatives:
    """`program` has the tasks of ranks `of_rank`, which stand for every rank, and `shared` the
    links that these share.
    """

    of_rank: IntArray
    program: Program
    shared: SharedLinks

    @staticmethod
    def of(program: Program, shared: SharedLinks, classes: Classes) -> Representatives | None:
        """Choose them; None where flows of classes of several sizes take one way."""
        first, size = np.unique(classes.of_rank, return_index=True, return_counts=True)[1:]
        fewer = _shared(shared, classes, first, size)
        if fewer is None:
            return None
        return Representatives(first[classes.of_rank], _program(program, classes, first), fewer)

    def expanded(self, timeline: Timeline, program: Program) -> Timeline:
        """Return the times of all ranks from those of the representatives."""
        mine, first = timeline.program.tasks.first, program.tasks.first
        shift = mine[self.of_rank] - first[:-1]
        row = np.arange(len(program.tasks)) + np.repeat(shift, np.diff(first))
        behind = timeline.behind[row]
        if (behind >= 0).any():
            behind = np.where(behind < 0, -1, behind - shift[program.tasks.rank]).astype(np.int32)
        times = timeline.start_us[row], timeline.end_us[row], timeline.effect_us[row]
        return Timeline(program, timeline.links, *times, behind)


def _program(program: Program, classes: Classes, chosen: IntArray) -> Program:
    """Return the program of chosen ranks, in which one cell stands for all of its colour."""
    narrowed, batches = Narrower(), []
    for batch in program.batches:
        places = np.flatnonzero(np.isin(batch.ranks, chosen))
        if len(places):
            batches.append(Batch(batch.ranks[places], narrowed(batch.instructions, places)))
    columns = {identity(i.cell): i.cell for batch in batches for i in batch.instructions}
    used = np.unique(np.concatenate([np.atleast_1d(values_of(one)) for one in columns.values()]))
    used = used[used >= 0]
    _, alike, which = np.unique(classes.of_cell[used], return_index=True, return_inverse=True)
    stands = np.full(program.cells + 1, -1)
    stands[used] = used[alike[which.reshape(-1)]]
    cells = {key: PerRank.of(stands[values_of(one)]) for key, one in columns.items()}
    kept = [
        Batch(ranks, tuple(i._replace(cell=cells[identity(i.cell)]) for i in instructions))
        for ranks, instructions in batches
    ]
    return replace(program, batches=tuple(kept))


def _shared(
    shared: SharedLinks, classes: Classes, chosen: IntArray, size: IntArray
) -> SharedLinks | None:
    """Return classes of links, with the routes that chosen ranks use, over each class once."""
    users, links = shared.users, int(classes.of_link.max()) + 1
    mine = np.flatnonzero(np.isin(users.rank, chosen))
    rank, entity = users.rank[mine], users.entity[mine]
    used, route = np.unique(users.route[mine], return_inverse=True)
    route = route.reshape(-1)
    many = np.zeros(len(used), np.int64)
    many[route] = size[classes.of_rank[rank]]
    if (many[route] != size[classes.of_rank[rank]]).any():
        return None
    hops = np.diff(shared.first)[used]
    owner = np.repeat(np.arange(len(used)), hops)
    begins = np.cumsum(hops) - hops
    hop = np.arange(len(owner)) + np.repeat(shared.first[used] - begins, hops)
    pair, times = np.unique(owner * links + classes.of_link[shared.link[hop]], return_counts=True)
    owner, link = pair // links, (pair % links).astype(np.int32)
    _, one, alike = np.unique(classes.of_link, return_index=True, return_counts=True)
    weight = times * many[owner] / alike[link]
    if (weight % 1 != 0).any():
        raise AssertionError("links of a class carry different flows")
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(used)))])
    number = np.full(len(shared.first), -1, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    flows = np.bincount(link, np.bincount(route, minlength=len(used))[owner], links)
    longest = np.zeros(len(shared.hops), np.int64)
    np.maximum.at(longest, entity, np.diff(first)[route])
    return SharedLinks(
        of_way=np.where(shared.of_way >= 0, number[shared.of_way], np.int32(-1)),
        first=first,
        link=link,
        weight=np.zeros(0) if (weight == 1).all() else weight,
        capacity=shared.capacity[one],
        flows=flows.astype(np.int64),
        hops=longest,
        users=Users(entity, rank, route.astype(np.int32), users.group[mine]),
    )
