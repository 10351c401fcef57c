"""Parameters that measured times determine, and those that they leave open.

A parameter is determined where it takes a part of the times that grows in step with no others',
where no other value explains the times as well, and where its standard error is smaller than
itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hccl_py.fit.search import DISTINCT, SAME, Free, Search, Solution
from hccl_py.values import Floats

_OTHER = 1.05
"""How many times as large another value is that is tried."""
_UNSURE = 4.0
"""By how many variances of a time the misfit may grow where a parameter is held: two errors."""


def not_determined(search: Search, solution: Solution) -> dict[int, str]:
    """Return free parameters of which these times do not determine one, and why, those first
    that take less of the time; empty where all are determined.
    """
    return (
        _idle_floors(search, solution)
        or _indistinct(search, solution)
        or (_not_unique(search, solution) if search.paths.learns else {})
        or _least_certain(search, solution)
    )


def deciding_rows(solution: Solution) -> list[tuple[int, Floats]]:
    """Return for each free parameter the share of what is known about it that every time brings:
    of what it explains and the others cannot.
    """
    columns = np.sqrt(solution.weights)[:, None] * solution.columns[:, solution.free]
    found = []
    for number, k in enumerate(solution.free):
        own, others = columns[:, number], np.delete(columns, number, axis=1)
        rest = own - others @ np.linalg.lstsq(others, own, rcond=None)[0]
        found.append((k, np.asarray(rest**2 / max(float(rest @ rest), np.finfo(float).tiny))))
    return found


def hold(search: Search, some: Free, solution: Solution) -> tuple[Solution, int, bool]:
    """Fit the others with one of these parameters as in the base model: the first with which
    the times are explained as well. Return which one, and True.

    Without one the critical paths depend on its value: the first stays as it was found.
    """
    for k in some:
        others = tuple(j for j in solution.free if j != k)
        at = solution.at.copy()
        at[k] = search.base[k]
        for starts in [at], search.starts(at, others):
            kept = search.solve(starts, others)
            spare = max(len(kept.off) - len(others), 1)
            if solution.is_matched_by(kept.off, _UNSURE / spare):
                return kept, k, True
    others = tuple(j for j in solution.free if j != some[0])
    return replace(solution, free=others), some[0], False


def _idle_floors(search: Search, solution: Solution) -> dict[int, str]:
    """Return a least time of calls without which these times are explained as well."""
    spare = max(len(solution.off) - len(solution.free), 1)
    for k in solution.free:
        engine, at = search.parameters[k].engine, solution.at.copy()
        at[k] = 0.0
        if engine and solution.is_matched_by(search.off_at(at), _UNSURE / spare):
            return {k: f"all {len(search.times_of(engine))} of its calls take longer"}
    return {}


def _indistinct(search: Search, solution: Solution) -> dict[int, str]:
    """Return a parameter that takes none of the time, or one that grows in step with others
    that take more in the base model, and these.
    """
    names = [parameter.name for parameter in search.parameters]
    sizes = np.linalg.norm(solution.columns, axis=0)
    distinct: list[int] = []
    found: dict[int, str] = {}
    for k in sorted(solution.free, key=lambda k: -sizes[k] * search.start[k]):
        if not sizes[k]:
            return {k: "it has no part in these times"}
        others = solution.columns[:, distinct] / sizes[distinct]
        own = solution.columns[:, k] / sizes[k]
        shares = np.linalg.lstsq(others, own, rcond=None)[0]
        if np.linalg.norm(own - others @ shares) > DISTINCT:
            distinct.append(k)
            continue
        like = [j for j, share in zip(distinct, shares, strict=True) if abs(share) > DISTINCT]
        found = {k: f"it grows in step with {' and '.join(names[j] for j in like)}"}
        found |= dict.fromkeys(like, f"it grows in step with {names[k]}")
    return found


def _not_unique(search: Search, solution: Solution) -> dict[int, str]:
    """Return the free parameters that may as well be others: the rest then makes up for it."""
    size = np.linalg.norm(solution.columns, axis=0) * solution.at
    by_size = sorted(solution.free, key=lambda k: float(size[k]))
    unique = (k for k in by_size if not _is_unique(search, k, solution))
    return dict.fromkeys(unique, "others explain these times as well")


def _is_unique(search: Search, k: int, solution: Solution) -> bool:
    others = tuple(kept for kept in solution.free if kept != k)
    for factor in (_OTHER, 1 / _OTHER):
        start = solution.at.copy()
        start[k] = start[k] * factor or (_OTHER - 1) * search.parameters[k].usual
        end = search.nearest(start, others)
        while search.paths.extend(end.at):
            end = search.nearest(start, others)
        if solution.is_matched_by(search.off(end.time_us), SAME):
            return False
    return True


def _least_certain(search: Search, solution: Solution) -> dict[int, str]:
    """Return the parameter with the largest error as a share of itself, found or in the base,
    if there is one whose error is larger.
    """
    errors = solution.errors()
    if errors is None or not solution.free:
        return {}
    free = list(solution.free)
    share = errors / np.maximum(np.maximum(solution.at, search.base)[free], np.finfo(float).tiny)
    worst = int(np.argmax(share))
    return {free[worst]: "its standard error is larger than itself"} if share[worst] > 1 else {}
