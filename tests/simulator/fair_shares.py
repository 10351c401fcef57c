"""When flows end that share links max-min fair, found from a table of links and flows alone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

TIE = 1e-13


class Job(NamedTuple):
    """A flow that begins `wait` µs after the one before it on its `stream` has ended, and would
    take `size / full` µs alone. Of each of its links it takes that of `shares` of its rate, all of
    it where there are none.
    """

    stream: int
    links: Sequence[int]
    size: float
    full: float
    wait: float
    shares: Sequence[float] = ()


def fair_rates(uses: Floats, full: Floats, capacity: Floats) -> Floats:
    """Return rates of flows, of which links carry the shares `uses` [links, flows]: all grow alike,
    and those that reach their full speed or a full link stop.
    """
    rates, grows = np.zeros(len(full)), np.ones(len(full), np.bool_)
    while grows.any():
        growing = uses[:, grows].sum(axis=1)
        room = capacity - uses[:, ~grows] @ rates[~grows]
        share = np.where(growing > 0, room / np.where(growing > 0, growing, 1), np.inf)
        level = min(share.min(initial=np.inf), full[grows].min())
        is_full = share <= level * (1 + TIE)
        stops = grows & ((uses[is_full] > 0).any(axis=0) | (full <= level * (1 + TIE)))
        rates[stops], grows = level, grows & ~stops
    return rates


def fair_ends(jobs: Sequence[Job], capacity: Floats) -> list[float]:
    """Return when each job ends; those of a stream follow each other as listed."""
    uses = np.zeros((len(capacity), len(jobs)))
    for number, job in enumerate(jobs):
        uses[list(job.links), number] = job.shares or 1.0
    full, left = (np.array([getattr(job, name) for job in jobs]) for name in ("full", "size"))
    lines: dict[int, list[int]] = {}
    for number, job in enumerate(jobs):
        lines.setdefault(job.stream, []).append(number)
    begin = {line[0]: jobs[line[0]].wait for line in lines.values()}
    ends, now, flowing = np.full(len(jobs), np.nan), 0.0, np.zeros(len(jobs), np.bool_)
    while begin or flowing.any():
        for number in [number for number, at in begin.items() if at <= now]:
            flowing[number] = True
            del begin[number]
        rates: Any = np.zeros(len(jobs))
        rates[flowing] = fair_rates(uses[:, flowing], full[flowing], capacity)
        needed = np.where(flowing, left, np.inf) / np.where(flowing, rates, 1.0)
        following = min([now + needed.min(initial=np.inf), *begin.values()])
        left = left - rates * (following - now)
        is_over = flowing & (now + needed <= following * (1 + TIE))
        now = following
        ends[is_over], flowing = now, flowing & ~is_over
        for number in np.flatnonzero(is_over).tolist():
            line = lines[jobs[number].stream]
            for after in line[line.index(number) + 1 :][:1]:
                begin[after] = now + jobs[after].wait
    return [float(end) for end in ends]
