"""Planning of the tiled path: an order of a program's moves that suits caches and cores.

Every address that a program touches gets a coordinate such that each move reads and writes the
same coordinates. Ranges of coordinates are then independent: one core runs *all* moves of a range,
in the program's order, while the range is in its cache, and other cores run other ranges without a
lock.

    moves       user_in ──► CCL_In ══► CCL_In of the next rank ──► user_out   (of all rounds)
    component   memory that moves tie together: for a ring, one and the same chunk of every rank
    band        the part of a component to which the same moves apply from end to end
    entry       a move's part in a band
    tile        a part of a band that fits into a cache
    phase       tiles that may run at once, or one move that cannot be tiled

Where coordinates would contradict each other (a chunk is copied to another chunk's place), a new
group of moves begins; groups run one after the other. Nothing is left out and nothing is merged:
every byte of every move is executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hccl_platform.emulated.unite import COMPONENT, COORDINATE, MOVE, SIZE, START, unite
from hccl_platform.lowering.moves import COPY, Moves
from hccl_py.values import IntArray, count_up

_ALIGN = 64


@dataclass(frozen=True)
class TileLimits:
    """Bytes that suit a machine; a factor of 4 hardly changes how fast programs run.

    The memory that a tile touches more than once fits into `cache`; tiles are `least` to `most`
    long. A group that moves less than `alone` is not worth waking other threads; others are cut
    into `shares` per thread.
    """

    cache: int = 1 << 20
    least: int = 4 << 10
    most: int = 256 << 10
    alone: int = 4 << 20
    shares: int = 4


@dataclass(frozen=True)
class TilePhase:
    """Ranges of tiles, which may run in any order, or one move; it ends before the next phase
    begins.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    move: int = -1


@dataclass(frozen=True, eq=False)
class TilePlan:
    """Tables for `run_tiles`, and the phases in which to run them."""

    tiles: IntArray
    first: IntArray
    entries: IntArray
    phases: tuple[TilePhase, ...]


@dataclass(frozen=True, eq=False)
class _Bands:
    """By band: width, group, first entry; by entry: as `run_tiles` takes it, and its addresses."""

    width: IntArray
    group: IntArray
    first: IntArray
    entries: IntArray
    addresses: IntArray

    @property
    def of_entry(self) -> IntArray:
        return np.repeat(np.arange(len(self.width)), np.diff(self.first))


def plan_tiles(
    moves: Moves, origins: IntArray, unit: int, threads: int, limits: TileLimits
) -> TilePlan | None:
    """Plan moves between slots that begin at the addresses `origins`.

    None if a reduction of elements of `unit` bytes would be cut inside of an element.
    """
    dst, src = origins[moves.dst] + moves.dst_offset, origins[moves.src] + moves.src_offset
    overlaps_itself = (dst != src) & (np.abs(dst - src) < moves.size)
    pieces, components, alone = unite(dst, src, moves.size, overlaps_itself)
    bands = _bands(moves, pieces, components, dst, src)
    if _cuts_elements(bands, unit):
        return None
    tiles = _tiles(bands, threads, limits)
    work = (tiles[:, 2] - tiles[:, 1]) * np.diff(bands.first)[tiles[:, 0]]
    phases = _phases(bands.group[tiles[:, 0]], work, alone, threads, limits)
    return TilePlan(tiles, bands.first, bands.entries, phases)


