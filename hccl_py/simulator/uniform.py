"""The walk over batches whose ranks all keep the same time: one number stands for all lanes.

Where chunks are even, all ranks of a batch do the same at the same time, step after step. Then a
queue needs one clock, and all cells that a column names hold one time, so a step costs the same for
ten ranks and for ten thousand. Two columns may name the same cells in another order: what one
posts for the right neighbours the other waits for from the left ones. Cells are grouped by the
columns that name them; where two columns share only some cells, those groups are not used.

A queue stops where durations differ between its lanes, or a group cannot be used. The state is then
handed on, lane by lane, to the walk in lock-step. Both add and compare the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT
from hccl_py.program.kernels import kernel
from hccl_py.simulator.columns import PooledColumns
from hccl_py.values import Floats, IntArray

__all__ = ["walk_uniform"]


_USES = 8
"""How often a column is used on average where grouping its cells is worth it."""


@dataclass(frozen=True, eq=False)
class _Groups:
    """`of_column` numbers the group of cells that a column names, -1 where it cannot be used;
    `of_cell` that of every cell.
    """

    of_column: IntArray
    of_cell: IntArray
    count: int


def walk_uniform(
    first: IntArray,
    lane_first: IntArray,
    kinds: npt.NDArray[np.int8],
    columns: IntArray,
    pool: PooledColumns,
    counter: IntArray,
    clock: Floats,
    cell: Floats,
    wire: Floats,
) -> int:
    """Advance queues as long as all their lanes keep the same time; counters, clocks, cells and
    connections are those of the walk in lock-step, at their start.

    Return the tasks done, or -1 - cell of an overrun.
    """
    lanes = np.diff(lane_first)
    of_instruction = np.repeat(lanes, np.diff(first))
    notifies = np.isin(kinds, (POST, WAIT))
    cells = _grouped(columns[:, 0], of_instruction, notifies, pool, len(cell))
    wires = _grouped(columns[:, 1], of_instruction, columns[:, 1] >= 0, pool, len(wire))
    if cells is None or wires is None:
        return 0
    level = np.zeros(len(lanes))
    held, busy = np.full(cells.count, -1.0), np.zeros(wires.count)
    step: Callable[..., int] = _uniform.sized(len(kinds))
    done = step(
        first,
        lanes,
        kinds,
        np.where(notifies, cells.of_column[columns[:, 0]], -1),
        np.where(columns[:, 1] >= 0, wires.of_column[columns[:, 1]], -2),
        _same(columns[:, 2], columns[:, 3], pool),
        _same(columns[:, 4], columns[:, 5], pool),
        counter,
        level,
        held,
        busy,
    )
    clock[:] = np.repeat(level, lanes)
    for groups, values, into in ((cells, held, cell), (wires, busy, wire)):
        known = groups.of_cell >= 0
        into[known] = values[groups.of_cell[known]]
    return done if done >= 0 else -1 - int(np.argmax(cells.of_cell == -done - 1))


def _grouped(
    columns: IntArray,
    lanes: IntArray,
    used: npt.NDArray[np.bool_],
    pool: PooledColumns,
    cells: int,
) -> _Groups | None:
    """Group cells by the columns of the instructions that use them; None where there are so many
    different columns that it costs as much as the walk.
    """
    distinct, at = np.unique(columns[used], return_index=True)
    if len(distinct) * _USES > used.sum():
        return None
    widths = np.unique(np.stack([columns[used], lanes[used]]), axis=1)
    of_cell = np.full(cells, -1, np.int64)
    label: Callable[..., Any] = _label.sized(int(lanes[used][at].sum()))
    found, broken = label(distinct, lanes[used][at], pool.formulas, pool.ints, of_cell)
    of_column = np.full(len(pool.formulas), -1, np.int64)
    of_column[distinct] = np.where((found < 0) | broken[found], -1, found)
    several = widths[0][1:][np.diff(widths[0]) == 0]  # used by batches of different sizes
    of_column[several] = -1
    return _Groups(of_column, of_cell, len(distinct))


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


@kernel
def _label(
    columns: IntArray, lanes: IntArray, formulas: IntArray, ints: IntArray, of_cell: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the group of each column's cells, -1 for those that are no set of their own, and which
    groups are touched by others.
    """
    found = np.full(len(columns), -1, np.int64)
    broken = np.zeros(len(columns), np.bool_)
    size = np.zeros(len(columns), np.int64)
    seen = np.full(len(of_cell), -1, np.int64)
    for k in range(len(columns)):
        base, step, add, mod, table = formulas[columns[k]]
        group, whole = -1, True
        for lane in range(lanes[k]):
            v = ints[base + lane * step] + add
            if mod > 0 and v >= mod:
                v -= mod
            if table >= 0:
                v = ints[table + v]
            if v < 0 or seen[v] == k:
                whole = False
                continue
            seen[v] = k
            if lane == 0:
                group = of_cell[v] if of_cell[v] >= 0 else k
            if of_cell[v] < 0 and group == k:
                of_cell[v] = k
                size[k] += 1
            elif of_cell[v] != group:
                whole = False
                if of_cell[v] >= 0:
                    broken[of_cell[v]] = True
        if group >= 0 and (not whole or size[group] != lanes[k]):
            broken[group] = True
        elif whole:
            found[k] = group
    return found, broken


@kernel
def _uniform(
    first: IntArray,
    lanes: IntArray,
    kinds: npt.NDArray[np.int8],
    cells: IntArray,
    wires: IntArray,
    on_stream: Floats,
    after: Floats,
    counter: IntArray,
    level: Floats,
    held: Floats,
    busy: Floats,
) -> int:
    """Go round the queues while any moves.

    Per instruction: its groups of cells and connections (-1: not usable, wires -2: none) and its
    durations (NaN: differ). Return the tasks done, or -1 - group of an overrun.
    """
    done = 0
    moved = True
    while moved:
        moved = False
        for q in range(len(counter)):
            while counter[q] < first[q + 1]:
                i = counter[q]
                c, w = cells[i], wires[i]
                is_wait, is_post = kinds[i] == WAIT, kinds[i] == POST
                if (is_wait or is_post) and c < 0:
                    break
                if is_wait:
                    if held[c] < 0:
                        break
                    level[q] = max(level[q], held[c])
                    held[c] = -1.0
                else:
                    if w == -1 or on_stream[i] != on_stream[i] or after[i] != after[i]:
                        break
                    t = level[q] + on_stream[i]
                    if is_post:
                        if held[c] >= 0:
                            return -1 - int(c)
                        held[c] = (max(t, busy[w]) if w >= 0 else t) + after[i]
                    elif w >= 0:
                        busy[w] = max(busy[w], t) + after[i]
                    level[q] = t
                counter[q] = i + 1
                done += lanes[q]
                moved = True
    return done
