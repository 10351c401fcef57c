"""Executors that run templates on the levels of a machine one after the other: in a mesh inside
servers, by NHR between the servers of a superpod, and by NHR between superpods.

HCCL: Ins...SequenceExecutor...3Level and its kin. Inside servers, data goes over the mesh and over
the network of the servers at once. A level with one member is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, ClassVar

from hccl_executors.aicpu.ag_mesh import MeshAllGather
from hccl_executors.aicpu.ag_nhr import NhrAllGather
from hccl_executors.aicpu.ar_two_shot import rounded_down
from hccl_executors.aicpu.parallel import taken
from hccl_executors.aicpu.rs_chunks import PAGE
from hccl_executors.aicpu.rs_mesh import MeshReduceScatter
from hccl_executors.aicpu.rs_nhr import NhrReduceScatter
from hccl_executors.aicpu.scatter_mesh import MeshScatter
from hccl_executors.aicpu.seats import (
    ALIGN,
    DETOUR,
    AnyChannelRank,
    RankGroup,
    Seat,
    Ways,
    cut,
    level0,
    place_at,
    requests,
    seat,
    slots,
)
from hccl_executors.aicpu.sole import SCATTER_NHR, TRANSFER, OnAicpu
from hccl_executors.aicpu.tree_nhr import NhrScatter
from hccl_executors.sources import like_ascend950, over_tree
from hccl_py.orchestration import Chunks, Region
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
        several = len(topology.servers) > 1 and topology.servers[0] > 1
        return found and require(
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


class InTurnAllGather(InTurn):
    """AllGather: between superpods, between servers, inside servers."""

    op = "all_gather"
    templates = (GATHERS,)

    def most(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // levels(rank)[1].size // ALIGN * ALIGN // op.unit

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        (inner, middle, outer), places = self.seats(op, rank, 0), levels(rank)
        size, n1, n2 = int(rank.user_in.size), places[1].size, places[2].size
        first = rank.buffer[n1 * n2 * size if middle else 0 :]
        gathered = slots(first, size, n2)
        source = [rank.user_in]
        if outer:
            self.run(0, 2, outer, source, [gathered], [gathered])
            source = list(gathered)
        if middle:
            blocks = [slots(rank.buffer[k * n1 * size :], size, n1) for k in range(n2)]
            self.run(0, 1, middle, source, blocks, blocks)
        n0 = places[0].size
        mine = [rank.buffer[k * size :].head(size) for k in range(n1 * n2)]
        targets = [taken(rank.user_out, lambda s: _of_server(s, n0), k) for k in range(n1 * n2)]
        self.run(0, 0, inner, mine, targets, [slots(one, size, n0, 0) for one in mine])


class InTurnAllGatherOverPods(InTurnAllGather):
    """AllGather on three levels, whose rounds are tens of elements."""

    def threads(self, asked: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """HCCL puts the requests of all templates one behind the other, and takes the first."""
        subs = [count for one in asked for count in one[1:]]
        return (max(one[0] for one in asked), *subs[: max(map(len, asked)) - 1])

    def most(self, op: OpParam, rank: RankView) -> int:
        block = min(rank.ccl_bytes // ALIGN // rank.size * ALIGN, TRANSFER)
        return block // op.unit // 10 * 10


def _of_server(server: int, n0: int) -> list[int]:
    return [server * n0 + i for i in range(n0)]


class InTurnReduceScatter(InTurn):
    """ReduceScatter: inside servers, between servers, between superpods."""

    op = "reduce_scatter"
    on_the_way = True
    templates = (REDUCE_SCATTERS,)

    def most(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // rank.size // ALIGN * ALIGN // op.unit

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        (inner, middle, outer), groups = self.seats(op, rank, 0), levels(rank)
        n0, n1, n2 = (group.size for group in groups)
        size, buffer = int(rank.user_out.size), rank.buffer
        blocks = [taken(rank.user_in, lambda s: _of_server(s, n0), k) for k in range(n1 * n2)]
        places = [buffer[k * n0 * size :] for k in range(n1 * n2)]
        mine = [place_at(one, groups[0].me * size, size) for one in places]
        self.run(0, 0, inner, blocks, mine, places)
        out = [rank.user_out]
        if middle:
            rows = [slots(mine[k * n1], size, n1, n0 * size) for k in range(n2)]
            targets = [row[middle.me] for row in rows] if outer else out
            self.run(0, 1, middle, rows, targets, rows)
        at = (groups[0].me + groups[1].me * n0) * size
        last = slots(place_at(buffer, at, size), size, n2, n0 * n1 * size)
        self.run(0, 2, outer, [last], out, [last])


class InTurnScatter(InTurn):
    """Scatter: inside the root's server, between the servers of its superpod, between superpods."""

    op = "scatter"
    templates = (SCATTERS,)

    def most(self, op: OpParam, rank: RankView) -> int:
        _, middle, outer = levels(rank)
        return rank.ccl_bytes // (middle.size * outer.size) // PAGE * PAGE // op.unit

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        (inner, middle, outer), groups = self.seats(op, rank, 0), levels(rank)
        n0, n1, n2 = (group.size for group in groups)
        size, buffer, root = int(rank.user_out.size), rank.buffer, op.root or 0
        blocks = [taken(rank.user_in, lambda s: _of_server(s, n0), k) for k in range(n1 * n2)]
        places = [slots(buffer[k * size :], size, n0, 0) for k in range(n1 * n2)]
        mine = [place[0] for place in places]
        has_root = bool(rank.id // n0 == root // n0)
        self.run(0, 0, inner, root % n0 if has_root else None, blocks, mine, places)
        out = [rank.user_out]
        if middle and rank.id // (n0 * n1) == root // (n0 * n1):
            rows = [slots(buffer[k * n1 * size :], size, n1) for k in range(n2)]
            targets = [buffer[k * size :].head(size) for k in range(n2)] if outer else out
            self.run(0, 1, middle, root // n0 % n1, rows, targets, rows)
        last = slots(buffer, size, n2)
        self.run(0, 2, outer, root // (n0 * n1), [last], out, [last])


class InTurnAllReduce(InTurn):
    """AllReduce: reduce-scatters from inside servers outwards, gathers back, in the buffer."""

    op = "all_reduce"
    on_the_way = True
    templates = (REDUCE_SCATTERS, GATHERS)
    align = ALIGN

    def schedule(self, op: OpParam, rank: RankView) -> list[int]:
        """Rounds such that a rank's piece of one inside a server fits its slice of the buffer."""
        n0, most, left = levels(rank)[0].size, self.most(op, rank), op.extent
        fits, found = self.slice_bytes(op, rank) // op.unit, []
        while left and most > 0:
            now = min(left, most)
            each, rest = divmod(now, n0)
            if left <= most and each + rest > fits and each:
                each = min(each - 1, fits)
                now = each * n0 + min(n0 - 1, fits - each)
            found.append(now)
            left -= now
        return found

    def slice_bytes(self, op: OpParam, rank: RankView | AnyChannelRank) -> int:
        """Return the bytes of a slice: one holds a rank's sum, the others what it collects."""
        return rank.ccl_bytes // (levels(rank)[0].size + 1) // op.unit * op.unit

    def most(self, op: OpParam, rank: RankView) -> int:
        n0, n = levels(rank)[0].size, rank.size
        whole = n0 * self.slice_bytes(op, rank) // self.align * self.align
        return whole // op.unit // n * n

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        inner, middle, outer = self.seats(op, rank, 0)
        assert inner is not None
        pieces = cut(rank.user_in, self._sizes(rank.user_in, inner.n, op))
        collected = rank.buffer[self.slice_bytes(op, rank) :]
        first = rank.buffer.head(pieces[inner.me].size)
        self.run(0, 0, inner, [pieces], [first], [collected])
        second = self._down(op, 1, middle, first)
        self._down(op, 2, outer, second)
        inner, middle, outer = self.seats(op, rank, 1)
        self._up(op, 2, outer, second)
        self._up(op, 1, middle, first)
        result = self.result(rank, collected)
        targets = cut(result, self._sizes(result, pieces_of(inner), op))
        starts = slots(rank.buffer, 0, len(targets))
        places = Chunks(starts.buffer, starts.offsets, targets.sizes)
        self.run(1, 0, inner, [first], [targets], [places])
        self.finish(op, rank, result)

    def result(self, rank: AnyChannelRank, collected: Region) -> Region:
        """Return the memory that gets all sums."""
        whole: Region = rank.user_out
        return whole

    def finish(self, op: OpParam, rank: AnyChannelRank, result: Region) -> None:
        """End a round."""

    def _sizes(self, region: Region, n: int, op: OpParam) -> Sequence[int]:
        return rounded_down(int(region.size), n, op.unit)

    def _down(self, op: OpParam, level: int, place: Seat | None, work: Region) -> Region:
        """Reduce-scatter a region in its place; return my piece."""
        if place is None:
            return work
        pieces = cut(work, self._sizes(work, place.n, op))
        if work.size > 0:
            self.run(0, level, place, [pieces], [pieces[place.me]], [pieces])
        return pieces[place.me]

    def _up(self, op: OpParam, level: int, place: Seat | None, work: Region) -> None:
        """Gather a region in its place."""
        if place is not None and work.size > 0:
            pieces = cut(work, self._sizes(work, place.n, op))
            self.run(1, level, place, [pieces[place.me]], [pieces], [pieces])


def pieces_of(place: Seat | None) -> int:
    """Return the number of ranks of a level."""
    return 1 if place is None else place.n


class InTurnAllReduceInPod(InTurnAllReduce):
    """AllReduce on two levels: sums in the first half of the buffer, by way of the second."""

    in_pod = True

    def schedule(self, op: OpParam, rank: RankView) -> list[int]:
        return InTurn.schedule(self, op, rank)

    def slice_bytes(self, op: OpParam, rank: RankView | AnyChannelRank) -> int:
        return rank.ccl_bytes // 2

    def most(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // 2 // ALIGN * ALIGN // op.unit // rank.size * rank.size


class InTurnReduce(InTurnAllReduce):
    """Reduce: the same in the buffer, whence the root copies."""

    op = "reduce"
    align = PAGE

    def result(self, rank: AnyChannelRank, collected: Region) -> Region:
        return collected.head(rank.user_in.size)

    def finish(self, op: OpParam, rank: AnyChannelRank, result: Region) -> None:
        if rank.id == op.root:
            rank.main.copy(rank.user_out, result)


class InTurnBroadcast(InTurn):
    """Broadcast: scatters from the root outwards, gathers back, in the buffer."""

    op = "broadcast"
    templates = (SCATTERS, GATHERS)

    def most(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // PAGE * PAGE // op.unit

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        groups, root = levels(rank), op.root or 0
        data = rank.user_in if rank.id == root else rank.user_out
        n0, pod = groups[0].size, groups[0].size * groups[1].size
        roots = root % n0, root // n0 % groups[1].size, root // pod
        at_work = rank.id // n0 == root // n0, rank.id // pod == root // pod, True
        work, given, cuts = rank.buffer.head(data.size), data, []
        deciding = [work]  # where it has data, a level is at work: the last one by the first piece
        for level, place in enumerate(self.seats(op, rank, 0)):
            if place is not None:
                sizes = rounded_down(int(work.size), place.n, op.unit)
                pieces, sources = cut(work, sizes), cut(given, sizes)
                if deciding[level // 2].size > 0 and at_work[level]:
                    mine = [pieces[place.me]]
                    self.run(0, level, place, roots[level], [sources], mine, [pieces])
                cuts.append((level, pieces))
                work = given = pieces[place.me]
            deciding.append(work)
        seats = self.seats(op, rank, 1)
        for level, pieces in reversed(cuts):
            place = seats[level]
            assert place is not None
            targets = pieces if level else cut(rank.user_out, pieces.sizes[0].tolist())
            if pieces.sizes.sum() > 0:
                self.run(1, level, place, [pieces[place.me]], [targets], [pieces])


def _files(path: str) -> Any:
    return like_ascend950(path)


class AicpuAllGatherSequenceMeshConcurNHRNHR(InTurnAllGatherOverPods):
    """AllGather over superpods."""

    fidelity = _files("all_gather/executor/ins_v2_all_gather_sequence_executor_3level")


class AicpuAllReduceSequenceMeshConcurNHRNHR(InTurnAllReduce):
    """AllReduce over superpods."""

    fidelity = _files("all_reduce/executor/ins_v2_all_reduce_sequence_executor_aicpu_3level")


class AicpuReduceScatterSequenceMeshConcurNHRNHR(InTurnReduceScatter):
    """ReduceScatter over superpods."""

    fidelity = _files("reduce_scatter/executor/ins_v2_reduce_scatter_sequence_executor_3level")


class AicpuReduceSequenceMesh1DNHRNHR(InTurnReduce):
    """Reduce over superpods."""

    fidelity = _files("reduce/executor/reduce_sequence_executor_aicpu_3level")


class AicpuBroadcastSequenceMesh1dNHRNHR(InTurnBroadcast):
    """Broadcast over superpods."""

    fidelity = over_tree(
        _files("broadcast/executor/ins_v2_broadcast_sequence_executor_aicpu_3level"), SCATTER_NHR
    )


class AicpuScatterSequenceMeshConcurNHRNHR(InTurnScatter):
    """Scatter over superpods."""

    fidelity = over_tree(
        _files("scatter/executor/scatter_sequence_aicpu_executor_3level"), SCATTER_NHR
    )


class AicpuAllGatherSequenceMeshConcurNHR(InTurnAllGather):
    """AllGather of large data over the servers of a superpod."""

    algorithm = "level0:mesh;level1:NHR"
    in_pod = True
    fidelity = _files("all_gather/executor/ins_v2_all_gather_sequence_executor_aicpu")


class AicpuReduceScatterSequenceMeshConcurNHR(InTurnReduceScatter):
    """ReduceScatter of large data over the servers of a superpod."""

    algorithm = "level0:mesh;level1:NHR"
    in_pod = True
    fidelity = _files("reduce_scatter/executor/ins_v2_reduce_scatter_sequence_executor_aicpu")


class AicpuAllReduceSequenceMeshConcurNHR(InTurnAllReduceInPod):
    """AllReduce of very large data over the servers of a superpod."""

    algorithm = "level0:mesh;level1:NHR"
    fidelity = _files("all_reduce/executor/ins_v2_all_reduce_sequence_executor_aicpu")
