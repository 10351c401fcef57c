"""The options that several commands have, each declared once: its names, its check and its help.

A group or a command says what type it has there and its default: `ranks: Annotated[int | None,
RANKS] = None`. Where the same option means something narrower, `here` says so in other words.
"""

from copy import copy
from typing import Any

import typer

from hccl_py.cli import complete


def here(option: Any, *names: str, **changes: Any) -> Any:
    """Return an option as one command has it: fewer names, another `help`, `metavar` or bound."""
    found = copy(option)
    if names:
        found.default, found.param_decls = names[0], names[1:]  # as typer takes names in
    for attribute, value in changes.items():
        setattr(found, attribute, value)
    return found


RANKS = typer.Option(
    "--ranks", metavar="N", help="N ranks on as few servers as hold them; 4 by default."
)
SERVERS = typer.Option("--servers", metavar="S", help="Number of servers, instead of --ranks.")
DEVICES = typer.Option("--devices", metavar="D", help="Devices of each server.")
SUPERPODS = typer.Option(
    "--superpods", metavar="P", help="Number of superpods; --servers counts those of each."
)
TOPOLOGY = typer.Option(
    "--topology",
    metavar="NAME|FILE",
    help="A product (atlas-800t-a2 by default), a network such as torus:4x4, or the file of one; "
    "`hccl-py list` shows them.",
    autocompletion=complete.topologies,
)
ALGO = typer.Option("--algo", metavar="LEVELS", help='HCCL_ALGO, such as "level0:NA;level1:ring".')
MODE = typer.Option("--mode", metavar="MODE", help="op_base (the default) or graph.")
DETERMINISTIC = typer.Option(
    "--deterministic",
    metavar="[WORD]",
    help="HCCL_DETERMINISTIC: true (also without a word), strict or false.",
)
BUFFSIZE = typer.Option(
    "--buffsize",
    metavar="MB",
    help="HCCL_BUFFSIZE: size of each CCL buffer; 200 by default.",
)
HCCL_BUFFER = here(BUFFSIZE, min=1, max=2 << 20, help="The HCCL buffer; 400 by default.")
DTYPE = typer.Option("-d", "--dtype", metavar="TYPE", help="Data type, such as fp16.")
REDUCE_OP = typer.Option(
    "-o", "--reduce-op", metavar="OP", help="Reduction: sum (the default), prod, max or min."
)
ROOT = typer.Option("-r", "--root", metavar="RANK", help="Root rank of rooted ops; 0 by default.")
MINBYTES = typer.Option(
    "-b", "--minbytes", metavar="SIZE", help="Data size, 1M by default; K, M, G, T, P mean 1024^k."
)
IMPLEMENTED_OP = typer.Option(
    "--op",
    metavar="OP",
    help="DIR, XML, PLAN, LOG: the op that it implements; for the last three also a JSON file of "
    "one.",
    autocompletion=complete.ops,
)
CALLS = typer.Option(
    "--calls", metavar="N", min=1, max=64, help="DIR: calls in a row, on one set of resources."
)
COST = typer.Option(
    "--cost",
    metavar="NAME|FILE",
    help="The cost model, not the product's: a name, `formula`, or a JSON or YAML file.",
)
NETWORK = typer.Option(
    "--network",
    metavar="KIND",
    help="uncontended: every transfer alone on its links; contended: they share links.",
)
SLOW = typer.Option(
    "--slow",
    metavar="WHAT",
    help="A straggler, rank=3:2x, or a bad link, link=0-1:10x; may be repeated.",
)
MAX_SIZE = typer.Option(
    "--max-size", metavar="SIZE", help="The largest file that is read; 32M by default, npz 1G."
)
JSON = typer.Option("--json", help="One JSON document on stdout, nothing else.")
DEBUG = typer.Option("--debug", help="Show the traceback of an error.")
