"""The loops of the simulation by batches, on numbers only.

Row c of `formulas` is a column, as PooledColumns says; this file has the one place that computes
it. All loops go round the queues as they can advance, in any order: a cell has one post at a time
and a stream its own clock, so times do not depend on the order.

Legend:

    q        queue: a stream of a batch; it has instructions first[q] .. first[q + 1] - 1
    n, lane  rank of a batch on a queue: its number among all lanes, and its place in the queue
    i        instruction; counter[q] (or counter[n]) is the next one
    c, w, e  cell of a notify; connection of an instruction; end of a transport, its connection
    k        noted lane, whose times are kept in `notes`
    t, now   clocks, in µs
    held     the time at which each full cell was set, -1 for an empty one
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.jitter import longer, mixed
from hccl_py.enums import POST, WAIT
from hccl_py.program.kernels import kernel_calling
from hccl_py.simulator.batches.state import Instructions, Notes, State
from hccl_py.values import Floats, IntArray


def _note(
    notes: Notes, k: int, number: int, kind: int, start: float, end: float, effect: float
) -> None:
    """Keep the times of a task of a noted lane."""
    notes.spent[k, 1 if kind == WAIT else 0] += end - start
    if number < notes.most[k]:
        row = notes.row[k] + number
        notes.times[row, 0] = start
        notes.times[row, 1] = end
        notes.times[row, 2] = effect


def _number(ints: IntArray, place: int, add: int, mod: int, table: int) -> int:
    """Return table[(ints[place] + add) % mod], where there is a modulus and a table."""
    v = ints[place] + add
    if mod > 0 and v >= mod:
        v -= mod
    return v if table < 0 else ints[table + v]  # type: ignore[no-any-return]


def _value(formulas: IntArray, ints: IntArray, c: int, lane: int) -> int:
    """Return the number of one lane of a column."""
    base, step, add, mod, table = formulas[c]
    return _number(ints, base + lane * step, add, mod, table)


def _evaluate(into: IntArray, formulas: IntArray, ints: IntArray, c: int, lanes: int) -> None:
    """Compute a column for all lanes."""
    # The formula in locals: the stores below could alias it otherwise.
    base, step, add, mod, table = formulas[c]
    for lane in range(lanes):
        into[lane] = _number(ints, base + lane * step, add, mod, table)


# Column columns[k] has lanes[k] lanes. `by_cell` is the group of every cell, `size` the cells that
# each column brought into a group of its own, `seen` the last column that named each cell. One step
# for each lane of each column.
@kernel_calling(lambda: (_number,), allocates=False)
def label(
    columns: IntArray,
    lanes: IntArray,
    formulas: IntArray,
    ints: IntArray,
    by_cell: IntArray,
    found: IntArray,
    broken: npt.NDArray[np.bool_],
    size: IntArray,
    seen: IntArray,
) -> None:
    """Find the group of each column's cells, -1 for those that are no set of their own, and which
    groups are touched by others (`broken`). `size` is 0 for every column; `by_cell`, `found` and
    `seen` are -1.
    """
    # Invariant: a group is numbered by the first column that names its cells, and every cell that
    # has a group keeps it. A column has a group if it names exactly the cells of that group.
    for k in range(len(columns)):
        base, step, add, mod, table = formulas[columns[k]]
        group, whole = -1, True
        for lane in range(lanes[k]):
            v = _number(ints, base + lane * step, add, mod, table)
            if v < 0 or seen[v] == k:  # no cell, or one named twice
                whole = False
                continue
            seen[v] = k
            if lane == 0:  # the first cell says which group it can be
                group = by_cell[v] if by_cell[v] >= 0 else k
            if by_cell[v] < 0 and group == k:
                by_cell[v] = k
                size[k] += 1
            elif by_cell[v] != group:  # a part of another group: that one has no single time, too
                whole = False
                if by_cell[v] >= 0:
                    broken[by_cell[v]] = True
        if group >= 0 and (not whole or size[group] != lanes[k]):
            broken[group] = True
        elif whole:
            found[k] = group


# By instruction: `cells` and `connections` are groups, `on_stream` and `after` durations. By queue:
# `lanes`, `counter`, and `level`, the clock of all its lanes. By group: `held` and `busy`, until
# when its connections send. A round costs one step for each queue, an instruction one, however many
# ranks it has.
@kernel_calling(lambda: (_note,), allocates=False)
def in_unison(
    first: IntArray,
    lanes: IntArray,
    kinds: npt.NDArray[np.int8],
    cells: IntArray,
    connections: IntArray,
    on_stream: Floats,
    after: Floats,
    counter: IntArray,
    level: Floats,
    held: Floats,
    busy: Floats,
    notes: Notes,
) -> int:
    """Go round the queues while any moves.

    Groups are -1 where they cannot be used, those of connections -2 where there is none; durations
    are NaN where lanes differ. Return the tasks done, or -1 - group of an overrun.
    """
    # Invariant: all lanes of a queue have done the same instructions and are at time level[q]; a
    # group's cells are all full since held[c], or all empty. A queue stops for good where that
    # would end, and until its post is there where it waits.
    done = 0
    moved = True
    while moved:
        moved = False
        for q in range(len(counter)):
            while counter[q] < first[q + 1]:
                i = counter[q]
                c, w = cells[i], connections[i]
                is_wait, is_post = kinds[i] == WAIT, kinds[i] == POST
                if (is_wait or is_post) and c < 0:
                    break  # cells of several groups
                start = level[q]
                if is_wait:
                    if held[c] < 0 or on_stream[i] != on_stream[i]:
                        break
                    level[q] = effect = max(start, held[c]) + on_stream[i]
                    held[c] = -1.0
                else:
                    if w == -1 or on_stream[i] != on_stream[i] or after[i] != after[i]:
                        break  # connections of several groups, or durations that differ
                    effect = t = start + on_stream[i]
                    if is_post:
                        if held[c] >= 0:
                            return -1 - int(c)  # an overrun
                        held[c] = effect = (max(t, busy[w]) if w >= 0 else t) + after[i]
                    elif w >= 0:
                        busy[w] = max(busy[w], t) + after[i]
                        effect = busy[w] if after[i] > 0 else t
                    level[q] = t
                for k in range(notes.first[q], notes.first[q + 1]):
                    _note(notes, k, i - first[q], kinds[i], start, level[q], effect)
                counter[q] = i + 1
                done += lanes[q]
                moved = True
    return done


# `code` and `state` are as state.py says; counter[q] is the next instruction of all lanes of q. An
# instruction costs one step for each of its ranks, a round one for each queue.
@kernel_calling(lambda: (_note, _number, _evaluate), allocates=False)
def in_lockstep(
    code: Instructions, counter: IntArray, state: State, room: IntArray, notes: Notes
) -> int:
    """Advance whole queues while every cell of a wait is full; `room` has three rows as long as the
    widest queue.

    Return the tasks done, or -1 - cell of an overrun.
    """
    first, lane_first, kinds, columns = code.first, code.lane_first, code.kinds, code.columns
    formulas, ints, floats = code.pool.formulas, code.pool.ints, code.pool.floats
    clock, cell, connection = state.clock, state.cell, state.connection
    queues = len(first) - 1
    cells, ends, index = room[0], room[1], room[2]  # columns of the instruction, lane by lane
    # Invariant: all lanes of a queue have done the same instructions, each at a time of its own. A
    # wait is done for all lanes or for none, so a batch that waits for itself stops here.
    done = 0
    moved = True
    while moved:
        moved = False
        for q in range(queues):
            lanes = lane_first[q + 1] - lane_first[q]
            now = clock[lane_first[q] : lane_first[q + 1]]
            while counter[q] < first[q + 1]:
                i = counter[q]
                kind = kinds[i]
                c, w, c_stream, at_stream, c_after, at_after = columns[i]
                for k in range(notes.first[q], notes.first[q + 1]):
                    notes.begin[k] = now[notes.lane[k]]
                if kind in (WAIT, POST):
                    _evaluate(cells, formulas, ints, c, lanes)
                if kind == WAIT:
                    empty = 0
                    for lane in range(lanes):
                        empty += cell[cells[lane]] < 0
                    if empty:
                        break
                    for lane in range(lanes):
                        now[lane] = max(now[lane], cell[cells[lane]])
                        cell[cells[lane]] = -1.0
                if formulas[c_stream, 1] == 0:  # the same time for all lanes
                    for lane in range(lanes):
                        now[lane] += floats[at_stream]
                else:
                    _evaluate(index, formulas, ints, c_stream, lanes)
                    for lane in range(lanes):
                        now[lane] += floats[at_stream + index[lane]]
                if kind != WAIT:
                    if kind == POST or w >= 0:
                        _evaluate(index, formulas, ints, c_after, lanes)
                    if w >= 0:
                        _evaluate(ends, formulas, ints, w, lanes)
                    if kind == POST:
                        for lane in range(lanes):
                            t = now[lane]  # over RDMA it sets out behind the writes before it
                            if w >= 0 and ends[lane] >= 0:
                                t = max(t, connection[ends[lane]])
                            t += floats[at_after + index[lane]]
                            if cell[cells[lane]] >= 0:
                                return -1 - int(cells[lane])
                            cell[cells[lane]] = t
                    elif w >= 0:
                        for lane in range(lanes):
                            e = ends[lane]
                            connection[e] = (
                                max(connection[e], now[lane]) + floats[at_after + index[lane]]
                            )
                for k in range(notes.first[q], notes.first[q + 1]):
                    lane = notes.lane[k]
                    effect = now[lane]
                    if kind == POST:
                        effect = cell[cells[lane]]
                    elif kind != WAIT and w >= 0 and floats[at_after + index[lane]] > 0:
                        effect = connection[ends[lane]]
                    _note(notes, k, i - first[q], kind, notes.begin[k], now[lane], effect)
                counter[q] = i + 1
                done += lanes
                moved = True
    return int(done)


# By lane: `counter`, the next instruction; `queue_of`, its queue; `seeds`, of its jitter, whose
# largest factor is 1 + `spread`. By cell: `waiter`, the lane that waits for it (-1: none). `stack`
# holds the lanes that may go on. One step for each task: a lane that has to wait is put back by the
# post that it waits for, and never looked at in between.
@kernel_calling(lambda: (_note, _number, _value, mixed, longer), allocates=False)
def rank_by_rank(
    code: Instructions,
    counter: IntArray,
    queue_of: IntArray,
    state: State,
    waiter: IntArray,
    stack: IntArray,
    notes: Notes,
    seeds: IntArray,
    spread: float,
) -> int:
    """Go on rank by rank from any state. `waiter` begins as -1 for every cell, `stack` has room for
    all lanes and cells.

    Return the tasks done, or -1 - cell of an overrun.
    """
    first, lane_first, kinds, columns = code.first, code.lane_first, code.kinds, code.columns
    formulas, ints, floats = code.pool.formulas, code.pool.ints, code.pool.floats
    clock, cell, connection = state.clock, state.cell, state.connection
    lanes = len(queue_of)
    # Invariant: every lane that is not done is on the stack or is the waiter of an empty cell.
    for n in range(lanes):
        stack[n] = lanes - 1 - n
    height, done = lanes, 0
    while height > 0:
        height -= 1
        n = stack[height]
        q = queue_of[n]
        lane = n - lane_first[q]
        mine = -1  # the number of this lane among those whose times are kept
        for k in range(notes.first[q], notes.first[q + 1]):
            if notes.lane[k] == lane:
                mine = k
        t = clock[n]
        while counter[n] < first[q + 1]:
            i = counter[n]
            c, w, c_stream, at_stream, c_after, at_after = columns[i]
            start = t
            factor = longer(seeds[n], i - first[q], spread) if spread > 0 else 1.0
            if kinds[i] == WAIT:
                at = _value(formulas, ints, c, lane)
                if cell[at] < 0:
                    waiter[at] = n
                    break
                t = max(t, cell[at])
                t += floats[at_stream + _value(formulas, ints, c_stream, lane)] * factor
                arrival = t
                cell[at] = -1.0
            else:
                t += floats[at_stream + _value(formulas, ints, c_stream, lane)] * factor
                arrival = t
                if kinds[i] == POST:
                    e = _value(formulas, ints, w, lane) if w >= 0 else -1
                    if e >= 0:
                        arrival = max(t, connection[e])
                    arrival += floats[at_after + _value(formulas, ints, c_after, lane)] * factor
                    at = _value(formulas, ints, c, lane)
                    if cell[at] >= 0:
                        return -1 - at
                    cell[at] = arrival
                    if waiter[at] >= 0:  # it goes on when this lane stops
                        stack[height] = waiter[at]
                        height += 1
                        waiter[at] = -1
                elif w >= 0:  # an RDMA write: the stream goes on, the connection sends
                    e = _value(formulas, ints, w, lane)
                    after = floats[at_after + _value(formulas, ints, c_after, lane)] * factor
                    connection[e] = max(connection[e], t) + after
                    arrival = connection[e] if after > 0 else t
            if mine >= 0:
                _note(notes, mine, i - first[q], kinds[i], start, t, arrival)
            counter[n] = i + 1
            done += 1
        clock[n] = t
    return done
