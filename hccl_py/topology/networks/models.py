"""The file format of networks, as pydantic models."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, FailFast, Field
from pydantic_core import PydanticCustomError

from hccl_py.documents.models import Strict
from hccl_py.topology.presets import MAX_RANKS

T = TypeVar("T")

_TITLE = re.compile(r"[\w.:/()-]([\w .,:/()-]{0,62}[\w.:/()-])?")
_OPEN = "Leave the key out where the cost model says it."
_NAME = re.compile(r"\w([\w.:/-]{0,62}\w)?")


def _expected(what: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "{expected}", {"expected": what, "hint": hint})


def _name(value: object) -> str:
    """Return a name; numbers are names too, since many people number nodes."""
    text = str(value) if type(value) is int and 0 <= value < MAX_RANKS else value
    if not isinstance(text, str) or not _NAME.fullmatch(text):
        hint = "A name begins and ends with a letter or digit; . : / _ - may stand in between."
        raise _expected("a name of 1 to 64 characters", hint)
    return text


def _title(value: object) -> str:
    if not isinstance(value, str) or not _TITLE.fullmatch(value):
        hint = "Letters, digits, spaces and . , : / ( ) - may stand in it."
        raise _expected("a name of 1 to 64 characters", hint)
    return value


def _number(what: str, low: float, high: float, hint: str = _OPEN) -> Callable[[object], float]:
    """Return the validator of a number from low to high."""

    def check(value: object) -> float:
        if type(value) in (int, float) and low <= value <= high:  # type: ignore[operator]
            return float(value)  # type: ignore[arg-type]
        raise _expected(f"{what} from {low:g} to {high:g}", hint)

    return check


def _numbered(value: object) -> object:
    """Return ranks with the names 0, 1, ... where the file only says how many."""
    if type(value) is not int:
        return value
    if not 1 <= value <= MAX_RANKS:
        raise _expected(f"1 to {MAX_RANKS} ranks", "Write their number, or a list of them.")
    return [{"name": str(rank)} for rank in range(value)]


Name = Annotated[str, BeforeValidator(_name)]
Rate = Annotated[float, BeforeValidator(_number("GB/s", 1e-6, 1e6))]
_TOGETHER = "Write what the links of the port let through together, each way."
PortRate = Annotated[float, BeforeValidator(_number("GB/s", 1e-6, 1e6, _TOGETHER))]
Latency = Annotated[float, BeforeValidator(_number("microseconds", 0, 1e6))]
_WHOLE = "Routes of two ranks have shares that sum to 1; leave the key out where there is one."
Share = Annotated[float, BeforeValidator(_number("a share", 1e-6, 1, _WHOLE))]
Number = Annotated[int, Field(ge=0, lt=MAX_RANKS)]
Listed = Annotated[list[T], FailFast()]


class NetworkRankModel(Strict):
    """A rank, and where it lies in files that have servers."""

    name: Name
    server: Number | None = None
    device: Number | None = None
    superpod: Number | None = None


class SwitchModel(Strict):
    """A switch; `gbps` is what it lets through as a whole, anything where it is left out."""

    name: Name
    gbps: Rate | None = None


class NetworkLinkModel(Strict):
    """A link, both ways unless `duplex` is false."""

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    gbps: Rate | None = None
    latency_us: Latency | None = None
    duplex: bool = True


class NetworkPortModel(Strict):
    """A port of a node: what its links to these nodes take together each way, all of its links
    where `to` is left out.
    """

    name: Name
    of: Name
    to: Listed[Name] = Field(default_factory=list)
    gbps: PortRate


class RouteModel(Strict):
    """A declared route: all nodes from the first rank to the last one; back the same way, unless
    `duplex` is false. Of several routes of two ranks, each takes its `share` of the data.
    """

    path: Listed[Name]
    duplex: bool = True
    share: Share | None = None


class NetworkModel(Strict):
    """The whole file."""

    name: Annotated[str, BeforeValidator(_title)] | None = None
    product: str | None = None
    ranks: Annotated[Listed[NetworkRankModel], BeforeValidator(_numbered)]
    switches: Listed[SwitchModel] = Field(default_factory=list)
    links: Listed[NetworkLinkModel] = Field(default_factory=list)
    ports: Listed[NetworkPortModel] = Field(default_factory=list)
    routes: Listed[RouteModel] = Field(default_factory=list)
    spray: Literal["all"] | None = None
