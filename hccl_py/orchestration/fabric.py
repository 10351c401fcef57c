"""From requests to transports: the ends that exist, and the look-up of links and planes.

A transport is identified by (plane, rank, peer). Two planes that reach the same peer have a
transport each: notifies are never shared, so planes may work at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hccl_py.enums import Buffer, LinkKind, Mode
from hccl_py.errors import NotSupportedError, OrchestrationError, ParameterError, did_you_mean
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.plugins.resources import ChannelResources, PlaneRequest, ResourceRequest
from hccl_py.program.program import Declared
from hccl_py.program.transports import OWN_NOTIFIES, LocalNotifies, Transports
from hccl_py.topology.planes import PLANES
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, count_up

Request = TypeVar("Request", bound=ResourceRequest | ChannelResources)

MAX_ENDS = 1 << 24
"""Transport ends that one op may have: a full mesh of 4 096 ranks."""


@dataclass(frozen=True, eq=False)
class RankRequest(Generic[Request]):
    """A request and the ranks that made it."""

    ranks: IntArray
    request: Request


class Fabric:
    """Everything that the ranks of one op share while they record.

    By transport end, `has_barrier` marks those with a notify for barriers, and `extra` is the
    number of notifies beside that and the transport's own.
    """

    def __init__(
        self,
        topology: Topology,
        transports: Transports,
        keys: IntArray,
        requests: Sequence[RankRequest[ResourceRequest]],
        has_barrier: npt.NDArray[np.bool_],
    ) -> None:
        self.topology = topology
        self.transports = transports
        self.requests = tuple(requests)
        self.has_barrier = has_barrier
        self.extra: npt.NDArray[np.int16] = transports.notifies - OWN_NOTIFIES - has_barrier
        self._keys = keys
        self.sub_streams = max(r.request.sub_streams for r in requests)
        extra = max(r.request.notify_count - 2 * r.request.sub_streams for r in requests)
        self.local_notifies = LocalNotifies.of(
            self.sub_streams, 2 * self.sub_streams + max(extra, 0)
        )

    def ends(
        self, plane: str, ranks: npt.NDArray[np.int64] | int, peers: npt.NDArray[np.int64] | int
    ) -> IntArray:
        """Return each rank's transport end towards its peer; refuse where none was requested."""
        keys = _key(self.topology.size, PLANES.index(plane), ranks, peers)
        at: IntArray = np.searchsorted(self._keys, keys)
        found = self._keys.take(at, mode="clip") if len(self._keys) else -1
        missing = np.asarray(found != keys)
        if missing.any():
            lane = int(np.argmax(missing))
            key = int(np.atleast_1d(keys)[lane]) % self.topology.size**2
            hint = "Request it in resources() with a PlaneRequest whose pattern reaches the peer."
            rank, peer = divmod(key, self.topology.size)
            raise orchestration_error(
                f"Rank {rank} has no transport to rank {peer} on plane {plane}",
                "No rank has one to itself: copies are local." if rank == peer else hint,
                finding="UNDECLARED_CHANNEL",
            )
        return at

    def request_of(self, rank: int) -> ResourceRequest:
        """Return a rank's request."""
        return next(r.request for r in self.requests if rank in r.ranks)

    def declared(self) -> Declared:
        """Return the requests of all ranks; a recording states everything."""
        ranks = self.topology.size
        subs, notifies, scratch = (
            self._of_each(n) for n in ("sub_streams", "notify_count", "scratch_bytes")
        )
        local = self.local_notifies.counts(subs, notifies)
        return Declared(subs, notifies, scratch, local, np.ones((ranks, 3), bool))

    def memory(self, user_in: IntArray, user_out: IntArray, ccl_bytes: int) -> IntArray:
        """Return the bytes of every rank's memories, [ranks, memories]."""
        ccl = np.full(len(user_in), ccl_bytes, np.int64)
        return np.stack([user_in, user_out, ccl, ccl, self._of_each("scratch_bytes")], axis=1)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of a rank's memories."""
        return tuple(buffer.spelling for buffer in Buffer)

    def _of_each(self, field: str) -> IntArray:
        values = np.zeros(self.topology.size, np.int64)
        for group in self.requests:
            values[group.ranks] = getattr(group.request, field)
        return values


def build_fabric(
    topology: Topology, mode: Mode, requests: Sequence[RankRequest[ResourceRequest]]
) -> Fabric:
    """Create the transports that the ranks requested; both ends must have asked for them alike."""
    ends = list(_requested_ends(topology, mode, requests))
    if not ends:
        none = np.zeros(0, np.int64)
        return Fabric(topology, Transports.none(PLANES), none, requests, none.astype(bool))
    keys, wanted = np.concatenate([e.keys for e in ends]), np.concatenate([e.wanted for e in ends])
    unique, first, at = np.unique(keys, return_index=True, return_inverse=True)
    twice = (wanted != wanted[first][at.reshape(-1)]).any(1)
    if twice.any():
        raise _requested_twice(topology, int(keys[twice][0]))
    transports = _transports(topology, unique, wanted[first])
    return Fabric(topology, transports, unique, requests, wanted[first, 3].astype(bool))


