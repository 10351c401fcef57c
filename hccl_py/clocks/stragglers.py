"""Stragglers and bad links, as an input of simulation and of emulated schedules.

rank=3:2x      rank 3 takes twice as long for everything it does: moving, reducing, computing
link=0-1:10x   everything over the link between 0 and 1 takes ten times as long, both ways
link=0-1:lost  nothing comes over that link
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.errors import ParameterError

_FACTOR = re.compile(r"(?P<what>.+):(?:(?P<factor>[0-9.eE+]+)x?|lost)")
_HINT = "Write rank=3:2x, link=0-1:10x or link=0-1:lost."

LOST = math.inf
"""The factor of a link that is lost."""

_MOST = 1e6
"""The largest factor."""


@dataclass(frozen=True)
class Stragglers:
    """Factors from 1 to a million: of ranks, and of links by the names of their two ends, `LOST`
    for those over which nothing comes.

    An end is a rank's number, or the name of a node of the topology's network.
    """

    ranks: tuple[tuple[int, float], ...] = ()
    links: tuple[tuple[str, str, float], ...] = ()

    @staticmethod
    def parse(texts: Iterable[str]) -> Stragglers:
        """Read `rank=3:2x`, `link=0-1:10x` and `link=0-1:lost`, several of one multiplied;
        ParameterError for anything else.
        """
        ranks: dict[int, float] = {}
        links: dict[tuple[str, str], float] = {}
        for text in texts:
            match = _FACTOR.fullmatch(text.strip())
            kind, _, name = match["what"].partition("=") if match else ("", "", "")
            if match is None or kind not in ("rank", "link"):
                raise ParameterError(f"--slow {text!r} is not understood.", _HINT)
            if kind == "rank":
                rank = _rank(text, name)
                ranks[rank] = _factor(text, match["factor"], ranks.get(rank, 1.0))
            else:
                ends = _ends(text, name)
                before = links.get(ends, 1.0)
                is_lost = match["factor"] is None or before == LOST
                links[ends] = LOST if is_lost else _factor(text, match["factor"], before)
        return Stragglers(
            tuple(sorted(ranks.items())),
            tuple(sorted((a, b, factor) for (a, b), factor in links.items())),
        )

    def __bool__(self) -> bool:
        return bool(self.ranks or self.links)

    def options(self) -> list[str]:
        """Return the texts that `parse` reads."""
        ranks = [f"rank={rank}:{factor:.15g}x" for rank, factor in self.ranks]
        ends = [(a.replace("-", "--"), b.replace("-", "--"), f) for a, b, f in self.links]
        factors = [(a, b, "lost" if f == LOST else f"{f:.15g}x") for a, b, f in ends]
        return ranks + [f"link={a}-{b}:{factor}" for a, b, factor in factors]

    @property
    def lost(self) -> tuple[tuple[str, str, float], ...]:
        """The links that are lost."""
        return tuple(link for link in self.links if link[2] == LOST)

    @property
    def slow(self) -> Stragglers:
        """The same without lost links."""
        return Stragglers(self.ranks, tuple(link for link in self.links if link[2] < LOST))

    def among(self, members: Sequence[int]) -> Stragglers:
        """Return the part that concerns some ranks, numbered from 0 in the order given."""
        place = {rank: number for number, rank in enumerate(members)}
        ranks = [(place[rank], factor) for rank, factor in self.ranks if rank in place]
        names = {str(rank): str(number) for rank, number in place.items()}
        links = []
        for *ends, factor in self.links:
            if all(end in names or not end.isdecimal() for end in ends):
                one, other = sorted(names.get(end, end) for end in ends)
                links.append((one, other, factor))
        return Stragglers(tuple(sorted(ranks)), tuple(sorted(links)))

    def of_ranks(self, ranks: int) -> npt.NDArray[np.float64]:
        """Return the factor of every rank; ParameterError for one that does not exist."""
        found = np.ones(ranks)
        for rank, factor in self.ranks:
            if rank >= ranks:
                raise ParameterError(
                    f"--slow rank={rank} names no rank.", f"There are ranks 0 to {ranks - 1}."
                )
            found[rank] = factor
        return found


EVEN = Stragglers()
"""Nothing is slow."""


def _factor(text: str, number: str | None, before: float) -> float:
    """Return a factor times those that were given before it."""
    try:
        factor = math.nan if number is None else float(number)
    except ValueError:
        factor = math.nan
    if not (factor >= 1 and before * factor <= _MOST):
        raise ParameterError(f"--slow {text!r}: the factor is not from 1 to {_MOST:g}.", _HINT)
    return before * factor


def _rank(text: str, name: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", name):
        raise ParameterError(f"--slow {text!r} names no rank.", _HINT)
    return int(name)


def _ends(text: str, name: str) -> tuple[str, str]:
    """Return the two names; a dash inside a name is doubled: `pod--1-switch`."""
    parts = re.split("(?<!-)-(?!-)", name)
    if len(parts) != 2 or not all(parts) or parts[0] == parts[1]:
        raise ParameterError(
            f"--slow {text!r} does not name two ends.", f"{_HINT} Double a dash inside a name."
        )
    one, other = sorted(part.replace("--", "-") for part in parts)
    return one, other
