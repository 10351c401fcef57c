"""The options of the commands, in groups: a command takes a whole group as one parameter.

What several groups or commands have is declared once, in `declared.py`; `grouping.py` spreads the
fields of a group over a command's signature.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated

import typer

from hccl_py.cli import complete
from hccl_py.cli.declared import (
    ALGO,
    BUFFSIZE,
    CALLS,
    COST,
    DEBUG,
    DETERMINISTIC,
    DEVICES,
    DTYPE,
    HCCL_BUFFER,
    IMPLEMENTED_OP,
    JSON,
    MINBYTES,
    MODE,
    NETWORK,
    RANKS,
    REDUCE_OP,
    ROOT,
    SERVERS,
    SLOW,
    SUPERPODS,
    TOPOLOGY,
    here,
)


@dataclass(frozen=True)
class CallOptions:
    """One call of a collective: op, ranks, data, and how its executor is chosen."""

    op: Annotated[
        str,
        typer.Argument(
            metavar="OP",
            show_default=False,
            help="The op, such as all_gather.",
            autocompletion=complete.ops,
        ),
    ]
    ranks: Annotated[int | None, RANKS] = None
    servers: Annotated[int | None, SERVERS] = None
    devices: Annotated[int | None, DEVICES] = None
    superpods: Annotated[int | None, SUPERPODS] = None
    topology: Annotated[str | None, TOPOLOGY] = None
    rank_table: Annotated[
        str | None,
        typer.Option(
            "--rank-table", metavar="FILE", help="Take the ranks from HCCL's rank table instead."
        ),
    ] = None
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor",
            metavar="NAME",
            help="Run this executor; module:Class takes one from the current folder.",
            autocompletion=complete.executors,
        ),
    ] = None
    select: Annotated[
        str,
        typer.Option(
            "--select",
            metavar="rules|cost|FILE",
            help="How the executor is chosen where none is named: by HCCL's rules, by simulated "
            "cost, or from a tuning table.",
        ),
    ] = "rules"
    algo: Annotated[str | None, ALGO] = None
    ruleset: Annotated[
        str | None,
        typer.Option(
            "--ruleset",
            metavar="RELEASE",
            help="HCCL_PY_RULESET: whose rules choose, cann-2025.07 or cann-2026.08 (the default).",
        ),
    ] = None
    mode: Annotated[str | None, MODE] = None
    platform: Annotated[
        str, typer.Option("--platform", metavar="NAME", help="Where programs run.")
    ] = "emulated"
    wire: Annotated[
        str | None,
        typer.Option(
            "--wire",
            metavar="gloo|mpi",
            help="HCCL_PY_WIRE: what carries messages between real processes, inside a host too.",
        ),
    ] = None
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="cpu|cuda|npu",
            help="HCCL_PY_DEVICE: what --platform device runs on; what torch finds by default.",
        ),
    ] = None
    deterministic: Annotated[str | None, DETERMINISTIC] = None
    zero_copy: Annotated[
        bool | None,
        typer.Option(
            "--zero-copy/--no-zero-copy",
            help="HCCL_PY_ZERO_COPY: users' memory counts as registered with all ranks, which "
            "HCCL makes use of on A3.",
        ),
    ] = None
    strict_hccl: Annotated[
        bool,
        typer.Option(
            "--strict-hccl", help="Refuse what HCCL refuses, and executors that it would not take."
        ),
    ] = False
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Input and output in the same memory.")
    ] = False
    buffsize: Annotated[int | None, BUFFSIZE] = None
    dtype: Annotated[str, DTYPE] = "fp32"
    reduce_op: Annotated[str | None, REDUCE_OP] = None
    root: Annotated[int | None, ROOT] = None
    counts: Annotated[
        str | None,
        typer.Option(
            "--counts",
            metavar="FILE",
            help="Elements of every rank in v-ops, a JSON list or matrix, instead of -b.",
        ),
    ] = None
    minbytes: Annotated[str | None, MINBYTES] = None


@dataclass(frozen=True)
class ProgramOptions(CallOptions):
    """A call, or a program that is there already; then there is nothing to choose but the rest."""

    op: Annotated[
        str,
        typer.Argument(
            metavar="OP|FILE|DIR",
            show_default=False,
            help="The op, such as all_gather, a program file (.json, .npz), an MSCCL algorithm "
            "(.xml), a test of a log of HCCL's checker (LOG#TEST), a Chakra trace (a folder of .et "
            "files), or the folder of a custom op in C++.",
            autocompletion=complete.ops,
        ),
    ]
    cpp_op: Annotated[str | None, IMPLEMENTED_OP] = None
    calls: Annotated[int, CALLS] = 1
    roofline: Annotated[
        str | None,
        typer.Option(
            "--roofline",
            metavar="TFLOPS,GBPS",
            help="Chakra: how fast devices compute and move memory, for kernels without duration.",
        ),
    ] = None
    buffered: Annotated[
        bool,
        typer.Option("--buffered", help="Chakra: what depends on a send does not wait for it."),
    ] = False


@dataclass(frozen=True)
class CustomOpCall:
    """The call for which a custom op in C++ is recorded or written."""

    minbytes: Annotated[str | None, MINBYTES] = None
    ranks: Annotated[int | None, RANKS] = None
    servers: Annotated[int | None, SERVERS] = None
    devices: Annotated[int | None, DEVICES] = None
    superpods: Annotated[int | None, SUPERPODS] = None
    topology: Annotated[
        str | None,
        here(
            TOPOLOGY,
            help="A product (ascend950 by default), a network such as torus:4x4, or the file of "
            "one; `hccl-py list` shows them.",
        ),
    ] = None
    dtype: Annotated[str, DTYPE] = "fp32"
    reduce_op: Annotated[str | None, here(REDUCE_OP, "--reduce-op")] = None
    root: Annotated[int | None, ROOT] = None
    buffsize: Annotated[int | None, HCCL_BUFFER] = None


@dataclass(frozen=True)
class Saving:
    """Where the recorded program is kept."""

    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="FILE", help="Keep the program that was recorded, as .json or .npz."
        ),
    ] = None


@dataclass(frozen=True)
class Sizes:
    """The sizes after the first, by hccl_test's rules."""

    maxbytes: Annotated[
        str | None,
        typer.Option("-e", "--maxbytes", metavar="SIZE", help="The largest size; -b by default."),
    ] = None
    stepfactor: Annotated[
        int | None,
        typer.Option(
            "-f", "--stepfactor", metavar="F", help="Multiply the size by F; wins over -i."
        ),
    ] = None
    stepbytes: Annotated[
        str | None,
        typer.Option(
            "-i",
            "--stepbytes",
            metavar="SIZE",
            help="Add to the size; a tenth of -e minus -b by default. 0: only -b.",
        ),
    ] = None


@dataclass(frozen=True)
class TimeModel:
    """What model times are computed with."""

    cost: Annotated[str | None, COST] = None
    network: Annotated[str, NETWORK] = "uncontended"
    slow: Annotated[list[str] | None, SLOW] = None


@dataclass(frozen=True)
class Debug:
    """What a command says of errors."""

    debug: Annotated[bool, DEBUG] = False


@dataclass(frozen=True)
class Output:
    """How a command speaks."""

    json: Annotated[bool, JSON] = False
    debug: Annotated[bool, DEBUG] = False


OF_SELECTION = (
    "executor",
    "select",
    "algo",
    "ruleset",
    "mode",
    "deterministic",
    "zero_copy",
    "strict_hccl",
    "in_place",
    "counts",
)
"""Options of a call that say nothing about a program that is there, or about others' code."""


def given(options: CallOptions, names: Iterable[str]) -> Iterator[str]:
    """Yield those of the named options that are not at their default."""
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            yield name
