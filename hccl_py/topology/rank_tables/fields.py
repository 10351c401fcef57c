"""The values in rank tables: numbers are digits in quotes, or plain; addresses; names from a list.

Validators say what they expect and give a hint; `hccl_py.documents.models` makes sentences of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, PlainValidator
from pydantic_core import PydanticCustomError

from hccl_py.errors import did_you_mean

Address = IPv4Address | IPv6Address

T = TypeVar("T")

Listed = Annotated[list[T], FailFast()]
"""A list that is left at its first bad member: a long one would cost gigabytes of errors."""

_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)


class TableObject(BaseModel):
    """An object of a rank table; keys that the format does not have are kept for a note."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    @property
    def unknown(self) -> Mapping[str, object]:
        """The keys that the format does not have here."""
        return self.model_extra or {}


def expected(what: str, hint: str) -> PydanticCustomError:
    """Return the error of a value that is not what it has to be."""
    return PydanticCustomError("expected", "{expected}", {"expected": what, "hint": hint})


def whole(what: str, low: int, high: int) -> Callable[[object], int]:
    """Return the validator of a whole number from low to high: 3, or its digits "3"."""

    def check(value: object) -> int:
        digits = isinstance(value, str) and _DIGITS.fullmatch(value) is not None
        number = int(str(value)) if type(value) is int or digits else -1
        if not low <= number <= high:
            hint = f'Write its digits, as in "{low}", without sign or fraction.'
            raise expected(f"{what} from {low} to {high}", hint)
        return number

    return check


def text(what: str, longest: int) -> Callable[[object], str]:
    """Return the validator of a string that is neither empty nor too long."""

    def check(value: object) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            raise expected(f"{what} of 1 to {longest} characters", "Write it in quotes.")
        return value

    return check


def one_of(*names: str) -> Callable[[object], str]:
    """Return the validator of a word from a list."""

    def check(value: object) -> str:
        if value not in names:
            phrase = ", ".join(names)
            raise expected(f"one of {phrase}", did_you_mean(str(value)[:40], names))
        return str(value)

    return check


def _address(value: object) -> Address:
    try:
        if isinstance(value, str):
            return ip_address(value)
    except ValueError:
        pass
    hint = 'Write it as in "192.168.1.1" or "fe80::1", or leave the key out.'
    raise expected("an IPv4 or IPv6 address", hint)


def _addresses(value: object) -> tuple[Address, ...]:
    """Return the addresses of a list with commas; the first one is the one that HCCL uses."""
    return tuple(map(_address, value.split(","))) if isinstance(value, str) else (_address(value),)


def _port(value: object) -> int:
    if value in (0, "0") and type(value) is not bool:
        hint = "0 is reserved for a choice by HCCL: leave the key out to let it choose."
        raise expected("a port from 1 to 65535", hint)
    return whole("a port", 1, 65535)(value)


def _status(value: object) -> str:
    if value == "initializing":
        hint = "The table is still being written. It is not waited for here: read it again later."
        raise expected('"completed"', hint)
    if value != "completed":
        raise expected('"completed"', did_you_mean(str(value)[:40], ("completed", "initializing")))
    return "completed"


Status = Annotated[str, PlainValidator(_status), Field(default="completed")]
Count = Annotated[int, BeforeValidator(whole("a count", 1, 65536))]
RankId = Annotated[int, BeforeValidator(whole("a rank id", 0, 65535))]
OptionalCount = Annotated[
    int | None, PlainValidator(whole("a count", 1, 65536)), Field(default=None)
]
OptionalAddresses = Annotated[
    tuple[Address, ...], PlainValidator(_addresses), Field(default_factory=tuple)
]
OptionalAddress = Annotated[Address | None, PlainValidator(_address), Field(default=None)]
OptionalPort = Annotated[int | None, PlainValidator(_port), Field(default=None)]
