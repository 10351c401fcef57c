"""Seats: the ranks of one template's communicator, its threads and its channels.

A template of HCCL runs over a list of ranks: all of them, those of a server, or those with the same
place in several servers. It names a rank by its index in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hccl_executors.aicpu.duplex import NOTIFIES
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.channels import Channel, ChannelRank, Thread
from hccl_py.plugins.executor import (
    ChannelRequest,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.topology.rank_graph import RankGraph
from hccl_py.values import IntArray, PerRank, RankInt, values_of

AnyChannelRank: TypeAlias = ChannelRank[Any, Any]
Regions: TypeAlias = Sequence[Region]
Cuts: TypeAlias = Sequence[Chunks]
ALIGN = 128
"""Bytes to which parts of the HCCL buffer are cut (HCCL_MIN_SLICE_ALIGN)."""


class RankGroup(NamedTuple):
    """A list of ranks with the caller among them: its index, the number of ranks, and the rank at
    an index. `layer` is that of its channels, None for the nearest that joins two ranks.
    """

    me: RankInt
    size: int
    rank_at: Callable[[RankInt], RankInt]
    layer: int | None = None


class Ways(NamedTuple):
    """The channels over which two ranks of a mesh exchange at once: their layers, and how many
    quarters of the data go over the first, of two ranks and of more.
    """

    layers: tuple[int | None, ...] = (None,)
    of_two: int = 4
    of_more: int = 4

    def parts(self, n: int, size: RankInt, unit: int) -> list[tuple[RankInt, RankInt]]:
        """Return begin and bytes of each channel's part of some data, in whole elements."""
        if len(self.layers) == 1:
            return [(0, size)]
        first = size // unit * (self.of_two if n == 2 else self.of_more) // 4 * unit
        return [(0, first), (first, size - first)]


DIRECT = Ways()
DETOUR = Ways((0, 1), 1, 2)
"""By the mesh, and by the network of the servers (HCCL: Z axis detour)."""


class Template:
    """The resources of a template over `n` ranks: those of a mesh whose main thread has a thread
    beside it for every other rank, unless a class says otherwise. It runs by `run(seat, ...)`, with
    the memory that its op takes.
    """

    ways: Ways = DIRECT

    def distances(self, n: int) -> Iterable[int]:
        """Return the distances to the ranks that it needs channels to."""
        return others(n)

    def subs(self, n: int) -> int:
        """Return the number of threads beside main, which has a notify for each."""
        return n - 1

    def threads(self, n: int) -> tuple[int, ...]:
        """Return the notifies of its threads, main first."""
        return (self.subs(n), *[1] * self.subs(n))

    def scratch(self, n: int) -> int:
        """Return the multiple of its data that the HCCL buffer holds."""
        return n


class SplitTemplate(Template):
    """A template in a mesh whose ranks exchange over several channels; every channel has a thread,
    main too.
    """

    def __init__(self, ways: Ways = DIRECT) -> None:
        self.ways = ways

    def subs(self, n: int) -> int:
        return max((n - 1) * len(self.ways.layers) - 1, 0)


class Seat(NamedTuple):
    """One rank in a template's run."""

    me: RankInt
    n: int
    threads: Sequence[Thread]
    unit: int
    in_place: bool
    to: Callable[[RankInt, int | None, int], Channel]

    def channel(self, peer: RankInt, layer: int | None = None, number: int = 0) -> Channel:
        """Return the channel to a rank, on a layer and of a number where there are several."""
        return self.to(peer, layer, number)

    @property
    def main(self) -> Thread:
        return self.threads[0]

    def pre_sync(self, index: int = 0, subs: Sequence[Thread] | None = None) -> None:
        """Let main wake other threads, by their notify `index`."""
        pre_sync(self.main, self.threads[1:] if subs is None else subs, index)

    def post_sync(self, first: int = 0, step: int = 1) -> None:
        """Let main wait for the other threads, by its notifies `first`, `first + step`, ..."""
        post_sync(self.main, self.threads[1:], [first + step * i for i in range(self.n_subs)])

    @property
    def n_subs(self) -> int:
        return len(self.threads) - 1


def pre_sync(main: Thread, subs: Sequence[Thread], index: int = 0) -> None:
    """Let a thread wake others."""
    for sub in subs:
        main.post(sub.notifies[index])
        sub.wait(sub.notifies[index])


def post_sync(main: Thread, subs: Sequence[Thread], indices: Sequence[int]) -> None:
    """Let a thread wait for others, each by a notify of its own."""
    for sub, index in zip(subs, indices, strict=True):
        sub.post(main.notifies[index])
        main.wait(main.notifies[index])


def flat(rank: RankView | AnyChannelRank) -> RankGroup:
    """Return all ranks."""
    return RankGroup(rank.id, rank.size, lambda index: index)


