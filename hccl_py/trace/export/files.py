"""Files of scenes: which suffix is which format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hccl_py.documents.disk import PathLike, check_place, replacing
from hccl_py.documents.kind import FileKind
from hccl_py.trace.export.chrome import write_chrome
from hccl_py.trace.export.limits import FLOWS, left_out
from hccl_py.trace.export.perfetto import check_perfetto, write_perfetto
from hccl_py.trace.scene import Scene

CHROME = FileKind(
    noun="Chrome trace",
    parts="events",
    suffixes=(".json",),
    mark=re.compile(rb'^\{"otherData":\{"generator":"hccl-py"\}'),
)
PERFETTO = FileKind(
    noun="Perfetto trace",
    parts="packets",
    suffixes=(".pftrace", ".perfetto-trace"),
    mark=re.compile(rb"^.{,16}hccl-py", re.DOTALL),
)


def check_trace_file(path: PathLike, kind: FileKind) -> None:
    """Refuse, before any work, a file that could not be written, and a format that needs a package
    which is not there.
    """
    check_place(path, kind)
    if kind is PERFETTO:
        check_perfetto()


def write_trace_file(
    path: PathLike, scenes: Mapping[str, Scene], kind: FileKind, flows: int | None = None
) -> list[str]:
    """Write scenes by their names, "" for a single one, with at most so many flows each; return
    sentences on what is left out.

    FileError for a place that cannot be written.
    """
    most = FLOWS if flows is None else flows
    write = write_perfetto if kind is PERFETTO else write_chrome
    with replacing(path, kind) as part, Path(part).open("wb") as file:
        write(file, scenes, most)
    return left_out(scenes, most)
