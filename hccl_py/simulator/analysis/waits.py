"""Waits of ranks for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.values import Floats

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Waits:
    """`rank[k]` waits `us[k]` microseconds for posts of rank `on[k]`, all its streams together.

    Pairs are sorted by rank, then by on; those that never wait are left out. `local_us` has, for
    each rank, what its streams wait for each other.
    """

    rank: npt.NDArray[np.int64]
    on: npt.NDArray[np.int64]
    us: Floats
    local_us: Floats


def waits(timeline: Timeline) -> Waits:
    """Add waits up by the waiting rank and the posting rank."""
    program, tasks = timeline.program, timeline.program.tasks
    rows = np.flatnonzero(tasks.kind == TaskKind.NOTIFY_WAIT)
    rows = rows[timeline.end_us[rows] > timeline.start_us[rows]]
    us = timeline.end_us[rows] - timeline.start_us[rows]
    rank, on = tasks.rank[rows], tasks.rank[program.linked.post_of[rows]]
    is_local = rank == on
    local = np.bincount(rank[is_local], us[is_local], program.ranks).astype(np.float64)
    pair = (rank.astype(np.int64) * program.ranks + on)[~is_local]
    pairs, place = np.unique(pair, return_inverse=True)
    found = np.bincount(place.reshape(-1), us[~is_local], len(pairs)).astype(np.float64)
    return Waits(pairs // program.ranks, pairs % program.ranks, found, local)
