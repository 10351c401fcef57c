"""Data sizes as hccl_test takes them: `4K`, `64M`, and the rows of a table from -b to -e."""

import re
from collections.abc import Sequence

from hccl_py.cli.options import Sizes
from hccl_py.errors import ParameterError

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

LARGEST = 1 << 60

MOST_ROWS = 1 << 16
"""Sizes from -b to -e; more are taken for a slip of the pen."""

DEFAULT = "1M"


def parse_size(text: str, option: str) -> int:
    """Return the bytes of `64M`; ParameterError names the option and what was expected."""
    match = re.fullmatch(r"([0-9]{1,19})([KMGTP]?)", text.strip().upper())
    if not match:
        raise ParameterError(
            f"{option} {text!r} is not a size.",
            "Give bytes as a whole number, with K, M, G, T or P for 1024^1 to 1024^5: 64M.",
        )
    size = int(match[1]) * _SUFFIXES[match[2]]
    if size > LARGEST:
        raise ParameterError(f"{option} {text!r} is more than 2^60 bytes.", "Give a smaller size.")
    return size


def first_size(minbytes: str | None) -> int:
    """Return -b, or its default."""
    return parse_size(DEFAULT if minbytes is None else minbytes, "-b/--minbytes")


def starting_at(minbytes: str | None, usual: int) -> str | None:
    """Return -b; where it is not given, and a call has other sizes than the default, the usual."""
    return str(usual) if minbytes is None and usual != first_size(None) else minbytes


def last_size(minbytes: str | None, sizes: Sizes) -> int:
    """Return -e, or -b where it is not given."""
    if sizes.maxbytes is None:
        return first_size(minbytes)
    return parse_size(sizes.maxbytes, "-e/--maxbytes")


def row_sizes(minbytes: str | None, sizes: Sizes) -> Sequence[int]:
    """Return the sizes of all rows, smallest first."""
    first = first_size(minbytes)
    last = last_size(minbytes, sizes)
    if last < first:
        raise ParameterError(
            f"-e/--maxbytes {sizes.maxbytes!r} is less than -b/--minbytes {minbytes or DEFAULT!r}.",
            "Give -e at least -b.",
        )
    given = sizes.stepbytes
    step = -(-(last - first) // 10) if given is None else parse_size(given, "-i/--stepbytes")
    if sizes.stepfactor is not None:
        return _multiplied(first, last, sizes.stepfactor)
    found = range(first, last + 1, step) if step else [first]
    if len(found) > MOST_ROWS:
        raise ParameterError(
            f"{len(found)} sizes are too many.", "Give a larger -i/--stepbytes, or leave it out."
        )
    return found


def _multiplied(size: int, last: int, factor: int) -> list[int]:
    if factor < 2:
        raise ParameterError(f"-f/--stepfactor is {factor}.", "Give 2 or more.")
    if size == 0 < last:
        raise ParameterError(
            f"-f/--stepfactor {factor} never leads away from 0 bytes.", "Give -b 1 or more, or -i."
        )
    found = [size]
    while size and size * factor <= last:
        size *= factor
        found.append(size)
    return found


def refuse_several(option: str) -> None:
    """Raise ParameterError for an option about one program where there are several sizes."""
    raise ParameterError(
        f"{option} is about one program, -e asks for several.", "Leave one of them out."
    )
