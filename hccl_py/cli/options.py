"""The options of the commands: each is declared once, and groups of them are dataclasses.

A command takes a whole group as one parameter, or the part of it that `only` names; `grouping.py`
spreads the fields over the command's signature. Where an option means something narrower, `here`
says so in other words.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar

import typer

T = TypeVar("T")


def option(names: str, metavar: str, text: str, **more: Any) -> Any:
    """Return an option with a value: its names, those of `-b --minbytes`, and its help."""
    return typer.Option(*names.split(), metavar=metavar, help=text, **more)


def flag(names: str, text: str, **more: Any) -> Any:
    """Return an option without a value."""
    return typer.Option(*names.split(), help=text, **more)


def here(option: Any, *names: str, **changes: Any) -> Any:
    """Return an option as one command has it: fewer names, another `help`, `metavar` or bound."""
    found = copy(option)
    if names:
        found.default, found.param_decls = names[0], names[1:]  # as typer takes names in
    for attribute, value in changes.items():
        setattr(found, attribute, value)
    return found


def _ops() -> list[str]:
    from hccl_py.operators import OPERATORS

    return sorted(OPERATORS)


def executor_names() -> list[str]:
    """Return the names of all installed executors."""
    from hccl_py.plugins.discovery import installed_executors

    return sorted(installed_executors().executors)


def _topologies() -> list[str]:
    from hccl_py.topology.presets import PRESETS, SHAPES

    return sorted([*PRESETS, *SHAPES])


RANKS = option("--ranks", "N", "N ranks on as few servers as hold them; 4 by default.")
SERVERS = option("--servers", "S", "Number of servers, instead of --ranks.")
DEVICES = option("--devices", "D", "Devices of each server.")
SUPERPODS = option("--superpods", "P", "Number of superpods; --servers counts those of each.")
TOPOLOGY = option(
    "--topology",
    "NAME|FILE",
    "A product (atlas-800t-a2 by default), a network such as torus:4x4, or the file of one; "
    "`hccl-py list` shows them.",
    autocompletion=_topologies,
)
PRODUCT_950 = here(
    TOPOLOGY,
    help="A product (ascend950 by default), a network such as torus:4x4, or the file of one; "
    "`hccl-py list` shows them.",
)
ALGO = option("--algo", "LEVELS", 'HCCL_ALGO, such as "level0:NA;level1:ring".')
MODE = option("--mode", "MODE", "op_base (the default) or graph.")
DETERMINISTIC = option(
    "--deterministic", "[WORD]", "HCCL_DETERMINISTIC: true (also without a word), strict or false."
)
BUFFSIZE = option("--buffsize", "MB", "HCCL_BUFFSIZE: size of each CCL buffer; 200 by default.")
HCCL_BUFFER = here(BUFFSIZE, min=1, max=2 << 20, help="The HCCL buffer; 400 by default.")
DTYPE = option("-d --dtype", "TYPE", "Data type, such as fp16.")
REDUCE_OP = option("-o --reduce-op", "OP", "Reduction: sum (the default), prod, max or min.")
ROOT = option("-r --root", "RANK", "Root rank of rooted ops; 0 by default.")
MINBYTES = option("-b --minbytes", "SIZE", "Data size, 1M by default; K, M, G, T, P mean 1024^k.")
IMPLEMENTED_OP = option(
    "--op",
    "OP",
    "DIR, XML, PLAN, LOG: the op that it implements; for the last three also a JSON file of one.",
    autocompletion=_ops,
)
CALLS = option("--calls", "N", "DIR: calls in a row, on one set of resources.", min=1, max=64)
COST = option(
    "--cost",
    "NAME|FILE",
    "The cost model, not the product's: a name, `formula`, or a JSON or YAML file.",
)
NETWORK = option(
    "--network",
    "KIND",
    "uncontended: every transfer alone on its links; contended: they share links.",
)
SLOW = option(
    "--slow",
    "WHAT",
    "A straggler, rank=3:2x, a bad link, link=0-1:10x, or a lost one, link=0-1:lost; may be "
    "repeated.",
)
MAX_SIZE = option("--max-size", "SIZE", "The largest file that is read; 32M by default, npz 1G.")
JSON = flag("--json", "One JSON document on stdout, nothing else.")
DEBUG = flag("--debug", "Show the traceback of an error.")
SAVE = option("--save", "FILE", "Keep the program that was recorded, as .json or .npz.")

CALL_OF_CPP = {
    "minbytes": MINBYTES,
    "ranks": RANKS,
    "servers": SERVERS,
    "devices": DEVICES,
    "superpods": SUPERPODS,
    "topology": PRODUCT_950,
    "dtype": DTYPE,
    "reduce_op": here(REDUCE_OP, "--reduce-op"),
    "root": ROOT,
    "buffsize": HCCL_BUFFER,
}
"""The options of the call for which a custom op in C++ is recorded or written."""


ARGUMENTS, OWN_OPTIONS = "Arguments", "Options"

PANELS = {
    "Ranks": ("ranks", "servers", "devices", "superpods", "topology", "rank_table"),
    "Data": (
        *("dtype", "reduce_op", "root", "counts", "in_place"),
        *("minbytes", "maxbytes", "stepfactor", "stepbytes"),
    ),
    "Executor and settings of HCCL": (
        *("executor", "select", "algo", "ruleset", "mode", "deterministic"),
        *("zero_copy", "strict_hccl", "buffsize"),
    ),
    "Programs of other tools": ("cpp_op", "calls", "roofline", "buffered", "max_size"),
    "Platform": ("platform", "wire", "device"),
    "Time model": ("cost", "network", "slow"),
    "Output": ("json", "debug", "help"),
}
"""The panels of help, in their order, with the parameters that each has."""


def panel_of(name: str) -> str:
    """Return the panel of a parameter; one that a single command has is among its own options."""
    return next((panel for panel, names in PANELS.items() if name in names), OWN_OPTIONS)


PLATFORM = PANELS["Platform"]
"""Options that only a command which runs something looks at."""

SOURCES_OF_JOBS = ("roofline", "buffered")
"""Options about jobs, for commands that take them."""


@dataclass(frozen=True)
class CallOptions:
    """One call of a collective: op, ranks, data, and how its executor is chosen.

    `request.spec_of` makes the `CallSpec` of it.
    """

    op: Annotated[
        str,
        typer.Argument(
            metavar="OP",
            show_default=False,
            help="The op, such as all_gather.",
            autocompletion=_ops,
        ),
    ] = ""
    ranks: Annotated[int | None, RANKS] = None
    servers: Annotated[int | None, SERVERS] = None
    devices: Annotated[int | None, DEVICES] = None
    superpods: Annotated[int | None, SUPERPODS] = None
    topology: Annotated[str | None, TOPOLOGY] = None
    rank_table: Annotated[
        str | None, option("--rank-table", "FILE", "Take the ranks from HCCL's rank table instead.")
    ] = None
    executor: Annotated[
        str | None,
        option(
            "--executor",
            "NAME",
            "Run this executor; module:Class takes one from the current folder.",
            autocompletion=executor_names,
        ),
    ] = None
    select: Annotated[
        str,
        option(
            "--select",
            "rules|cost|FILE",
            "How the executor is chosen where none is named: by HCCL's rules, by simulated "
            "cost, or from a tuning table.",
        ),
    ] = "rules"
    algo: Annotated[str | None, ALGO] = None
    ruleset: Annotated[
        str | None,
        option(
            "--ruleset",
            "RELEASE",
            "HCCL_PY_RULESET: whose rules choose: cann-2025.07, cann-2026.08 (the default), "
            "hccl-170ddee.",
        ),
    ] = None
    mode: Annotated[str | None, MODE] = None
    platform: Annotated[str, option("--platform", "NAME", "Where programs run.")] = "emulated"
    wire: Annotated[
        str | None,
        option(
            "--wire",
            "gloo|mpi",
            "HCCL_PY_WIRE: what carries messages between real processes, inside a host too.",
        ),
    ] = None
    device: Annotated[
        str | None,
        option(
            "--device",
            "cpu|cuda|npu",
            "HCCL_PY_DEVICE: what --platform device runs on; what torch finds by default.",
        ),
    ] = None
    deterministic: Annotated[str | None, DETERMINISTIC] = None
    expansion_mode: Annotated[
        str | None,
        option(
            "--expansion-mode",
            "MODE",
            "HCCL_OP_EXPANSION_MODE, for this communicator: AI_CPU, AIV, CCU_MS, CCU_SCHED, "
            "AIV_ONLY, as the product has them.",
        ),
    ] = None
    zero_copy: Annotated[
        bool | None,
        flag(
            "--zero-copy/--no-zero-copy",
            "HCCL_PY_ZERO_COPY: users' memory counts as registered with all ranks, which "
            "HCCL makes use of on A3.",
        ),
    ] = None
    strict_hccl: Annotated[
        bool,
        flag("--strict-hccl", "Refuse what HCCL refuses, and executors that it would not take."),
    ] = False
    in_place: Annotated[bool, flag("--in-place", "Input and output in the same memory.")] = False
    buffsize: Annotated[int | None, BUFFSIZE] = None
    dtype: Annotated[str, DTYPE] = "fp32"
    reduce_op: Annotated[str | None, REDUCE_OP] = None
    root: Annotated[int | None, ROOT] = None
    counts: Annotated[
        str | None,
        option(
            "--counts",
            "FILE",
            "Elements of every rank in v-ops, a JSON list or matrix, instead of -b.",
        ),
    ] = None
    minbytes: Annotated[str | None, MINBYTES] = None


@dataclass(frozen=True)
class ProgramOptions(CallOptions):
    """A call of an op, or a program that a file or folder holds."""

    op: Annotated[
        str,
        typer.Argument(
            metavar="OP|FILE|DIR",
            show_default=False,
            help="The op, such as all_gather, a program file (.json, .npz), an MSCCL algorithm "
            "(.xml), a test of a log of HCCL's checker (LOG#TEST), a Chakra trace (a folder of .et "
            "files), or the folder of a custom op in C++.",
            autocompletion=_ops,
        ),
    ] = ""
    cpp_op: Annotated[str | None, IMPLEMENTED_OP] = None
    calls: Annotated[int, CALLS] = 1
    roofline: Annotated[
        str | None,
        option(
            "--roofline",
            "TFLOPS,GBPS",
            "Chakra: how fast devices compute and move memory, for kernels without duration.",
        ),
    ] = None
    buffered: Annotated[
        bool, flag("--buffered", "Chakra: what depends on a send does not wait for it.")
    ] = False


@dataclass(frozen=True)
class Sizes:
    """The sizes after the first, by hccl_test's rules."""

    maxbytes: Annotated[
        str | None, option("-e --maxbytes", "SIZE", "The largest size; -b by default.")
    ] = None
    stepfactor: Annotated[
        int | None, option("-f --stepfactor", "F", "Multiply the size by F; wins over -i.")
    ] = None
    stepbytes: Annotated[
        str | None,
        option(
            "-i --stepbytes",
            "SIZE",
            "Add to the size; a tenth of -e minus -b by default. 0: only -b.",
        ),
    ] = None


@dataclass(frozen=True)
class TimeModel:
    """The cost model, the kind of network and the slow parts that model times are for."""

    cost: Annotated[str | None, COST] = None
    network: Annotated[str, NETWORK] = "uncontended"
    slow: Annotated[list[str] | None, SLOW] = None


@dataclass(frozen=True)
class Output:
    """The form of the results, and of errors."""

    json: Annotated[bool, JSON] = False
    debug: Annotated[bool, DEBUG] = False


def given(options: Any) -> Iterator[str]:
    """Yield the names of the options of a group that are not at their default."""
    for field in fields(options):
        if getattr(options, field.name) != field.default:
            yield field.name


def one_of(option: str, name: str, known: Mapping[str, T]) -> T:
    """Return the value of a name; ParameterError where an option's word is unknown."""
    if name not in known:
        from hccl_py.errors import ParameterError, did_you_mean

        raise ParameterError(f"{option} {name!r} is unknown.", did_you_mean(name, known))
    return known[name]
