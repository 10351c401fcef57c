"""The table of commands."""

from typing import Annotated

import typer

from hccl_py.cli.check import check
from hccl_py.cli.compare import compare
from hccl_py.cli.explain import explain
from hccl_py.cli.fit import fit
from hccl_py.cli.listing import list_
from hccl_py.cli.new import new
from hccl_py.cli.options import CallCommand
from hccl_py.cli.run import run
from hccl_py.cli.simulate import simulate
from hccl_py.cli.trace import trace
from hccl_py.cli.tuning import tuning

__all__ = ["app"]

app = typer.Typer(
    help="Record, verify, run, draw and explain HCCL's collective algorithms.",
    epilog="hccl-py COMMAND --help lists a command's options.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: rich would cost more than everything else together
    pretty_exceptions_enable=False,
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


app.command("run", cls=CallCommand)(run)
app.command("trace", cls=CallCommand)(trace)
app.command("simulate", cls=CallCommand)(simulate)
app.command("compare", cls=CallCommand)(compare)
app.command("explain", cls=CallCommand)(explain)
app.command("fit", cls=CallCommand)(fit)
app.command("tuning")(tuning)
app.command("check")(check)
app.command("list")(list_)
app.add_typer(new, name="new")
