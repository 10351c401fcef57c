"""The table of commands; the file of a command is imported when that command is used."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hccl_py.cli.grouping import CallCommand
from hccl_py.cli.help import SpokenHelp

COMMANDS = {
    "run": "Run an op on real data and check every element of the result.",
    "trace": "Draw what every stream does, and when.",
    "view": "Browse what every stream does, on the whole screen.",
    "simulate": "Compute how long an op takes, without running it; also with stragglers.",
    "numerics": "Prove which bits a sum has, and whether two calls have the same.",
    "compare": "Time every executor that can run an op, and show the fastest by size.",
    "advise": "Name HCCL's choice, why, what it costs, what is faster, and what stragglers do.",
    "explain": "Name the executor that runs, with the reasons.",
    "fit": "Fit α, β and γ of a cost model to measured times.",
    "tuning": "Make a tuning table, or show one, against HCCL's rules.",
    "check": "Verify programs and executors.",
    "record": "Record a custom op in C++ as a program.",
    "convert": "Turn programs into other formats: program files, MSCCL XML.",
    "export": "Write an executor as a custom op in C++.",
    "list": "List executors, platforms and topologies.",
    "doctor": "Show what this machine has, which platforms work here, and what is missing.",
    "new": "Write a project to start from.",
}
"""What the overview says; `hccl_py.cli.NAME` has the function `command`, or for `new` an app."""

_WIDEST = 10_000
"""Columns that help may have: those of the terminal, not 80."""


class _OverviewCommand(SpokenHelp, TyperCommand):
    """A command that only the overview knows."""


class _LazyGroup(SpokenHelp, TyperGroup):
    """Imports a command's file when the command is named on the command line."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and the arguments after it."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else _loaded(str(name)), rest


def _loaded(name: str) -> Any:
    module: Any = import_module(f"hccl_py.cli.{_FILES.get(name, name)}")
    found = getattr(module, "app", None)
    if found is None:
        found = _typer()
        found.command(name, cls=CallCommand)(module.command)
    return typer.main.get_command(found)


_FILES = {"list": "listing"}
"""Where the file has another name than the command."""


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        context_settings={"max_content_width": _WIDEST},
        rich_markup_mode=None,  # plain help: rich would cost more than everything else together
        pretty_exceptions_enable=False,
        **({"add_completion": False} | more),
    )


app = _typer(
    cls=_LazyGroup,
    help="Record, verify, run, draw and explain HCCL's collective algorithms.",
    epilog="hccl-py COMMAND --help lists a command's options.",
    add_completion=True,
)


@app.callback(invoke_without_command=True)
def group(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Show the version or the help, where no command is named."""
    if version:
        from hccl_py import __version__

        typer.echo(f"hccl-py {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


for _name, _help in COMMANDS.items():
    app.command(_name, cls=_OverviewCommand, help=_help)(lambda: None)
