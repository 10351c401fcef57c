"""The importers of installed packages, found by entry point, and the one that a path asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError, PluginError
from hccl_py.importers.contract import Importer, with_article
from hccl_py.importers.exporter import Exporter
from hccl_py.operators import OPERATORS
from hccl_py.plugins.discovery import exported, sorted_points

IMPORTER_GROUP = "hccl_py.importers"
EXPORTER_GROUP = "hccl_py.exporters"


@dataclass
class Importers:
    """Importers in the order in which they are asked, and the errors of broken packages."""

    known: list[Importer] = field(default_factory=list)
    problems: list[PluginError] = field(default_factory=list)


@cache
def installed_importers() -> Importers:
    """Load the importers of every installed package; broken packages become `problems`."""
    found = Importers()
    for point in sorted_points(IMPORTER_GROUP):
        try:
            found.known += [_checked(one, point.value) for one in exported(point, "IMPORTERS")]
        except PluginError as error:
            found.problems.append(error)
    found.known.sort(key=lambda importer: importer.order)
    return found


def _checked(candidate: Any, package: str) -> Importer:
    """Return an importer; PluginError where an object is none or has no noun."""
    made = candidate() if isinstance(candidate, type) and issubclass(candidate, Importer) else None
    if not isinstance(made, Importer) or not isinstance(getattr(made, "noun", None), str):
        raise PluginError(
            f"Plugin {package}: {candidate!r:.80} is no importer.",
            "Derive a class from hccl_py.importers.Importer, and give it a noun.",
        )
    return made


def importer_of(path: str) -> Importer | None:
    """Return the importer that claims a path; None for the name of an op and for other words."""
    if path in OPERATORS:
        return None
    return next((one for one in installed_importers().known if one.claims(path)), None)


def writer_of(path: str, *, is_job: bool, option: str = "OUT") -> Importer:
    """Return the importer that writes a path; ParameterError where none does, or where it cannot
    write a job or a program.
    """
    writers = [one for one in installed_importers().known if one.writes(path)]
    if not writers:
        raise ParameterError(
            f"{option} {path!r} is no name of a program file.", "Let it end in .json or .npz."
        )
    able = [one for one in writers if (one.writes_jobs if is_job else one.writes_programs)]
    if not able:
        what = "job" if is_job else "program"
        raise ParameterError(
            f"A {what} is no {writers[0].noun}.", f"Let {option} end in .json or .npz."
        )
    return able[0]


def installed_exporter(name: str) -> Exporter:
    """Return the exporter of a language; ParameterError where none is installed."""
    for point in sorted_points(EXPORTER_GROUP):
        for exporter in exported(point, "EXPORTERS"):
            if exporter.name == name:
                made: Exporter = exporter()
                return made
    raise ParameterError(
        f"No exporter {name!r} is installed.", "Install hccl-py with its package hccl_interop."
    )


def refuse_source(path: str, command: str, hint: str) -> None:
    """Raise ParameterError where a command that needs an op is given a source."""
    importer = importer_of(path)
    if importer is not None:
        kind = with_article(importer.noun_of(path))
        raise ParameterError(f"{command} takes an op, and {format_path(path)} is {kind}.", hint)
