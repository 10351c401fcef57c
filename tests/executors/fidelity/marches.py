"""HCCL's unified march through one server of Atlas A3, written from its sources, in graph mode.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
"""

from collections.abc import Sequence

from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import Link, Slice


class March:
    """A device between its neighbours: sub stream 1 takes from the one before, 2 from the other."""

    def __init__(self, me: Worker, size: int) -> None:
        self.me, self.size = me, size
        self.sides = 1 if size == 2 else 2
        self.done = 0
        me.start(range(self.sides))

    def link(self, side: int, *, source: bool) -> Link:
        """The neighbour that a side takes from, or the one that takes from it, on its stream."""
        ahead = source == bool(side)
        peer = (self.me.rank + (1 if ahead else -1)) % self.size
        return Link(self.me.streams[side + 1], peer, rdma=False)

    def step(self, kind: str, parts: Sequence[Slice]) -> None:
        """all_gather_unified_march.cc:154 RunSingleStep, :88 NotifyNeighborsStart with a notify of
        its own, :164 all streams meet; reduce_scatter_unified_march.cc:216 likewise.
        """
        for side in range(self.sides):
            self.link(side, source=False).events.append(self._notify("post", side, source=False))
            self.link(side, source=True).events.append(self._notify("wait", side, source=True))
        self.me.finish(range(self.sides))
        self.me.start(range(self.sides))
        for side, part in zip(range(self.sides), parts, strict=True):
            if part.size:
                self.link(side, source=True).move(kind, part.offset, part.offset, part.size)
        self.done += 1

    def end(self) -> None:
        """:136 NotifyNeighborsEnd, :272 WaitSubStreamFinish."""
        for side in range(self.sides):
            self.link(side, source=True).tx_data_signal()
            self.link(side, source=False).rx_data_signal()
        self.me.finish(range(self.sides))

    def _notify(self, what: str, side: int, *, source: bool) -> tuple[str, int, str]:
        return what, self.link(side, source=source).peer, f"extra notify {self.done}"


def all_gather(me: Worker, slots: Sequence[Slice]) -> None:
    """all_gather_unified_march.cc:248 RunAsync, :201 RunLastStep: the slot opposite in halves."""
    n, at = len(slots), me.rank
    march = March(me, n)
    if n == 2:
        march.step("read", [slots[1 - at]])
    else:
        for step in range(n // 2 - 1):
            march.step("read", [slots[(at - step - 1) % n], slots[(at + step + 1) % n]])
        whole = slots[(at + n // 2) % n]
        half = whole.size // 2
        parts = Slice(whole.offset, half), Slice(whole.offset + half, whole.size - half)
        march.step("read", parts)
    march.end()


def reduce_scatter(me: Worker, slots: Sequence[Slice], unit: int) -> None:
    """reduce_scatter_unified_march.cc:326 RunAsync, :264 RunHalfSliceRead."""
    n, at, total = len(slots), me.rank, len(slots) // 2 + 1
    march, kind = March(me, n), "read_reduce"
    if n == 2:
        march.step(kind, [slots[at]])
    else:
        half = slots[0].size // unit // 2 * unit

        def head(slot: Slice) -> Slice:
            return Slice(slot.offset, half)

        def tail(slot: Slice) -> Slice:
            return Slice(slot.offset + half, slot.size - half)

        march.step(kind, [head(slots[(at - total) % n]), tail(slots[(at + total) % n])])
        for step in range(1, total - 2):
            march.step(kind, [slots[(at - step - total) % n], slots[(at + step + total) % n]])
        march.step(kind, [head(slots[at]), tail(slots[at])])
        march.step(kind, [tail(slots[at]), head(slots[at])])
    march.end()
