"""Resources: requests of executors, and allocations of platforms.

HCCL computes resources once per tag and reuses them: scratch memory, sub streams, notifies between
main and sub streams, and transports to the peers that the algorithm talks to. Notifies of
transports come with the transports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hccl_py.enums import Buffer
from hccl_py.values import RankInt

Pattern = str | Callable[[int, int], Iterable[int]]
"""`mesh`, `ring`, `nhr` or `rhd`, or a function of (index, size) that yields the peers' indices."""


@dataclass(frozen=True)
class PlaneRequest:
    """Transports on one plane.

    `level` is one of `hccl_py.topology.PLANES`, such as `flat`, `level0` or `ring1`; two requests
    for one plane may not reach the same peer, and `back` is all ranks once more. `input_mem`
    and `output_mem` are the two memories that each end exposes, by default CCL_In and CCL_Out in
    op-base mode and user memory in graph mode. `extra_notifies` come on top of the transport's own
    Ack, DataSignal and DataAck. `barrier` asks for transports between the plane's first member and
    all others, besides those of the pattern, each with one more notify, for `Plane.barrier`. `rdma`
    asks for RDMA where SDMA joins the ranks, too; UB takes its place on an Ascend 950, which has
    no RDMA.
    """

    level: str
    pattern: Pattern
    input_mem: Buffer | None = None
    output_mem: Buffer | None = None
    extra_notifies: int = 0
    barrier: bool = False
    rdma: bool = False


@dataclass(frozen=True)
class ResourceRequest:
    """The resources that one rank asks for.

    `notifies` defaults to HCCL's two per sub stream (main wakes it, it reports back). `max_count`
    is how many elements of the op's count one round can take; None means that one round takes
    everything, and so does graph mode, which works in user memory. `first_rounds` says it of each
    of the first rounds, where they take other numbers; all ranks say the same. All of these rounds
    take place, so one may take nothing.
    """

    planes: tuple[PlaneRequest, ...] = ()
    sub_streams: int = 0
    notifies: int | None = None
    scratch_bytes: int = 0
    max_count: int | None = None
    first_rounds: tuple[int, ...] = ()

    @property
    def notify_count(self) -> int:
        """Notifies between the streams of this rank."""
        return 2 * self.sub_streams if self.notifies is None else self.notifies


@dataclass(frozen=True)
class ChannelRequest:
    """A channel to a peer, which may be another one for every rank.

    The k-th channel that rank a asks for to rank b on a layer meets the k-th of b to a. Layer 0
    joins the ranks of a server, layer 1 all ranks where there are several servers; by default it is
    0 inside a server and 1 between servers. `notifies` are numbered from 0, each at both ends. The
    HCCL buffer can always be reached over a channel; `memory` names user memory that the peer may
    reach, too: Buffer.USER_IN, Buffer.USER_OUT.
    """

    peer: RankInt
    notifies: int = 1
    layer: int | None = None
    memory: tuple[Buffer, ...] = ()


@dataclass(frozen=True)
class ChannelResources:
    """The resources that one rank asks for, in place of a `ResourceRequest`, to record on threads
    and channels as in HCCL's C++ programming API.

    `threads` has the notifies of every thread, main first: `(3, 1, 1, 1)` is a main thread with
    three notifies and three workers with one each. `max_count` is as in `ResourceRequest`, in
    graph mode, too: which memory peers reach is stated here and depends on no mode.
    """

    channels: tuple[ChannelRequest, ...] = ()
    threads: tuple[int, ...] = (0,)
    max_count: int | None = None
    first_rounds: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResourceResponse:
    """The resources that a platform holds for a tag, per local rank; reused by every call with that
    tag.
    """

    tag: str
    sub_streams: tuple[int, ...]
    notifies: tuple[int, ...]
    transports: tuple[int, ...]
    scratch_bytes: tuple[int, ...]
