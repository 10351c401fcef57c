"""FIFOs of each protocol: the number of messages that one holds, and their largest size.

A connection has 8 steps of memory. With Simple a message takes 4 of them, so that two fit; with LL
and LL128 it takes one, of which flags take a half and a sixteenth. Sizes are those of the default
buffers (4 MiB for Simple). Source: microsoft/msccl, msccl_interpreter.h, enqueue.cc and init.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hccl_py.program.limits import MAX_NAMES
from hccl_py.program.transports import OWN_NOTIFIES

MAX_COUNT = 72
"""The first count of chunks that the runtime refuses, and never sends at once."""


class Protocol(NamedTuple):
    """`slots` messages of at most `limit` bytes each."""

    name: str
    slots: int
    limit: int


class Signals(NamedTuple):
    """The notifies of a connection whose FIFO has so many slots, and whose messages come in at most
    so many slices: one for every slice of a slot, which says that it is full, and one for every
    slot, which says that it is free.
    """

    slots: int
    slices: int = 1

    def data(self, slot: int, part: int = 0) -> int:
        """Return the notify that says that a slice is full: one that pays α in the cost model, as
        the data of a message does, also where notifies pay by their numbers.
        """
        number = slot * self.slices + part
        return number and number + OWN_NOTIFIES - 1

    def credit(self, slot: int) -> int:
        """Return the notify that says that a slot is free; the first ones pay no α."""
        return slot + 1 if slot < OWN_NOTIFIES - 1 else slot + self.slots * self.slices

    @property
    def names(self) -> list[str]:
        """The names of the first notifies of a connection."""
        names = {self.credit(slot): f"credit {slot}" for slot in range(self.slots)}
        for slot in range(self.slots):
            for part in range(self.slices):
                slice_ = f".{part}" if self.slices > 1 else ""
                names[self.data(slot, part)] = f"data {slot}{slice_}"
        return [names[index] for index in range(len(names))][:MAX_NAMES]

    def count(self, slots: int) -> int:
        """Return the number of notifies of a connection that uses so many slots."""
        if not slots:
            return 0
        return 1 + max(self.data(slots - 1, self.slices - 1), self.credit(slots - 1))


PROTOCOLS = {
    row.name: row
    for row in (
        Protocol("Simple", slots=2, limit=(4 << 20) // 8 * 4),
        Protocol("LL", slots=8, limit=(8 * 512 * 8 * 16) // 8 // 2),
        Protocol("LL128", slots=8, limit=(120 * 640 * 8 * 8) // 8 // 16 * 15),
    )
}


class MessagePart(NamedTuple):
    """A part of a step that travels as one message: `chunks` from the `first` of the step on."""

    first: int
    chunks: int


class ChunkLoop(NamedTuple):
    """The passes of the runtime through data whose chunks have `chunk` bytes.

    While a chunk fits a message, one pass takes all of it, and `at_once` chunks travel together.
    Larger chunks are cut: every pass takes as much of each chunk as a message holds, so a step of
    n chunks sends n messages per pass.
    """

    chunk: int
    limit: int
    """Bytes of every chunk that one pass takes at most."""

    @classmethod
    def of(cls, protocol: Protocol, chunk: int, itemsize: int) -> ChunkLoop:
        """Return the loop over chunks of so many bytes, in whole elements."""
        return cls(chunk, protocol.limit // itemsize * itemsize)

    @property
    def passes(self) -> int:
        """The number of times that the steps run."""
        return max(1, -(-self.chunk // self.limit))

    @property
    def at_once(self) -> int:
        """Chunks that travel in one message."""
        return min(max(1, self.limit // max(self.chunk, 1)), MAX_COUNT - 1)

    def part(self, number: int) -> tuple[int, int]:
        """Return the offset of a pass in every chunk, and the bytes that it takes."""
        begin = number * self.limit
        return begin, min(self.limit, self.chunk - begin)

    def pieces(self, count: int) -> Iterator[MessagePart]:
        """Yield the messages of a step of `count` chunks in one pass."""
        for first in range(0, count, self.at_once):
            yield MessagePart(first, min(self.at_once, count - first))
