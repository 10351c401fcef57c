"""Transfers of a band as stars, and the rows they are drawn in.

A star has one rank in the middle and those that it sends to, or receives from, around it: a rank
that sends to all others is one star instead of many arrows. Stars that do not overlap share a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from hccl_py.trace.pictures.flow import PictureMove


class StarPicture(NamedTuple):
    """Transfers of one kind that all begin, or all end (`gathers`), at `centre`."""

    centre: int
    gathers: bool
    moves: tuple[PictureMove, ...]

    @property
    def leaves(self) -> list[int]:
        """The ranks at the other ends, in order."""
        return sorted(move.source if self.gathers else move.target for move in self.moves)

    @property
    def sides(self) -> dict[int, list[int]]:
        """The leaves to the right of the centre (1) and to the left (-1), where there are any."""
        sides = {
            1: [rank for rank in self.leaves if rank > self.centre],
            -1: [rank for rank in self.leaves if rank < self.centre],
        }
        return {way: ranks for way, ranks in sides.items() if ranks}

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last rank that it touches."""
        ranks = [self.centre, *self.leaves]
        return min(ranks), max(ranks)

    @property
    def is_uniform(self) -> bool:
        """True if the same parts travel on all rays."""
        return len({move.said for move in self.moves}) == 1


def stars_of(moves: Sequence[PictureMove]) -> list[StarPicture]:
    """Return the fewest stars, by sender or by receiver; those with the fewest different rays."""
    by_sender, by_receiver = _stars(moves, gathers=False), _stars(moves, gathers=True)
    return min(by_sender, by_receiver, key=lambda stars: (len(stars), _mixed(stars)))


def rows_of(stars: Sequence[StarPicture]) -> list[list[StarPicture]]:
    """Put stars in rows, short ones first; in a row they may touch at a rank."""
    rows: list[list[StarPicture]] = []
    for star in sorted(stars, key=lambda s: (s.span[1] - s.span[0], s.span)):
        free = (row for row in rows if all(_apart(star, other) for other in row))
        row = next(free, None)
        if row is None:
            rows.append(row := [])
        row.append(star)
    return rows


def _stars(moves: Sequence[PictureMove], *, gathers: bool) -> list[StarPicture]:
    grouped: dict[tuple[int, bool, bool], list[PictureMove]] = defaultdict(list)
    for move in moves:
        centre = move.target if gathers else move.source
        grouped[centre, move.rdma, move.reduces].append(move)
    return [StarPicture(key[0], gathers, tuple(grouped[key])) for key in sorted(grouped)]


def _mixed(stars: Sequence[StarPicture]) -> int:
    return sum(not star.is_uniform for star in stars)


def _apart(one: StarPicture, other: StarPicture) -> bool:
    return one.span[1] <= other.span[0] or other.span[1] <= one.span[0]
