"""The machinery of executors that run templates on the levels of a machine one after another: in a
mesh inside servers, by NHR between the servers of a superpod, and by NHR between superpods.

HCCL: Ins...SequenceExecutor...3Level and its kin. Inside servers, data goes over the mesh and over
the network of the servers at once. A level with one member is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from hccl_executors.aicpu.all_gather import MeshAllGather, NhrAllGather
from hccl_executors.aicpu.from_root import MeshScatter, NhrScatter
from hccl_executors.aicpu.on_aicpu import OnAicpu
from hccl_executors.aicpu.reduce_scatter import MeshReduceScatter, NhrReduceScatter
from hccl_executors.aicpu.seats import (
    DETOUR,
    AnyChannelRank,
    RankGroup,
    Seat,
    Ways,
    level0,
    requests,
    seat,
)
from hccl_py.plugins.executor import (
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)

GATHERS = (MeshAllGather(DETOUR), NhrAllGather(), NhrAllGather())

REDUCE_SCATTERS = (MeshReduceScatter(DETOUR), NhrReduceScatter(), NhrReduceScatter())

SCATTERS = (MeshScatter(Ways((0, 1), 2, 2)), NhrScatter(), NhrScatter())


def levels(rank: RankView | AnyChannelRank) -> tuple[RankGroup, RankGroup, RankGroup]:
    """Return the ranks of a server, those with the same place in the servers of a superpod, and
    those with the same place in all superpods.
    """
    servers, pods = rank.topology.superpods[0], len(rank.topology.superpods)
    inner = level0(rank)
    n0, pod = inner.size, inner.size * servers
    middle = RankGroup(
        rank.id // n0 % servers,
        servers,
        lambda index: rank.id // pod * pod + index * n0 + rank.id % n0,
        1,
    )
    outer = RankGroup(rank.id // pod, pods, lambda index: index * pod + rank.id % pod, 1)
    return inner, middle, outer


class InTurn(OnAicpu):
    """The machinery. `templates` has those of every stage of the algorithm, one for each level;
    `in_pod` executors know two levels.
    """

    algorithm = "level0:mesh;level1:NHR;level2:NHR"
    templates: ClassVar[tuple[tuple[Any, ...], ...]]
    in_pod: ClassVar[bool] = False

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        found = super().suits(op, topology)
        return found and self.has_levels(topology)

    def has_levels(self, topology: Topology) -> bool | Unsuitable:
        """Return True if the machine has the levels."""
        several = len(topology.servers) > 1 and topology.servers[0] > 1
        return require(
            (topology.is_even, "needs servers and superpods of equal size"),
            (not self.in_pod or len(topology.superpods) == 1, "needs a single superpod"),
            (several, "needs several servers of several ranks"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        groups = levels(rank)
        asked = [
            template.threads(group.size)
            for stage in self.templates
            for template, group in zip(stage, groups, strict=True)
            if group.size > 1
        ]
        channels = [
            channel
            for template, group in zip(self.templates[0], groups, strict=True)
            if group.size > 1
            for channel in requests(group, template)
        ]
        rounds = self.schedule(op, rank)
        return ChannelResources(
            channels=tuple(channels),
            threads=self.threads(asked),
            max_count=max(rounds, default=0 if op.extent else None),
            first_rounds=tuple(rounds),
        )

    def threads(self, asked: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Return the notifies of the threads, given those that templates ask for."""
        return tuple(max(counts) for counts in zip_longest(*asked, fillvalue=0))

    def schedule(self, op: OpParam, rank: RankView) -> list[int]:
        """Return the elements of every round: full ones, and the rest."""
        most, count = self.most(op, rank), op.extent
        if most < 1:
            return []
        return [min(most, count - begin) for begin in range(0, count, most)]

    def most(self, op: OpParam, rank: RankView) -> int:
        """Return the elements of one round."""
        raise NotImplementedError

    def seats(self, op: OpParam, rank: AnyChannelRank, stage: int) -> list[Seat | None]:
        """Return the seats of a stage, None on levels of one rank."""
        groups = levels(rank)
        return [
            seat(rank, group, rank.threads[: len(template.threads(group.size))], op)
            if group.size > 1
            else None
            for template, group in zip(self.templates[stage], groups, strict=True)
        ]

    def run(self, stage: int, level: int, place: Seat | None, *memory: Any) -> None:
        """Run a template on its level, if that has several ranks and there is data."""
        if place is not None:
            self.templates[stage][level].run(place, *memory)
