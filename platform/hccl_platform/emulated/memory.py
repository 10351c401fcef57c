"""Memory of all ranks: CCL buffers, scratch per tag, and the caller's arrays.

CCL buffers have their configured size but cost only what programs touch.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_platform.lowering.moves import Bytes
from hccl_py.enums import Buffer
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program

_IN, _OUT = Buffer.USER_IN.spelling, Buffer.USER_OUT.spelling
_CCL = (Buffer.CCL_IN.spelling, Buffer.CCL_OUT.spelling)
_NOTHING = np.zeros(0, np.uint8)


class Memory:
    """The buffers of a session. CCL buffers belong to the communicator, all others to a tag. Of
    those that alternate there are two.
    """

    def __init__(self, ccl_bytes: int) -> None:
        self._ccl_bytes = ccl_bytes
        self._held: dict[tuple[str, int, str, int], Bytes] = {}

    def slots(self, tag: str, program: Program, used: Sequence[int], half: int = 0) -> list[Bytes]:
        """Return the bytes of the slots that a program uses, in a call that works in one `half` of
        what alternates; user memory's are still empty.
        """
        sizes = program.buffer_sizes.reshape(-1)
        slots = [_NOTHING] * len(sizes)
        for slot in used:
            rank, buffer = divmod(slot, len(program.buffers))
            name = program.buffers[buffer]
            place = half if name in program.alternating else 0
            if name in _CCL:
                size = max(int(sizes[slot]), self._ccl_bytes)
                slots[slot] = self._hold(("", rank, name, place), size)
            elif name not in (_IN, _OUT):
                slots[slot] = self._hold((tag, rank, name, place), int(sizes[slot]))
        return slots

    def clear(self) -> None:
        """Let go of all buffers."""
        self._held.clear()

    def _hold(self, key: tuple[str, int, str, int], size: int) -> Bytes:
        if key not in self._held or len(self._held[key]) < size:
            self._held[key] = _zeros(size)
        return self._held[key]


def _zeros(size: int) -> Bytes:
    """Return zeroed bytes on small pages of their own: only those that are touched cost."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # Linux
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8)


def fill_user_slots(
    slots: list[Bytes],
    program: Program,
    inputs: Sequence[npt.NDArray[Any]],
    outputs: Sequence[npt.NDArray[Any]],
) -> None:
    """Put the caller's arrays into their slots; ParameterError where one has the wrong size."""
    buffers = len(program.buffers)
    for arrays, name in ((inputs, _IN), (outputs, _OUT)):
        at = program.buffers.index(name)
        sizes = program.buffer_sizes[:, at].tolist()
        if [array.nbytes for array in arrays] != sizes:
            raise _wrong_size(arrays, sizes, "input" if name == _IN else "output")
        for rank, array in enumerate(arrays):
            slots[rank * buffers + at] = array.view(np.uint8)


def _wrong_size(
    arrays: Sequence[npt.NDArray[Any]], sizes: Sequence[int], what: str
) -> ParameterError:
    if len(arrays) != len(sizes):
        return ParameterError(
            f"There are {len(arrays)} {what}s for {len(sizes)} ranks.", "Give one array per rank."
        )
    pairs = zip(arrays, sizes, strict=True)
    rank = next(r for r, (array, size) in enumerate(pairs) if array.nbytes != size)
    return ParameterError(
        f"Rank {rank}'s {what} has {arrays[rank].nbytes} bytes, the program needs {sizes[rank]}.",
        "Record a program for this count and data type.",
    )
