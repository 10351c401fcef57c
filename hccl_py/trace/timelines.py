"""Timelines of scenes in files: a page, or a trace for other viewers, by the suffix."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hccl_py.documents.disk import check_place, format_path
from hccl_py.documents.kind import FileKind
from hccl_py.trace.export import CHROME, PERFETTO, check_trace_file, write_trace_file
from hccl_py.trace.page import check_page, write_page
from hccl_py.trace.scene import Scene

_TIMELINE = FileKind(
    noun="timeline",
    parts="events",
    suffixes=(".json", ".html", ".pftrace", ".perfetto-trace"),
)

log = logging.getLogger(__name__)


def check_timeline(path: str) -> None:
    """Refuse, before anything runs, a file that no timeline could be written to."""
    check_place(path, _TIMELINE)
    kind = _kind_of(path)
    if kind is None:
        check_page(path)
    else:
        check_trace_file(path, kind)


def write_timeline(path: str, scenes: Mapping[str, Scene]) -> None:
    """Write scenes by their names, as the suffix says."""
    kind = _kind_of(path)
    if kind is None:
        write_page(path, list(scenes.values()))
    else:
        log_omissions(path, write_trace_file(path, scenes, kind))


def log_omissions(path: str, sentences: list[str]) -> None:
    """Log the sentences about tasks and flows that a file leaves out."""
    for sentence in sentences:
        log.info("%s: %s", format_path(path), sentence)


def _kind_of(path: str) -> FileKind | None:
    """Return the kind of trace that a suffix stands for; None for a page."""
    suffix = Path(path).suffix.lower()
    if suffix == ".html":
        return None
    return PERFETTO if suffix in PERFETTO.suffixes else CHROME
