"""From columns to a program: ends, notifies and requests are laid out, then batches are found.

Ends are sorted by plane, rank and peer. All ends have as many notify cells as the one that has
most, and all ranks have as many local notifies: cells are numbered end by end, then rank by rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.enums import POST, READS, LinkKind, TaskKind
from hccl_py.program.builder.batches import batches_of
from hccl_py.program.builder.columns import (
    BuildError,
    LinkColumns,
    RequestColumns,
    TaskColumns,
    frozen,
)
from hccl_py.program.limits import MAX_CELLS, MAX_QUEUES, MAX_SLOTS
from hccl_py.program.program import Declared, Program
from hccl_py.program.transports import OWN_NOTIFIES, LocalNotifies, Transports
from hccl_py.values import IntArray

_PUSHES = {
    TaskKind.WRITE: TaskKind.RDMA_WRITE,
    TaskKind.WRITE_REDUCE: TaskKind.RDMA_WRITE_REDUCE,
}


def program_from(
    op: OpParam,
    buffers: tuple[str, ...],
    sizes: IntArray,
    links: LinkColumns,
    requests: RequestColumns,
    tasks: TaskColumns,
    labels: tuple[str, ...] = (),
    lines: tuple[str, ...] = (),
) -> Program:
    """Return the program of columns; `sizes` has the bytes of buffers, [ranks, buffers].

    Writes over RDMA links become RDMA writes: their kinds in `tasks` change. BuildError for a read
    over one, and for more streams or notifies than a program may have.

    The program has no executor's name, and as many rounds as its tasks use; `dataclasses.replace`
    gives it other properties.
    """
    ranks, ends = len(sizes), _Ends.of(links)
    away, local = tasks.end >= 0, tasks.owner >= 0
    end, peer, cell = (np.full(len(tasks), -1) for _ in range(3))
    end[away] = ends.row[tasks.end[away]]
    peer[away] = ends.peer[end[away]]
    _choose_kinds(tasks, end, ends)
    remote = away & (tasks.notify >= 0)
    # A post sets a notify of the other end, a wait clears one of its own end.
    notified = np.where(tasks.kind[remote] == POST, ends.far[end[remote]], end[remote])
    transports = _transports(links, ends, requests, notified, tasks.notify[remote])
    cell[remote] = notified * transports.stride + tasks.notify[remote]
    declared = _declared(tasks, local, requests, ends)
    local_notifies, slots = _local_notifies(declared, tasks.owner[local], tasks.notify[local])
    cell[local] = transports.cells + tasks.rank[local] * len(local_notifies.slots) + slots
    if "SCRATCH" in buffers:
        scratch = sizes[:, buffers.index("SCRATCH")]
        declared = replace(declared, scratch_bytes=scratch)
    return Program(
        op=op,
        executor="",
        ranks=ranks,
        buffers=buffers,
        buffer_sizes=frozen(sizes),
        transports=transports,
        local_notifies=local_notifies,
        declared=declared,
        batches=batches_of(ranks, tasks, cell, end, peer),
        labels=labels,
        lines=lines,
        rounds=int(tasks.round.max(initial=0)) + 1,
    )


class _Ends(NamedTuple):
    """The ends of links in the order of Transports; `row` has the end of every side of a link."""

    row: IntArray
    rank: IntArray
    peer: IntArray
    plane: IntArray
    kind: npt.NDArray[np.int8]
    far: IntArray
    notifies: IntArray
    order: IntArray
    """The side of every end."""

    @staticmethod
    def of(links: LinkColumns) -> _Ends:
        rank, peer = links.ranks.ravel(), links.ranks[:, ::-1].ravel()
        plane, kind = np.repeat(links.plane, 2), np.repeat(links.kind, 2)
        order = np.lexsort((peer, rank, plane))
        row = np.empty(len(order), np.int64)
        row[order] = np.arange(len(order))
        return _Ends(
            row=row,
            rank=rank[order],
            peer=peer[order],
            plane=plane[order],
            kind=kind[order],
            far=row.reshape(-1, 2)[:, ::-1].ravel()[order],
            notifies=links.notifies.ravel()[order],
            order=order,
        )


def _choose_kinds(tasks: TaskColumns, end: IntArray, ends: _Ends) -> None:
    """Make writes over RDMA links RDMA writes; refuse reads."""
    over_rdma = end >= 0
    over_rdma[over_rdma] = ends.kind[end[over_rdma]] == LinkKind.RDMA
    for row in np.flatnonzero(over_rdma & np.isin(tasks.kind, READS))[:1].tolist():
        hint = "RDMA pushes: let the other side write."
        raise BuildError("no read over an RDMA link", "one", hint, row)
    for write, push in _PUSHES.items():
        tasks.kind[over_rdma & (tasks.kind == write)] = push


def _transports(
    links: LinkColumns,
    ends: _Ends,
    requests: RequestColumns,
    notified: IntArray,
    index: npt.NDArray[np.int32],
) -> Transports:
    """Return the ends; tasks use notifies of number `index` of the ends `notified`."""
    used = np.zeros(len(ends.row), np.int64)
    np.maximum.at(used, notified, index + 1)
    notifies = _requested_notifies(ends, used, requests).astype(np.int16)
    slots = int(used.max(initial=0))
    stride = max(slots, int(notifies.max(initial=0)))
    if stride * len(used) > MAX_CELLS:
        hint = f"{len(used)} ends of transports have {stride} notifies each."
        raise BuildError(f"at most {MAX_CELLS} notifies", str(stride * len(used)), hint)
    return Transports(
        planes=links.planes,
        rank=ends.rank,
        peer=ends.peer,
        plane=ends.plane,
        kind=ends.kind,
        far=ends.far,
        exports=_export_table(links.exports)[ends.order],
        notifies=notifies,
        slots=slots if slots > int(notifies.max(initial=0)) else 0,
        notify_names=links.notify_names,
    )


def _export_table(rows: list[list[int]]) -> npt.NDArray[np.int8]:
    """Return Transports.exports, two columns or more: the last buffer repeats, -1 for none."""
    width = max([2, *map(len, rows)])
    padded = [row + (row[-1:] or [-1]) * (width - len(row)) for row in rows]
    return np.array(padded, np.int8).reshape(len(rows), width)


def _requested_notifies(ends: _Ends, used: IntArray, requests: RequestColumns) -> IntArray:
    """Return the notifies of every end: as its rank states them (0 for an end that it leaves out),
    else as the link does, else as many as the other side states or both use.
    """
    stated = ends.notifies.copy()
    stated[requests.states_ends[ends.rank]] = 0
    sides, counts = requests.ends
    stated[ends.row[sides]] = counts
    theirs, both = stated[ends.far], np.maximum(used, used[ends.far])
    silent = np.where(theirs > 0, np.maximum(theirs, used), np.maximum(OWN_NOTIFIES, both))
    return np.where(stated < 0, silent, stated)


def _declared(
    tasks: TaskColumns, local: npt.NDArray[np.bool_], requests: RequestColumns, ends: _Ends
) -> Declared:
    """Return the requests of all ranks, without scratch; `local` marks the tasks that use local
    notifies.
    """
    ranks, (stating, streams, counts) = len(requests.streams), requests.local
    rank, stream, index = tasks.rank[local], tasks.owner[local], tasks.notify[local]
    numbers = (tasks.stream, requests.streams - 1, stream, streams)
    top = max(int(column.max(initial=0)) for column in numbers)
    if ranks * (top + 1) > MAX_QUEUES:
        hint = f"There are {ranks} ranks, and streams up to {top}."
        raise BuildError(f"at most {MAX_QUEUES} streams", str(ranks * (top + 1)), hint)
    notifies = np.zeros((ranks, top + 1), np.int64)
    notifies[stating, streams] = counts
    silent = ~requests.states_local[rank]
    np.maximum.at(notifies, (rank[silent], stream[silent]), index[silent].astype(np.int64) + 1)
    last = np.zeros(ranks, np.int64)
    np.maximum.at(last, tasks.rank, tasks.stream)
    states_links = np.full(ranks, bool(len(ends.rank)))
    states_links[ends.rank[ends.notifies < 0]] = False
    stated = (requests.streams >= 0, requests.states_local, requests.states_ends | states_links)
    return Declared(
        sub_streams=np.where(requests.streams < 0, last, requests.streams - 1),
        notifies=notifies.sum(axis=1),
        scratch_bytes=np.zeros(ranks, np.int64),
        local_notifies=frozen(notifies),
        stated=frozen(np.stack(stated, axis=1)),
    )


def _local_notifies(
    declared: Declared, stream: npt.NDArray[np.int32], index: npt.NDArray[np.int32]
) -> tuple[LocalNotifies, IntArray]:
    """Return the slots of all ranks in the order of LocalNotifies.of, and the slot of every used
    notify.
    """
    subs = int(declared.sub_streams.max())
    most = declared.local_notifies.max(axis=0)
    np.maximum.at(most, stream, index.astype(np.int64) + 1)
    most = LocalNotifies.least(most, subs)
    count = int(most.sum())
    if count > MAX_SLOTS or count * len(declared.notifies) > MAX_CELLS:
        hint = "Every rank has as many as the streams that have most."
        raise BuildError(f"at most {MAX_SLOTS} notifies of a rank", str(count), hint)
    notifies, slot = LocalNotifies.ordered(most, subs)
    return notifies, slot[(np.cumsum(most) - most)[stream] + index]
