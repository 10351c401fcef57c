"""Memory of a device that other processes open, in three ways; the first that works is taken.

keys                memory of aclrtMalloc, opened by its key (aclrtIpcMem...)
keys with lists     the same, and the exporter names the processes that may open it
shareable handles   physical memory, which every process maps (aclrtMallocPhysical,
                    aclrtMemExportToShareableHandle): boards whose NPUs are attached by PCIe
                    refuse keys with 507899, and take these
"""

from __future__ import annotations

import ctypes
import logging
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hccl_platform.npu.acl import AclError, Library, MemoryAccess, PhysicalMemory

LOGGER = logging.getLogger("hccl_py.platforms.npu")

KEYS, LISTED_KEYS, HANDLES = "keys", "keys with lists", "shareable handles"
MEMORY_WAYS = (KEYS, LISTED_KEYS, HANDLES)
"""The ways to share memory, in the order in which they are tried."""

HUGE_FIRST, HUGE_ONLY_P2P = 0, 4
_WITHOUT_LIST = 1  # DISABLE_PID_VALIDATION, of keys and of handles
_OF_PEER = 1  # ENABLE_PEER_ACCESS
_HANDLE = struct.Struct("<QQ")


class PeerMemory(Protocol):
    """Memory that peers may open: made and exported here, opened and closed there."""

    def allocate(self, size: int) -> int:
        """Return the address of new memory, of a multiple of 2 MiB."""

    def free(self, address: int) -> None:
        """Release memory of this process."""

    def export(self, address: int, size: int, processes: Sequence[int]) -> bytes:
        """Return a key with which these processes can open memory that begins an allocation."""

    def open(self, key: bytes) -> int:
        """Return the address of a peer's memory."""

    def close(self, key: bytes) -> None:
        """Close a peer's memory, or end the export of this process's own."""


class KeyedMemory:
    """Memory that is opened by keys; exports name processes if it `lists` them. It comes from a
    pool of its own where the runtime has one: then it `is_pooled`.
    """

    def __init__(self, library: Library, *, lists: bool) -> None:
        self._acl, self._lists = library, lists
        self.is_pooled = True

    def allocate(self, size: int) -> int:
        if self.is_pooled:
            try:
                return self._acl.made("aclrtMalloc", size, HUGE_ONLY_P2P)
            except AclError as error:
                LOGGER.info("no memory of its own for peers: %s", error.message)
                self.is_pooled = False
        return self._acl.made("aclrtMalloc", size, HUGE_FIRST)

    def free(self, address: int) -> None:
        self._acl.aclrtFree(address)

    def export(self, address: int, size: int, processes: Sequence[int]) -> bytes:
        flags = 0 if self._lists else _WITHOUT_LIST
        key = self._acl.key("aclrtIpcMemGetExportKey", address, size, flags=flags)
        if self._lists:
            self._acl.aclrtIpcMemSetImportPid(key, *listed(processes))
        return key

    def open(self, key: bytes) -> int:
        return imported(self._acl, "aclrtIpcMemImportByKey", key, _OF_PEER)

    def close(self, key: bytes) -> None:
        self._acl.aclrtIpcMemClose(key)


class _Mapping(NamedTuple):
    address: int
    handle: int


class MappedMemory:
    """Physical memory of a device, mapped by every process that uses it."""

    is_pooled = False

    def __init__(self, library: Library, device: int) -> None:
        self._acl, self._device = library, device
        self._own: dict[int, _Mapping] = {}
        self._opened: dict[bytes, _Mapping] = {}

    def allocate(self, size: int) -> int:
        wanted = PhysicalMemory.on(self._device)
        handle = self._acl.made("aclrtMallocPhysical", size, ctypes.byref(wanted), 0)
        mapping = self._map(handle, size)
        self._own[mapping.address] = mapping
        return mapping.address

    def free(self, address: int) -> None:
        self._unmap(self._own.pop(address))

    def export(self, address: int, size: int, processes: Sequence[int]) -> bytes:
        handle, found = self._own[address].handle, ctypes.c_uint64()
        self._acl.aclrtMemExportToShareableHandle(handle, 0, _WITHOUT_LIST, ctypes.byref(found))
        return _HANDLE.pack(found.value, size)

    def open(self, key: bytes) -> int:
        shareable, size = _HANDLE.unpack(key)
        handle = ctypes.c_void_p()
        self._acl.aclrtMemImportFromShareableHandle(shareable, self._device, ctypes.byref(handle))
        self._opened[key] = self._map(handle.value or 0, size)
        return self._opened[key].address

    def close(self, key: bytes) -> None:
        """Unmap a peer's memory; an export ends with its memory."""
        opened = self._opened.pop(key, None)
        if opened is not None:
            self._unmap(opened)

    def _map(self, handle: int, size: int) -> _Mapping:
        """Map physical memory, which this device may then read and write."""
        address, access = 0, MemoryAccess.of(self._device)
        try:
            address = self._acl.made("aclrtReserveMemAddress", size, 0, None, 0)
            self._acl.aclrtMapMem(address, size, 0, handle, 0)
            try:
                self._acl.aclrtMemSetAccess(address, size, ctypes.byref(access), 1)
            except AclError:
                self._acl.aclrtUnmapMem(address)
                raise
        except AclError:
            if address:
                self._acl.aclrtReleaseMemAddress(address)
            self._acl.aclrtFreePhysical(handle)
            raise
        return _Mapping(address, handle)

    def _unmap(self, mapping: _Mapping) -> None:
        self._acl.aclrtUnmapMem(mapping.address)
        self._acl.aclrtReleaseMemAddress(mapping.address)
        self._acl.aclrtFreePhysical(mapping.handle)


def peer_memory(way: str, library: Library, device: int) -> KeyedMemory | MappedMemory:
    """Return the memory that is shared in one of MEMORY_WAYS."""
    if way == HANDLES:
        return MappedMemory(library, device)
    return KeyedMemory(library, lists=way == LISTED_KEYS)


def imported(library: Library, function: str, key: bytes, flags: int) -> int:
    """Import by a key, with the flags that enable access to the peer; where these are refused,
    without any: older runtimes reserve them.
    """
    try:
        return library.made(function, key, flags)
    except AclError as error:
        try:
            return library.made(function, key, 0)
        except AclError:
            raise error from None


def listed(processes: Sequence[int]) -> tuple[object, int]:
    """Return processes as an array of C, and its length."""
    return (ctypes.c_int32 * len(processes))(*processes), len(processes)
