"""The planes between servers and between superpods: one algorithm on each, and one after the other.

What devices of the same index hold goes through all planes outside of the server, from inside to
outside and back:

    all_reduce   reduce-scatter on all planes but the last, all-reduce there, all-gather
    broadcast    scatter from the root, broadcast on the last plane, all-gather
    reduce       reduce-scatter, reduce on the last plane, gather in the root's superpod

So all ranks share what crosses the last plane, the slowest. With one plane it is the op itself. As
in HCCL, all superpods scatter from the root's index, though only what the root's does is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hccl_executors.levels import LEVELS
from hccl_executors.staging import PlaneLinks
from hccl_py.call.ops import OPS
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.plane import PlaneView
from hccl_py.plugins.executor import AnyRank, RankView

STEPS = {
    "all_reduce": ("reduce_scatter", "all_gather"),
    "broadcast": ("scatter", "all_gather"),
    "reduce": ("reduce_scatter", "gather"),
}
"""What an op is on the planes before the last; other ops are themselves everywhere."""


class OuterLevel(NamedTuple):
    """A plane, the stream that works on it, and the algorithm there in HCCL_ALGO's words. NHR's
    ranks may meet after every step of a reduce-scatter over RDMA: on A3 they do.
    """

    stream: Stream
    plane: Plane
    word: str
    meeting: bool = False

    def run(self, op: str, work: Region | Chunks, root: int = 0) -> None:
        """Run an op on the plane; `root` is a rank."""
        index = (self.plane.index_of(root),) if OPS[op].rooted else ()
        level = LEVELS[op][self.word]
        level.run(self.stream, self.plane, work, *index, meeting=self.meeting)


def all_servers(rank: RankView | AnyRank) -> str:
    """Return the plane that joins the servers, of all superpods."""
    return "level1" if rank.level1.size == rank.level12.size else "level12"


def all_reduce(outer_levels: Sequence[OuterLevel], work: Region) -> None:
    """Leave in `work` the reduction of all ranks' on all planes."""
    if len(outer_levels) < 2:
        for outer in outer_levels:
            outer.run("all_reduce", work)
        return
    first, *others = outer_levels
    chunks = work.split(first.plane.size)
    first.run("reduce_scatter", chunks)
    all_reduce(others, chunks[first.plane.id])
    first.run("all_gather", chunks)


def broadcast(outer_levels: Sequence[OuterLevel], work: Region, root: int) -> None:
    """Leave in `work` what the rank has there that shares all planes with this one and is in the
    root's server.
    """
    if len(outer_levels) < 2:
        for outer in outer_levels:
            outer.run("broadcast", work, root)
        return
    first, *others = outer_levels
    chunks = work.split(first.plane.size)
    first.run("scatter", chunks, root)
    broadcast(others, chunks[first.plane.id], root)
    first.run("all_gather", chunks)


def reduce(outer_levels: Sequence[OuterLevel], work: Region, root: int) -> None:
    """Leave the reduction of all ranks' `work` on all planes in that of the root's server."""
    if len(outer_levels) < 2:
        for outer in outer_levels:
            outer.run("reduce", work, root)
        return
    first, *others = outer_levels
    chunks = work.split(first.plane.size)
    first.run("reduce_scatter", chunks)
    reduce(others, chunks[first.plane.id], root)
    if holds_root([outer.plane for outer in others], root):
        first.run("gather", chunks, root)


def holds_root(planes: Sequence[Plane], root: int) -> bool:
    """True if a rank has the root's index on all of these planes."""
    return all(bool(plane.id == plane.index_of(root)) for plane in planes)


def links(op: str, planes: Sequence[tuple[PlaneView, str]], root: int) -> list[PlaneLinks]:
    """Return all links that an op needs, given (plane, word) from inside to outside."""
    found: list[PlaneLinks] = []
    for number, (plane, word) in enumerate(planes):
        steps = STEPS.get(op, (op,)) if number < len(planes) - 1 else (op,)
        for step in steps:
            for asked in LEVELS[step][word].all_links(plane, plane.index_of(root)):
                if asked not in found:
                    found.append(asked)
    return found
