"""Posts that come too early: a notify of hardware holds one bit, and loses one of two posts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hccl_py.enums import POST, WAIT
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


def overruns(timeline: Timeline) -> IntArray:
    """Return the rows of posts that take effect while an earlier post of their notify is not
    consumed. A wait that ends at that very time has consumed it.
    """
    tasks = timeline.program.tasks
    is_post = tasks.kind == POST
    rows = np.flatnonzero(is_post | (tasks.kind == WAIT))
    order = np.lexsort((is_post[rows], timeline.effect_us[rows], tasks.cell[rows]))
    rows = rows[order]
    is_post, cell = is_post[rows], tasks.cell[rows]
    change = np.where(is_post, 1, -1)
    set_before = np.cumsum(change) - change  # over all cells: every one begins empty
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    own = set_before - np.repeat(set_before[first], np.diff(np.append(first, len(cell))))
    found: IntArray = np.sort(rows[is_post & (own > 0)]).astype(np.int64)
    return found
