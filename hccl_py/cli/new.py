"""`hccl-py new`: write a plugin project to start from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Annotated

import typer

from hccl_py.cli.options import CallCommand, Output, grouped
from hccl_py.cli.streams import say

__all__ = ["app"]

app = typer.Typer(
    help="Write a project to start from.",
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"max_content_width": 10_000},
)


@app.callback()
def group() -> None:
    """Write a project to start from."""


@grouped
def executor(
    *,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", show_default=False, help="Its class name: MyAllGather."),
    ],
    op: Annotated[
        str, typer.Option("--op", metavar="OP", show_default=False, help="The op, as all_gather.")
    ],
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="DIR",
            help="The project's folder, new or empty; else ./my_all_gather.",
        ),
    ] = None,
    output: Output,
) -> None:
    """Write a plugin project with an executor that works as it is, for you to change.

    A package to install, its test and how to go on. Nothing is ever overwritten.
    """
    from pathlib import Path

    from hccl_py.scaffold import executor_project, names_of, write_project

    names = names_of(name)
    texts = executor_project(names, op)
    target = Path(path or names.package)
    write_project(texts, target)
    if output.json:
        from hccl_py.cli.output import print_json

        head = {"schema": "hccl-py.new/1", "executor": name, "op": op, "path": str(target)}
        print_json(head, files=({"path": file} for file in texts))
        return
    _show(name, str(target), texts)


def _show(name: str, folder: str, files: Iterable[str]) -> None:
    say(f"{folder}: a project with the executor {name}")
    for file in files:
        say(f"  {file}")
    say("\nGo on with:")
    say(f"  cd {shlex.quote(folder)}")
    say('  pip install -e ".[test]"')
    say(f"  hccl-py check {name}")
    say("  pytest")


app.command("executor", cls=CallCommand)(executor)