def _bands(
    moves: Moves, pieces: IntArray, components: IntArray, dst: IntArray, src: IntArray
) -> _Bands:
    """Lay all components side by side on one line; cut it wherever a piece begins or ends."""
    low, high, group = components.T
    component = pieces[:, COMPONENT]
    begin = np.cumsum(high - low) - (high - low)
    place = pieces[:, COORDINATE] - low[component] + begin[component]
    cuts = np.unique(np.concatenate([place, place + pieces[:, SIZE]]))
    from_band = np.searchsorted(cuts, place)
    covered = np.searchsorted(cuts, place + pieces[:, SIZE]) - from_band
    piece = np.repeat(np.arange(len(pieces)), covered)
    band = from_band[piece] + count_up(covered)
    order = np.argsort(band, kind="stable")
    piece, band = piece[order], band[order]
    move = pieces[piece, MOVE]
    inside = pieces[piece, START] + cuts[band] - place[piece]
    into, out_of = moves.dst_offset[move] + inside, moves.src_offset[move] + inside
    number = max(len(cuts) - 1, 0)
    group_of = np.full(number, -1, np.int64)
    group_of[band] = group[component[piece]]
    return _Bands(
        width=np.diff(cuts),
        group=group_of,
        first=np.searchsorted(band, np.arange(number + 1)),
        entries=np.column_stack([moves.dst[move], into, moves.src[move], out_of, moves.op[move]]),
        addresses=np.column_stack([dst[move] + inside, src[move] + inside]),
    )


def _cuts_elements(bands: _Bands, unit: int) -> bool:
    """True if a reduction would begin or end inside of an element."""
    reduces = bands.entries[:, 4] != COPY
    width = bands.width[bands.of_entry[reduces]]
    return bool((bands.addresses[reduces] % unit).any() or (width % unit).any())


def _tiles(bands: _Bands, threads: int, limits: TileLimits) -> IntArray:
    """Cut bands into tiles: rows (band, start, stop)."""
    used = np.flatnonzero(np.diff(bands.first))
    length = limits.cache // np.maximum(_reused(bands)[used], 1)
    share = int(bands.width[used].sum()) // (threads * limits.shares)
    length = np.clip(np.minimum(length, share), limits.least, limits.most) // _ALIGN * _ALIGN
    counts = -(-bands.width[used] // length)
    band = np.repeat(used, counts)
    start = count_up(counts) * np.repeat(length, counts)
    stop = np.minimum(start + np.repeat(length, counts), bands.width[band])
    return np.column_stack([band, start, stop])


def _reused(bands: _Bands) -> IntArray:
    """Count, per band, the addresses that several entries touch: they should stay in the cache."""
    band, address = np.tile(bands.of_entry, 2), bands.addresses.T.reshape(-1)
    order = np.lexsort((address, band))
    band, address = band[order], address[order]
    again = (band[1:] == band[:-1]) & (address[1:] == address[:-1])
    second = again & ~np.concatenate([[False], again[:-1]])
    return np.bincount(band[1:][second], minlength=len(bands.width))


def _phases(
    group: IntArray, work: IntArray, alone: IntArray, threads: int, limits: TileLimits
) -> tuple[TilePhase, ...]:
    """Return the groups in order as phases; neighbouring groups for one thread are joined.

    `group` and `work` (bytes moved) are per tile; `alone` is per move the group of a move that is
    alone, else -1.
    """
    lonely = {int(alone[move]): int(move) for move in np.flatnonzero(alone >= 0)}
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = [*firsts[1:].tolist(), len(group)]
    spans = {int(group[a]): (a, b) for a, b in zip(firsts.tolist(), ends, strict=True)}
    phases: list[TilePhase] = []
    for number in sorted([*lonely, *spans]):
        if number in lonely:
            phases.append(TilePhase(move=lonely[number]))
            continue
        ranges = _shares(work, *spans[number], threads, limits)
        last = phases[-1].ranges if phases else ()
        if len(ranges) == len(last) == 1:
            phases[-1] = TilePhase(((last[0][0], ranges[0][1]),))
        else:
            phases.append(TilePhase(ranges))
    return tuple(phases)


def _shares(
    work: IntArray, low: int, high: int, threads: int, limits: TileLimits
) -> tuple[tuple[int, int], ...]:
    """Cut a group's tiles low .. high - 1 into ranges of about equal work."""
    done = np.cumsum(work[low:high])
    if threads == 1 or done[-1] < limits.alone:
        return ((low, high),)
    wanted = min(high - low, threads * limits.shares)
    ends = np.searchsorted(done, np.arange(1, wanted) * done[-1] / wanted) + low + 1
    return tuple(pairwise(np.unique([low, *ends.tolist(), high]).tolist()))
