"""From npz to a program: every number is checked, so that no later step meets one out of range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from hccl_py.documents.checks import an_object, defect, format_value
from hccl_py.documents.kind import named
from hccl_py.documents.models import Strict, checked
from hccl_py.documents.parse import parse_document
from hccl_py.enums import LinkKind
from hccl_py.formats.checks import NPZ_LIMIT, PROGRAM
from hccl_py.formats.memory import alternating_from
from hccl_py.formats.models import NotifyKind
from hccl_py.formats.npz import ENDS, NPZ_FORMAT, Array, unpack
from hccl_py.formats.npz_batches import STREAM, IndexLimits, batches_from
from hccl_py.formats.npz_formulas import REWRITE, shaped, within
from hccl_py.formats.op import calls_from, op_from
from hccl_py.program.builder.columns import frozen
from hccl_py.program.limits import LIMIT, MAX_BUFFERS, MAX_NUMBER, MAX_RANKS, MAX_SLOTS
from hccl_py.program.program import Declared, Program
from hccl_py.program.transports import NOTIFY_NAMES, LocalNotifies, Transports
from hccl_py.values import IntArray

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


class _Header(Strict):
    """The header: properties that are no columns."""

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
    engine: Literal["", "aicpu_ts", "ccu", "host"] = ""
    notifies: NotifyKind = "one-bit"
    alternating: list[Any] | None = None
    stream_names: list[str] | None = None


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
        engine=header.engine,
        counts_posts=header.notifies == "counting",
        alternating=alternating_from(
            header.alternating or [], header.buffers, "header.alternating"
        ),
        splits=tuple(header.splits),
        stream_names=tuple(header.stream_names or ()),
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
    used = (columns[0], arrays["local_slots"][:, 0], arrays["instructions"][STREAM])
    needed = 1 + max(int(streams.max(initial=0)) for streams in used)
    if local.shape[1] < needed:
        raise defect("declared_local", f"{needed} streams", str(local.shape[1]), REWRITE)
    stated = shaped(arrays, "stated", (ranks, 3))
    within("stated", stated, 0, 1)
    subs, notifies, scratch = map(frozen, columns)
    return Declared(subs, notifies, scratch, frozen(local), frozen(stated.astype(bool)))
