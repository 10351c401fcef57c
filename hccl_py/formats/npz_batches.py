"""From the arrays of an npz file to batches: fields that ranks share, and columns that vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import defect
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.formats.npz import SHARED, Array
from hccl_py.formats.npz_formulas import REWRITE, Formulas, formulas_from, shaped, within
from hccl_py.program.builder.columns import frozen
from hccl_py.program.instruction import COLUMNS, ONE_SUM, Batch, Instruction
from hccl_py.program.limits import LIMIT, MAX_NUMBER, MAX_ROUND
from hccl_py.values import IntArray

_KINDS = tuple(TaskKind)
_TYPE_NUMBERS = tuple(dtype.number for dtype in DataType)
STREAM = SHARED.index("stream")


@dataclass(frozen=True)
class IndexLimits:
    """Counts of the things that instructions name by number."""

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


def _check_shared(shared: Mapping[str, IntArray], limits: IndexLimits) -> None:
    highs = {
        "kind": len(_KINDS) - 1,
        "stream": MAX_NUMBER - 1,
        "label": limits.labels - 1,
        "line": limits.lines - 1,
        "round": MAX_ROUND,
        "src_buffer": limits.buffers - 1,
        "dst_buffer": limits.buffers - 1,
        "dtype": max(_TYPE_NUMBERS),
        "reduce": len(ReduceOp) - 1,
        "dst_size": LIMIT,
        "joined": ONE_SUM,
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
    """Return a mask of the instructions whose kind has a trait."""
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
