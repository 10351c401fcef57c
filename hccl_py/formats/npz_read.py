"""From npz to a program: every number is checked, so that no later step meets one out of range.

Formulas are bounded without computing them: by the least and the greatest number of their base,
their modulus or their table. Only one whose bounds are too wide is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import an_object, defect, format_value
from hccl_py.documents.kind import named
from hccl_py.documents.models import Strict, checked
from hccl_py.documents.parse import parse_document
from hccl_py.enums import DataType, LinkKind, ReduceOp, TaskKind
from hccl_py.formats.checks import (
    LIMIT,
    MAX_BUFFERS,
    MAX_NUMBER,
    MAX_RANKS,
    MAX_SLOTS,
    NPZ_LIMIT,
    PROGRAM,
    frozen,
)
from hccl_py.formats.memory import alternating_from
from hccl_py.formats.models import NotifyKind
from hccl_py.formats.npz import ENDS, NPZ_FORMAT, SHARED, Array, unpack
from hccl_py.formats.op import calls_from, op_from
from hccl_py.program.instruction import COLUMNS, Batch, Instruction
from hccl_py.program.program import Declared, Program
from hccl_py.program.transports import NOTIFY_NAMES, LocalNotifies, Transports
from hccl_py.values import IntArray, PerRank

__all__ = ["from_npz"]

_DIMENSIONS = {
    "header": 1,
    "buffer_sizes": 2,
    "ends": 2,
    "exports": 2,
    "local_slots": 2,
    "declared": 2,
    "declared_local": 2,
    "stated": 2,
    "batches": 2,
    "batch_ranks": 1,
    "instructions": 2,
    "durations": 1,
    "values": 2,
    "formula": 2,
    "formulas": 2,
    "pool": 1,
    "pool_sizes": 1,
}
_TYPES = {"header": "u", "durations": "f"}
_STREAM = SHARED.index("stream")


class _Header(Strict):
    """What is not a column."""

    format: str
    op: Any
    ranks: int
    executor: str
    rounds: int
    buffers: list[str]
    planes: list[str]
    slots: int
    notify_names: list[str] | None = None
    labels: list[str]
    lines: list[str]
    splits: list[str]
    calls: list[Any]
    protocol: Literal["", "Simple", "LL", "LL128"] = ""
    notifies: NotifyKind = "one-bit"
    alternating: list[Any] | None = None


def from_npz(data: bytes, name: str = "program", max_bytes: int = NPZ_LIMIT) -> Program:
    """Return the program of an npz file that unpacks to at most `max_bytes`.

    Raises ProgramFileError, whose message starts with `name` and the array, for everything that
    `to_npz` does not write.
    """

    def read() -> Program:
        arrays = unpack(data, list(_DIMENSIONS), max_bytes)
        header = _header(_typed(arrays, "header"))
        return _program(header, {key: _typed(arrays, key) for key in _DIMENSIONS})

    return named(name, PROGRAM, read)


def _typed(arrays: Mapping[str, Array], name: str) -> Array:
    """Return an array of the right type and dimensions."""
    if name not in arrays:
        raise defect(name, "an array", "nothing", REWRITE)
    array, kind = arrays[name], _TYPES.get(name, "i")
    dimensions = _DIMENSIONS[name]
    if array.dtype.kind != kind or array.ndim != dimensions:
        expected = f"{dimensions} dimensions of type {kind}"
        raise defect(name, expected, f"{array.ndim} of type {array.dtype.kind}", REWRITE)
    return array.astype(np.int64) if kind == "i" else array


def _header(array: Array) -> _Header:
    document = an_object("header", parse_document(array.tobytes(), PROGRAM), REWRITE)
    if document.get("format") != NPZ_FORMAT:
        hint = "Other versions of hccl-py have other npz files; JSON files keep their format."
        raise defect("header.format", f'"{NPZ_FORMAT}"', format_value(document.get("format")), hint)
    header = checked(_Header, document, "header")
    within("header.ranks", np.array([header.ranks], object), 1, MAX_RANKS)
    within("header.rounds", np.array([header.rounds], object), 1, LIMIT)
    within("header.slots", np.array([header.slots], object), 0, MAX_NUMBER)
    within("header.buffers", np.array([len(header.buffers)]), 0, MAX_BUFFERS)
    return header


def _program(header: _Header, arrays: Mapping[str, Array]) -> Program:
    transports = _transports(header, arrays)
    local_notifies = _local_notifies(arrays["local_slots"])
    sizes = shaped(arrays, "buffer_sizes", (header.ranks, len(header.buffers)))
    within("buffer_sizes", sizes, 0, LIMIT)
    limits = IndexLimits(
        ranks=header.ranks,
        buffers=len(header.buffers),
        labels=len(header.labels),
        lines=len(header.lines),
        ends=len(transports),
        cells=transports.cells + header.ranks * len(local_notifies.slots),
    )
    batches, declared = batches_from(arrays, limits), _declared(header.ranks, arrays)
    return Program(
        op=op_from(header.op, header.ranks, "header.op"),
        executor=header.executor,
        ranks=header.ranks,
        buffers=tuple(header.buffers),
        buffer_sizes=frozen(sizes),
        transports=transports,
        local_notifies=local_notifies,
        declared=declared,
        batches=batches,
        labels=tuple(header.labels),
        lines=tuple(header.lines),
        rounds=header.rounds,
        calls=calls_from(header.calls, "header.calls"),
        protocol=header.protocol,
        counts_posts=header.notifies == "counting",
        alternating=alternating_from(
            header.alternating or [], header.buffers, "header.alternating"
        ),
        splits=tuple(header.splits),
    )


def _transports(header: _Header, arrays: Mapping[str, Array]) -> Transports:
    count = arrays["ends"].shape[1]
    rank, peer, plane, kind, far, notifies = shaped(arrays, "ends", (len(ENDS), count))
    for column in (rank, peer):
        within("ends", column, 0, header.ranks - 1)
    within("ends", plane, 0, len(header.planes) - 1)
    within("ends", kind, 0, len(LinkKind) - 1)
    within("ends", far, 0, count - 1)
    within("ends", notifies, 0, MAX_NUMBER)
    if (far[far] != np.arange(count)).any() or (rank[far] != peer).any():
        raise defect("ends", "every end's other side", "another end", REWRITE)
    exports = shaped(arrays, "exports", (count, arrays["exports"].shape[1]))
    within("exports", exports, -1, len(header.buffers) - 1)
    return Transports(
        planes=tuple(header.planes),
        rank=rank,
        peer=peer,
        plane=plane,
        kind=kind.astype(np.int8),
        far=far,
        exports=exports.astype(np.int8),
        notifies=notifies.astype(np.int16),
        slots=header.slots,
        notify_names=NOTIFY_NAMES if header.notify_names is None else tuple(header.notify_names),
    )


def _local_notifies(slots: IntArray) -> LocalNotifies:
    if slots.shape[1] != 2 or len(slots) > MAX_SLOTS:
        raise defect("local_slots", "pairs of stream and index", str(slots.shape), REWRITE)
    within("local_slots", slots, 0, MAX_NUMBER)
    return LocalNotifies(tuple(map(tuple, slots.tolist())))


def _declared(ranks: int, arrays: Mapping[str, Array]) -> Declared:
    columns = shaped(arrays, "declared", (3, ranks))
    within("declared", columns, 0, LIMIT)
    within("declared", columns[0], 0, MAX_NUMBER)
    local = shaped(arrays, "declared_local", (ranks, arrays["declared_local"].shape[1]))
    within("declared_local", local, 0, MAX_NUMBER)
    used = (columns[0], arrays["local_slots"][:, 0], arrays["instructions"][_STREAM])
    needed = 1 + max(int(streams.max(initial=0)) for streams in used)
    if local.shape[1] < needed:
        raise defect("declared_local", f"{needed} streams", str(local.shape[1]), REWRITE)
    stated = shaped(arrays, "stated", (ranks, 3))
    within("stated", stated, 0, 1)
    subs, notifies, scratch = map(frozen, columns)
    return Declared(subs, notifies, scratch, frozen(local), frozen(stated.astype(bool)))


_KINDS = tuple(TaskKind)


@dataclass(frozen=True)
class IndexLimits:
    """How many there are of what instructions name by number."""

    ranks: int
    buffers: int
    labels: int
    lines: int
    ends: int
    cells: int


def batches_from(arrays: Mapping[str, Array], limits: IndexLimits) -> tuple[Batch, ...]:
    """Return the batches of a file."""
    sizes = shaped(arrays, "batches", (2, arrays["batches"].shape[1]))
    ranks, count = arrays["batch_ranks"], arrays["instructions"].shape[1]
    within("batches", sizes[0], 1, limits.ranks)
    within("batches", sizes[1], 0, count)
    if sizes.sum(axis=1).tolist() != [len(ranks), count]:
        expected = f"{len(ranks)} ranks and {count} instructions"
        raise defect("batches", expected, "other sums", REWRITE)
    within("batch_ranks", ranks, 0, limits.ranks - 1)
    if len(np.unique(ranks)) != len(ranks):
        raise defect("batch_ranks", "every rank once", "one twice", REWRITE)
    instructions = _instructions(arrays, np.repeat(sizes[0], sizes[1]), limits)
    members = np.split(ranks, np.cumsum(sizes[0])[:-1]) if sizes.size else []
    parts = pairwise([0, *np.cumsum(sizes[1]).tolist()])
    return tuple(
        Batch(frozen(ids.copy()), tuple(instructions[start:stop]))
        for ids, (start, stop) in zip(members, parts, strict=True)
    )


def _instructions(
    arrays: Mapping[str, Array], lanes: IntArray, limits: IndexLimits
) -> list[Instruction]:
    """Return all instructions; `lanes` says how many ranks each stands for."""
    columns = shaped(arrays, "instructions", (len(SHARED), len(lanes)))
    shared = dict(zip(SHARED, columns, strict=True))
    durations = arrays["durations"]
    if durations.shape != lanes.shape or not (np.isfinite(durations) & (durations >= 0)).all():
        raise defect("durations", "a duration per instruction", "others", REWRITE)
    _check_shared(shared, limits)
    fields = {name: column.tolist() for name, column in shared.items()}
    fields["kind"] = [_KINDS[kind] for kind in shared["kind"].tolist()]
    fields["duration_us"] = durations.tolist()
    fields |= _varying(arrays, shared["kind"], lanes, limits)
    ordered = [fields[name] for name in Instruction._fields]
    return list(map(Instruction._make, zip(*ordered, strict=True)))


_TYPE_NUMBERS = tuple(dtype.number for dtype in DataType)


def _check_shared(shared: Mapping[str, IntArray], limits: IndexLimits) -> None:
    highs = {
        "kind": len(_KINDS) - 1,
        "stream": MAX_NUMBER - 1,
        "label": limits.labels - 1,
        "line": limits.lines - 1,
        "round": 2**31 - 2,
        "src_buffer": limits.buffers - 1,
        "dst_buffer": limits.buffers - 1,
        "dtype": max(_TYPE_NUMBERS),
        "reduce": len(ReduceOp) - 1,
        "dst_size": LIMIT,
        "joined": 1,
    }
    for name, column in shared.items():
        within(f"instructions.{name}", column, -1, highs[name])
    unknown = shared["dtype"][~np.isin(shared["dtype"], (-1, *_TYPE_NUMBERS))]
    if len(unknown):
        raise defect("instructions.dtype", "numbers of data types", str(unknown[0]), REWRITE)
    kind = shared["kind"]
    for name in ("kind", "stream", "round", "joined"):
        within(f"instructions.{name}", shared[name], 0, highs[name])
    for name in ("src_buffer", "dst_buffer", "dtype"):
        within(f"instructions.{name}", shared[name][_of(kind, "moves_data")], 0, highs[name])
    within("instructions.reduce", shared["reduce"][_of(kind, "reduces")], 0, highs["reduce"])


def _of(kind: IntArray, trait: str) -> npt.NDArray[np.bool_]:
    """Return which instructions are of a kind that has a trait."""
    return np.array([getattr(k, trait) for k in _KINDS], bool)[kind]


def _varying(
    arrays: Mapping[str, Array], kind: IntArray, lanes: IntArray, limits: IndexLimits
) -> dict[str, list[object]]:
    """Return the columns that differ by rank, as numbers and formulas."""
    formulas = formulas_from(arrays)
    shape = (len(COLUMNS), len(lanes))
    values, rows = shaped(arrays, "values", shape), shaped(arrays, "formula", shape)
    within("formula", rows, -1, len(formulas.values) - 1)
    notifies = (kind == TaskKind.NOTIFY_POST) | (kind == TaskKind.NOTIFY_WAIT)
    away = _of(kind, "reads_remote") | _of(kind, "writes_remote")
    bounds = {
        "cell": (np.where(notifies, 0, -1), limits.cells - 1),
        "end": (np.where(away, 0, -1), limits.ends - 1),
        "peer": (np.where(away, 0, -1), limits.ranks - 1),
    }
    found: dict[str, list[object]] = {}
    for name, column, row in zip(COLUMNS, values, rows, strict=True):
        low, high = bounds.get(name, (np.zeros(len(lanes), np.int64), LIMIT))
        plain = np.flatnonzero(row < 0)
        within(f"values.{name}", column[plain] - low[plain], 0, LIMIT)
        within(f"values.{name}", column[plain], -1, high)
        found[name] = _mixed(name, column, row, lanes, formulas)
        held = row >= 0
        formulas.check(f"formula.{name}", row[held], low[held], high)
    return found


def _mixed(
    name: str, column: IntArray, row: IntArray, lanes: IntArray, formulas: Formulas
) -> list[object]:
    """Return numbers, with formulas in their places."""
    found: list[object] = column.tolist()
    places = np.flatnonzero(row >= 0)
    if (formulas.lanes[row[places]] != lanes[places]).any():
        raise defect(f"formula.{name}", "a number per rank of the batch", "others", REWRITE)
    for place in places.tolist():
        found[place] = formulas.values[row[place]]
    return found


REWRITE = "Write the file again with hccl-py."


@dataclass(frozen=True, eq=False)
class Formulas:
    """Values by row of the file's `formulas`: how many ranks each has, its least and greatest
    number.
    """

    values: list[PerRank]
    lanes: IntArray
    low: IntArray
    high: IntArray

    def check(self, path: str, rows: IntArray, low: IntArray, high: int) -> None:
        """Refuse formulas that have a number outside of low[k] .. high."""
        suspect = (self.low[rows] < low) | (self.high[rows] > high)
        for row, least in zip(rows[suspect].tolist(), low[suspect].tolist(), strict=True):
            within(path, self.values[row].values(), least, high)


def formulas_from(arrays: Mapping[str, Array]) -> Formulas:
    """Return the formulas of a file."""
    base, add, mod, table = shaped(arrays, "formulas", (len(arrays["formulas"]), 4)).T
    sizes, pool = arrays["pool_sizes"], arrays["pool"]
    within("pool_sizes", sizes, 1, max(len(pool), 1))
    if int(sizes.sum()) != len(pool):
        raise defect("pool_sizes", f"{len(pool)} numbers in all", str(sizes.sum()), REWRITE)
    within("pool", pool, -LIMIT, LIMIT)
    within("formulas", base, 0, len(sizes) - 1)
    within("formulas", add, -LIMIT, LIMIT)
    within("formulas", table, -1, len(sizes) - 1)
    looks_up = table >= 0
    within("formulas", mod[~looks_up], 0, LIMIT)
    if (looks_up & ((mod < 1) | (mod > sizes[table]))).any():
        raise defect("formulas", "a modulus within the table", "another one", REWRITE)
    starts = np.cumsum(sizes) - sizes
    low, high = (least.reduceat(pool, starts) if len(sizes) else sizes for least in _EXTREMES)
    parts = [frozen(part) for part in np.split(pool, starts[1:])]
    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    values = [
        PerRank(parts[b], a, m or None, parts[t] if t >= 0 else None, bounds[b])
        for b, a, m, t in arrays["formulas"].tolist()
    ]
    least = np.where(looks_up, low[table], np.where(mod > 0, 0, low[base] + add))
    most = np.where(looks_up, high[table], np.where(mod > 0, mod - 1, high[base] + add))
    return Formulas(values, sizes[base], least, most)


_EXTREMES = (np.minimum, np.maximum)


def shaped(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> IntArray:
    """Return an array that must have a shape."""
    if arrays[name].shape != shape:
        raise defect(name, f"the shape {shape}", str(arrays[name].shape), REWRITE)
    return arrays[name]


def within(path: str, numbers: Array, low: int, high: int) -> None:
    """Refuse numbers outside of low .. high."""
    wrong = (numbers < low) | (numbers > high)
    if wrong.any():
        raise defect(path, f"numbers from {low} to {high}", str(numbers[wrong][0]), REWRITE)
