"""The shared memory of a group: one file in memory for every rank, which has no name.

    header      who is where, and what went wrong (header.py)
    notifies    a page for every rank that posts; a notify is a count that only grows
    letters     what Session.gather hands round
    regions     CCL_In, CCL_Out, scratch by tag, shadows of the callers' memory

All ranks call the same programs in the same order, so regions lie at the same place in all files
and nobody has to be told where. Files are sparse: what nobody touches costs nothing, however large
HCCL_BUFFSIZE is, and no limit of /dev/shm applies. A file is there as long as a process has it.
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

from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.part import ORDER, USER_BUFFERS, Cell
from hccl_py.enums import Buffer
from hccl_py.errors import HcclError, NotSupportedError
from hccl_py.program.program import Program

HEADER_BYTES = 1 << 15
NOTIFIES = 512
"""Notifies that a rank may have from one other rank, in all programs together: a page."""

LETTER_BYTES = 1 << 30
_FILE_BYTES = 1 << 40
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_FAILED = ctypes.c_void_p(-1).value
_NOTHING = np.zeros(0, np.uint8)
_CCL = (Buffer.CCL_IN.spelling, Buffer.CCL_OUT.spelling)


def make_file(name: str) -> int:
    """Return the descriptor of a new file in memory, of the largest size that a group can need."""
    descriptor = os.memfd_create(f"hccl_py {name}", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, _FILE_BYTES)
    return descriptor


def map_file(descriptor: int, start: int, size: int) -> Bytes:
    """Return part of a file as an array; it is unmapped with the last array that shows it.

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
    """Where the buffers of a group lie in every rank's file, and how large they are there."""

    def __init__(self, ranks: int, ccl_bytes: int) -> None:
        self.letters = _whole_pages(HEADER_BYTES + ranks * NOTIFIES * 8)
        self._end = self.letters + 2 * LETTER_BYTES
        self._ccl_bytes = ccl_bytes
        self._held: dict[tuple[str, str, int], tuple[int, int]] = {}
        self.version = 0
        """How often one was made or has moved."""

    def provide(self, tag: str, program: Program) -> None:
        """Make room for what a program needs; every process calls this for the same programs in
        the same order.
        """
        largest = program.buffer_sizes.max(axis=0, initial=0).tolist()
        sizes = dict(zip(program.buffers, largest, strict=True))
        callers = max(sizes.get(name, 0) for name in USER_BUFFERS)  # in place they share memory
        for name, size in sizes.items():
            least = callers if name in USER_BUFFERS else self._ccl_bytes if name in _CCL else 0
            for half in range(2 if name in program.alternating else 1):
                self._hold(self._key(tag, name, half), max(size, least))

    def find(self, tag: str, name: str, half: int = 0) -> tuple[int, int]:
        """Return where a buffer begins and its size, in bytes; `half` 1 is the second of one that
        alternates.
        """
        return self._held[self._key(tag, name, half)]

    def _key(self, tag: str, name: str, half: int) -> tuple[str, str, int]:
        return ("" if name in (*_CCL, *USER_BUFFERS) else tag, name, half)

    def _hold(self, key: tuple[str, str, int], size: int) -> None:
        held = self._held.get(key)
        if held is not None:
            if size <= held[1]:
                return
            size = max(size, held[1] * 3 // 2)  # what moves leaves its old place behind
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
    """The files of all ranks, mapped where they are needed."""

    def __init__(self, files: Sequence[int], regions: Regions) -> None:
        self.files = files
        self.regions = regions
        self._headers = [map_file(file, 0, regions.letters) for file in files]
        self._mapped: dict[tuple[int, int], Bytes] = {}

    def words(self, rank: int) -> memoryview[int]:
        """Return a rank's header and notifies as 64-bit numbers."""
        return self._headers[rank].data.cast("q")

    def region(self, rank: int, tag: str, name: str, half: int = 0) -> tuple[Bytes, int]:
        """Return a buffer of a rank and where it begins in the rank's file."""
        start, size = self.regions.find(tag, name, half)
        return self.bytes_at(rank, start, size), start

    def bytes_at(self, rank: int, start: int, size: int) -> Bytes:
        """Return part of a rank's file; `start` is a multiple of the page size."""
        held = self._mapped.get((rank, start), _NOTHING)
        if len(held) < size:
            held = self._mapped[rank, start] = map_file(self.files[rank], start, size)
        return held[:size]

    def close(self) -> None:
        """Let go of what is mapped; what arrays still show stays until they go."""
        self._headers.clear()
        self._mapped.clear()


class Notifies:
    """Numbers of notifies, the same in all programs: by waiter, poster, plane and place there.

    The notifies of a pair of ranks are numbered in the order in which programs first use them,
    which both ranks see alike.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], dict[tuple[str, int], int]] = {}

    def learn(self, program: Program, rank: int) -> None:
        """Number what a program has between a rank and others, in the program's order."""
        transports = program.transports
        mine = np.flatnonzero((transports.rank == rank) | (transports.peer == rank))
        for end in mine.tolist():
            pair = int(transports.rank[end]), int(transports.peer[end])
            known = self._numbers.setdefault(pair, {})
            plane = transports.planes[int(transports.plane[end])]
            for notify in range(transports.stride):
                known.setdefault((plane, notify), len(known))

    def number(self, cell: Cell) -> int:
        """Return the place of a notify on the page of its poster."""
        known = self._numbers.setdefault((cell.waiter, cell.poster), {})
        if cell.plane == ORDER:  # both ranks come here behind what they learnt of the program
            known.setdefault((cell.plane, cell.notify), len(known))
        number = known[cell.plane, cell.notify]
        if number >= NOTIFIES:
            raise NotSupportedError(
                f"Rank {cell.waiter} has more than {NOTIFIES} notifies from rank {cell.poster}.",
                "Ask for fewer notifies per transport.",
            )
        return number
