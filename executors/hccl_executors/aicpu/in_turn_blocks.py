"""Ops of a block for each rank, level after level: AllGather, ReduceScatter, Scatter."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.chunk_steps import PAGE
from hccl_executors.aicpu.in_turn import GATHERS, REDUCE_SCATTERS, SCATTERS, InTurn, levels
from hccl_executors.aicpu.on_aicpu import TRANSFER
from hccl_executors.aicpu.seats import ALIGN, AnyChannelRank, of_server, place_at, slots, taken
from hccl_py.plugins.executor import OpParam, RankView


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
        targets = [taken(rank.user_out, lambda s: of_server(s, n0), k) for k in range(n1 * n2)]
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
        blocks = [taken(rank.user_in, lambda s: of_server(s, n0), k) for k in range(n1 * n2)]
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
        blocks = [taken(rank.user_in, lambda s: of_server(s, n0), k) for k in range(n1 * n2)]
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
