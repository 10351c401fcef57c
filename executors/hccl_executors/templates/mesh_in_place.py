"""Mesh in place: chunks lie at the same place in every rank's exported memory, and arrive there.

    all-gather:  everyone takes every peer's chunk at once
    scatter:     the root offers everybody their chunk at once
    gather:      the root takes everybody's chunk at once

Reduce-scatter has a file of its own, mesh_reduce.py. A broadcast is a scatter and an all-gather, a
reduce is a reduce-scatter and a gather, an all-reduce a reduce-scatter and an all-gather: see
two_levels.py, where another algorithm may come in between.

p - 1 streams: as many subs as were requested, p - 2 at least, and main for the last peer then. Over
links of any kind. Cost for p ranks and n bytes: α + nβ/p each; β is per link, links are parallel.
Source: HCCL's public documents.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hccl_py.orchestration import Chunks, Link, Plane, Rank, Stream, exchange
from hccl_py.values import RankInt

__all__ = [
    "mesh_all_gather_in_place",
    "mesh_gather",
    "mesh_scatter",
    "mesh_streams",
    "mesh_subs",
]


@contextmanager
def mesh_streams(rank: Rank[Any, Any], plane: Plane) -> Iterator[list[Stream]]:
    """Wake a stream for every peer; wait for all at the end."""
    peers = int(plane.size) - 1
    with rank.fork(max(peers - 1, min(peers, len(rank.subs)))) as subs:
        yield [*subs, rank.main][:peers]


@contextmanager
def mesh_subs(rank: Rank[Any, Any], plane: Plane) -> Iterator[list[tuple[Stream, RankInt, Link]]]:
    """The same; yield (stream, index, link) of each peer."""
    with mesh_streams(rank, plane) as streams:
        subs = zip(streams, plane.others(), strict=True)
        yield [(stream, index, link) for stream, (index, link) in subs]


def mesh_all_gather_in_place(rank: Rank[Any, Any], plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    with rank.main.phase("all-gather"), mesh_subs(rank, plane) as subs:
        for stream, peer, link in subs:
            exchange(stream, link, link, send=chunks[plane.id], recv=chunks[peer])


def mesh_scatter(rank: Rank[Any, Any], plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r."""
    with rank.main.phase("scatter"):
        if plane.id == root:
            with mesh_subs(rank, plane) as subs:
                for stream, peer, link in subs:
                    exchange(stream, to=link, send=chunks[peer])
        else:
            exchange(rank.main, frm=plane[root], recv=chunks[plane.id])


def mesh_gather(rank: Rank[Any, Any], plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of rank r in chunk r of the root."""
    with rank.main.phase("gather"):
        if plane.id == root:
            with mesh_subs(rank, plane) as subs:
                for stream, peer, link in subs:
                    exchange(stream, frm=link, recv=chunks[peer])
        else:
            exchange(rank.main, to=plane[root], send=chunks[plane.id])
