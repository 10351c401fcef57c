"""Pipeline with sums in a fixed order: servers take turns in pairs, every device adds by itself.

S servers of n ranks, n of at least 3. In turn s = 1 .. S - 1, then 0, every server prepares the
sums of the server s ahead:

    exchange  every rank writes its chunk for rank i of that server to rank i of its own server,
              over all links at once
    add       rank i adds what came, and its own, neighbour to neighbour: (x0 + x1) + (x2 + x3)
    send      rank i sends the sum s servers ahead; none in turn 0, which is for the own server

In the end every rank adds the S sums, neighbour to neighbour, too. From three servers and 2 MB of a
chunk on, one turn exchanges while the one before adds and the one before that sends; otherwise only
sending, on main, overlaps, with the exchange of the next turn. There HCCL's peers do not meet
before the last exchange, so that a DataSignal may be posted while the one before is still set, and
be lost; these meet.

Rank i of server j has S·n places: those for what comes in the turn in which it hears from server g
are numbers g·n to g·n + n - 2, in the order of the senders. The last of them gets the sum, and the
first one, when the sum has left, that of server g.

Sub streams: one for every peer in the server, so many ahead; one that adds, and three helpers.

Cost of a reduce-scatter for chunks of b bytes, turn after turn: (2S - 1)α + S·bβ + (S·⌈log2 n⌉ +
S - 1)·bγ.

Source: HCCL's MultiDeterPipeline and ReduceScatterMultiDeterPipeline (hcomm 8958adb,
alg_template).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from hccl_py.orchestration import Link, Plane, Region
from hccl_py.plugins.executor import AnyRank

ADDERS = 4
"""Streams that add at the same time."""

LARGE = 2 << 20
"""Bytes of a chunk from which on turns overlap."""


class TurnMemory(Protocol):
    """Places of a rank's data in this round. Ranks are counted server by server, as `owner`."""

    @property
    def average(self) -> int:
        """The bytes of a chunk, on average."""

    def given(self, owner: int) -> Region:
        """Return this rank's input for a rank."""

    def place(self, number: int, owner: int) -> Region:
        """Return a place of `owner`, or of a rank that adds for it."""

    def landed(self, number: int, owner: int) -> Region:
        """Return the landing place of a sum from another server."""


class _Seat(NamedTuple):
    """Rank `me` of server `server`."""

    servers: int
    n: int
    server: int
    me: int

    @property
    def own(self) -> int:
        return self.server * self.n + self.me

    def ahead(self, turn: int) -> int:
        """The server for which this one adds in a turn."""
        return (self.server + turn) % self.servers

    def behind(self, turn: int) -> int:
        """The server from which sums come in a turn."""
        return (self.server - turn) % self.servers


def deter_reduce_scatter(
    rank: AnyRank, mesh: Plane, ring: Plane, places: TurnMemory, total: Region, *, in_total: bool
) -> None:
    """Leave in `total` the sum of all ranks' chunks for this one. `in_total` says that the own
    chunk is added there; otherwise `total` is the place in which the first chunk comes that is
    added to the own one.
    """
    seat = _Seat(int(ring.size), int(mesh.size), int(ring.id), int(mesh.id))
    _Turns(rank, mesh, ring, places, seat, total, in_total).run()


