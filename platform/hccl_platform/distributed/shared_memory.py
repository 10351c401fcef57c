"""The shared memory of a group: one file in memory for every rank, which has no name.

    header      the rank's calls, and its error (header.py)
    notifies    a page for every rank that posts; a notify is a count that only grows
    gathers     the rank's value for Session.gather, twice, for gathers in turn
    rings       for every rank that sends messages (rings.py)
    regions     CCL_In, CCL_Out, scratch by tag, shadows of user memory

All ranks call the same programs in the same order, so regions lie at the same place in all files,
and no rank has to send that place. Files are sparse: untouched pages cost nothing, however large
HCCL_BUFFSIZE is, and no limit of /dev/shm applies. A file exists as long as a process has it open.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from hccl_platform.distributed.rings import RING_BYTES
from hccl_platform.lowering.memory import CCL_BUFFERS, USER_BUFFERS
from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.part import ORDER, Cell
from hccl_py.errors import HcclError, NotSupportedError
from hccl_py.program.program import Program

HEADER_BYTES = 1 << 15
NOTIFIES = 512
"""Most notifies that a rank may have from one other rank, in all programs together: a page."""

GATHER_BYTES = 1 << 30
"""Most bytes of a value that is gathered, its length included."""

_FILE_BYTES = 1 << 40
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_FAILED = ctypes.c_void_p(-1).value
_NOTHING = np.zeros(0, np.uint8)


def make_file(name: str) -> int:
    """Return the descriptor of a new file in memory, sparse and of the largest size allowed."""
    descriptor = os.memfd_create(f"hccl_py {name}", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, _FILE_BYTES)
    return descriptor


def map_file(descriptor: int, start: int, size: int) -> Bytes:
    """Return part of a file as an array; it is unmapped when the last view of it is released.

    Python's mmap keeps a copy of the descriptor for each mapping: too many with hundreds of ranks.
    """
    address = _libc().mmap(None, size, _READ_WRITE, mmap.MAP_SHARED, descriptor, start)
    if address == _FAILED:
        raise HcclError(
            f"{size} bytes of shared memory cannot be mapped: {os.strerror(ctypes.get_errno())}.",
            "Make HCCL_BUFFSIZE smaller, or raise `ulimit -v`.",
        )
    mapped: Any = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(mapped, _libc().munmap, address, size).atexit = False
    found: Bytes = np.frombuffer(mapped, np.uint8)
    return found


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    number, size, offset = ctypes.c_int, ctypes.c_size_t, ctypes.c_int64
    libc.mmap.argtypes = (ctypes.c_void_p, size, number, number, number, offset)
    libc.mmap.restype = ctypes.c_void_p
    libc.munmap.argtypes = (ctypes.c_void_p, size)
    return libc


class Regions:
    """The layout of every rank's file: offsets and sizes of a group's buffers."""

    def __init__(self, ranks: int, ccl_bytes: int) -> None:
        self.gathers = _whole_pages(HEADER_BYTES + ranks * NOTIFIES * 8)
        self._rings = self.gathers + 2 * GATHER_BYTES
        self._end = self.ring_of(ranks)
        self._ccl_bytes = ccl_bytes
        self._held: dict[tuple[str, str, int], tuple[int, int]] = {}
        self.version = 0
        """Number of times that a region was made or moved."""

    def ring_of(self, sender: int) -> int:
        """Return the offset of the ring for a sender."""
        return self._rings + sender * _whole_pages(RING_BYTES)

    def provide(self, tag: str, program: Program) -> None:
        """Make room for the buffers of a program; every process calls this for the same programs in
        the same order.
        """
        largest = program.buffer_sizes.max(axis=0, initial=0).tolist()
        sizes = dict(zip(program.buffers, largest, strict=True))
        callers = max(sizes.get(name, 0) for name in USER_BUFFERS)  # in place they share memory
        for name, size in sizes.items():
            least = callers if name in USER_BUFFERS else 0
            least = self._ccl_bytes if name in CCL_BUFFERS else least
            for half in range(2 if name in program.alternating else 1):
                self._hold(self._key(tag, name, half), max(size, least))

    def find(self, tag: str, name: str, half: int = 0) -> tuple[int, int]:
        """Return the offset of a buffer in the files and its size, in bytes; `half` selects the
        half of an alternating buffer.
        """
        return self._held[self._key(tag, name, half)]

    def _key(self, tag: str, name: str, half: int) -> tuple[str, str, int]:
        return ("" if name in (*CCL_BUFFERS, *USER_BUFFERS) else tag, name, half)

    def _hold(self, key: tuple[str, str, int], size: int) -> None:
        held = self._held.get(key)
        if held is not None:
            if size <= held[1]:
                return
            size = max(size, held[1] * 3 // 2)  # the old place of a region that moves is lost
        self._held[key] = (self._end, size)
        self._end += _whole_pages(size)
        self.version += 1
        if self._end > _FILE_BYTES:
            raise NotSupportedError(
                f"The buffers of a rank add up to more than {_FILE_BYTES >> 40} TiB.",
                "Make HCCL_BUFFSIZE smaller.",
            )


def _whole_pages(size: int) -> int:
    return -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


class SharedMemory:
    """The files of all ranks, mapped part by part on demand."""

    def __init__(self, files: Sequence[int], regions: Regions) -> None:
        self.files = files
        self.regions = regions
        self._headers = [map_file(file, 0, regions.gathers) for file in files]
        self._mapped: dict[tuple[int, int], Bytes] = {}

    def words(self, rank: int) -> memoryview[int]:
        """Return a rank's header and notifies as 64-bit numbers."""
        return self._headers[rank].data.cast("q")

    def region(self, rank: int, tag: str, name: str, half: int = 0) -> tuple[Bytes, int]:
        """Return a buffer of a rank and its offset in the rank's file."""
        start, size = self.regions.find(tag, name, half)
        return self.bytes_at(rank, start, size), start

    def bytes_at(self, rank: int, start: int, size: int) -> Bytes:
        """Return part of a rank's file; `start` is a multiple of the page size."""
        held = self._mapped.get((rank, start), _NOTHING)
        if len(held) < size:
            held = self._mapped[rank, start] = map_file(self.files[rank], start, size)
        return held[:size]

    def close(self) -> None:
        """Drop all mappings; memory that arrays still use stays mapped until they go."""
        self._headers.clear()
        self._mapped.clear()


