"""A scene as the page reads it: texts that are safe to show, tables, and columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.printable import one_line
from hccl_py.program.describe import BUFFER_WORDS
from hccl_py.trace.page.packing import Numbers, block
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


def scene_block(scene: Scene) -> bytes:
    """Return a scene as one block of base64."""
    return block(_header(scene), _columns(scene))


def _header(scene: Scene) -> dict[str, Any]:
    links, memory = scene.links, scene.memory
    return {
        "format": "hccl-py.page/1",
        "title": _safe(scene.title),
        "facts": [[_safe(name), _safe(value)] for name, value in scene.facts],
        "clock": scene.clock,
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
