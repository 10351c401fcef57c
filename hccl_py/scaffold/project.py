"""Rendering a project and writing it, all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator
from hccl_py.scaffold.names import Names


def executor_project(names: Names, op: str) -> dict[str, str]:
    """Return the files of a plugin project with one executor, by path; ParameterError for an
    unknown op, and for one that another op's executors run.
    """
    runs_as = make_operator(op).facts.runs_as
    if runs_as:
        raise ParameterError(
            f"{op} has no executors of its own: those of {runs_as} run it.",
            f"Write one of them: --op {runs_as}.",
        )
    fill = {
        "NAME": names.executor,
        "op": op,
        "package": names.package,
        "project": names.project,
        "version": version("hccl-py"),
    }
    sources = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"{names.package}/__init__.py": "package.py",
        f"{names.package}/executor.py": f"{op}.py",
        f"{names.package}/py.typed": "py.typed",
        f"tests/test_{names.package}.py": "test.py",
    }
    return {path: _rendered(source, fill) for path, source in sources.items()}


def write_project(texts: Mapping[str, str], target: Path, option: str = "--path") -> None:
    """Write all files, or none, into a folder that is empty or new.

    ParameterError where the folder has entries or cannot be made; its hint is to name another one
    with `option`.
    """
    check_target(target, option)
    there = target.is_dir()
    try:
        with TemporaryDirectory(dir=target if there else target.parent, prefix=".new-") as staging:
            project = Path(staging, "project")
            for path, text in texts.items():
                (project / path).parent.mkdir(parents=True, exist_ok=True)
                (project / path).write_text(text, "utf-8")
            if there:
                _move_in(project, target)
            else:
                os.rename(project, target)
    except OSError as error:
        raise ParameterError(
            f"The project cannot be written to {os.fspath(target)!r}: {error.strerror or error}.",
            f"Nothing is left of it. {option} DIR names another folder.",
        ) from error


def target_of(name: str, option: str = "--path") -> Path:
    """Return the folder that an option names; ParameterError for an empty name."""
    if not name:
        raise ParameterError(f"{option} '' names no folder.", "Name one that is new or empty.")
    return Path(name)


def check_target(target: Path, option: str = "--path") -> None:
    """Raise ParameterError unless a folder is new or empty, so that a project fits in."""
    name = os.fspath(target)
    if not target.parent.is_dir():
        raise ParameterError(
            f"There is no folder {os.fspath(target.parent)!r} to put the project in.",
            f"Make it first, or name another one with {option} DIR.",
        )
    other = f"{option} DIR names another folder."
    if target.is_symlink() and not target.exists():
        raise ParameterError(f"{name!r} is a link to nowhere.", other)
    if target.exists() and not target.is_dir():
        raise ParameterError(f"{name!r} is a file.", other)
    if target.is_dir() and any(target.iterdir()):
        raise ParameterError(
            f"The folder {name!r} is not empty, and nothing is overwritten.",
            f"{option} DIR names another folder for the project.",
        )


def _move_in(project: Path, target: Path) -> None:
    """Move the entries of `project` to a folder that stays, such as the user's current one."""
    moved: list[Path] = []
    try:
        for entry in sorted(project.iterdir()):
            os.rename(entry, target / entry.name)
            moved.append(target / entry.name)
    except BaseException:
        for entry in moved:
            os.rename(entry, project / entry.name)
        raise


def _rendered(source: str, fill: Mapping[str, str]) -> str:
    template = files("hccl_py.scaffold").joinpath("templates", "executor", f"{source}.tmpl")
    return Template(template.read_text("utf-8")).substitute(fill)
