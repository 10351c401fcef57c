"""The unified march: slots go through one server from both sides at once, n/2 steps for n devices.

    all_gather, n = 6, device 0      sub 0, from device 5      sub 1, from device 1
        step 1                       slot 5                    slot 1
        step 2                       slot 4                    slot 2
        step 3                       slot 3, first half        slot 3, second half

Every device talks to its two neighbours only, sub 0 to the one before, sub 1 to the one behind. In
every step the neighbours tell each other that they have come so far, both sub streams line up over
main, and each takes one slot. The slot of the device opposite comes in halves from both sides.

    reduce_scatter, n = 6, device 0  sub 0                     sub 1
        step 1                       slot 2, first half        slot 4, second half
        step 2                       slot 1                    slot 5
        step 3                       slot 0, first half        slot 0, second half
        step 4                       slot 0, second half       slot 0, first half

So partial sums of a slot march towards its device from both sides, and meet there: n/2 + 1 steps.
With two devices one step and one sub stream do. A slot may be several pieces, one of every server,
say: each is cut in halves, and they are taken one after the other.

In graph mode each step has a notify of its own; in op-base mode Ack and DataSignal take turns. In
the end all have been read.

Cost for n devices and N bytes: all_gather n/2·α + (n-1)/n·N/2·β, reduce_scatter (n/2+1)α +
(n-1)/n·N/2·(β+γ). Source: all_gather_unified_march.cc and reduce_scatter_unified_march.cc of
cann-hcomm (b5f3e5b).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hccl_py.enums import Mode
from hccl_py.orchestration import Chunks, Link, Region, Stream
from hccl_py.orchestration.region import pieces
from hccl_py.plugins.executor import AnyRank

Pieces = list[Region]
Take = Callable[[AnyRank, Stream, Link, Region], None]


class Step(NamedTuple):
    """The pieces that a device takes in a step, from the neighbours before and behind."""

    before: Pieces
    behind: Pieces | None = None


def march_all_gather(rank: AnyRank, slots: Chunks) -> None:
    """Leave in every device of a server all slots, in memory that neighbours reach; device d starts
    with slot d.
    """
    n, me = len(slots), rank.level0.id
    steps = [
        Step(pieces(slots[(me - k) % n]), pieces(slots[(me + k) % n])) for k in range(1, n // 2)
    ]
    opposite = pieces(slots[(me + n // 2) % n])
    if n == 2:
        steps.append(Step(opposite))
    else:
        first, second = _halves(opposite, 1)
        steps.append(Step(first, second))
    _March(rank).run(steps, _read)


def march_reduce_scatter(rank: AnyRank, slots: Chunks, unit: int) -> None:
    """Leave in slot d of device d the reduction of all slots d of its server; others are
    clobbered. Halves are whole elements of `unit` bytes.
    """
    n, me = len(slots), rank.level0.id
    if n == 2:
        _March(rank).run([Step(pieces(slots[me]))], _reduce)
        return
    far = n // 2 + 1
    first, second = _halves(pieces(slots[me]), unit)
    farthest = Step(
        _halves(pieces(slots[(me - far) % n]), unit)[0],
        _halves(pieces(slots[(me + far) % n]), unit)[1],
    )
    whole = [
        Step(pieces(slots[(me - far - k) % n]), pieces(slots[(me + far + k) % n]))
        for k in range(1, n // 2 - 1)
    ]
    _March(rank).run([farthest, *whole, Step(first, second), Step(second, first)], _reduce)


def _halves(parts: Pieces, unit: int) -> tuple[Pieces, Pieces]:
    """Cut every piece in two, the second part with the odd element."""
    cuts = [part.size // unit // 2 * unit for part in parts]
    return (
        [part.head(cut) for part, cut in zip(parts, cuts, strict=True)],
        [part[cut:] for part, cut in zip(parts, cuts, strict=True)],
    )


def _read(rank: AnyRank, stream: Stream, link: Link, part: Region) -> None:
    stream.copy(part, link.remote(part))


def _reduce(rank: AnyRank, stream: Stream, link: Link, part: Region) -> None:
    """Add what the neighbour has; without inline reduce it lands beside."""
    if link.inline_reduce:
        stream.reduce(part, link.remote(part))
    else:
        beside = rank.landing(part)
        stream.copy(beside, link.remote(part))
        stream.reduce(part, beside)


class _March:
    """Both marches of a device, and what keeps them and the neighbours in step."""

    def __init__(self, rank: AnyRank) -> None:
        self.rank, self.graph = rank, rank.mode is Mode.GRAPH
        plane = rank.level0
        self.sides = 1 if plane.size == 2 else 2
        self.before, self.behind = plane.left, plane.right
        self.done = 0

    def run(self, march: Sequence[Step], take: Take) -> None:
        """Take step after step, then hear that all has been read."""
        rank = self.rank
        with rank.fork(self.sides) as subs:
            for number in rank.main.steps("march", len(march)):
                step = march[number]
                self._meet(subs)
                self._line_up()
                for part in step.before:
                    take(rank, subs[0], self.before, part)
                for part in step.behind or ():
                    take(rank, subs[1], self.behind, part)
                self.done += 1
            if self.sides == 2 and not self.graph and not self.done % 2:
                # The last meeting was by DataSignal, which the end needs: one more, by Ack.
                self._line_up()
                self._meet(subs)
            for stream, link, other in self._ways(subs):
                link.tx_data_signal(stream)  # I have read yours
                other.rx_data_signal(stream)  # you have read mine

    def _ways(self, subs: Sequence[Stream]) -> list[tuple[Stream, Link, Link]]:
        """Return of each march its stream, the neighbour that it takes from, and the other one."""
        found = [(subs[0], self.before, self.behind)]
        if self.sides == 2:
            found.append((subs[1], self.behind, self.before))
        return found

    def _meet(self, subs: Sequence[Stream]) -> None:
        """Allow the readers of this device to go on; wait until it may read itself."""
        for stream, link, other in self._ways(subs):
            if self.graph:
                other.post(stream, self.done)
                link.wait(stream, self.done)
            elif self.done % 2 == 0:
                other.tx_ack(stream)
                link.rx_ack(stream)
            else:
                other.tx_data_signal(stream)
                link.rx_data_signal(stream)

    def _line_up(self) -> None:
        rank, n = self.rank, len(self.rank.subs)
        subs = rank.subs[: self.sides]
        for sub, notify in zip(subs, rank.notifies[: self.sides], strict=True):
            sub.post(notify)
            rank.main.wait(notify)
        for sub, notify in zip(subs, rank.notifies[n : n + self.sides], strict=True):
            rank.main.post(notify)
            sub.wait(notify)
