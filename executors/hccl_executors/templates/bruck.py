"""Bruck by fours: three neighbours at once, four times the blocks after every step.

Rank r gathers blocks r, r + 1, ... (modulo p). With w of them, it takes up to w from each of the
ranks w, 2w and 3w to its right, on a stream each.

    p = 8, rank 0    has 0 │ takes 1 of 1, 2 of 2, 3 of 3 │ takes 4 5 6 7 of 4

    ceil(log4 p) steps, ceil(log4 p)α + (3/4)nβ at least (the last step)

A rank's blocks may lie anywhere, as long as those of rank r lie where those of any other do: block
r + i at place i of a staging buffer, or all at their own places. Source: Bruck et al., "Efficient
algorithms for all-to-all communications in multiport message-passing systems", 1997.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hccl_py.orchestration import Plane, Rank, Region, Stream, exchange

__all__ = ["PORTS", "bruck_distances", "bruck_gather", "bruck_peers", "bruck_take"]

PORTS = 3
"""Peers that a rank takes from at once."""

Places = Callable[[int, int], Sequence[Region]]
"""places(first, n): where a rank has n blocks, from block r + first."""


def bruck_gather(
    rank: Rank[Any, Any], plane: Plane, total: int, places: Places, source: Region | None
) -> None:
    """Leave blocks r .. r + total - 1 in their places; rank r starts with the first. `source` is
    where a peer's blocks lie side by side from its own one on, if they do.
    """
    widths = _widths(total)
    for step in rank.main.steps("gather", len(widths)):
        parts = _parts(widths[step], total)
        with rank.fork(len(parts)) as subs:
            for sub, (at, n) in zip(subs, parts, strict=True):
                bruck_take(sub, plane, at, places(0, n), places(at, n), source)


def bruck_take(
    stream: Stream,
    plane: Plane,
    distance: int,
    mine: Sequence[Region],
    theirs: Sequence[Region],
    source: Region | None,
) -> None:
    """Take `theirs` from the rank so far to the right, while the one to the left takes `mine`."""
    exchange(
        stream,
        plane[(plane.id - distance) % plane.size],
        plane[(plane.id + distance) % plane.size],
        send=mine,
        recv=theirs,
        source=source,
    )


def bruck_distances(total: int) -> list[int]:
    """Return how far to the right the ranks are that one takes from to gather `total` blocks."""
    return [at for width in _widths(total) for at, _ in _parts(width, total)]


def bruck_peers(distances: Iterable[int]) -> Callable[[int, int], Iterable[int]]:
    """Return the pattern of links to ranks at these distances, to the right and to the left."""

    def peers(index: int, size: int) -> Iterable[int]:
        ends = {(index + sign * at) % size for at in distances for sign in (1, -1)}
        return sorted(ends - {index})

    return peers


def _widths(total: int) -> list[int]:
    """Return the blocks that a rank has before every step."""
    widths = [1]
    while widths[-1] < total:
        widths.append(widths[-1] * (PORTS + 1))
    return widths[:-1]


def _parts(width: int, total: int) -> list[tuple[int, int]]:
    """Return (distance, blocks) of what a rank takes in a step."""
    starts = range(width, min((PORTS + 1) * width, total), width)
    return [(at, min(width, total - at)) for at in starts]
