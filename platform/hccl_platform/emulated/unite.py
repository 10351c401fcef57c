"""Components of memory that moves tie together: the union-find of the tiled path (see tiling.py).

The ends of all moves cut memory into *segments*. A move ties the segments that it reads to the
segments that it writes, and fixes how far apart their coordinates are: byte k of its source and
byte k of its destination get the same coordinate. So this is a union-find with offsets: a segment
stores its parent and the shift between its coordinates and the parent's.

A byte at address x of a segment with total shift t to its root has the coordinate x + t. Segments
of one root are a *component*. Coordinates of two components have nothing to do with each other.
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
"""Rows of ties, with one column per segment: parent, shift to it, group that the tie is of, number
of the component (of a root, once its group is complete).
"""

_STEPS_PER_PIECE = 20
"""Loop steps of the union-find per piece, roughly: decides whether to compile."""


def unite(
    dst: IntArray, src: IntArray, size: IntArray, alone: Bools
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut moves into pieces, each inside one segment at either side, and give every piece a
    component and a coordinate in it.

    `dst` and `src` are addresses. A move that contradicts the ties so far ends the group: in the
    next group nothing is tied yet. So does a move that is `alone`; it is cut into no pieces and has
    a group of its own.

    Returns one row per piece, in the order of moves; one row per component, in the order of
    groups: lowest and highest coordinate, group; and the group of each move that is alone, else -1.
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
    """Tie move after move. Cost: nearly linear in the pieces, as paths are shortened.

        cuts[k]                   address where segment k begins; it ends at cuts[k + 1]
        dst_at[move], src_at      the segment in which a move's destination and source begin
        room                      most pieces that there can be
        ties, pieces, components  see the columns above; components: low, high, group
        groups[move]              the group of a move that is alone

    Pieces begun .. count - 1 belong to the current group; `named` components have a number.
    """
    ties = np.full((4, len(cuts)), -1, np.int64)
    pieces = np.empty((room, 5), np.int64)
    components = np.empty((room, 3), np.int64)
    groups = np.full(len(size), -1, np.int64)
    begun, count, group, named, move = 0, 0, 0, 0, 0
    # Invariant: all moves before `move` have their pieces, those of earlier groups with component
    # and coordinate; ties of earlier groups count as absent, since their _BORN is another group.
    while move < len(size):
        end = -1
        if not alone[move]:
            end = _tie(move, dst, src, size, cuts, dst_at, src_at, ties, pieces, count, group)
        if end >= 0:
            count = end
            move += 1
            continue
        # A contradiction, or a move alone: the group is complete. A contradicting move is tried
        # again in the new group, where it succeeds unless it overlaps itself, which is `alone`.
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
    """Tie the segments of a move; return the new number of pieces, or -1 for a contradiction.

    `a` and `b` are the segments of destination and source at byte `done` of the move; `top` and
    `low` their roots, `up` and `down` the shifts to these. After a contradiction the pieces from
    `count` on are written again, and the ties made so far stay: they belong to the old group.
    """
    a, b, done = dst_at[move], src_at[move], 0
    delta = src[move] - dst[move]
    while done < size[move]:
        # The piece ends where the move does, or the first of both segments.
        end = min(size[move], cuts[a + 1] - dst[move], cuts[b + 1] - src[move])
        for segment in (a, b):
            if ties[_BORN, segment] != group:
                ties[_PARENT, segment] = segment
                ties[_SHIFT, segment] = 0
                ties[_BORN, segment] = group
                ties[_LABEL, segment] = -1
        top, up = _find(ties, a)
        low, down = _find(ties, b)
        # Equal coordinates of both sides: dst + up = src + down + shift, and src = dst + delta.
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
    """Number the components of a complete group and compute the coordinates of its pieces begun ..
    count - 1; return the number of components so far.
    """
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
    """Return a segment's root and the total shift to it; let all segments on the path point to the
    root.
    """
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
