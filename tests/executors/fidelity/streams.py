"""A rank of several streams, and the rings that HCCL lays through a server, from its sources.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm. Streams are 0 for
main and k + 1 for slaveStreams[k]; of the local notifies, notifiesMain[k] is notify k of main and
notifiesAux[k] notify 0 of sub stream k + 1.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.executors.fidelity.transports import Across, Event, Link, Part, Slice, Template

ALIGN = 128


class Worker:
    """What one rank records, on main and its sub streams."""

    def __init__(self, rank: int, subs: int) -> None:
        self.rank = rank
        self.streams: list[list[Event]] = [[] for _ in range(subs + 1)]

    def signal_main(self, stream: int, k: int) -> None:
        """Post notifiesMain[k] on a stream."""
        self.streams[stream].append(("post", 0, k))

    def await_main(self, stream: int, k: int) -> None:
        """Wait for notifiesMain[k] on a stream."""
        self.streams[stream].append(("wait", 0, k))

    def signal_sub(self, stream: int, k: int) -> None:
        """Post notifiesAux[k] on a stream."""
        self.streams[stream].append(("post", k + 1, 0))

    def await_sub(self, stream: int, k: int) -> None:
        """Wait for notifiesAux[k] on a stream."""
        self.streams[stream].append(("wait", k + 1, 0))

    def start(self, ks: Sequence[int], by: int = 0) -> None:
        """MainRecordSub and SubWaitMain."""
        for k in ks:
            self.signal_sub(by, k)
            self.await_sub(k + 1, k)

    def finish(self, ks: Sequence[int], to: int = 0) -> None:
        """SubRecordMain and MainWaitSub."""
        for k in ks:
            self.signal_main(k + 1, k)
            self.await_main(to, k)

    def run(
        self, template: Template, ranks: Sequence[int], *, rdma: bool | Sequence[int], **call: Any
    ) -> None:
        """Run a template of one stream over a plane of these ranks, on main; `rdma` joins them all,
        or those that have other numbers there.
        """
        self.run_on(0, template, ranks, rdma=rdma, **call)

    def run_on(
        self,
        stream: int,
        template: Template,
        ranks: Sequence[int],
        *,
        rdma: bool | Sequence[int],
        **call: Any,
    ) -> None:
        """The same on any stream."""
        events = self.streams[stream]
        if len(ranks) == 1:
            return
        if isinstance(rdma, bool):
            template(Part(events, ranks, self.rank, rdma=rdma), **call)
        else:
            template(Across(events, ranks, self.rank, rdma), **call)


class Way:
    """One ring through a server, as a rank sees it: `order` are the ranks as the ring goes, `lead`
    is the stream that goes round, and `k` the sub stream that helps it.
    """

    def __init__(self, me: Worker, order: Sequence[int], lead: int, k: int = -1) -> None:
        self.me, self.order, self.lead, self.k = me, order, lead, k
        self.at, self.size = order.index(me.rank), len(order)

    def left(self) -> Link:
        """The link to the member before, on the ring's stream."""
        return self._link(self.at - 1)

    def right(self) -> Link:
        """The link to the member behind, on the ring's stream."""
        return self._link(self.at + 1)

    def _link(self, at: int) -> Link:
        return Link(self.me.streams[self.lead], self.order[at % self.size], rdma=False)


def orders(servers: Sequence[int], rings: int) -> list[list[int]]:
    """impl/coll_executor/coll_comm_executor.cc:1647 GetRingsOrderByTopoType: one ring as devices
    are numbered, a second one the other way round from the same first device.
    """
    first = list(servers)
    return [first, [first[0], *first[:0:-1]]][:rings]


def sliced(size: int, n: int, start: int = 0) -> list[Slice]:
    """base/alg_template/alg_template_base.cc:690 PrepareSliceData: even up to 128 bytes."""
    each = -(-size // n // ALIGN) * ALIGN
    ends = [min(each * k, size) for k in range(n + 1)]
    return [Slice(start + a, b - a) for a, b in pairwise(ends)]


def halves(part: Slice, rings: int) -> list[Slice]:
    """coll_comm_executor.cc:1721 MutliSegSlicePrepare: what each ring takes of a slice."""
    return sliced(part.size, rings, part.offset)
