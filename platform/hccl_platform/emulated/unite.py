"""Which memory belongs together: the union-find behind the tiled path (see tiling.py).

Addresses between two neighbouring ends of moves are a segment. A move ties the segments that it
reads to those that it writes, and fixes how far apart their coordinates are: byte k of its source
and byte k of its destination get the same one. Every segment knows its coordinates' distance from
those of its parent.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.program.kernels import kernel_calling
from hccl_py.values import IntArray

Bools: TypeAlias = npt.NDArray[np.bool_]

MOVE, START, SIZE, COMPONENT, COORDINATE = 0, 1, 2, 3, 4
"""Columns of pieces; START counts from the beginning of the move."""

_PARENT, _SHIFT, _BORN, _LABEL = 0, 1, 2, 3

_STEPS_PER_PIECE = 20


def unite(
    dst: IntArray, src: IntArray, size: IntArray, alone: Bools
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut moves into pieces and give each a component, and a coordinate in it.

    A move that contradicts what is tied already ends the group: in the next one nothing is tied
    yet. So does a move that is `alone`; it is cut into no pieces and has a group of its own.

    Returns one row per piece, in the order of moves; one row per component, in the order of
    groups: lowest and highest coordinate, group; and the group of each move that is alone.
    """
    cuts = np.unique(np.concatenate([dst, dst + size, src, src + size]))
    dst_at, src_at = np.searchsorted(cuts, dst), np.searchsorted(cuts, src)
    ends = np.searchsorted(cuts, dst + size) + np.searchsorted(cuts, src + size)
    room = int((ends - dst_at - src_at).sum())
    walk = _unite.sized(room * _STEPS_PER_PIECE)
    return walk(dst, src, size, alone, cuts, dst_at, src_at, room)


@kernel_calling(lambda: (_tie, _settle, _find))
def _unite(
    dst: IntArray,
    src: IntArray,
    size: IntArray,
    alone: Bools,
    cuts: IntArray,
    dst_at: IntArray,
    src_at: IntArray,
    room: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Tie move after move; `dst_at` and `src_at` are the segments where moves begin."""
    ties = np.full((4, len(cuts)), -1, np.int64)
    pieces = np.empty((room, 5), np.int64)
    components = np.empty((room, 3), np.int64)
    groups = np.full(len(size), -1, np.int64)
    begun, count, group, named, move = 0, 0, 0, 0, 0
    while move < len(size):
        end = -1
        if not alone[move]:
            end = _tie(move, dst, src, size, cuts, dst_at, src_at, ties, pieces, count, group)
        if end >= 0:
            count = end
            move += 1
            continue
        named = _settle(dst, ties, pieces, begun, count, components, named, group)
        begun = count
        group += 1
        if alone[move]:
            groups[move] = group
            group += 1
            move += 1
    named = _settle(dst, ties, pieces, begun, count, components, named, group)
    return pieces[:count], components[:named], groups


def _tie(
    move: int,
    dst: IntArray,
    src: IntArray,
    size: IntArray,
    cuts: IntArray,
    dst_at: IntArray,
    src_at: IntArray,
    ties: IntArray,
    pieces: IntArray,
    count: int,
    group: int,
) -> int:
    """Tie the segments of a move; return the new number of pieces, or -1 for a contradiction."""
    a, b, done = dst_at[move], src_at[move], 0
    delta = src[move] - dst[move]
    while done < size[move]:
        end = min(size[move], cuts[a + 1] - dst[move], cuts[b + 1] - src[move])
        for segment in (a, b):
            if ties[_BORN, segment] != group:
                ties[_PARENT, segment] = segment
                ties[_SHIFT, segment] = 0
                ties[_BORN, segment] = group
                ties[_LABEL, segment] = -1
        top, up = _find(ties, a)
        low, down = _find(ties, b)
        if top != low:
            ties[_PARENT, low] = top
            ties[_SHIFT, low] = up - delta - down
        elif up - delta != down:
            return -1
        pieces[count, MOVE] = move
        pieces[count, START] = done
        pieces[count, SIZE] = end - done
        pieces[count, COMPONENT] = a  # the segment, until the group is complete
        count += 1
        done = end
        a += cuts[a + 1] <= dst[move] + done
        b += cuts[b + 1] <= src[move] + done
    return count


def _settle(
    dst: IntArray,
    ties: IntArray,
    pieces: IntArray,
    begun: int,
    count: int,
    components: IntArray,
    named: int,
    group: int,
) -> int:
    """Number a complete group's components, compute coordinates; return how many are numbered."""
    for piece in range(begun, count):
        top, up = _find(ties, pieces[piece, COMPONENT])
        low = dst[pieces[piece, MOVE]] + pieces[piece, START] + up
        high = low + pieces[piece, SIZE]
        label = ties[_LABEL, top]
        if label < 0:
            label = named
            ties[_LABEL, top] = label
            components[label] = low, high, group
            named += 1
        components[label, 0] = min(components[label, 0], low)
        components[label, 1] = max(components[label, 1], high)
        pieces[piece, COMPONENT] = label
        pieces[piece, COORDINATE] = low
    return named


def _find(ties: IntArray, segment: int) -> tuple[int, int]:
    """Return a segment's root and its coordinates' distance from the root's; shorten the path."""
    root, total = segment, 0
    while ties[_PARENT, root] != root:
        total += ties[_SHIFT, root]
        root = ties[_PARENT, root]
    rest = total
    while ties[_PARENT, segment] != root:
        above, shift = ties[_PARENT, segment], ties[_SHIFT, segment]
        ties[_PARENT, segment] = root
        ties[_SHIFT, segment] = rest
        rest -= shift
        segment = above
    return root, total
