"""Sums whose order depends on the ranks only, the same for every element: HCCL's order-preserved.

A team of n ranks, server or superpod, collects the chunks of one server, or superpod, after the
other, and adds those of the last one meanwhile, on streams of its own:

    main      write group 0 │ write group 1 │ ..
    others                  │ add group 0   │ add group 1 ..

At every rank the chunk of member x is the x-th operand of

    halving   what exceeds a power of two first, then the upper half: x0 += x2, x1 += x3; x0 += x1

Then equal places of all teams do the same with their sums, over the teams, on main, one after the
other (`combine`).

Chunks lie in slots: at member r, those for rank r of group g in slots g·n .. g·n + n - 1, that of
member x in slot (r + x + t) mod n there, where t is 1 with several groups, else 0; so the sums need
not move before they are combined. Where memory may end before its last slot is full, what would
lie in the last slot of a group lies in the slot r of that group in another buffer, `spare`.

Cost for S groups of n ranks and b bytes of each chunk, links in parallel: S(2α + bβ), and
ceil(log2 n)·bγ of the last group; then (S - 1)(2α + bβ) and ceil(log2 S)·bγ.

Source: HCCL's ReduceScatterPlantLocalReduce and ReduceScatterPlantLocalReduceCombine (hcomm
b5f3e5b, alg_template/temp_reduce_scatter).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hccl_py.orchestration import Link, Plane, Region, Stream
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import IntArray, PerRank, RankInt, values_of

AT_ONCE = 8
"""Members that a rank writes to at the same time in a superpod, itself among them."""

ADDERS = 4
"""Streams that add at the same time."""


Inputs = Callable[[RankInt], Region]


class Slots(NamedTuple):
    """Slots of `stride` bytes in `memory` for n members and several groups; `sizes` are the bytes
    of the chunk for each rank of each group, one after the other. `spare` takes what the last slot
    of a group may have no room for.
    """

    memory: Region
    stride: int
    n: int
    sizes: IntArray
    spare: Region | None = None

    @property
    def groups(self) -> int:
        return len(self.sizes) // self.n

    def size(self, rank: RankInt, group: RankInt) -> RankInt:
        """Return the bytes of the chunk for a rank of a group."""
        return PerRank.of(self.sizes[values_of(group * self.n + rank)])

    def collected(self, owner: RankInt, member: RankInt, group: RankInt) -> Region:
        """Return the place of a member's chunk for `owner` of a group, at member `owner` of this
        team; splits the batch where some of them lie in the spare memory.
        """
        shift = 1 if self.groups > 1 else 0
        slot: RankInt = (owner + member + shift) % self.n
        size = self.size(owner, group)
        last = self.groups - 1
        is_last = bool(group == last) and bool(owner == self.n - 1)
        if self.spare is not None and slot == self.n - 1 and not is_last:
            return self._cut(self.spare, group * self.n + owner, size)
        return self._cut(self.memory, group * self.n + slot, size)

    def combined(self, place: RankInt, owner: RankInt, team: RankInt) -> Region:
        """Return the place of team `team`'s sum for the team `owner` at the latter, for one of its
        members.
        """
        turn: RankInt = (owner + team) % self.groups
        size, last = self.size(place, owner), self.groups - 1
        if self.spare is not None and place == self.n - 1 and turn == last and owner != last:
            return self._cut(self.spare, owner * self.n + place, size)
        return self._cut(self.memory, turn * self.n + place, size)

    def stays(self, team: RankInt) -> bool:
        """True if a team's own sum is combined where it was collected: in the spare memory of a
        member that is alone in it.
        """
        last = self.groups - 1
        alone = self.n == 1 and bool((team + team) % self.groups == last)
        return alone and bool(team != last)

    def _cut(self, memory: Region, slot: RankInt, size: RankInt) -> Region:
        start = memory.offset + slot * self.stride
        return Region(memory.buffer, start, size)


def sub_streams(members: int, teams: int, *, in_turns: bool) -> int:
    """Return the sub streams that HCCL asks for: of a server, or of a superpod, whose members
    write to few at a time.
    """
    adders, outer = (1 << n.bit_length() - 1 for n in (members, teams))
    if in_turns:
        within = min(members, AT_ONCE) + min(adders - 1, ADDERS) - 1
        return max(within, min(outer - 1, ADDERS))
    return min(max(members - 1 + adders - 1, outer), max(members, AT_ONCE) + ADDERS - 1)


def reduce_scatter_by_rank(
    rank: AnyRank, team: Plane, inputs: Inputs, slots: Slots, *, in_turns: bool
) -> None:
    """Leave at every member, for its rank of every group, the sum of the team in the slot of the
    first member's chunk. `inputs` returns the chunk for a rank. Members write to all others at
    once, or, `in_turns`, to up to eight, by their distance. A member that is alone in its team
    copies.
    """
    n = int(team.size)
    if n == 1:
        for group in range(slots.groups):
            rank.main.copy(slots.collected(team.id, team.id, group), inputs(group))
        return
    writers = min(n, AT_ONCE) - 1 if in_turns else max(n - 2, 0)
    rank.wake(writers)
    for group in rank.main.steps("reduce-scatter", slots.groups):
        own = slots.collected(team.id, team.id, group)
        rank.main.copy(own, inputs(group * n + team.id))
        for sides in _rounds(rank, team, writers, in_turns):
            _meet(rank, sides, writers)
            with rank.fork(writers):
                for side in sides:
                    place = slots.collected(side.peer, team.id, group)
                    side.stream.copy(side.to.remote(place), inputs(group * n + side.peer))
                    side.to.tx_data_signal(side.stream)
                    side.frm.rx_data_signal(side.stream)
                    if side.frm.rdma:
                        side.frm.tx_data_ack(side.stream)
                    if side.to.rdma:
                        side.to.rx_data_ack(side.stream)
        rank.join(writers)
        rank.wake(writers)
        pieces = [slots.collected(team.id, k, group) for k in range(n)]
        _halving(rank, rank.subs[writers], writers + 1, pieces)
    rank.join(writers)


def combine(rank: AnyRank, teams: Plane, place: RankInt, slots: Slots) -> Region:
    """Add the sums of all teams at equal places; return the result."""
    size = int(teams.size)
    main = rank.main

    def mine(owner: RankInt) -> Region:
        return slots.collected(place, 0, owner)

    with main.phase("between teams"):
        if not slots.stays(teams.id):
            main.copy(slots.combined(place, teams.id, teams.id), mine(teams.id))
        for k in range(size - 1):
            peer: RankInt = k + (k >= teams.id)
            link = teams[peer]
            link.tx_ack(main)
            link.rx_ack(main)
            main.copy(link.remote(slots.combined(place, peer, teams.id)), mine(peer))
            link.tx_data_signal(main)
            link.rx_data_signal(main)
            if link.rdma:
                link.tx_data_ack(main)
                link.rx_data_ack(main)
        _halving(rank, main, 0, [slots.combined(place, teams.id, k) for k in range(size)])
    return slots.combined(place, teams.id, 0)


class _TeamPeer(NamedTuple):
    """A stream, whom it writes to, and whom it is written by."""

    stream: Stream
    peer: RankInt
    to: Link
    frm: Link


def _rounds(rank: AnyRank, team: Plane, writers: int, in_turns: bool) -> list[list[_TeamPeer]]:
    """Return the exchanges of each round, all at once: main with the first member, sub streams with
    the others.
    """
    n = int(team.size)
    streams = (rank.main, *rank.subs[:writers])
    if not in_turns:
        peers = [k + (k >= team.id) for k in range(n - 1)]
        sides = [_TeamPeer(s, p, team[p], team[p]) for s, p in zip(streams, peers, strict=False)]
        return [sides]
    found = []
    for first in range(0, n, AT_ONCE):
        far = range(max(first, 1), min(first + AT_ONCE, n))
        ways = [((team.id + k) % n, (team.id - k) % n) for k in far]
        found.append(
            [
                _TeamPeer(s, to, team[to], team[frm])
                for s, (to, frm) in zip(streams, ways, strict=False)
            ]
        )
    return found


def _meet(rank: AnyRank, sides: list[_TeamPeer], writers: int) -> None:
    with rank.fork(writers):
        for side in sides:
            side.frm.tx_ack(side.stream)
            side.to.rx_ack(side.stream)


def _halving(rank: AnyRank, stream: Stream, first: int, pieces: Sequence[Region]) -> None:
    """Leave in the first piece the sum of all, on a stream and sub streams from `first` on."""
    steps = (len(pieces) - 1).bit_length()
    for step in range(steps):
        head = 1 << steps - 1 - step
        added = min(len(pieces), 2 * head) - head
        helpers = range(first, first + min(added, ADDERS) - 1)
        with rank.fork(subs=helpers, by=stream) as subs:
            streams = (stream, *subs)
            for k in range(added):
                streams[k % len(streams)].reduce(pieces[k], pieces[head + k])
