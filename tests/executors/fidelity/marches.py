"""HCCL's unified march through one server of Atlas A3, written from its sources.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
"""

from collections.abc import Sequence

from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import Link, Slice

Pieces = Sequence[Slice]
"""What a slot is: a slice, or one of every server."""


class March:
    """A device of a server between its neighbours: sub stream 1 takes from the one before, 2 from
    the other.
    """

    def __init__(self, me: Worker, server: Sequence[int], *, op_base: bool) -> None:
        self.me, self.server, self.op_base = me, server, op_base
        self.at, self.size = server.index(me.rank), len(server)
        self.sides = 1 if self.size == 2 else 2
        self.index = 0
        me.start(range(self.sides))

    def link(self, side: int, *, source: bool) -> Link:
        """The neighbour that a side takes from, or the one that takes from it, on its stream."""
        ahead = source == bool(side)
        peer = self.server[(self.at + (1 if ahead else -1)) % self.size]
        return Link(self.me.streams[side + 1], peer, rdma=False)

    def meet(self) -> None:
        """all_gather_unified_march.cc:88 NotifyNeighborsStart: a notify of the step's own in graph
        mode, else Ack where notifyIdx_ is even, DataSignal where it is odd.
        """
        for side in range(self.sides):
            there, here = self.link(side, source=False), self.link(side, source=True)
            if not self.op_base:
                there.post(self.index)
                here.wait(self.index)
            elif self.index % 2 == 0:
                there.tx_ack()
                here.rx_ack()
            else:
                there.tx_data_signal()
                here.rx_data_signal()

    def align(self) -> None:
        """:164 WaitSubStreamFinish and NotifySubStreamStart: all streams meet."""
        self.me.finish(range(self.sides))
        self.me.start(range(self.sides))

    def step(self, kind: str, parts: Sequence[Pieces]) -> None:
        """all_gather_unified_march.cc:154 RunSingleStep, :66 DoSerialSDMA slice by slice;
        reduce_scatter_unified_march.cc:216 likewise.
        """
        self.meet()
        self.align()
        for side, part in zip(range(self.sides), parts, strict=True):
            for one in part:
                if one.size:
                    self.link(side, source=True).move(kind, one.offset, one.offset, one.size)
        self.index += 1

    def end(self) -> None:
        """:228 an Ack where the last step met by DataSignal, unless it was the only one, :136
        NotifyNeighborsEnd, :272 WaitSubStreamFinish.
        """
        last = self.index - 1
        if self.op_base and self.sides == 2 and last % 2 != 0:
            self.align()
            self.meet()
        for side in range(self.sides):
            self.link(side, source=True).tx_data_signal()
            self.link(side, source=False).rx_data_signal()
        self.me.finish(range(self.sides))


def _cut(part: Pieces, unit: int) -> tuple[list[Slice], list[Slice]]:
    """Both halves of every slice, in whole elements."""
    halves = [one.size // unit // 2 * unit for one in part]
    return (
        [Slice(one.offset, half) for one, half in zip(part, halves, strict=True)],
        [Slice(one.offset + half, one.size - half) for one, half in zip(part, halves, strict=True)],
    )


def all_gather(
    me: Worker, server: Sequence[int], slots: Sequence[Pieces], *, op_base: bool
) -> None:
    """all_gather_unified_march.cc:248 RunAsync, :201 RunLastStep: the slot opposite in halves."""
    march = March(me, server, op_base=op_base)
    n, at = march.size, march.at
    if n == 2:
        march.step("read", [slots[1 - at]])
    else:
        for step in range(n // 2 - 1):
            march.step("read", [slots[(at - step - 1) % n], slots[(at + step + 1) % n]])
        march.step("read", _cut(slots[(at + n // 2) % n], 1))
    march.end()


def reduce_scatter(
    me: Worker, server: Sequence[int], slots: Sequence[Pieces], unit: int, *, op_base: bool
) -> None:
    """reduce_scatter_unified_march.cc:326 RunAsync, :264 RunHalfSliceRead."""
    march, kind = March(me, server, op_base=op_base), "read_reduce"
    n, at = march.size, march.at
    total = n // 2 + 1
    if n == 2:
        march.step(kind, [slots[at]])
    else:
        first, second = slots[(at - total) % n], slots[(at + total) % n]
        march.step(kind, [_cut(first, unit)[0], _cut(second, unit)[1]])
        for step in range(1, total - 2):
            march.step(kind, [slots[(at - step - total) % n], slots[(at + step + total) % n]])
        head, tail = _cut(slots[at], unit)
        march.step(kind, [head, tail])
        march.step(kind, [tail, head])
    march.end()
