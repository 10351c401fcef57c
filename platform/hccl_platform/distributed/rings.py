"""A ring of bytes in shared memory, from one rank to another, in which messages follow each other.

    word 0      bytes that the sender has written so far
    word 8      bytes that the receiver has read so far
    page 1      the ring: byte k of all is at k modulo its size

A message is a heading (tag, bytes, type) and its data, and begins at a multiple of ALIGNED.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from hccl_platform.distributed.fences import order_accesses
from hccl_platform.lowering.moves import Bytes
from hccl_py.enums import DataType

RING_BYTES = (1 << 20) + (1 << 12)
"""Bytes of a ring with its words."""

_WRITTEN, _READ, _FIRST = 0, 8, 1 << 12
_SIZE = RING_BYTES - _FIRST
_HEADING = struct.Struct("<qqq")
_ALIGNED = 64
_PIECE = 1 << 18
"""Most bytes that are copied before the other side may go on with them."""


class Heading(NamedTuple):
    """The first bytes of a message: `size` is that of its data, `dtype` the number of its type."""

    tag: int
    size: int
    dtype: int

    @property
    def words(self) -> str:
        """The data of a message, as a user calls it."""
        dtype = DataType.from_number(self.dtype)
        return f"{self.size // dtype.itemsize} {dtype.value}"


class ByteRing:
    """One side of a ring; `at` counts the bytes that this side has written, or read."""

    def __init__(self, memory: Bytes) -> None:
        self.words = memory[:_FIRST].data.cast("q")
        self._bytes = memory[_FIRST:]
        self.at = 0

    def begin(self, heading: Heading) -> bool:
        """Write the heading of a message, if there is room; the next `write` publishes it."""
        if self._room < _ALIGNED:
            return False
        _HEADING.pack_into(self._bytes.data, self.at % _SIZE, *heading)
        self.at += _ALIGNED
        return True

    def write(self, data: Bytes) -> int:
        """Write as much of a message's data as there is room for, at most a piece, and publish it;
        return its size. Behind the last byte the next message may begin.
        """
        size = min(len(data), self._room, _PIECE)
        begin = self.at % _SIZE
        first = min(size, _SIZE - begin)
        self._bytes[begin : begin + first] = data[:first]
        self._bytes[: size - first] = data[first:size]
        self._go_on(size, _WRITTEN, is_last=size == len(data))
        return size

    def heading(self) -> Heading | None:
        """Read the heading of the next message; None where none has come."""
        if not self._filled:
            return None
        order_accesses()
        found = Heading(*_HEADING.unpack_from(self._bytes.data, self.at % _SIZE))
        self._go_on(_ALIGNED, _READ)
        return found

    def read(self, into: Bytes) -> int:
        """Read as much of a message's data as has come, at most a piece; return its size."""
        size = min(len(into), self._filled, _PIECE)
        if not size:
            return 0
        order_accesses()
        begin = self.at % _SIZE
        first = min(size, _SIZE - begin)
        into[:first] = self._bytes[begin : begin + first]
        into[first:size] = self._bytes[: size - first]
        self._go_on(size, _READ, is_last=size == len(into))
        return size

    def _go_on(self, size: int, word: int, is_last: bool = False) -> None:
        self.at += size
        if is_last:
            self.at = -(-self.at // _ALIGNED) * _ALIGNED
        order_accesses()
        self.words[word] = self.at

    @property
    def _room(self) -> int:
        return _SIZE - (self.at - self.words[_READ])

    @property
    def _filled(self) -> int:
        return self.words[_WRITTEN] - self.at
