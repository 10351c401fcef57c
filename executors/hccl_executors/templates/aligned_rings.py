"""Two rings the two ways round a server, aligned: both begin each read together, as on A3.

    ring 0:  0 → 1 → 2 → 3 → 0      first half of every slot, on sub stream 0, helped by sub 1
    ring 1:  0 → 3 → 2 → 1 → 0      second half, on main, helped by sub 2

So both directions of a link are busy at the same time. Where user memory is given, the helpers move
data between it and the exported memory meanwhile, and the last step ends in user memory itself.
Where user memory is the exported memory they have nothing to move, but line up all the same.
Before every read all sub streams report to main, which then wakes them all. What lies in several
ranges is moved range by range, each of them lined up.

A reduce-scatter is *serial* where main copies all that its ring needs before the rings start, and
sub 2 has nothing to do (HCCL's FastDoubleRing).

p - 1 steps over p ranks; all-gather and reduce-scatter cost (p-1)α + (p-1)/2p·n(β [+ γ]). An
all-gather and the serial form end with a barrier between neighbours, one α more. Copies of no bytes
are HCCL's, but for those that follow a sub stream's last report. Rings that do not wait for each
other: direct_ring.py.

In a scatter all streams end every step together. There HCCL's root reads, too, in every step, what
its neighbours happen to have in its slots, to leave memory bandwidth to its readers, and with more
than 4 MiB every rank reads before there is data; both are left out, as they would read unwritten
memory.

Source: of cann-hcomm (b5f3e5b) aligned_all_gather_double_ring.cc,
aligned_reduce_scatter_double_ring.cc and the same with _with_serial_local_copy, and
scatter_double_ring_direct.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hccl_executors.templates.double_ring import Cut, parts_of_rings
from hccl_executors.templates.ring import ring_barrier
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.region import pieces
from hccl_py.plugins.executor import AnyRank

HELPERS = (1, 2)
"""The sub streams that help ring 0 and ring 1."""


def aligned_all_gather(
    rank: AnyRank,
    rings: Sequence[Plane],
    work: Chunks,
    out: Chunks,
    source: Region | None = None,
    *,
    cut: Cut = parts_of_rings,
) -> None:
    """Leave all slots in `out`, which may be `work`, exported memory at the same place of every
    rank. Member i of level0 starts with slot i of `work`, or with `source`, its own slot elsewhere.
    """
    lines = _Lines(rank, rings, work)
    main, first = rank.main, rank.subs[0]
    places, ends = cut(rings, work), cut(rings, out)
    helped, delivers, steps = lines.helped, out is not work, int(rings[0].size) - 1
    if helped:
        lines.start(1)
        if source is not None:
            for q, part in enumerate(source.split(2)):
                lines.streams[q].copy(places[q][rings[q].id], part)
        lines.empty_copies(main, first)
        lines.finish(1)
    lines.empty_copies(main)
    lines.start()
    lines.empty_copies(main, *lines.subs)
    for step in main.steps("aligned all-gather", steps):
        lines.begin()
        into = ends if step == steps - 1 else places
        read = [_ranges(into[q], rings[q].id - 1 - step) for q in (0, 1)]
        theirs = [_ranges(places[q], rings[q].id - 1 - step) for q in (0, 1)]
        own = [_ranges(places[q], rings[q].id - step) for q in (0, 1)]
        users = [_ranges(ends[q], rings[q].id - step) for q in (0, 1)]
        for i in range(len(own[0])):
            lines.line_up(0)
            first.copy(read[0][i], rings[0].left.remote(theirs[0][i]))
            for q in (1, 0) if helped else ():
                lines.line_up(HELPERS[q])
                if delivers:
                    rank.subs[HELPERS[q]].copy(users[q][i], own[q][i])
            lines.release()
            main.copy(read[1][i], rings[1].left.remote(theirs[1][i]))
        lines.end()
    lines.finish()
    lines.empty_copies(main)
    ring_barrier(main, rings[0])


def aligned_reduce_scatter(
    rank: AnyRank,
    rings: Sequence[Plane],
    inputs: Chunks,
    work: Chunks,
    out: Region | None = None,
    *,
    serial: bool = False,
    cut: Cut = parts_of_rings,
) -> None:
    """Reduce slot i of all `inputs` at member i of level0: in `out`, or in slot i of `work`.

    `work` is exported memory at the same place of every rank. `inputs` may be `work`, and is left
    as it is where it is not. `out` needs other inputs than `work`.
    """
    lines = _Lines(rank, rings, work)
    fetched = _Fetched(rings, inputs, work, out, cut)
    main, helped = rank.main, lines.helped
    active = len(lines.subs) - (serial and helped)
    lines.empty_copies(main)
    if serial:
        if helped:
            _fetch_serially(lines, fetched)
        lines.start(active)
    else:
        lines.start()
        if helped:
            lines.empty_copies(main, *lines.subs)
            _fetch_first(lines, fetched)
    lines.empty_copies(main, *lines.subs[:active])
    for step in main.steps("aligned reduce-scatter", fetched.steps):
        lines.begin()
        for i in range(fetched.count):
            _reduce(lines, fetched, step, i, active)
            for q in (1, 0)[serial:] if helped else ():
                lines.line_up(HELPERS[q])
                if step < fetched.steps - 1:
                    fetched.copy(rank.subs[HELPERS[q]], q, step + 1, i)
            if not helped and not serial:
                lines.release()
                lines.line_up(0)
        lines.end()
    lines.finish(active)
    lines.empty_copies(main)
    if serial:
        ring_barrier(main, rings[0])


def aligned_scatter(
    rank: AnyRank,
    rings: Sequence[Plane],
    inputs: Chunks,
    work: Chunks,
    root: int,
    *,
    cut: Cut = parts_of_rings,
) -> None:
    """Leave slot i of the `inputs` of member `root` of level0 in slot i of `work` of member i;
    `inputs` may be `work`.
    """
    if int(rings[0].size) == 1:
        for source, place in zip(*(cut(rings, slots) for slots in (inputs, work)), strict=True):
            if inputs is not work:
                rank.main.copy(place[0], source[0])
        return
    lines = _Lines(rank, rings, work)
    sources, places = cut(rings, inputs), cut(rings, work)
    distances = [int((ring.id - ring.order.index(root)) % ring.size) for ring in rings]
    fetches = not distances[0] and inputs is not work

    def fetch(q: int, step: int, stream: Stream) -> None:
        slot = (rings[q].id - 2 - step) % rings[q].size
        stream.copy(places[q][slot], sources[q][slot])

    for q in (0, 1) if fetches else ():
        fetch(q, -1, rank.main)
    for step in rank.main.steps("aligned scatter", int(rings[0].size) - 1):
        lines.start(1)
        lines.begin()
        lines.finish(1)
        lines.start()
        lines.empty_copies(*lines.subs, rank.main)
        for q in (1, 0):
            if 0 < distances[q] <= step + 1:
                place = places[q][(rings[q].id - 2 - step) % rings[q].size]
                lines.streams[q].copy(place, rings[q].left.remote(place))
        for q in (1, 0) if fetches else ():
            fetch(q, step, rank.subs[2 - q])
        lines.end()
        lines.finish()
        lines.empty_copies(rank.main)


class _Lines:
    """The streams of both rings and what keeps them aligned: ring 0's sub stream, and two more
    where they are helped. A rank may have others behind them.
    """

    def __init__(self, rank: AnyRank, rings: Sequence[Plane], work: Chunks) -> None:
        self.rank, self.rings, self.main = rank, rings, rank.main
        self.streams = (rank.subs[0], rank.main)
        n = len(rank.subs)
        self.helped = n > 1
        self.subs = rank.subs[: 1 + 2 * self.helped]
        self.ready, self.go = (rank.notifies[k:][: len(self.subs)] for k in (0, n))
        self._none = pieces(work[0])[0].head(0)

    def empty_copies(self, *streams: Stream) -> None:
        """Record a copy of no bytes on each stream."""
        for stream in streams:
            stream.copy(self._none, self._none)

    def start(self, count: int | None = None) -> None:
        """Wake the first sub streams, or all of them."""
        for notify in self.go[:count]:
            self.main.post(notify)
        for sub, notify in zip(self.subs, self.go[:count], strict=False):
            sub.wait(notify)

    def finish(self, count: int | None = None) -> None:
        """Wait for the first sub streams, or all of them."""
        for sub, notify in zip(self.subs, self.ready[:count], strict=False):
            sub.post(notify)
        for notify in self.ready[:count]:
            self.main.wait(notify)

    def line_up(self, index: int) -> None:
        """Let a sub stream report to main and wait until all go on."""
        self.subs[index].post(self.ready[index])
        self.subs[index].wait(self.go[index])

    def release(self, count: int | None = None) -> None:
        """Wait on main until all sub streams, or the first ones, have reported; let them go on."""
        for notify in self.ready[:count]:
            self.main.wait(notify)
        self.empty_copies(self.main)
        for notify in self.go[:count]:
            self.main.post(notify)

    def begin(self) -> None:
        """Tell the next member of each ring that it may read, and hear that from the one before."""
        for ring, stream in zip(self.rings[::-1], self.streams[::-1], strict=True):
            ring.right.tx_ack(stream)
            ring.left.rx_ack(stream)

    def end(self) -> None:
        """Tell the member before of each ring that it has been read, and hear it from the next."""
        for ring, stream in zip(self.rings[::-1], self.streams[::-1], strict=True):
            ring.left.tx_data_signal(stream)
            ring.right.rx_data_signal(stream)


class _Fetched:
    """Memory into which each step of a reduce-scatter receives, fetched from inputs before."""

    def __init__(
        self, rings: Sequence[Plane], inputs: Chunks, work: Chunks, out: Region | None, cut: Cut
    ) -> None:
        self.rings, self.moves = rings, inputs is not work
        self.sources, self.places = cut(rings, inputs), cut(rings, work)
        self.ends = None if out is None else self._ends(out)
        self.steps = int(rings[0].size) - 1
        self.count = len(pieces(work[0]))

    def _ends(self, out: Region) -> list[Region]:
        """Return the memory into which the last step of each ring receives."""
        first = pieces(self.places[0][self.rings[0].id])[0].size
        return [out.head(first), out[first:]]

    def into(self, q: int, step: int) -> list[Region]:
        """Return the memory into which a step of ring q receives; for step -1, the first that it
        sends.
        """
        if self.ends is not None and step == self.steps - 1:
            return [self.ends[q]]
        return self.theirs(q, step)

    def theirs(self, q: int, step: int) -> list[Region]:
        """Return the memory of the member before from which a step receives."""
        return _ranges(self.places[q], self.rings[q].id - 2 - step)

    def copy(self, stream: Stream, q: int, step: int, i: int) -> None:
        """Copy range i of what a step receives into from the inputs, if it is not there."""
        if not self.moves:
            return
        source = _ranges(self.sources[q], self.rings[q].id - 2 - step)
        stream.copy(self.into(q, step)[i], source[i])


def _fetch_first(lines: _Lines, fetched: _Fetched) -> None:
    """Fetch what both rings send first and what they receive into first."""
    subs = lines.rank.subs
    for i in range(fetched.count):
        lines.line_up(0)
        fetched.copy(subs[0], 0, -1, i)
        lines.line_up(1)
        fetched.copy(subs[1], 0, 0, i)
        lines.release()
        fetched.copy(lines.main, 1, -1, i)
        lines.line_up(2)
        fetched.copy(subs[2], 1, 0, i)


def _fetch_serially(lines: _Lines, fetched: _Fetched) -> None:
    """Fetch all that ring 1 needs on main, and what ring 0 begins with on its two streams."""
    for step in range(1, fetched.steps):
        for i in range(fetched.count):
            fetched.copy(lines.main, 1, step, i)
    for i in range(fetched.count):
        fetched.copy(lines.main, 1, -1, i)
        fetched.copy(lines.main, 1, 0, i)
    lines.start(2)
    for i in range(fetched.count):
        fetched.copy(lines.rank.subs[0], 0, -1, i)
        fetched.copy(lines.rank.subs[1], 0, 0, i)
    lines.finish(2)


def _reduce(lines: _Lines, fetched: _Fetched, step: int, i: int, active: int) -> None:
    """Reduce range i of what a step receives, both rings together; without inline reduce, main
    reduces what has landed for both.
    """
    main, sub = lines.main, lines.rank.subs[0]
    for q, stream in ((1, main), (0, sub)):
        into = fetched.into(q, step)[i]
        place = fetched.theirs(q, step)[i]
        theirs = lines.rings[q].left.remote(place)
        if stream is main:
            lines.release(active)
        else:
            lines.line_up(0)
        if lines.rings[q].left.inline_reduce:
            stream.reduce(into, theirs)
            continue
        beside = lines.rank.landing(place)
        stream.copy(beside, theirs)
        if stream is main:
            main.reduce(into, beside)
            continue
        sub.post(lines.ready[0])
        main.wait(lines.ready[0])
        main.reduce(into, beside)
        main.post(lines.go[0])
        sub.wait(lines.go[0])


def _ranges(slots: Chunks, index: Any) -> list[Region]:
    return pieces(slots[index % len(slots)])