def level0(rank: RankView | AnyChannelRank) -> RankGroup:
    """Return the ranks of a server, joined by its mesh; of uneven servers, parts of one size."""
    n = RankGraph.of(rank.topology).divisor
    return RankGroup(rank.id % n, n, lambda index: rank.id // n * n + index, 0)


def level1(rank: RankView | AnyChannelRank) -> RankGroup:
    """Return the ranks with the same place in all servers or their parts, joined by the network of
    the servers.
    """
    n = RankGraph.of(rank.topology).divisor
    return RankGroup(rank.id // n, rank.size // n, lambda index: index * n + rank.id % n, 1)


def server_axes(rank: RankView | AnyChannelRank) -> tuple[RankGroup, RankGroup]:
    """Return the ranks of a server, and those with the same place in all servers."""
    return level0(rank), level1(rank)


def board_axes(rank: RankView | AnyChannelRank) -> tuple[RankGroup, RankGroup]:
    """Return the ranks that a mesh of a server joins, a board, and those with the same place on all
    its boards, which a Clos network joins.
    """
    n = RankGraph.of(rank.topology).mesh
    board = RankGroup(rank.id % n, n, lambda index: rank.id // n * n + index, 0)
    across = RankGroup(rank.id // n, rank.size // n, lambda index: index * n + rank.id % n, 1)
    return board, across


def has_boards(topology: Topology, least: int = 2, widest: int = 64) -> bool | Unsuitable:
    """Return True for a UBX server of so many boards of as many devices each."""
    graph = RankGraph.of(topology)
    boards, rest = divmod(graph.server, graph.mesh)
    return require(
        (graph.shape == "mesh+clos" and graph.levels == 1, "needs a single server, of UBX"),
        (boards >= least and not rest, "needs several boards of as many devices"),
        (graph.mesh <= widest, f"needs boards of at most {widest} devices"),
    )


def is_one_board(topology: Topology) -> bool:
    """Return True for a lone UBX board of 2 to 4 devices."""
    graph = RankGraph.of(topology)
    alone = graph.levels == 1 and graph.mesh == graph.server
    return graph.shape == "mesh+clos" and alone and graph.server <= 4


def flat_over(rank: RankView | AnyChannelRank, *, by_clos: bool = False) -> RankGroup:
    """Return all ranks, joined by the network of the servers where there are several; `by_clos` of
    a UBX server by its Clos network, too.
    """
    topology = rank.topology
    is_far = len(topology.servers) > 1 or (by_clos and topology.product.bus.ubx)
    return flat(rank)._replace(layer=1 if is_far else None)


def requests(group: RankGroup, template: Template) -> tuple[ChannelRequest, ...]:
    """Return the channels that a template asks for."""
    n = group.size
    return tuple(
        ChannelRequest(group.rank_at((group.me + d) % n), NOTIFIES, _layer(group, layer))
        for layer in template.ways.layers
        for d in template.distances(n)
    )


def seat(rank: AnyChannelRank, group: RankGroup, threads: Sequence[Thread], op: OpParam) -> Seat:
    """Return the seat of a rank in a group."""

    def channel(index: RankInt, layer: int | None, number: int) -> Channel:
        return rank.channel(group.rank_at(index), layer=_layer(group, layer), number=number)

    return Seat(group.me, group.size, threads, op.unit, bool(op.in_place), channel)


def _layer(group: RankGroup, layer: int | None) -> int | None:
    return group.layer if layer is None else layer


def slots(region: Region, size: int, n: int, stride: int | None = None) -> Chunks:
    """Return n slots of `size` bytes, side by side from the beginning of a region, or `stride`
    bytes apart.
    """
    starts = (size if stride is None else stride) * np.arange(n)
    return _laid(region, starts, np.full(n, size))


def cut(region: Region, sizes: Sequence[int]) -> Chunks:
    """Cut a region into parts of these bytes."""
    each = np.asarray(sizes, np.int64)
    return _laid(region, np.cumsum(each) - each, each)


def _laid(region: Region, starts: IntArray, sizes: IntArray) -> Chunks:
    """Return chunks from a region's beginning, which may be another one for every rank."""
    if isinstance(region.offset, int):
        return Chunks(region.buffer, (region.offset + starts)[None], sizes[None])
    begins, row = np.unique(values_of(region.offset), return_inverse=True)
    each = np.broadcast_to(sizes, (len(begins), len(sizes)))
    return Chunks(region.buffer, begins[:, None] + starts, each, PerRank.of(row.astype(np.int64)))


def taken(blocks: Chunks, places: Callable[[int], list[int]], row: RankInt) -> Chunks:
    """Return some of the blocks that all ranks have alike: `places(v)` names them where `row` is
    v.
    """
    kinds = np.unique(np.atleast_1d(values_of(row)))
    table = np.array([places(int(kind)) for kind in kinds])
    offsets, sizes = blocks.offsets[0][table], blocks.sizes[0][table]
    at = np.searchsorted(kinds, np.atleast_1d(values_of(row)))
    return Chunks(blocks.buffer, offsets, sizes, PerRank.of(at.astype(np.int64)))


def piece(blocks: Chunks, begin: int, size: int) -> Chunks:
    """Return the same piece of every block."""
    return Chunks(
        blocks.buffer, blocks.offsets + begin, np.full_like(blocks.sizes, size), blocks.row
    )


def of_server(server: int, n0: int) -> list[int]:
    """Return the ranks of a server."""
    return [server * n0 + i for i in range(n0)]


def place_at(region: Region, offset: RankInt, size: RankInt) -> Region:
    """Return `size` bytes of a region's memory, `offset` bytes from its beginning."""
    return Region(region.buffer, region.offset + offset, size)


def copy(thread: Thread, target: Region, source: Region) -> None:
    """Copy where the data does not lie there already."""
    if target.buffer != source.buffer or target.offset != source.offset:
        thread.copy(target, source)


def others(n: int) -> range:
    """Return the distances to all other ranks."""
    return range(1, n)
