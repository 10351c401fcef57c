"""From a program to npz: batches and formulas as they were recorded, nothing expanded.

    header         JSON: format, op, ranks, executor, names, labels, source lines
    buffer_sizes   [ranks, buffers]
    ends           [6, ends] rank, peer, plane, kind, far, notifies; exports [ends, 2 or more]
    local_slots    [slots, 2] stream and index
    declared       [3, ranks] sub streams, notifies, scratch bytes; declared_local [ranks, streams]
    stated         [ranks, 3] whether a rank stated its streams, local notifies, ends' notifies
    batches        [2, batches] how many ranks and instructions; batch_ranks, one after the other
    instructions   [10, n] what the ranks of a batch share: kind, stream, label, line, ...
    durations      [n] microseconds
    values         [6, n] what may differ by rank: cell, end, peer, offsets, size
    formula        [6, n] the row of `formulas` that stands in place of the value, or -1
    formulas       [f, 4] base, add, mod (0: none), table (-1: none); the numbers of arrays in pool
    pool           those arrays, one after the other, as long as pool_sizes says; equal ones once

A ring of 1 024 ranks and 10.5 million tasks has 10 232 instructions, 2 054 formulas, 11 arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from hccl_py.program.files.archive import Array, narrow, pack
from hccl_py.program.files.calls import calls_document
from hccl_py.program.files.op import op_object
from hccl_py.program.instruction import COLUMNS, Instruction
from hccl_py.program.program import Program
from hccl_py.values import IntArray, PerRank, RankInt

__all__ = ["ENDS", "NPZ_FORMAT", "SHARED", "to_npz"]

NPZ_FORMAT = "hccl-py.program.npz/2"
ENDS = ("rank", "peer", "plane", "kind", "far", "notifies")
SHARED = (
    *("kind", "stream", "label", "line", "round", "src_buffer", "dst_buffer", "dtype", "reduce"),
    "dst_size",
)


def to_npz(program: Program) -> bytes:
    """Return the bytes of a program's npz file; the same recording gives the same bytes."""
    transports, declared = program.transports, program.declared
    instructions = list(chain.from_iterable(batch.instructions for batch in program.batches))
    fields = dict(zip(Instruction._fields, zip(*instructions, strict=True), strict=False))
    pool = _Pool()
    rows = [pool.rows(fields.get(name, ())) for name in COLUMNS]
    sizes = [[len(b.ranks), len(b.instructions)] for b in program.batches]
    arrays: dict[str, Array] = {
        "buffer_sizes": program.buffer_sizes,
        "ends": np.array([getattr(transports, name) for name in ENDS], np.int64),
        "exports": transports.exports,
        "local_slots": np.array(program.local_notifies.slots, np.int64).reshape(-1, 2),
        "declared": np.array([declared.sub_streams, declared.notifies, declared.scratch_bytes]),
        "declared_local": declared.local_notifies,
        "stated": declared.stated.astype(np.int8),
        "batches": np.array(sizes, np.int64).reshape(-1, 2).T,
        "batch_ranks": _joined(batch.ranks for batch in program.batches),
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
        "labels": program.labels,
        "lines": program.lines,
        "splits": program.splits,
        "calls": calls_document(program.calls),
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
