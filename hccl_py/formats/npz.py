"""From a program to npz: batches and formulas as they were recorded, nothing expanded.

    header         JSON: format, op, ranks, executor, names, labels, source lines
    buffer_sizes   [ranks, buffers]
    ends           [6, ends] rank, peer, plane, kind, far, notifies; exports [ends, 2 or more]
    local_slots    [slots, 2] stream and index
    declared       [3, ranks] sub streams, notifies, scratch bytes; declared_local [ranks, streams]
    stated         [ranks, 3] whether a rank stated its streams, local notifies, ends' notifies
    batches        [2, batches] how many ranks and instructions; batch_ranks, one after the other
    instructions   [11, n] what the ranks of a batch share: kind, stream, label, line, ...
    durations      [n] microseconds
    values         [6, n] what may differ by rank: cell, end, peer, offsets, size
    formula        [6, n] the row of `formulas` that stands in place of the value, or -1
    formulas       [f, 4] base, add, mod (0: none), table (-1: none); the numbers of arrays in pool
    pool           those arrays, one after the other, as long as pool_sizes says; equal ones once

A ring of 1 024 ranks and 10.5 million tasks has 10 232 instructions, 2 054 formulas, 11 arrays.

The archive is numpy's format with fixed dates, so that the same program gives the same bytes, and
`np.load` reads it. It is read without trust: plain arrays of numbers only, and never more bytes
than its directory announces and the caller allows.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import defect
from hccl_py.errors import FileError
from hccl_py.formats.op import calls_document, op_object
from hccl_py.program.instruction import COLUMNS, Instruction
from hccl_py.program.narrowing import by_duration
from hccl_py.program.program import Program
from hccl_py.values import IntArray, PerRank, RankInt

NPZ_FORMAT = "hccl-py.program.npz/3"
ENDS = ("rank", "peer", "plane", "kind", "far", "notifies")
SHARED = (
    *("kind", "stream", "label", "line", "round", "src_buffer", "dst_buffer", "dtype", "reduce"),
    *("dst_size", "joined"),
)


def to_npz(program: Program) -> bytes:
    """Return the bytes of a program's npz file; the same recording gives the same bytes."""
    transports, declared = program.transports, program.declared
    batches = [part for batch in program.batches for part in by_duration(batch)]
    instructions = list(chain.from_iterable(batch.instructions for batch in batches))
    fields = dict(zip(Instruction._fields, zip(*instructions, strict=True), strict=False))
    pool = _Pool()
    rows = [pool.rows(fields.get(name, ())) for name in COLUMNS]
    sizes = [[len(b.ranks), len(b.instructions)] for b in batches]
    arrays: dict[str, Array] = {
        "buffer_sizes": program.buffer_sizes,
        "ends": np.array([getattr(transports, name) for name in ENDS], np.int64),
        "exports": transports.exports,
        "local_slots": np.array(program.local_notifies.slots, np.int64).reshape(-1, 2),
        "declared": np.array([declared.sub_streams, declared.notifies, declared.scratch_bytes]),
        "declared_local": declared.local_notifies,
        "stated": declared.stated.astype(np.int8),
        "batches": np.array(sizes, np.int64).reshape(-1, 2).T,
        "batch_ranks": _joined(batch.ranks for batch in batches),
        "instructions": np.array([fields.get(name, ()) for name in SHARED], np.int64),
        "values": np.array([values for values, _ in rows], np.int64),
        "formula": np.array([formula for _, formula in rows], np.int64),
        "formulas": np.array(pool.formulas, np.int64).reshape(-1, 4),
        "pool": _joined(pool.arrays),
        "pool_sizes": np.array(list(map(len, pool.arrays)), np.int64),
    }
    small = {name: narrow(array) for name, array in arrays.items()}
    header = np.frombuffer(_header(program).encode(), np.uint8)
    durations = np.array(fields.get("duration_us", ()), np.float64)
    return pack({"header": header, **small, "durations": durations})


