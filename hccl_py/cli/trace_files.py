"""The files that `hccl-py trace` writes of what there is to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.call import check_tasks, request_of
from hccl_py.cli.options import ProgramOptions, TimeModel
from hccl_py.cli.scenes import scene_of_plan
from hccl_py.cli.sources import source_of
from hccl_py.cli.time_model import checked_model
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError

if TYPE_CHECKING:
    from hccl_py.trace.scene import Scene

__all__ = ["TraceFiles", "check_files", "write_files"]


@dataclass(frozen=True)
class TraceFiles:
    """The files that are made of a scene, where they are asked for."""

    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page to browse, for any browser."),
    ] = None
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="PROGRAM", help="In the page, beside the program in this file."
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether any file is asked for."""
        return self.html is not None


def check_files(files: TraceFiles) -> None:
    """Refuse before the work what could not be written after it."""
    from hccl_py.trace.page import check_page

    if files.html is not None:
        check_page(files.html)
    if files.against is None:
        return
    if files.html is None:
        raise ParameterError(
            "--against is about the page that --html writes.", "Add --html FILE, or leave it out."
        )
    if source_of(files.against) is None:
        raise ParameterError(
            f"--against {format_path(files.against)!r:.200} is no program file.",
            "Write one with --save; it ends in .json or .npz.",
        )


def write_files(files: TraceFiles, call: ProgramOptions, model: TimeModel, scene: Scene) -> None:
    """Write the files that are asked for of the scene that the options make."""
    from hccl_py.trace.page import write_page

    if files.html is not None:
        scenes = [scene]
        if files.against is not None:
            scenes.append(_other_scene(files.against, call, model))
        write_page(files.html, scenes)


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
        plan = other.plan(other.op(other.minbytes))
        check_tasks(plan.program)
        return scene_of_plan(other, plan, checked_model(model, other.topology))
