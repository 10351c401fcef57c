"""The files that `hccl-py trace` writes of what there is to see."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_py.cli.options import ProgramOptions, TimeModel
from hccl_py.cli.request import request_of
from hccl_py.cli.scenes import scene_of_plan
from hccl_py.cli.time_model import model_of
from hccl_py.cli.trace_options import TraceFiles
from hccl_py.documents.disk import check_place, format_path, replacing
from hccl_py.documents.kind import FileKind
from hccl_py.errors import ParameterError
from hccl_py.importers import importer_of

if TYPE_CHECKING:
    from hccl_py.topology import Topology
    from hccl_py.trace.scene import Scene

TIMELINE = FileKind(
    noun="timeline",
    parts="events",
    suffixes=(".json", ".html", ".pftrace", ".perfetto-trace"),
)

PICTURE = FileKind(
    noun="picture",
    parts="shapes",
    suffixes=(".svg",),
    mark=re.compile(
        rb'^<svg xmlns="http://www\.w3\.org/2000/svg" width="(\d+)" height="(\d+)" '
        rb'viewBox="0 0 \1 \2" role="img">\n<title>'
    ),
)

log = logging.getLogger(__name__)


def check_files(files: TraceFiles) -> None:
    """Refuse before the work what could not be written after it."""
    from hccl_py.trace.page import check_page

    if files.html is not None:
        check_page(files.html)
    if files.svg is not None:
        check_place(files.svg, PICTURE)
    _check_traces(files)
    if files.against is None:
        return
    if files.html is None:
        raise ParameterError(
            "--against is about the page that --html writes.", "Add --html FILE, or leave it out."
        )
    if importer_of(files.against) is None:
        raise ParameterError(
            f"--against {format_path(files.against)!r:.200} is no program file.",
            "Write one with --save; it ends in .json or .npz.",
        )


def write_files(
    files: TraceFiles, call: ProgramOptions, model: TimeModel, scene: Scene, topology: Topology
) -> None:
    """Write the files that are asked for of the scene that the options make."""
    from hccl_py.trace.page import write_page

    if files.html is not None:
        scenes = [scene]
        if files.against is not None:
            scenes.append(_other_scene(files.against, call, model))
        write_page(files.html, scenes)
    if files.svg is not None:
        _write_picture(files.svg, scene, topology)
    _write_traces(files, scene)


def _write_picture(path: str, scene: Scene, topology: Topology) -> None:
    from hccl_py.trace.pictures import draw_steps

    picture = draw_steps(scene.program, scene.title, topology)
    with replacing(path, PICTURE) as part:
        part.write_text(picture, "utf-8")


def _check_traces(files: TraceFiles) -> None:
    from hccl_py.trace.export import CHROME, PERFETTO, check_trace_file

    if files.flows is not None and files.perfetto is None and files.chrome is None:
        raise ParameterError(
            "--flows is about the files of --perfetto and --chrome.",
            "Add one of them, or leave it out.",
        )
    for path, kind in ((files.perfetto, PERFETTO), (files.chrome, CHROME)):
        if path is not None:
            check_trace_file(path, kind)


def _write_traces(files: TraceFiles, scene: Scene) -> None:
    from hccl_py.trace.export import CHROME, PERFETTO, write_trace_file

    for path, kind in ((files.perfetto, PERFETTO), (files.chrome, CHROME)):
        if path is not None:
            say_left_out(path, write_trace_file(path, {"": scene}, kind, files.flows))


def say_left_out(path: str, sentences: list[str]) -> None:
    """Say what a file does not show."""
    for sentence in sentences:
        log.info("%s: %s", format_path(path), sentence)


def check_timeline(path: str) -> None:
    """Refuse, before anything runs, a file that no timeline could be written to."""
    from hccl_py.trace.export import check_trace_file
    from hccl_py.trace.page import check_page

    check_place(path, TIMELINE)
    kind = _kind_of(path)
    if kind is None:
        check_page(path)
    else:
        check_trace_file(path, kind)


def write_timeline(path: str, scenes: Mapping[str, Scene]) -> None:
    """Write scenes by their names, as the suffix says."""
    from hccl_py.trace.export import write_trace_file
    from hccl_py.trace.page import write_page

    kind = _kind_of(path)
    if kind is None:
        write_page(path, list(scenes.values()))
    else:
        say_left_out(path, write_trace_file(path, scenes, kind))


def _kind_of(path: str) -> FileKind | None:
    """Return what is written to a file of this name; None: a page."""
    from hccl_py.trace.export import CHROME, PERFETTO

    suffix = Path(path).suffix.lower()
    if suffix == ".html":
        return None
    return PERFETTO if suffix in PERFETTO.suffixes else CHROME


def _other_scene(path: str, call: ProgramOptions, model: TimeModel) -> Scene:
    """Return the scene of a program file, timed as the options say, on the cluster that they say;
    on as few servers as hold its ranks where they say nothing.
    """
    other = request_of(
        ProgramOptions(
            op=path,
            servers=call.servers,
            devices=call.devices,
            superpods=call.superpods,
            topology=call.topology,
            rank_table=call.rank_table,
        )
    )
    with other.comm:
        used = model_of(model, other)
        return scene_of_plan(other, other.plan(other.op(other.minbytes)), used)