def _header(program: Program) -> str:
    transports = program.transports
    header = {
        "format": NPZ_FORMAT,
        "op": op_object(program.op),
        "ranks": program.ranks,
        "executor": program.executor,
        "rounds": program.rounds,
        "buffers": program.buffers,
        "planes": transports.planes,
        "slots": transports.slots,
        "notify_names": transports.notify_names,
        "labels": program.labels,
        "lines": program.lines,
        "splits": program.splits,
        "calls": calls_document(program.calls),
        "protocol": program.protocol,
        "engine": program.engine,
        "notifies": "counting" if program.counts_posts else "one-bit",
        "alternating": program.alternating,
        "stream_names": program.stream_names,
    }
    return json.dumps(header)


def _joined(arrays: Iterable[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


class _Pool:
    """Formulas and the arrays that they look into, each kept once."""

    def __init__(self) -> None:
        self.formulas: list[tuple[int, int, int, int]] = []
        self.arrays: list[IntArray] = []
        self._numbers: dict[tuple[int, int, int, int], int] = {}
        self._contents: dict[bytes, int] = {}
        self._known: dict[int, int] = {}

    def rows(self, values: Sequence[RankInt]) -> tuple[list[int], list[int]]:
        """Return a column as numbers (0 for formulas) and as rows of formulas (-1 for numbers)."""
        if set(map(type, values)) <= {int}:
            return list(map(int, values)), [-1] * len(values)
        formula = [self._formula(v) if isinstance(v, PerRank) else -1 for v in values]
        return [0 if isinstance(v, PerRank) else int(v) for v in values], formula

    def _formula(self, value: PerRank) -> int:
        table = -1 if value.table is None else self._array(value.table)
        row = (self._array(value.base), value.add, value.mod or 0, table)
        if row not in self._numbers:
            self._numbers[row] = len(self.formulas)
            self.formulas.append(row)
        return self._numbers[row]

    def _array(self, array: IntArray) -> int:
        """Return the number of an array; `id` is safe while the program lives."""
        number = self._known.get(id(array))
        if number is None:
            content = np.ascontiguousarray(array, np.int64).tobytes()
            number = self._contents.setdefault(content, len(self.arrays))
            if number == len(self.arrays):
                self.arrays.append(array)
            self._known[id(array)] = number
        return number


Array = npt.NDArray[Any]

_DATE = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
_PLAIN_TYPES = "iuf"
_BROKEN = "The file is damaged or was written by another tool: write it again with hccl-py."


def pack(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of an npz file; the same arrays give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", _DATE)
            member.create_system = 3  # Unix, on every system
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, _LEVEL)
    return out.getvalue()


def unpack(data: bytes, names: Sequence[str], max_bytes: int) -> dict[str, Array]:
    """Return those of the named arrays that an npz file has."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            present = set(archive.namelist())
            infos = [archive.getinfo(f"{name}.npy") for name in names if f"{name}.npy" in present]
            total = sum(info.file_size for info in infos)
            if total > max_bytes:
                raise defect("", f"at most {max_bytes:,} bytes", f"{total:,}", _BROKEN)
            return {info.filename[:-4]: _array(archive, info) for info in infos}
    except FileError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for broken input
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FileError(f"$: not an npz file of a program ({reason:.120}).", _BROKEN) from None


def narrow(array: Array) -> Array:
    """Return whole numbers in the smallest type that holds them."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return array.astype(kind)
    return array.astype(np.int64)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Read an array; its header must agree with the bytes that are there."""
    content = io.BytesIO(archive.read(info))
    version = np.lib.format.read_magic(content)
    if version != (1, 0):
        raise ValueError(f"{info.filename} has version {version} of the npy format")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(content)
    data = content.read()
    count = int(np.prod(np.array(shape, object))) if shape else 1
    if dtype.kind not in _PLAIN_TYPES or count * dtype.itemsize != len(data):
        raise ValueError(f"{info.filename} does not hold {shape} plain numbers")
    flat = np.frombuffer(data, dtype)
    return flat.reshape(shape, order="F" if in_columns else "C")
