"""The memory that moves use: registers as places, with the checks that need values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hccl_interop.cpp.ccu.missions import (
    COPY,
    READ,
    READ_REDUCE,
    REDUCE,
    WRITE,
    WRITE_REDUCE,
    Extent,
)

BUFFER_BYTES = 4096
FIRST_BUFFER_PART = 4
"""The part of memory that die 0's buffers are; die 1's are the next."""

_PARTS = 4
_WORDS = ("the input", "the output", "the HCCL buffer", "allocated memory")
_TOKEN = 0x7E << 56
_MOST_MOVED = 256 << 20

KINDS = {
    "copy": COPY,
    "reduce": REDUCE,
    "read": READ,
    "read_reduce": READ_REDUCE,
    "write": WRITE,
    "write_reduce": WRITE_REDUCE,
}


def is_buffer(handle: int) -> bool:
    """Return True for the register of a buffer."""
    return handle >> 48 == 4


class Refused(Exception):
    """A move that cannot be right: the class of the finding, and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Side(NamedTuple):
    """A side of a move in memory: the values of its two registers."""

    address: int
    token: int


@dataclass(frozen=True)
class AddressSpace:
    """The addresses of all ranks: spans of equal length, four for each rank."""

    first: int
    span: int
    ranks: int

    def place(self, address: int) -> Extent | None:
        """Return the place of an address; None for one that is no rank's."""
        span, offset = divmod(address - self.first, self.span)
        if not 0 <= span < self.ranks * _PARTS:
            return None
        rank, part = divmod(span, _PARTS)
        return Extent(rank, part, offset)

    def words(self, address: int) -> str:
        """Return an address in words."""
        found = self.place(address)
        if found is None:
            return f"address {address:#x}, which is no device memory"
        return f"byte {found.offset} of {_WORDS[found.part]} of rank {found.rank}"

    def extent(self, what: str, side: Side, rank: int) -> Extent:
        """Return the place of a side in `rank`'s memory; raises Refused where it is elsewhere."""
        found = self.place(side.address)
        if found is None or found.rank != rank:
            raise Refused(
                "WRONG_ADDRESS",
                f"{what} must lie in rank {rank}'s memory, and is {self.words(side.address)}",
            )
        return found

    def fault_of_token(self, what: str, side: Side, rank: int) -> str:
        """Return the fault of the token of a side in `rank`'s memory; "" where it has none."""
        if side.token & ~0xFFFFFFFF != _TOKEN:
            return f"the token of {what} is {side.token:#x}, which is no token"
        if side.token - _TOKEN != rank:
            whose = side.token - _TOKEN
            return f"{what} is {self.words(side.address)}, and its token is rank {whose}'s"
        return ""


def check_length(size: int, *, over_channel: bool) -> None:
    """Raise Refused for a length that the CCU does not move."""
    if size == 0:
        raise Refused(
            "INVALID_ARGUMENT",
            "the length is 0, for which a move is undefined: leave it out, by CCU_IF or in host "
            "code",
        )
    if over_channel and size > _MOST_MOVED:
        raise Refused(
            "TRANSFER_TOO_LARGE",
            f"the length is {size} bytes; one move over a channel takes at most {_MOST_MOVED}",
        )
