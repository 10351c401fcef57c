"""The options that narrow a sweep, each a list with commas, and the cases they leave."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hccl_py.cli.declared import (
    ALGO,
    BUFFSIZE,
    DEVICES,
    DTYPE,
    MODE,
    RANKS,
    REDUCE_OP,
    ROOT,
    SERVERS,
    SUPERPODS,
    TOPOLOGY,
    here,
)

if TYPE_CHECKING:
    from hccl_py.enums import InPlace, Mode
    from hccl_py.verifier.sweeps.cases import Cases

T = TypeVar("T")


@dataclass(frozen=True)
class Narrowing:
    """Which calls of an executor are verified; what is left out stays the sweep's choice."""

    ranks: Annotated[
        str | None, here(RANKS, metavar="N,...", help="Only these numbers of ranks: 4,8.")
    ] = None
    servers: Annotated[int | None, here(SERVERS, help="Only this number of servers.")] = None
    devices: Annotated[int | None, DEVICES] = None
    superpods: Annotated[int | None, here(SUPERPODS, help="Superpods, of S servers each.")] = None
    algo: Annotated[str | None, here(ALGO, help="Only these of the levels that are open.")] = None
    topology: Annotated[
        str | None,
        here(TOPOLOGY, help="Only this product, network such as torus:4x4, or the file of one."),
    ] = None
    count: Annotated[
        str | None, typer.Option("--count", metavar="N,...", help="Only these counts of elements.")
    ] = None
    dtype: Annotated[str | None, here(DTYPE, metavar="TYPE,...", help="Only these data types.")] = (
        None
    )
    reduce_op: Annotated[
        str | None, here(REDUCE_OP, metavar="OP,...", help="Only these: sum,max.")
    ] = None
    mode: Annotated[str | None, here(MODE, help="Only op_base, or only graph.")] = None
    root: Annotated[str | None, here(ROOT, metavar="RANK,...", help="Only these roots.")] = None
    buffsize: Annotated[int | None, here(BUFFSIZE, help="Each CCL buffer.")] = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options is."""
        return any(value is not None for value in astuple(self))


def cases_of(narrowing: Narrowing, *, in_place: bool | InPlace) -> Cases:
    """Return the cases that the options leave; ParameterError where one makes no sense."""
    from hccl_py.call.config import Config
    from hccl_py.enums import DataType, ReduceOp
    from hccl_py.operators.base import MAX_COUNT
    from hccl_py.topology.presets import MAX_RANKS
    from hccl_py.verifier.sweeps.cases import Cases

    ranks = numbers_of_ranks(narrowing)
    _check_topologies(narrowing, ranks)
    Config.load({}, buffsize_mb=narrowing.buffsize)  # raises for what is no size
    return Cases(
        ranks=ranks,
        servers=narrowing.servers,
        devices=narrowing.devices,
        superpods=narrowing.superpods,
        algo=narrowing.algo or "",
        topology=narrowing.topology,
        counts=_numbers(narrowing.count, "--count", 0, MAX_COUNT),
        dtypes=_listed(narrowing.dtype, DataType.parse),
        reduce_ops=_listed(narrowing.reduce_op, ReduceOp.parse),
        modes=_listed(narrowing.mode, _mode),
        roots=_numbers(narrowing.root, "-r/--root", 0, MAX_RANKS - 1),
        in_place=in_place or None,
        buffsize=narrowing.buffsize,
    )


def numbers_of_ranks(narrowing: Narrowing) -> tuple[int, ...]:
    """Return what `--ranks` lists; empty where it is left out."""
    from hccl_py.topology.presets import MAX_RANKS

    return _numbers(narrowing.ranks, "--ranks", 1, MAX_RANKS)


def _check_topologies(narrowing: Narrowing, ranks: tuple[int, ...]) -> None:
    """Raise where no topology is as the options say."""
    from hccl_py.topology.factory import topology_of
    from hccl_py.topology.presets import DEFAULT_PRESET

    for size in ranks or (None,):
        topology_of(
            size,
            servers=narrowing.servers,
            devices=narrowing.devices,
            superpods=narrowing.superpods,
            preset=DEFAULT_PRESET if narrowing.topology is None else narrowing.topology,
        )


def _listed(text: str | None, parse: Callable[[str], T]) -> tuple[T, ...]:
    return tuple(parse(part.strip()) for part in text.split(",")) if text is not None else ()


def _numbers(text: str | None, option: str, low: int, high: int) -> tuple[int, ...]:
    from hccl_py.errors import ParameterError

    def number(part: str) -> int:
        if not re.fullmatch("[0-9]{1,19}", part) or not low <= int(part) <= high:
            raise ParameterError(
                f"{option} {text!r} is not a list of numbers from {low} to {high}.",
                f"For example {option.rpartition('/')[2]} 1,4.",
            )
        return int(part)

    return _listed(text, number)


def _mode(name: str) -> Mode:
    from hccl_py.enums import Mode
    from hccl_py.errors import ParameterError, did_you_mean

    known = {mode.value: mode for mode in Mode}
    if name not in known:
        raise ParameterError(f"--mode {name!r} is unknown.", did_you_mean(name, known))
    return known[name]
