"""A scene as the page reads it: texts that are safe to show, tables, and columns.

Columns of numbers become bytes that pack well: the narrowest type, byte planes, gzip, base64. A
block is the length of a header (four bytes), the header as JSON, and the columns. Of a column all
lowest bytes come first, then all second ones, and so on: neighbours are alike, which gzip likes.
static/decode.js reads it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.language import LANGUAGES, speaking, translated
from hccl_py.printable import one_line
from hccl_py.program.describe import BUFFER_WORDS
from hccl_py.trace.pictures.algorithm_steps import AlgorithmSteps, step_of_finding
from hccl_py.trace.scene import MemoryStates, Scene
from hccl_py.trace.words import mark_of
from hccl_py.verifier.finding import Finding

LONGEST = 2000
"""Characters of a text that are kept: texts in files can have any length."""

_BARS = (
    *("lane", "kind", "start_us", "end_us", "effect_us", "size", "peer", "round", "label"),
    *("source", "number", "notify", "partner", "src_rank", "src_buffer", "src_offset"),
    *("dst_rank", "dst_buffer", "dst_offset", "dst_size", "connection", "state"),
)


def scene_block(scene: Scene, steps: AlgorithmSteps) -> bytes:
    """Return a scene and its steps as one block of base64."""
    header = {**_header(scene), "steps": _steps(scene, steps)}
    return block(header, _columns(scene) | _step_columns(scene, steps))


def _header(scene: Scene) -> dict[str, Any]:
    links, memory = scene.links, scene.memory
    return {
        "format": "hccl-py.page/1",
        "said": {language: _said(scene, language) for language in LANGUAGES},
        "clock": scene.clock,
        "verified": scene.is_verified,
        "total_us": scene.total_us,
        "left_out": _safe(scene.left_out),
        "memory_left_out": _safe(scene.memory_left_out),
        "rounds": int(scene.bars.round.max(initial=0)) + 1,
        "kinds": [{"name": kind.spelling, "class": _class_of(kind)} for kind in TaskKind],
        "labels": _texts(scene.labels),
        "sources": _texts(scene.sources),
        "notifies": _texts(scene.notifies),
        "buffers": _texts(scene.buffers),
        "buffer_words": _texts(BUFFER_WORDS.get(name, name) for name in scene.buffers),
        "lane_names": _texts(scene.lanes.names),
        "findings": [_finding(found.finding, found.bars) for found in scene.findings],
        "links": None
        if links is None
        else {"names": [_texts(ends) for ends in links.ends], "more": links.left_out},
        "memory": memory is not None,
        "origins": [] if memory is None else [list(ranks) for ranks in memory.origins],
    }


def _said(scene: Scene, language: str) -> dict[str, Any]:
    """Return the title in a language, and the facts: rows of name, value and the English name."""
    with speaking(language):
        rows = [(translated(name), translated(value), name) for name, value in scene.facts]
        return {"title": _safe(translated(scene.title)), "facts": [_texts(row) for row in rows]}


def _class_of(kind: TaskKind) -> str:
    """Return the class of a task's work, one of those in static/scene.js."""
    return "post" if kind is TaskKind.NOTIFY_POST else mark_of(kind)


def _finding(finding: Finding, bars: Iterable[int]) -> dict[str, Any]:
    return {
        "name": finding.name,
        "severity": finding.severity.name.lower(),
        "message": _safe(finding.message),
        "hint": _safe(finding.hint),
        "source": _safe(finding.source or ""),
        "more": finding.more,
        "bars": [int(bar) for bar in bars],
        "ranks": [int(rank) for rank in finding.ranks],
        "memory": [[m.rank, _safe(m.buffer), m.start, m.stop] for m in finding.memory],
    }


def _texts(texts: Iterable[str]) -> list[str]:
    return [_safe(text) for text in texts]


def _safe(text: str) -> str:
    """Return a text on one line, with escapes for what is not printable, and not too long."""
    if len(text) <= LONGEST:
        return one_line(text)
    return f"{one_line(text[:LONGEST])} … ({len(text):,} characters, shortened)"


