"""The options of the commands, each declared once.

A command takes a whole group as one parameter, annotated with a dataclass below; `grouped` spreads
the group's fields over the signature that typer reads.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from hccl_py.cli import complete
from hccl_py.cli.errors import PipeClosedError
from hccl_py.cli.streams import aside

__all__ = [
    "OF_SELECTION",
    "CallCommand",
    "CallOptions",
    "Debug",
    "Output",
    "ProgramOptions",
    "Saving",
    "Sizes",
    "TimeModel",
    "given",
    "grouped",
]

_ALONE = {"--deterministic": ("true", "strict", "false"), "--in-place": ("all", "start", "slot")}
"""Options that may stand alone, which means the first of the words that may follow."""


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
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks", metavar="N", help="N ranks on as few servers as hold them; 4 by default."
        ),
    ] = None
    servers: Annotated[
        int | None,
        typer.Option("--servers", metavar="S", help="Number of servers, instead of --ranks."),
    ] = None
    devices: Annotated[
        int | None, typer.Option("--devices", metavar="D", help="Devices of each server.")
    ] = None
    superpods: Annotated[
        int | None,
        typer.Option(
            "--superpods", metavar="P", help="Number of superpods; --servers counts those of each."
        ),
    ] = None
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="NAME|FILE",
            help="A product (atlas-800t-a2 by default), a network such as torus:4x4, or the file "
            "of one; `hccl-py list` shows them.",
            autocompletion=complete.topologies,
        ),
    ] = None
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
    algo: Annotated[
        str | None,
        typer.Option(
            "--algo", metavar="LEVELS", help='HCCL_ALGO, such as "level0:NA;level1:ring".'
        ),
    ] = None
    ruleset: Annotated[
        str | None,
        typer.Option(
            "--ruleset",
            metavar="RELEASE",
            help="HCCL_PY_RULESET: whose rules choose, cann-2025.07 or cann-2026.08 (the default).",
        ),
    ] = None
    mode: Annotated[
        str | None, typer.Option("--mode", metavar="MODE", help="op_base (the default) or graph.")
    ] = None
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
    deterministic: Annotated[
        str | None,
        typer.Option(
            "--deterministic",
            metavar="[WORD]",
            help="HCCL_DETERMINISTIC: true (also without a word), strict or false.",
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
    buffsize: Annotated[
        int | None,
        typer.Option(
            "--buffsize",
            metavar="MB",
            help="HCCL_BUFFSIZE: size of each CCL buffer; 200 by default.",
        ),
    ] = None
    dtype: Annotated[
        str, typer.Option("-d", "--dtype", metavar="TYPE", help="Data type, such as fp16.")
    ] = "fp32"
    reduce_op: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--reduce-op",
            metavar="OP",
            help="Reduction: sum (the default), prod, max or min.",
        ),
    ] = None
    root: Annotated[
        int | None,
        typer.Option("-r", "--root", metavar="RANK", help="Root rank of rooted ops; 0 by default."),
    ] = None
    counts: Annotated[
        str | None,
        typer.Option(
            "--counts",
            metavar="FILE",
            help="Elements of every rank in v-ops, a JSON list or matrix, instead of -b.",
        ),
    ] = None
    minbytes: Annotated[
        str | None,
        typer.Option(
            "-b",
            "--minbytes",
            metavar="SIZE",
            help="Data size, 1M by default; K, M, G, T, P mean 1024^k.",
        ),
    ] = None


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
    cpp_op: Annotated[
        str | None,
        typer.Option(
            "--op",
            metavar="OP",
            help="DIR, XML, PLAN, LOG: the op that it implements; for the last three also a "
            "JSON file of one.",
        ),
    ] = None
    calls: Annotated[
        int,
        typer.Option(
            "--calls",
            metavar="N",
            min=1,
            max=64,
            help="DIR: calls in a row, on one set of resources.",
        ),
    ] = 1
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

    cost: Annotated[
        str | None,
        typer.Option(
            "--cost",
            metavar="NAME|FILE",
            help="The cost model, not the product's: a name, `formula`, or a JSON or YAML file.",
        ),
    ] = None
    network: Annotated[
        str,
        typer.Option(
            "--network",
            metavar="KIND",
            help="uncontended: every transfer alone on its links; contended: they share links.",
        ),
    ] = "uncontended"
    slow: Annotated[
        list[str] | None,
        typer.Option(
            "--slow",
            metavar="WHAT",
            help="A straggler, rank=3:2x, or a bad link, link=0-1:10x; may be repeated.",
        ),
    ] = None


@dataclass(frozen=True)
class Debug:
    """What a command says of errors."""

    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class Output:
    """How a command speaks."""

    json: Annotated[
        bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")
    ] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


class CallCommand(TyperCommand):
    """A command whose options may stand alone: `--deterministic` means `--deterministic true`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spell out what may be left out, then parse as usual."""
        valued = [o for p in self.params if not getattr(p, "is_flag", False) for o in p.opts]
        words = {option: _ALONE[option] for option in valued if option in _ALONE}
        try:
            return super().parse_args(ctx, _with_values(args, words))
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # a usage error that names no command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


def _with_values(args: list[str], words: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Give options that stand alone the first of the words that may follow them."""
    found = []
    for argument, following in zip(args, [*args, ""][1:], strict=True):
        may_follow = words.get(argument, ())
        alone = may_follow and following.lower() not in may_follow
        found.append(f"{argument}={may_follow[0]}" if alone else argument)
    return found


OF_SELECTION = (
    "executor",
    "select",
    "algo",
    "ruleset",
    "mode",
    "deterministic",
    "strict_hccl",
    "in_place",
    "counts",
)
"""Options of a call that say nothing about a program that is there, or about others' code."""


def given(options: CallOptions, names: Iterable[str]) -> Iterator[str]:
    """Yield those of the named options that are not at their default, as people write them."""
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            yield "--" + name.replace("_", "-")


def grouped(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a command whose dataclass parameters are replaced by their fields, one option each."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        spread = _fields(groups[name]) if name in groups else [parameter]
        parameters += [
            p.replace(
                kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints.get(p.name, p.annotation)
            )
            for p in spread
        ]

    @wraps(command)
    def called(**given: Any) -> int | None:
        for name, group in groups.items():
            given[name] = group(**{f.name: given.pop(f.name) for f in fields(group)})
        try:
            with aside():
                status = command(**given)
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            raise PipeClosedError from None

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    del called.__wrapped__
    return called


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    found = inspect.signature(group).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in found]
