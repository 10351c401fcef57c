"""A host of tuner plugins: HCCL's part of the interface, for plugins built from C++.

Written from hicann/hccl @09300b7, `hccl_tuner_plugin.h` and `algo_name_mapper.cc`: contexts by tag,
a cost table with names in full and in three words, and the least cost wins.
"""

import ctypes
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hccl_interop.cpp.build import INCLUDE
from hccl_py.enums import DataType
from hccl_py.tuning.hccl_tuner import parted
from tests.interop.cpp.kit import compiler

OPS = {"all_reduce": 2, "all_gather": 6, "reduce_scatter": 7}
"""HcclCMDType by op."""

SOURCE = "HCCL_PY_DEMAND_HCCL"
"""The variable that names a checkout of HCCL's source."""


class Comm(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("ranks", "npus", "servers", "pods", "superPods")),
        ("name", ctypes.c_char_p),
        ("bufferSize", ctypes.c_uint64),
        ("structSize", ctypes.c_uint32),
    )


class Call(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("dataType", ctypes.c_int),
        ("structSize", ctypes.c_uint32),
    )


class Algorithm(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("name", "engine", "executor", "algorithm")),
        ("cost", ctypes.c_float),
        ("structSize", ctypes.c_uint32),
    )


_CREATE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
)
_GET = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_uint64),
)
_DESTROY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)


class Host(ctypes.Structure):
    _fields_ = (
        ("create", _CREATE),
        ("get", _GET),
        ("destroy", _DESTROY),
        ("log", ctypes.c_void_p),  # null: the plugins ask
        ("structSize", ctypes.c_uint32),
    )


class Plugin(ctypes.Structure):
    _fields_ = (
        ("init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
        (
            "choose",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_int,
                ctypes.POINTER(ctypes.c_int),
            ),
        ),
        ("structSize", ctypes.c_uint32),
    )


class TunerHost:
    """A loaded plugin, and the contexts of its communicators."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._plugin = Plugin.in_dll(self._library, "hcclTunerPlugin_v1")
        self._kept: dict[tuple[int, bytes], ctypes.Array[ctypes.c_char]] = {}
        self._host = Host(
            _CREATE(self._create), _GET(self._get), _DESTROY(lambda _, __: 0), None, 40
        )
        self._comms = 0

    def comm(self, ranks: int, servers: int, npus: int, buffer: int) -> int:
        """A new communicator, told to the plugin."""
        self._comms += 1
        about = Comm(ranks, npus, servers, 1, 1, b"group", buffer, ctypes.sizeof(Comm))
        host = ctypes.byref(self._host)
        assert self._plugin.init(self._comms, ctypes.byref(about), host) == 0
        return self._comms

    def chosen(
        self, comm: int, op: str, size: int, dtype: DataType, names: Sequence[str]
    ) -> str | None:
        """The algorithm that the plugin prefers among some; None where it has no say."""
        rows = (Algorithm * len(names))()
        for row, name in zip(rows, names, strict=True):
            words = parted(name, op) or ("", "", "")
            row.name = name.encode()
            row.engine, row.executor, row.algorithm = (word.encode() for word in words)
            row.cost = 5.0
        call, matched = Call(OPS[op], size, dtype.number, ctypes.sizeof(Call)), ctypes.c_int()
        done = self._plugin.choose(comm, ctypes.byref(call), rows, len(rows), matched)
        assert done == 0
        preferred = [row.name.decode() for row in rows if row.cost == 0.0]
        assert len(preferred) <= 1
        assert bool(preferred) <= bool(matched.value)
        return preferred[0] if preferred else None

    def _create(
        self, comm: int, tag: bytes, size: int, found: "ctypes._Pointer[ctypes.c_void_p]"
    ) -> int:
        self._kept[comm, tag] = ctypes.create_string_buffer(size)
        found[0] = ctypes.addressof(self._kept[comm, tag])
        return 0

    def _get(
        self,
        comm: int,
        tag: bytes,
        found: "ctypes._Pointer[ctypes.c_void_p]",
        size: "ctypes._Pointer[ctypes.c_uint64]",
    ) -> int:
        kept = self._kept.get((comm, tag))
        if kept is None:
            return 6
        found[0], size[0] = ctypes.addressof(kept), len(kept)
        return 0


def built(sources: Sequence[Path], includes: Sequence[Path], library: Path) -> Path:
    """A plugin from its sources; warnings are errors."""
    paths = [word for path in (*includes, INCLUDE) for word in ("-I", str(path))]
    flags = ["-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    command = [compiler(), *flags, *paths, *map(str, sources), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


def example_of_hccl(folder: Path) -> Path:
    """HCCL's example plugin, built from its source; without the source or nlohmann/json the test is
    skipped.
    """
    source = Path(os.environ.get(SOURCE, "/nowhere"))
    plugin = source / "examples/06_tuner_plugin/plugin.cpp"
    if not plugin.is_file() or not Path("/usr/include/nlohmann/json.hpp").is_file():
        pytest.skip(f"needs HCCL's source, named by {SOURCE}, and nlohmann-json3-dev")
    headers = source / "src/ops/op_common/selector/inc"
    return built([plugin], [headers], folder / "hccl_tuner_example.so")
