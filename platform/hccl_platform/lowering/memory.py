"""The memory that programs run on: a session's buffers, and the caller's arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Sized
from typing import Any, Generic, TypeVar

from hccl_py.enums import Buffer
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program

USER_BUFFERS = (Buffer.USER_IN.spelling, Buffer.USER_OUT.spelling)
CCL_BUFFERS = (Buffer.CCL_IN.spelling, Buffer.CCL_OUT.spelling)

Block = TypeVar("Block", bound=Sized)


class Memory(Generic[Block]):
    """The buffers of a session that has all ranks in its process.

    CCL buffers belong to the communicator and have `ccl_bytes` or more, all others belong to a tag.
    Alternating buffers have two halves. `allocate` returns a block of zeros for a rank and a number
    of bytes; `drain` is called before a block is replaced by a larger one.
    """

    def __init__(
        self,
        ccl_bytes: int,
        allocate: Callable[[int, int], Block],
        drain: Callable[[], None] = lambda: None,
    ) -> None:
        self._ccl_bytes, self._allocate, self._drain = ccl_bytes, allocate, drain
        self._held: dict[tuple[str, int, str, int], Block] = {}

    def slots(
        self, tag: str, program: Program, used: Sequence[int], half: int = 0
    ) -> dict[int, Block]:
        """Return the blocks of these slots, but for user memory. `half` selects which half of the
        alternating buffers the call works in.
        """
        sizes, slots = program.buffer_sizes.reshape(-1), {}
        for slot in used:
            rank, buffer = divmod(slot, len(program.buffers))
            name, size = program.buffers[buffer], int(sizes[slot])
            place = half if name in program.alternating else 0
            if name in CCL_BUFFERS:
                slots[slot] = self._hold(("", rank, name, place), max(size, self._ccl_bytes))
            elif name not in USER_BUFFERS:
                slots[slot] = self._hold((tag, rank, name, place), size)
        return slots

    def clear(self) -> None:
        """Release all buffers."""
        self._held.clear()

    def _hold(self, key: tuple[str, int, str, int], size: int) -> Block:
        held = self._held.get(key)
        if held is None or len(held) < size:
            if held is not None:
                self._drain()
            held = self._held[key] = self._allocate(key[1], size)
        return held


def user_arrays(
    program: Program,
    ranks: range,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    written: Collection[int] = (),
) -> dict[int, Any]:
    """Return the caller's arrays by slot, one input and one output for each of these ranks.

    ParameterError if there are too few or too many, if one has the wrong size, or if one in the
    slots that are `written` is read-only.
    """
    found: dict[int, Any] = {}
    for name, arrays, what in zip(
        USER_BUFFERS, (inputs, outputs), ("input", "output"), strict=True
    ):
        if len(arrays) != len(ranks):
            whose = f"{len(ranks)} ranks" if len(ranks) > 1 else f"rank {ranks.start}"
            raise ParameterError(
                f"There are {len(arrays)} {what}s for {whose}.", "Give one array per rank."
            )
        at = program.buffers.index(name)
        sizes = program.buffer_sizes[ranks.start : ranks.stop, at].tolist()
        for rank, array, size in zip(ranks, arrays, sizes, strict=True):
            slot = rank * len(program.buffers) + at
            if array.nbytes != size:
                raise ParameterError(
                    f"Rank {rank}'s {what} has {array.nbytes} bytes, the program needs {size}.",
                    "Record a program for this count and data type.",
                )
            if slot in written and not array.flags.writeable:
                raise ParameterError(
                    f"{program.executor} writes rank {rank}'s {name}, and that array is read-only.",
                    "Give an array that can be written.",
                )
            found[slot] = array
    return found