class Notifies:
    """Numbers of notifies, the same in all programs: by waiter, poster, plane, turn and number.

    The notifies of a pair of ranks are numbered in the order of their first use by programs, which
    is the same at both ranks.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], dict[tuple[str, int, int], int]] = {}

    def learn(self, program: Program, rank: int) -> None:
        """Number the notifies of a program between a rank and others, in the program's order."""
        transports = program.transports
        mine = np.flatnonzero((transports.rank == rank) | (transports.peer == rank))
        for end in mine.tolist():
            pair = int(transports.rank[end]), int(transports.peer[end])
            known = self._numbers.setdefault(pair, {})
            plane = transports.planes[int(transports.plane[end])], int(transports.turns[end])
            for notify in range(transports.stride):
                known.setdefault((*plane, notify), len(known))

    def number(self, cell: Cell) -> int:
        """Return the position of a notify on the page of its poster."""
        known = self._numbers.setdefault((cell.waiter, cell.poster), {})
        key = cell.plane, cell.turn, cell.notify
        if cell.plane == ORDER:  # both ranks number it after the program's own
            known.setdefault(key, len(known))
        number = known[key]
        if number >= NOTIFIES:
            raise NotSupportedError(
                f"Rank {cell.waiter} has more than {NOTIFIES} notifies from rank {cell.poster}.",
                "Ask for fewer notifies per transport.",
            )
        return number
