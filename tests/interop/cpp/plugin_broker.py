"""A broker of HCCL's algorithm plugin: its walk over the files, its questions, its rules.

Written from HCCL's `plugin_broker.cc` and `hccl_algo_plugin_mgr.cc`: what HCCL refuses or skips is
refused or skipped here.
"""

import _ctypes
import ctypes
import os
import stat
from dataclasses import dataclass
from pathlib import Path

NOTHING = -1


class Param(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("version", "magic", "structSize")),
        ("opType", ctypes.c_int),
        ("opName", ctypes.c_char * 32),
        ("count", ctypes.c_uint64),
        ("root", ctypes.c_uint32),
        ("topoType", ctypes.c_int),
        ("topoName", ctypes.c_char * 32),
        ("rankNum", ctypes.c_uint32),
        ("serverNum", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("sendBuf", "recvBuf", "stream")),
        ("dataType", ctypes.c_int),
        ("reduceOp", ctypes.c_int),
        *(
            (name, ctypes.c_uint32)
            for name in ("remoteRank", "deviceNumPerModule", "moduleNum", "superPodNum", "perPod")
        ),
        ("isAsymmetricTopo", ctypes.c_bool),
        ("reserved", ctypes.c_uint32 * 7),
    )


class Entry(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("version", "magic", "structSize")),
        ("algName", ctypes.c_char * 128),
        ("soPath", ctypes.c_char * 512),
        ("fnSymbol", ctypes.c_char * 128),
    )


@dataclass(frozen=True)
class Found:
    """An algorithm of the registry."""

    name: str
    library: Path
    function: str


def call(op: str, count: int, ranks: int, *, servers: int = 1, **about: int | bool) -> Param:
    """A call of fp32 sums, unless `about` says otherwise."""
    given = {"dataType": 4, "reduceOp": 0} | about
    head = {"version": 1, "magic": 0x48415050, "structSize": ctypes.sizeof(Param)}
    return Param(**head, opName=op.encode(), count=count, rankNum=ranks, serverNum=servers, **given)


class Broker:
    """The registry of a root; `refused` says why there is none."""

    def __init__(self, root: Path) -> None:
        self.algorithms: dict[str, list[Found]] = {}
        self._selectors: dict[str, Path] = {}
        self.refused = _distrust(root)
        for folder in sorted(root.iterdir()) if not self.refused else ():
            word = folder.name.lower()
            selector = folder / f"libhccl_plugin_{word}_selector.so"
            if folder.is_dir() and selector.exists() and stat.S_ISREG(selector.lstat().st_mode):
                self._selectors[word] = selector
                self.algorithms[word] = _asked(selector)

    def chosen(self, param: Param) -> Found | None:
        """The algorithm that the op's selector names for a call; None where HCCL goes on."""
        selector = self._selectors.get(param.opName.decode().lower())
        if selector is None:
            return None
        library = ctypes.CDLL(str(selector), os.RTLD_NOW | os.RTLD_LOCAL)
        library.Select.restype = ctypes.c_bool
        name = ctypes.create_string_buffer(128)
        is_taken = library.Select(ctypes.byref(param), name, ctypes.c_size_t(len(name)))
        _ctypes.dlclose(library._handle)
        if not is_taken:
            return None
        known = self.algorithms[param.opName.decode().lower()]
        return next(found for found in known if found.name == name.value.decode())


def _distrust(root: Path) -> str:
    if root.is_symlink():
        return "a link"
    if not root.is_dir():
        return "no folder"
    writable = root.resolve().stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return "writable for others" if writable else ""


def _asked(selector: Path) -> list[Found]:
    library = ctypes.CDLL(str(selector), os.RTLD_NOW | os.RTLD_LOCAL)
    query = library.HcclAlgoPluginQueryEntries
    query.restype = ctypes.POINTER(Entry)
    count = ctypes.c_int()
    entries = query(ctypes.byref(count))
    found: list[Found] = []
    for entry in entries[: count.value]:
        assert entry.magic == 0x48415045
        name = entry.algName.decode()
        if name not in (one.name for one in found):
            found.append(Found(name, Path(entry.soPath.decode()), entry.fnSymbol.decode()))
    _ctypes.dlclose(library._handle)
    return found
