"""Simulates batches whose ranks all keep the same time, with one number for all lanes.

Where chunks are even, all ranks of a batch do the same at the same time, step after step. Then one
clock per queue is enough, and so is one time for all notifies that an instruction's ranks post: a
step costs the same for ten ranks and for ten thousand.

Posts and waits name their notifies in different orders: what a column of posts sets at each rank's
right neighbour, another column waits for from the left one. Both name the same set of notifies, a
group, and a group holds one time. Where two columns share only a part of their notifies, that set
has no single time, and its group is not used.

A queue stops where durations differ between its lanes, or where its group is not used. From there
on the loop in lock-step has a clock for every lane (kernels.py); it starts from the times that are
reached here. Both loops add and compare the same numbers, so the results are the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT
from hccl_py.simulator.batches.columns import PooledColumns
from hccl_py.simulator.batches.kernels import in_unison, label
from hccl_py.simulator.batches.state import Instructions, Notes, State
from hccl_py.values import Floats, IntArray

_USES = 8
"""How often a column is used on average where grouping its cells is worth it."""


@dataclass(frozen=True, eq=False)
class _NotifyGroups:
    """`by_column` has the group of cells that each column names, -1 where it cannot be used;
    `by_cell` the group of every cell, -1 where it is in none; `count` groups are numbered.
    """

    by_column: IntArray
    by_cell: IntArray
    count: int


def advance_uniform(code: Instructions, counter: IntArray, state: State, notes: Notes) -> int:
    """Advance queues as long as all their lanes keep the same time; counters and state are those
    of the loop in lock-step, which goes on from them.

    Return the tasks done, or -1 - cell of an overrun.
    """
    first, lane_first, kinds, columns, pool = code
    clock, cell, connection = state
    lanes = np.diff(lane_first)
    lanes_by_instruction = np.repeat(lanes, np.diff(first))
    notifies = np.isin(kinds, (POST, WAIT))
    cells = _grouped(columns[:, 0], lanes_by_instruction, notifies, pool, len(cell))
    connections = _grouped(
        columns[:, 1], lanes_by_instruction, columns[:, 1] >= 0, pool, len(connection)
    )
    if cells is None or connections is None:
        return 0
    level = clock[lane_first[:-1]].copy()
    held, busy = np.full(cells.count, -1.0), np.zeros(connections.count)
    done = in_unison.sized(len(kinds))(
        first,
        lanes,
        kinds,
        np.where(notifies, cells.by_column[columns[:, 0]], -1),
        np.where(columns[:, 1] >= 0, connections.by_column[columns[:, 1]], -2),
        _same(columns[:, 2], columns[:, 3], pool),
        _same(columns[:, 4], columns[:, 5], pool),
        counter,
        level,
        held,
        busy,
        notes,
    )
    clock[:] = np.repeat(level, lanes)
    for groups, values, into in ((cells, held, cell), (connections, busy, connection)):
        known = groups.by_cell >= 0
        into[known] = values[groups.by_cell[known]]
    return done if done >= 0 else -1 - int(np.argmax(cells.by_cell == -done - 1))


def _grouped(
    columns: IntArray,
    lanes: IntArray,
    used: npt.NDArray[np.bool_],
    pool: PooledColumns,
    cells: int,
) -> _NotifyGroups | None:
    """Group cells by the columns of the instructions that use them; None where there are so many
    different columns that grouping costs as much as simulating.
    """
    distinct, at = np.unique(columns[used], return_index=True)
    if len(distinct) * _USES > used.sum():
        return None
    widths = np.unique(np.stack([columns[used], lanes[used]]), axis=1)
    by_cell = np.full(cells, -1, np.int64)
    found, broken = labelled(distinct, lanes[used][at], pool.formulas, pool.ints, by_cell)
    by_column = np.full(len(pool.formulas), -1, np.int64)
    by_column[distinct] = np.where((found < 0) | broken[found], -1, found)
    several = widths[0][1:][np.diff(widths[0]) == 0]  # used by batches of different sizes
    by_column[several] = -1
    return _NotifyGroups(by_column, by_cell, len(distinct))


def labelled(
    columns: IntArray, lanes: IntArray, formulas: IntArray, ints: IntArray, by_cell: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the group of each column's cells, -1 for those that are no set of their own, and which
    groups are touched by others; `by_cell`, -1 everywhere, gets the group of every cell.
    """
    found, seen = np.full(len(columns), -1), np.full(len(by_cell), -1)
    broken, size = np.zeros(len(columns), bool), np.zeros(len(columns), np.int64)
    label.sized(int(lanes.sum()))(
        columns, lanes, formulas, ints, by_cell, found, broken, size, seen
    )
    return found, broken


def _same(index: IntArray, place: IntArray, pool: PooledColumns) -> Floats:
    """Return the duration that all lanes of each instruction have; NaN where they may differ."""
    floats = pool.floats
    run = np.ones(len(floats), np.int64)  # how many equal ones follow, this one included
    changes = np.flatnonzero(np.append(floats[1:] != floats[:-1], True))
    run = changes[np.searchsorted(changes, np.arange(len(floats)))] - np.arange(len(floats)) + 1
    most = np.where(pool.formulas[:, 1] == 0, 0, pool.highest)
    offset = np.where(pool.formulas[:, 1] == 0, pool.formulas[:, 2], 0)
    at = place + offset[index]
    return np.where(run[at] > most[index], floats[at], np.nan)