class _Turns:
    def __init__(
        self,
        rank: AnyRank,
        mesh: Plane,
        ring: Plane,
        places: TurnMemory,
        seat: _Seat,
        total: Region,
        in_total: bool,
    ) -> None:
        self.rank, self.main, self.mesh, self.ring = rank, rank.main, mesh, ring
        self.places, self.seat, self.total, self.in_total = places, seat, total, in_total
        self.peers = range(seat.n - 1)
        self.adder = seat.n - 1

    def run(self) -> None:
        """Take all turns, then add up what came from the servers."""
        overlaps = self.seat.servers > 2 and self.places.average >= LARGE
        (self._overlapping if overlaps else self._in_turn)()
        s = self.seat
        parts = [self.places.landed(g * s.n, s.own) for g in range(s.servers)]
        parts[s.server] = self.total
        for pairs in _pairs(s.servers, s.server):
            for into, added in pairs:
                self.main.reduce(parts[into], parts[added])

    def _in_turn(self) -> None:
        servers = self.seat.servers
        for step in self.main.steps("exchange, add", servers):
            turn = (step + 1) % servers
            self._wake()
            self._meet()
            if not step and not self.rank.is_in_place:
                self._keep_own()
            if step:
                self._send(step)
            self._exchange(turn)
            self._join()
            if not turn and self.rank.is_in_place:
                self._keep_own()
            self.rank.wake(self.adder)
            self._add(turn)
            self.rank.join(self.adder)

    def _overlapping(self) -> None:
        servers = self.seat.servers
        for step in self.main.steps("exchange, add, send", servers + 1):
            exchanges = step < servers
            if exchanges:
                self._wake()
            if step == (servers if self.rank.is_in_place else 0):
                self._keep_own()
            if step:
                self.rank.wake(self.adder)
            if exchanges:
                self._meet()
            if step > 1:
                self._send(step - 1)
            if step:
                self._add(step % servers)
            if exchanges:
                self._exchange((step + 1) % servers)
                self._join()
            if step:
                self.rank.join(self.adder)

    def _wake(self) -> None:
        for sub in self.peers:
            self.rank.wake(sub)

    def _join(self) -> None:
        for sub in self.peers:
            self.rank.join(sub)

    def _keep_own(self) -> None:
        """Put the own chunk where it is added to: late where the output is the input, which HCCL's
        does not look at.
        """
        if self.in_total:
            self.main.copy(self.total, self.places.given(self.seat.own))

    def _links(self) -> Iterator[tuple[int, int, Link]]:
        """Return sub stream, peer and link, for the peers ahead."""
        for k in self.peers:
            peer = (self.seat.me + k + 1) % self.seat.n
            yield k, peer, self.mesh[peer]

    def _meet(self) -> None:
        for k, _, link in self._links():
            link.tx_ack(self.rank.subs[k])
            link.rx_ack(self.rank.subs[k])
        self._join()
        self._wake()

    def _exchange(self, turn: int) -> None:
        s = self.seat
        first, owners = s.behind(turn) * s.n, s.ahead(turn) * s.n
        for k, peer, link in self._links():
            stream, owner = self.rank.subs[k], owners + peer
            there = self.places.place(first + s.me - (s.me > peer), owner)
            stream.copy(link.remote(there), self.places.given(owner))
            link.tx_data_signal(stream)
            link.rx_data_signal(stream)

    def _add(self, turn: int) -> None:
        s = self.seat
        first, owner = s.behind(turn) * s.n, s.ahead(turn) * s.n + s.me
        parts = [self.places.place(first + k, owner) for k in self.peers]
        parts.insert(s.me, self.total if self.in_total and not turn else self.places.given(owner))
        into = s.n - 1 - (s.me == s.n - 1)
        if not turn:
            into = s.me + (not self.in_total)
        adder, helpers = self.rank.subs[self.adder], self.rank.subs[self.adder + 1 :]
        for pairs in _pairs(s.n, into, keep=s.me):
            for start in range(0, len(pairs), ADDERS):
                batch = pairs[start : start + ADDERS]
                with self.rank.fork(subs=helpers[: len(batch) - 1], by=adder) as awake:
                    for stream, (to, added) in zip((adder, *awake), batch, strict=True):
                        stream.reduce(parts[to], parts[added])

    def _send(self, turn: int) -> None:
        """Send the sum of a turn. Over SDMA, of two servers, it is read."""
        s, main = self.seat, self.main
        ahead, behind = s.ahead(turn), s.behind(turn)
        to, frm = self.ring[ahead], self.ring[behind]
        if to.rdma:
            frm.tx_ack(main)
            to.rx_ack(main)
            owner = ahead * s.n + s.me
            mine = self.places.place(behind * s.n + s.n - 2, owner)
            main.copy(to.remote(self.places.landed(s.server * s.n, owner)), mine)
        else:
            to.tx_ack(main)
            frm.rx_ack(main)
            theirs = self.places.place(s.server * s.n + s.n - 2, s.own)
            main.copy(self.places.landed(behind * s.n, s.own), frm.remote(theirs))
        to.tx_data_signal(main)
        frm.rx_data_signal(main)
        if to.rdma:
            frm.tx_data_ack(main)
            to.rx_data_ack(main)


def _pairs(count: int, into: int, keep: int = -1) -> Iterator[list[tuple[int, int]]]:
    """Return the pairs of neighbouring parts to add in every step, such that the sum ends in `into`
    and `keep`, if it is another one, does not change.
    """
    left = list(range(count))
    while len(left) > 1:
        found = [
            (a, b) if a == into or (b == keep != into) else (b, a)
            for a, b in zip(left[::2], left[1::2], strict=False)
        ]
        yield found
        left = [to for to, _ in found] + left[len(found) * 2 :]
