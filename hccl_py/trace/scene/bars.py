"""Tasks as bars on lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import RDMA_WRITES, READS, WRITES, TaskKind, moves_data
from hccl_py.program.describe import format_stream, notify_name
from hccl_py.program.program import Program
from hccl_py.program.tasks import Tasks
from hccl_py.simulator.analysis.order import Rows
from hccl_py.trace.scene.model import CONNECTION, DONE, STUCK, UNREACHED, Bars, Lanes, Phases
from hccl_py.values import Floats, IntArray


def lanes_of(program: Program, tasks: Tasks) -> tuple[Lanes, IntArray]:
    """Return the lanes, and the task rows in the order of their bars."""
    stride = program.streams + 1
    queue = tasks.rank.astype(np.int64) * stride + tasks.stream
    order = np.argsort(queue, kind="stable")
    writes = np.isin(tasks.kind, RDMA_WRITES)
    connections = np.unique(tasks.rank[writes]).astype(np.int64) * stride + program.streams
    used, first = np.unique(queue[order], return_index=True)
    keys = np.concatenate([used, connections])
    sorted_keys = np.argsort(keys, kind="stable")
    keys = keys[sorted_keys]
    stream = keys % stride
    begins = np.concatenate([first, np.full(len(connections), -1)])[sorted_keys]
    stops = np.append(begins, len(order))
    for k in range(
        len(begins) - 1, -1, -1
    ):  # a connection is empty: it begins where the next one does
        if stops[k] < 0:
            stops[k] = stops[k + 1]
    is_connection = stream == program.streams
    stream = np.where(is_connection, CONNECTION, stream)
    lanes = Lanes(
        rank=(keys // stride).astype(np.int32),
        stream=stream.astype(np.int32),
        names=tuple(_name(s, program.stream_names) for s in stream.tolist()),
        first=stops,
    )
    return lanes, order


def _name(stream: int, names: Sequence[str]) -> str:
    if stream == CONNECTION:
        return "RDMA"
    return format_stream(stream, names)


def bars_of(
    tasks: Tasks,
    order: IntArray,
    lanes: Lanes,
    times: tuple[Floats, Floats, Floats],
    partner: IntArray,
    state: IntArray,
    notify: IntArray,
) -> Bars:
    """Return the bars; `times`, `partner` (a row), `state` and `notify` are by task row."""
    bar_of = np.full(len(order) + 1, -1, np.int64)
    bar_of[order] = np.arange(len(order))
    table, at = tasks.table, tasks.instruction[order]
    kind, rank = table.kind[at], tasks.rank[order]
    peer, moves = tasks.peer[order], moves_data(kind)
    lane = np.repeat(np.arange(len(lanes)), np.diff(lanes.first))
    start, end, effect = (column[order] for column in times)
    connections = np.full(int(lanes.rank.max(initial=0)) + 1, -1, np.int64)
    connections[lanes.rank[lanes.stream == CONNECTION]] = np.flatnonzero(lanes.stream == CONNECTION)

    def moved(values: npt.NDArray[Any]) -> IntArray:
        return np.where(moves, values, -1)

    return Bars(
        row=order,
        lane=_int32(lane),
        kind=kind,
        start_us=start,
        end_us=end,
        effect_us=effect,
        size=tasks.size[order],
        peer=_int32(peer),
        round=_int32(table.round[at]),
        label=_int32(table.label[at]),
        source=_int32(table.line[at]),
        number=_int32(tasks.index[order]),
        notify=_int32(notify[order]),
        partner=_int32(bar_of[partner[order]]),
        src_rank=_int32(moved(np.where(np.isin(kind, READS), peer, rank))),
        src_buffer=_int32(moved(table.src_buffer[at])),
        src_offset=moved(tasks.src_offset[order]),
        dst_rank=_int32(moved(np.where(np.isin(kind, WRITES), peer, rank))),
        dst_buffer=_int32(moved(table.dst_buffer[at])),
        dst_offset=moved(tasks.dst_offset[order]),
        dst_size=moved(tasks.dst_size[order]),
        connection=_int32(np.where(np.isin(kind, RDMA_WRITES), connections[rank], -1)),
        state=state[order].astype(np.int8),
    )


def _int32(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    return values.astype(np.int32)


def notifies_of(program: Program, tasks: Tasks) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of notifies, and by task row the number of its notify's, -1 for none."""
    is_sync = (tasks.kind == TaskKind.NOTIFY_POST) | (tasks.kind == TaskKind.NOTIFY_WAIT)
    transports, slots = program.transports, max(len(program.local_notifies.slots), 1)
    cells = tasks.cell
    # Cells with the same name share a key: local slots first, then what a transport numbers.
    is_local = cells >= transports.cells
    key = np.where(is_local, (cells - transports.cells) % slots, slots + cells % transports.stride)
    used, first, number = np.unique(key[is_sync], return_index=True, return_inverse=True)
    some = cells[is_sync][first]
    names: dict[str, int] = {}
    of_key = [names.setdefault(notify_name(program, int(c)), len(names)) for c in some.tolist()]
    found = np.full(len(tasks), -1, np.int64)
    found[is_sync] = np.array(of_key, np.int64)[number.reshape(-1)] if len(used) else 0
    return tuple(names), found


def phases_of(bars: Bars) -> Phases:
    """Return the runs of bars with one label in one round; those without a label are left out."""
    if not len(bars):
        none, empty = np.zeros(0, np.int32), np.zeros(0, np.int64)
        return Phases(none, np.zeros(0), np.zeros(0), none, none, empty, empty)
    changes = np.zeros(len(bars), bool)
    changes[0] = True
    for column in (bars.lane, bars.label, bars.round):
        changes[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(changes)
    stop = np.append(first[1:], len(bars))
    ends = np.maximum.reduceat(np.maximum(bars.end_us, bars.start_us), first)
    named = (bars.label[first] >= 0) & (bars.state[first] != UNREACHED)
    first, stop, ends = first[named], stop[named], ends[named]
    return Phases(
        bars.lane[first],
        bars.start_us[first],
        ends,
        bars.label[first],
        bars.round[first],
        first,
        stop,
    )


def states_of(tasks: Tasks, reached: Rows, stuck: Rows) -> IntArray:
    """Return the state of every task row, given those that were done and those that block."""
    state = np.full(len(tasks), UNREACHED, np.int64)
    state[reached] = DONE
    state[stuck] = STUCK
    return state
