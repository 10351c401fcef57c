"""Templates of broadcast and scatter."""

from __future__ import annotations

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.all_reduce import nhr_gather, rounded_down, rounded_up
from hccl_executors.aicpu.duplex import recv_write, send_recv_write, send_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import (
    Cuts,
    Regions,
    Seat,
    SplitTemplate,
    Template,
    copy,
    cut,
    place_at,
)
from hccl_py.enums import ChannelBuffer
from hccl_py.orchestration import Region
from hccl_py.plugins.fidelity import is_uneven_tree
from hccl_py.values import RankInt


class TwoShotBroadcast(Template):
    """Broadcast in a mesh, in two steps: the root gives a slice to every rank, then all
    exchange.

    HCCL: InsTempBroadcastMesh1DTwoShot. The root also gives its own slice to all.
    """

    def subs(self, n: int) -> int:
        return max(n - 2, 0)

    def scratch(self, n: int) -> int:
        return 1

    def run(self, seat: Seat, root: RankInt, data: Region, buffer: Region, unit: int) -> None:
        """Broadcast the root's `data`, by way of `buffer`."""
        sizes = rounded_up(int(data.size), seat.n, unit)
        given, places = cut(data, sizes), cut(buffer, sizes)
        peers = [i for i in range(seat.n) if seat.me != i and root != i]
        if seat.me == root:
            seat.pre_sync()
            for thread, i in zip(seat.threads, peers, strict=True):
                for part in (i, seat.me):
                    send_write(thread, seat.channel(i), [(places[part], given[part])])
            seat.post_sync()
            return
        for _ in range(2):
            recv_write(seat.main, seat.channel(root))
        if len(peers) > 1:
            seat.pre_sync()
        for thread, i in zip(seat.threads, peers, strict=False):
            channel, mine = seat.channel(i), places[seat.me]
            send_recv_write(thread, channel, channel, [(mine, mine)])
        if len(peers) > 1:
            seat.post_sync()
        seat.main.copy(data, buffer.head(data.size))


class MeshScatter(SplitTemplate):
    """Scatter in a mesh: the root writes its block into every rank's HCCL buffer.

    HCCL: InsTempScatterMesh1D. All ranks wake all threads, and those beside the root use one
    for a channel. Where the root is no member, nothing is moved.
    """

    def scratch(self, n: int) -> int:
        return 1

    def run(
        self, seat: Seat, root: RankInt | None, sources: Cuts, targets: Regions, places: Cuts
    ) -> None:
        """Scatter every one of the root's `sources` into `targets`, by way of `places`."""
        is_root = root is not None and bool(seat.me == root)
        stays = targets[0].buffer == ChannelBuffer.CCL
        if is_root and not (stays and sources[0].buffer == ChannelBuffer.CCL):
            for source, target in zip(sources, targets, strict=True):
                seat.main.copy(target, source[seat.me])
        seat.pre_sync()
        if is_root:
            self._send(seat, sources, places)
        elif root is not None:
            for thread, layer in zip(seat.threads, self.ways.layers, strict=False):
                recv_write(thread, seat.channel(root, layer))
        seat.post_sync()
        if not is_root and not stays:
            for target, place in zip(targets, places, strict=True):
                copy(seat.main, target, place[seat.me])

    def _send(self, seat: Seat, sources: Cuts, places: Cuts) -> None:
        """Send from the root. Where it is the last rank, whose block may be longer than others, it
        sends as much to all, as HCCL does.
        """
        threads = iter(seat.threads)
        is_last = bool(seat.me == seat.n - 1)
        for i in range(seat.n):
            if seat.me == i:
                continue
            whole = sources[0][seat.n - 1 if is_last else i].size
            parts = self.ways.parts(seat.n, whole, seat.unit)
            for layer, (begin, size) in zip(self.ways.layers, parts, strict=True):
                moves = [
                    (place_at(place[i], begin, size), place_at(source[i], begin, size))
                    for place, source in zip(places, sources, strict=True)
                ]
                send_write(next(threads), seat.channel(i, layer), moves)


class NhrTree(NhrTemplate):
    """Scatter and broadcast by NHR's tree, from the root's HCCL buffer to those of all others.

    HCCL: InsTempScatterNHR, InsTempBroadcastNHR, which gathers after it. The resources of both
    templates, on one thread.
    """

    def spread(self, seat: Seat, root: RankInt, places: Cuts) -> None:
        """Send blocks from the root until every rank has its own. HCCL's ranks also send blocks
        that they do not have, among 7, 11 and some more ranks; these are left out.
        """
        n, behind = seat.n, (root - seat.me) % seat.n
        held = _held(n)
        for s in range(nhr_steps.rounds(n)):
            d = 1 << s
            senders = d if 2 * d <= n else n - d
            if behind < senders:
                to = (seat.me - d) % n
                blocks = [(to - 2 * d * i) % n for i in range((n - 1 + d) // (2 * d))]
                if is_uneven_tree(n):
                    has = held[s][int(behind)]
                    blocks = [i for i in blocks if int((root - i) % n) in has]
                moves = [(place[i], place[i]) for place in places for i in blocks]
                send_write(seat.main, seat.channel(to), moves)
            elif behind >= d and behind < senders + d:
                recv_write(seat.main, seat.channel((seat.me + d) % n))


def _held(n: int) -> list[list[set[int]]]:
    """Return the blocks that every rank has before every step, counted down from the root."""
    now = [set(range(n)), *(set[int]() for _ in range(n - 1))]
    found = []
    for s in range(nhr_steps.rounds(n)):
        found.append([set(blocks) for blocks in now])
        d = 1 << s
        for behind in range(d if 2 * d <= n else n - d):
            sent = {(behind + d + 2 * d * i) % n for i in range((n - 1 + d) // (2 * d))}
            now[behind + d] |= sent & found[s][behind]
    return found


class NhrScatter(NhrTree):
    """The template of Scatter."""

    by_clos = True

    def run(self, seat: Seat, root: RankInt, sources: Cuts, targets: Regions, places: Cuts) -> None:
        """Scatter every one of the root's `sources` into `targets`, by way of `places`."""
        if seat.me == root:
            for source, place in zip(sources, places, strict=True):
                for i in range(seat.n):
                    copy(seat.main, place[i], source[i])
        self.spread(seat, root, places)
        for target, place in zip(targets, places, strict=True):
            copy(seat.main, target, place[seat.me])


class NhrBroadcast(NhrTree):
    """The template of Broadcast."""

    def scratch(self, n: int) -> int:
        return 1

    def run(self, seat: Seat, root: RankInt, data: Region, buffer: Region, unit: int) -> None:
        """Broadcast the root's `data`, by way of `buffer`."""
        work = buffer.head(data.size)
        if seat.me == root:
            copy(seat.main, work, data)
        slices = cut(work, rounded_down(int(work.size), seat.n, unit))
        self.spread(seat, root, [slices])
        nhr_gather(seat, slices)
        if seat.me != root:
            copy(seat.main, data, work)