def _columns(scene: Scene) -> dict[str, Numbers]:
    found = {f"bars.{name}": getattr(scene.bars, name) for name in _BARS}
    for name in ("rank", "stream", "first"):
        found[f"lanes.{name}"] = getattr(scene.lanes, name)
    for table, names in (
        ("phases", ("lane", "start_us", "end_us", "label", "round")),
        ("critical", ("bar", "begin_us", "end_us")),
        ("traffic", ("source", "target", "bytes", "share")),
        ("links", ("gbps", "bytes", "share", "load")),
    ):
        values = getattr(scene, table)
        if values is not None:
            found |= {f"{table}.{name}": getattr(values, name) for name in names}
    found |= {"ranks": scene.ranks, "twin": scene.twins, "usage": np.asarray(scene.usage)}
    return found | _memory(scene.memory)


def _memory(memory: MemoryStates | None) -> dict[str, Numbers]:
    if memory is None:
        return {}
    names = ("sizes", "bar", "at_us", "rank", "buffer", "start", "stop", "content", "offset")
    return {f"memory.{name}": getattr(memory, name) for name in names}


def _steps(scene: Scene, steps: AlgorithmSteps) -> dict[str, Any]:
    """Return the tables of the steps: texts, places, and sets of cells as hexadecimal texts."""
    cells, rows = steps.cells, scene.bars.row
    return {
        "noun": steps.nodes.noun,
        "names": steps.nodes.names,
        "node_of": [] if steps.nodes.noun == "rank" else steps.nodes.of_rank.tolist(),
        "devices": int(steps.places.place.max(initial=0)) + 1,
        "leads": [k for k, place in enumerate(steps.places.place.tolist()) if not place],
        "seats": steps.seats._asdict(),
        "list": [
            {
                "label": _safe(step.label),
                "phase": _safe(step.phase),
                "clauses": [clause._asdict() for clause in step.clauses],
                "ending": step.ending,
                "begin": step.begin_us,
                "end": step.end_us,
                "each": step.each,
                "pairs": step.pairs,
                "inside": step.inside,
            }
            for step in steps.steps
        ],
        "cells": None
        if cells is None
        else {
            **{"rows": cells.rows, "columns": cells.columns, "sources": cells.sources},
            **{"owners": cells.owners, "reduces": cells.reduces},
            "holds": [[f"{held:x}" for held in ranks] for ranks in cells.holds],
            "wanted": [f"{held:x}" for held in cells.wanted],
            "parts": [f"{parts:x}" for parts in cells.parts],
            "labels": cells.labels,
        },
        "findings": [
            step_of_finding(steps, [int(rows[bar]) for bar in found.bars])
            for found in scene.findings
        ],
    }


def _step_columns(scene: Scene, steps: AlgorithmSteps) -> dict[str, Numbers]:
    found = {f"moves.{name}": column for name, column in steps.moves._asdict().items()}
    of_bar = steps.step[scene.bars.row]
    return found | {"steps.of_bar": of_bar, "steps.share": steps.share.astype(np.float32)}


Numbers = npt.NDArray[Any]

_LEVEL = 4
"""Of gzip: 6 takes three times as long and saves a twentieth."""


def block(header: Mapping[str, Any], columns: Mapping[str, Numbers]) -> bytes:
    """Return a header and columns as base64; the header gets a key `columns` that says where."""
    entries: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    for name, values in columns.items():
        entries[name], data = _column(np.ascontiguousarray(values).reshape(-1), offset)
        parts.append(data)
        offset += len(data)
    head = json.dumps({**header, "columns": entries}, allow_nan=False).encode("ascii")
    raw = b"".join([len(head).to_bytes(4, "little"), head, *parts])
    return base64.b64encode(gzip.compress(raw, _LEVEL, mtime=0))


def _column(values: Numbers, offset: int) -> tuple[dict[str, Any], bytes]:
    entry: dict[str, Any] = {"length": len(values)}
    if len(values) == 0:
        return {**entry, "type": "i1", "constant": 0}, b""
    narrow = _narrow(values)
    entry["type"] = f"{narrow.dtype.kind}{narrow.dtype.itemsize}"
    first = narrow[0].item()
    if np.isfinite(first) and (narrow == first).all():
        return {**entry, "constant": first}, b""
    planes = narrow.view(np.uint8).reshape(len(narrow), narrow.dtype.itemsize)
    return {**entry, "offset": offset}, planes.T.tobytes()


def _narrow(values: Numbers) -> Numbers:
    """Return the same numbers in the narrowest little-endian type that a browser has; integers
    beyond 32 bits as floats, which hold them exactly below 2 ** 53.
    """
    if values.dtype.kind == "f":
        return values.astype(f"<f{values.dtype.itemsize}")
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(np.dtype(kind).newbyteorder("<"))
    return values.astype("<f8")
