"""Places of the parts of a round, at all ranks: tables of bytes, [owner, part].

What each rank sends to each other one is known to all of them, so that a rank can reach its part
in any peer's memory. Data that is larger than the buffers goes in pieces, which HCCL cuts pair by
pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.operators.parts import exchange_of, extents
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import AnyRank, OpParam, RankView
from hccl_py.values import IntArray, PerRank, RankInt, values_of

BLOCK_ALIGN = 16 << 10
"""Bytes to whose multiples blocks of a buffer are rounded down."""


TINY = 2 << 20
"""Bytes of scratch that HCCL asks for at least."""


class PartTable(NamedTuple):
    """Parts in one buffer: `offsets[owner, part]` and `sizes[owner, part]`.

    `is_gapless` says that the parts of every run() lie side by side, at all ranks.
    """

    buffer: Buffer
    offsets: IntArray
    sizes: IntArray
    is_gapless: bool

    def at(self, owner: RankInt, part: RankInt) -> Region:
        """Return one part."""
        place = values_of(owner), values_of(part)
        return Region(self.buffer, PerRank.of(self.offsets[place]), PerRank.of(self.sizes[place]))

    def at_once(self, owner: RankInt, parts: int) -> list[Region]:
        """Return all parts of an owner, as one region where they are gapless."""
        return self.run(owner, 0, parts, self.is_gapless)

    def piece(self, start: int, most: int) -> PartTable:
        """Return bytes start .. start + most of every part; of one that ends before, none."""
        sizes = np.clip(self.sizes - start, 0, most)
        return PartTable(self.buffer, self.offsets + np.minimum(start, self.sizes), sizes, False)

    def rounds(self, owner: RankInt, part: RankInt, most: int) -> RankInt:
        """Return the number of pieces of up to `most` bytes in a part; 0 for an empty one."""
        return PerRank.of(-(-self.sizes[values_of(owner), values_of(part)] // most))

    def run(self, owner: RankInt, first: RankInt, k: int, merge: bool) -> list[Region]:
        """Return k parts, as one region where `merge` says so; the table is gapless then."""
        if not merge:
            return [self.at(owner, first + i) for i in range(k)]
        row, column = values_of(owner), values_of(first)
        size = sum(self.sizes[row, column + i] for i in range(k))
        return [Region(self.buffer, PerRank.of(self.offsets[row, column]), PerRank.of(size))]


class UserParts(NamedTuple):
    """Parts in user memory: those that each rank sends, by receiver, and those that it receives, by
    sender.
    """

    sends: PartTable
    receives: PartTable


def layout_of(op: OpParam, ranks: int) -> UserParts:
    """Return the places of a call's parts in user memory."""
    parts = exchange_of(op, ranks)
    sends = _user(Buffer.USER_IN, op, parts.send_displs, parts.sends)
    return UserParts(sends, _user(Buffer.USER_OUT, op, parts.recv_displs, parts.receives))


def packed(buffer: Buffer, sizes: IntArray) -> PartTable:
    """Return parts side by side, from the beginning of the buffer."""
    return PartTable(buffer, np.cumsum(sizes, axis=1) - sizes, sizes, True)


def extents_fit(op: OpParam, rank: RankView | AnyRank) -> bool:
    """True if every rank's input and output fit the CCL buffers as they are: HCCL's ZCopy."""
    parts = exchange_of(op, rank.size)
    sent = extents(parts.send_displs, parts.sends).max()
    received = extents(parts.recv_displs, parts.receives).max()
    return bool(max(sent, received) * op.unit <= rank.ccl_bytes)


def staging_scratch(needed: int, ccl_bytes: int) -> int:
    """Return the scratch that HCCL asks for in op-base mode where `needed` bytes are handed on."""
    return max(needed, ccl_bytes, TINY) if needed else TINY


def block_of(memory: int, parts: int, unit: int) -> int:
    """Return the bytes of each of so many equal blocks of a buffer: whole 16 KiB, unless the
    blocks are smaller.
    """
    each = memory // parts
    return each // BLOCK_ALIGN * BLOCK_ALIGN if each > BLOCK_ALIGN else each // unit * unit


def _user(buffer: Buffer, op: OpParam, displs: IntArray, counts: IntArray) -> PartTable:
    sizes = counts * op.unit
    offsets = _with_empty_ones(displs * op.unit, sizes)
    is_gapless = bool((offsets[:, 1:] == offsets[:, :-1] + sizes[:, :-1]).all())
    return PartTable(buffer, offsets, sizes, is_gapless)


def _with_empty_ones(offsets: IntArray, sizes: IntArray) -> IntArray:
    """Let empty parts begin where the part before them ends: callers may say anything of them."""
    filled = sizes > 0
    before = np.maximum.accumulate(np.where(filled, np.arange(sizes.shape[1]), -1), axis=1)
    first = np.take_along_axis(offsets, filled.argmax(axis=1)[:, None], 1)
    ends = np.take_along_axis(offsets + sizes, np.maximum(before, 0), 1)
    first = np.where(filled.any(axis=1, keepdims=True), first, 0)
    return np.where(filled, offsets, np.where(before >= 0, ends, first))