def _requested_twice(topology: Topology, key: int) -> OrchestrationError:
    """Return the error of a transport end that two plane requests of a rank ask for."""
    level, pair = divmod(key, topology.size**2)
    rank, peer = divmod(pair, topology.size)
    plane = PLANES[level]
    others = [name for name in PLANES if name != plane and _is_like(topology, name, plane)]
    other = f"another plane with the same members ({', '.join(others)})" if others else ""
    return OrchestrationError(
        f"Two requests of rank {rank} for plane {plane} both reach rank {peer}: they would share "
        "one transport and its notifies.",
        "Make them one PlaneRequest, with the memories and extra notifies that everything on it "
        "needs" + (f"; for transports of their own request {other}." if other else "."),
        finding="RESOURCE_MISMATCH",
        ranks=(rank, peer),
    )


def _is_like(topology: Topology, name: str, plane: str) -> bool:
    """True if a plane has the members of another one, in the same order."""
    try:
        found = topology.plane(name)
    except ParameterError:  # a ring that servers of the product do not have
        return False
    pairs = zip(found, topology.plane(plane), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


class _RequestedEnds(NamedTuple):
    """Requested transport ends: their keys, and rows [ends, 6]: the two memories that an end
    exposes, its notifies, 1 if one of these is for barriers, 1 if it is RDMA by request, and the
    number of the plane request among those of its rank.
    """

    keys: IntArray
    wanted: npt.NDArray[np.int16]


def _requested_ends(
    topology: Topology, mode: Mode, requests: Sequence[RankRequest[ResourceRequest]]
) -> Iterator[_RequestedEnds]:
    """Yield the requested ends; an end that is requested several times comes several times."""
    total = 0
    has_ub = topology.product.has_ub  # and no RDMA that could be asked for
    for group in requests:
        for number, plane in enumerate(group.request.planes):
            pair = _memories(plane, mode)
            for ranks, peers in _peers(topology, plane, group.ranks):
                total += len(ranks)
                if total > MAX_ENDS:
                    raise NotSupportedError(
                        f"{plane.pattern} links on plane {plane.level} of {topology.size} ranks "
                        f"are more than {MAX_ENDS} transport ends.",
                        "Use fewer ranks, or an algorithm that talks to fewer peers.",
                    )
                wanted = np.zeros((len(ranks), 6), np.int16)
                wanted[:, :2] = pair
                wanted[:, 3] = plane.barrier and _meets_first(topology, plane, ranks, peers)
                wanted[:, 2] = OWN_NOTIFIES + plane.extra_notifies + wanted[:, 3]
                is_rdma = not has_ub and (plane.rdma or _is_rdma(topology, plane.level))
                wanted[:, 4:] = is_rdma, number
                keys = _key(topology.size, PLANES.index(plane.level), ranks, peers)
                yield _RequestedEnds(keys, wanted)


def _is_rdma(topology: Topology, level: str) -> bool:
    """True for planes between modules of which RDMA joins some: it then joins all of their members
    in HCCL (`impl/topo_matcher.cc:147-150`, SetIsUsedRdma). Only AHC has planes with members in
    several superpods, and takes each pair's own links.
    """
    if topology.joins_servers or level not in ("level1", "level12"):
        return False
    members = topology.members(level)
    groups = topology.sdma_groups[np.where(members >= 0, members, members[:, :1])]
    return bool((groups != groups[:, :1]).any())


def _transports(topology: Topology, keys: IntArray, wanted: npt.NDArray[np.int16]) -> Transports:
    n = topology.size
    plane, pair = np.divmod(keys, n * n)
    rank, peer = np.divmod(pair, n)
    back = _key(n, plane, peer, rank)
    far = np.minimum(np.searchsorted(keys, back), len(keys) - 1)
    lonely = keys[far] != back
    differs = lonely | (wanted[:, (2, 4)] != wanted[far][:, (2, 4)]).any(1)
    if differs.any():
        end = int(np.argmax(differs))
        raise OrchestrationError(
            f"Rank {rank[end]} requests a transport to rank {peer[end]} "
            f"on plane {PLANES[plane[end]]}, but rank {peer[end]} does not request the same one.",
            "Both ends of a transport must be requested alike, extra notifies included.",
            finding="RESOURCE_MISMATCH",
            ranks=(int(rank[end]), int(peer[end])),
        )
    by_place = topology.link_kinds(rank, peer)
    kind = np.where(wanted[:, 4], np.int8(LinkKind.RDMA), by_place).astype(np.int8)
    exports = np.ascontiguousarray(wanted[:, :2], np.int8)
    return Transports(PLANES, rank, peer, plane, kind, far, exports, wanted[:, 2].copy())


def _key(n: int, plane: Any, ranks: Any, peers: Any) -> Any:
    return (plane * n + ranks) * n + peers


def _memories(plane: PlaneRequest, mode: Mode) -> tuple[Buffer, Buffer]:
    op_base = mode is Mode.OP_BASE
    first = Buffer.CCL_IN if op_base else Buffer.USER_IN
    second = Buffer.CCL_OUT if op_base else Buffer.USER_OUT
    return (
        first if plane.input_mem is None else plane.input_mem,
        second if plane.output_mem is None else plane.output_mem,
    )


def _peers(
    topology: Topology, plane: PlaneRequest, ranks: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (ranks, their peers) so that every requested end appears; sizes of planes may differ by
    rank.
    """
    if plane.level not in PLANES:
        raise OrchestrationError(
            f"Plane {plane.level!r} does not exist.", did_you_mean(plane.level, PLANES)
        )
    number, index, size = topology.plane(plane.level)
    members = topology.members(plane.level)
    for n in np.unique(size[ranks]).tolist():
        if n == 1:
            continue
        mine = ranks[size[ranks] == n]
        barrier = _with_first(index[mine], n) if plane.barrier else ()
        for who, there in chain(_pattern(plane, index[mine], n), barrier):
            yield mine[who], members[number[mine[who]], there]


def _with_first(index: IntArray, n: int) -> Iterator[tuple[npt.NDArray[np.bool_], IntArray]]:
    """Yield (members, index of the peer of each) for links of the first member and all others."""
    others = index > 0
    yield others, np.zeros(int(others.sum()), np.int64)
    if not others.all():
        for other in range(1, n):
            yield ~others, np.full(int((~others).sum()), other)


def _meets_first(
    topology: Topology, plane: PlaneRequest, ranks: IntArray, peers: IntArray
) -> npt.NDArray[np.bool_]:
    """Mark the transport ends that belong or lead to the first member of their plane."""
    _, index, _ = topology.plane(plane.level)
    first: npt.NDArray[np.bool_] = (index[ranks] == 0) | (index[peers] == 0)
    return first


def _pattern(
    plane: PlaneRequest, index: IntArray, n: int
) -> Iterator[tuple[npt.NDArray[np.bool_] | IntArray, IntArray]]:
    """Yield (members, index of the peer of each): a mask, or their places, where they come once
    for every peer.
    """
    everyone = np.ones(len(index), bool)
    if callable(plane.pattern):
        yield _named(plane.pattern, index, n)
    elif plane.pattern == "rhd":
        yield from _halving_doubling(index, n)
    elif plane.pattern in _DISTANCES:
        for distance in _DISTANCES[plane.pattern](n):
            yield everyone, (index + distance) % n
    else:
        raise OrchestrationError(
            f"Link pattern {plane.pattern!r} does not exist.",
            did_you_mean(plane.pattern, [*_DISTANCES, "rhd"]),
        )


def _named(
    pattern: Callable[[int, int], Iterable[int]], index: IntArray, n: int
) -> tuple[IntArray, IntArray]:
    """Return members and peers by an author's function, called once for every index."""
    kinds, kind = np.unique(index, return_inverse=True)
    peers = [_custom(pattern, me, n) for me in kinds.tolist()]
    counts = np.array([len(found) for found in peers], np.int64)
    starts, mine = np.cumsum(counts) - counts, counts[kind]
    who = np.repeat(np.arange(len(index)), mine)
    flat = np.array([peer for found in peers for peer in found], np.int64)
    return who, flat[np.repeat(starts[kind], mine) + count_up(mine)]


def _custom(pattern: Callable[[int, int], Iterable[int]], me: int, n: int) -> list[int]:
    """Return the peers of one member by an author's function."""
    try:
        peers = [int(peer) % n for peer in pattern(me, n)]
    except Exception as error:
        raise OrchestrationError(
            f"The link pattern raised {type(error).__name__} for member {me} of {n}: {error}",
            "A pattern takes (index, size) and returns the indices of the peers.",
        ) from error
    if me in peers:
        raise OrchestrationError(
            f"The link pattern links member {me} of {n} to itself.",
            "Leave it out: copies are local.",
        )
    return peers


_DISTANCES: dict[str, Callable[[int], Iterable[int]]] = {
    "mesh": lambda n: range(1, n),
    "ring": lambda n: sorted({1, n - 1}),
    "nhr": lambda n: sorted(
        {d for k in range(n.bit_length()) if 2**k < n for d in (2**k, n - 2**k)}
    ),
}


def _halving_doubling(index: IntArray, n: int) -> Iterator[tuple[npt.NDArray[np.bool_], IntArray]]:
    """Yield the pairs among the first 2(n - b) members, then the hypercube of the block's b."""
    b = 1 << (n.bit_length() - 1)
    pairs = n - b
    paired = index < 2 * pairs
    yield paired, (index ^ 1)[paired]
    in_block = ~paired | (index % 2 == 0)
    block = np.where(paired, index // 2, index - pairs)
    for step in range(b.bit_length() - 1):
        other = block ^ (1 << step)
        yield in_block, np.where(other < pairs, 2 * other, other + pairs)[in_block]
