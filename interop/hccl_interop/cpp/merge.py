"""All ranks' tasks become one program, as columns.

Channels are joined first: the k-th channel of rank a to rank b on a layer meets the k-th of b to a.
Then columns are laid out as those of a program file are, and ranks that enqueue the same tasks with
other numbers become one batch, whose numbers are formulas where they turn with the rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_interop.cpp.lines import Lines
from hccl_interop.cpp.run import RankBuffers
from hccl_interop.cpp.traces import ChannelTrace, RankTrace, Traces
from hccl_py.call.op_param import OpParam
from hccl_py.enums import LinkKind, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.formats.checks import frozen
from hccl_py.formats.json_read import TaskNotifies, layout_of
from hccl_py.formats.json_rows import Rows
from hccl_py.formats.json_tasks import Columns
from hccl_py.formats.links import LinkColumns, export_table, planes_of
from hccl_py.formats.memory import BufferTable
from hccl_py.formats.requests import Requests
from hccl_py.program.instruction import COLUMNS, Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, PerRank, RankInt

BUFFERS = ("IN", "OUT", "CCL", "DEV")
"""The parts of a rank's memory, in the recorder's order."""

_KINDS = (
    TaskKind.COPY,
    TaskKind.REDUCE,
    TaskKind.READ,
    TaskKind.READ_REDUCE,
    TaskKind.WRITE,
    TaskKind.WRITE_REDUCE,
    TaskKind.NOTIFY_POST,
    TaskKind.NOTIFY_WAIT,
    TaskKind.NOTIFY_POST,
    TaskKind.NOTIFY_WAIT,
)
"""TaskKind by the recorder's kinds; the last two are those of threads."""

_LOCAL_POST, _LOCAL_WAIT = 8, 9

_Table = dict[str, npt.NDArray[np.integer[Any]]]
"""The fields of Instruction as columns, one value per task."""


@dataclass(frozen=True)
class Meeting:
    """Both ends of every channel, [meetings, 2] each: rank, layer, the channel's number at its rank
    (-1: that rank never acquires it), notifies and what the end shows.
    """

    rank: IntArray
    layer: IntArray
    channel: IntArray
    notifies: IntArray
    shown: IntArray

    def one_sided(self) -> list[tuple[int, int, int]]:
        """Return (rank, channel, peer) of channels that only one side acquires."""
        alone = np.flatnonzero((self.channel < 0).any(axis=1))
        side = np.argmax(self.channel[alone] >= 0, axis=1)
        ranks, channels = self.rank[alone, side], self.channel[alone, side]
        peers = self.rank[alone, 1 - side]
        return sorted(zip(ranks.tolist(), channels.tolist(), peers.tolist(), strict=True))


def joined_channels(ranks: Sequence[RankTrace]) -> Meeting:
    """Return which channels meet."""
    keys: dict[tuple[int, int, int, int], list[tuple[int, ChannelTrace | None]]] = {}
    for trace in ranks:
        seen: dict[tuple[int, int], int] = {}
        for number, channel in enumerate(trace.channels):
            turn = seen.get((channel.peer, channel.layer), 0)
            seen[channel.peer, channel.layer] = turn + 1
            low, high = sorted((trace.rank, channel.peer))
            ends = keys.setdefault((channel.layer, low, high, turn), [(-1, None), (-1, None)])
            ends[trace.rank == high] = (number, channel)
    order = sorted(keys)
    shape = (len(order), 2)
    rank = np.array([(low, high) for _, low, high, _ in order], np.int64).reshape(shape)
    layer = np.array([(key[0], key[0]) for key in order], np.int64).reshape(shape)
    found = [keys[key] for key in order]
    numbers = np.array([[n for n, _ in ends] for ends in found], np.int64).reshape(shape)
    notifies = np.array([[c.notifies if c else 0 for _, c in e] for e in found], np.int64)
    shown = np.array([[c.shown if c else 0 for _, c in e] for e in found], np.int64)
    return Meeting(rank, layer, numbers, notifies.reshape(shape), shown.reshape(shape))


def merged(
    traces: Traces,
    meeting: Meeting,
    lines: Lines,
    op: OpParam,
    topology: Topology,
    buffers: RankBuffers,
    name: str,
    calls: int,
) -> Program:
    """Return the program of all ranks."""
    ranks = traces.ranks
    rows, tasks, recorded = _rows(ranks)
    memory = _memory(ranks, buffers, tasks)
    ends, end_of = _ends(meeting, ranks, topology, memory)
    columns = _columns(rows, tasks, end_of, op.dtype.number)
    layout = layout_of(rows, columns, ends, _requests(ranks, meeting, ends), memory)
    _push_over_rdma(rows, columns, layout)
    names = tuple(f"notify {index}" for index in range(3))
    label, labels = _texts([lines.label(s) for s in range(len(traces.stacks))], tasks["stack"])
    line, texts = _texts([lines.line(s) or "" for s in range(len(traces.stacks))], tasks["stack"])
    table = _table(rows, columns, layout, label, line, tasks["call"])
    table = {name: column[recorded] for name, column in table.items()}
    return Program(
        op=op,
        executor=name,
        ranks=len(ranks),
        buffers=memory.names,
        buffer_sizes=frozen(memory.sizes),
        transports=replace(layout.transports, notify_names=names),
        local_notifies=layout.local_notifies,
        declared=layout.declared,
        batches=_batches(rows, len(ranks), table),
        labels=labels,
        lines=texts,
        rounds=calls,
    )


def _rows(ranks: Sequence[RankTrace]) -> tuple[Rows, npt.NDArray[np.void], IntArray]:
    """Return the queues of all ranks, their tasks laid end to end, and the places of these in the
    order in which every rank has recorded them.
    """
    parts, recorded, queue_rank, queue_stream, counts = [], [], [], [], []
    begin = 0
    for trace in ranks:
        order = np.argsort(trace.tasks["thread"], kind="stable")
        recorded.append(begin + np.argsort(order))
        begin += len(order)
        parts.append(trace.tasks[order])
        lengths = np.bincount(trace.tasks["thread"], minlength=len(trace.threads))
        queue_rank += [trace.rank] * len(lengths)
        queue_stream += list(range(len(lengths)))
        counts += lengths.tolist()
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rank, stream = np.array(queue_rank, np.int64), np.array(queue_stream, np.int64)
    return Rows([], rank, stream, first), np.concatenate(parts), np.concatenate(recorded)


def _memory(
    ranks: Sequence[RankTrace], buffers: RankBuffers, tasks: npt.NDArray[np.void]
) -> BufferTable:
    """Return the buffers; what ranks allocate is one only where tasks use it."""
    own = np.array([trace.device_bytes for trace in ranks], np.int64)
    sizes = [buffers.inputs, buffers.outputs, np.full(len(ranks), buffers.ccl, np.int64), own]
    used = max(int(tasks["src_part"].max(initial=2)), int(tasks["dst_part"].max(initial=2))) + 1
    table = np.stack(sizes[:used], axis=1)
    return BufferTable(BUFFERS[:used], table, np.ones(table.shape, bool))


@dataclass(frozen=True)
class _ChannelEnds:
    """The ends of the channels as layout_of asks for them: a key is the row of an end."""

    columns: LinkColumns

    def link_columns(self, keys: IntArray) -> LinkColumns:
        """Return the ends of all channels."""
        return self.columns


def _ends(
    meeting: Meeting, ranks: Sequence[RankTrace], topology: Topology, memory: BufferTable
) -> tuple[_ChannelEnds, list[IntArray]]:
    """Return the ends sorted by plane, rank and peer, and by rank the end of each channel."""
    names = topology_planes(topology)
    planes = planes_of(names)
    numbers = np.array([planes.index(name) for name in names])
    rank, peer = meeting.rank.ravel(), meeting.rank[:, ::-1].ravel()
    plane = numbers[meeting.layer.ravel()] if len(rank) else np.zeros(0, np.int64)
    order = np.lexsort((peer, rank, plane))
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    used = len(memory.names)
    shown = [[p for p in range(used) if mask >> p & 1] for mask in meeting.shown.ravel().tolist()]
    columns = LinkColumns(
        planes=planes,
        keys=np.arange(len(order)),
        rank=rank[order],
        peer=peer[order],
        plane=plane[order],
        kind=topology.link_kinds(rank[order], peer[order]),
        far=row.reshape(-1, 2)[:, ::-1].ravel()[order],
        exports=export_table(shown)[order],
        notifies=meeting.notifies.ravel()[order],
    )
    end_of = [np.full(len(trace.channels), -1) for trace in ranks]
    for k, (number, owner) in enumerate(zip(meeting.channel.ravel(), rank, strict=True)):
        if number >= 0:
            end_of[owner][number] = row[k]
    return _ChannelEnds(columns), end_of


def topology_planes(topology: Topology) -> tuple[str, str]:
    """Return the planes of layers 0 and 1."""
    return "level0", "level1"


def _columns(
    rows: Rows,
    tasks: npt.NDArray[np.void],
    end_of: list[IntArray],
    dtype: int,
) -> Columns:
    columns = Columns(len(rows))
    kind = tasks["kind"]
    columns.kind[:] = np.array(_KINDS, np.int8)[kind]
    columns.src_buffer[:], columns.dst_buffer[:] = tasks["src_part"], tasks["dst_part"]
    columns.src_offset[:], columns.dst_offset[:] = tasks["src_offset"], tasks["dst_offset"]
    columns.src_size[:], columns.dst_size[:] = tasks["size"], tasks["size"]
    columns.index[:] = tasks["index"]
    columns.reduce[:], columns.dtype[:] = tasks["reduce"], tasks["dtype"]
    columns.dtype[(columns.src_buffer >= 0) & (columns.dtype < 0)] = dtype
    local = (kind == _LOCAL_POST) | (kind == _LOCAL_WAIT)
    columns.owner[kind == _LOCAL_POST] = tasks["target"][kind == _LOCAL_POST]
    columns.owner[kind == _LOCAL_WAIT] = rows.stream[kind == _LOCAL_WAIT]
    away = ~local & (tasks["target"] >= 0)
    first = np.cumsum([0, *map(len, end_of)])
    ends = np.concatenate(end_of) if end_of else np.zeros(0, np.int64)
    columns.key[away] = ends[first[rows.rank[away]] + tasks["target"][away]]
    return columns


def _requests(ranks: Sequence[RankTrace], meeting: Meeting, ends: _ChannelEnds) -> Requests:
    """Return what the ranks ask for: all of it is stated."""
    count = len(ranks)
    queues = [
        (trace.rank, stream, notifies)
        for trace in ranks
        for stream, (notifies, _) in enumerate(trace.threads)
    ]
    local = np.array(queues, np.int64).reshape(-1, 3).T
    columns = ends.columns
    asked = columns.notifies > 0
    everybody = np.ones(count, bool)
    return Requests(
        streams=np.array([len(trace.threads) for trace in ranks], np.int64),
        states_local=everybody,
        local=(local[0], local[1], local[2]),
        states_channels=everybody,
        channels=(columns.rank[asked], columns.keys[asked], columns.notifies[asked]),
        stated=frozen(np.ones((count, 3), bool)),
    )


def _push_over_rdma(rows: Rows, columns: Columns, layout: TaskNotifies) -> None:
    """Make writes over RoCE what they are; NotSupportedError for reads."""
    away = layout.end >= 0
    rdma = np.zeros(len(columns.kind), bool)
    rdma[away] = layout.transports.kind[layout.end[away]] == LinkKind.RDMA
    reads = np.isin(columns.kind, (TaskKind.READ, TaskKind.READ_REDUCE))
    for row in np.flatnonzero(rdma & reads)[:1].tolist():
        raise NotSupportedError(
            f"RoCE joins rank {rows.rank[row]} with rank {layout.peer[row]}, from which it reads: "
            "only writes over RoCE are modelled.",
            "Let the other side write, or record for --topology ascend950.",
        )
    for plain, push in (
        (TaskKind.WRITE, TaskKind.RDMA_WRITE),
        (TaskKind.WRITE_REDUCE, TaskKind.RDMA_WRITE_REDUCE),
    ):
        columns.kind[rdma & (columns.kind == plain)] = push


def _texts(of_stack: Sequence[str], stacks: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """Return the number of every task's text, -1 for none, and the texts."""
    numbers: dict[str, int] = {}
    used = np.zeros(len(of_stack), bool)
    used[stacks] = True
    number = np.full(len(of_stack), -1)
    for stack in np.flatnonzero(used).tolist():
        if of_stack[stack]:
            number[stack] = numbers.setdefault(of_stack[stack], len(numbers))
    return number[stacks], tuple(numbers)


def _table(
    rows: Rows,
    columns: Columns,
    layout: TaskNotifies,
    label: IntArray,
    line: IntArray,
    call: IntArray,
) -> _Table:
    """Return the fields of Instruction as columns."""
    return {
        "kind": columns.kind,
        "stream": rows.stream,
        "label": label,
        "line": line,
        "round": call,
        "cell": layout.cell,
        "end": layout.end,
        "peer": layout.peer,
        "src_buffer": columns.src_buffer,
        "src_offset": columns.src_offset,
        "dst_buffer": columns.dst_buffer,
        "dst_offset": columns.dst_offset,
        "size": columns.src_size,
        "dtype": columns.dtype,
        "reduce": columns.reduce,
    }


def _batches(rows: Rows, ranks: int, table: _Table) -> tuple[Batch, ...]:
    """Return a batch for all ranks that do the same, up to the columns that may differ by rank."""
    first = np.searchsorted(rows.rank, np.arange(ranks + 1))
    shared = np.stack([table[name] for name in table if name not in COLUMNS], axis=1)
    alike: dict[bytes, list[int]] = {}
    for rank in range(ranks):
        alike.setdefault(shared[first[rank] : first[rank + 1]].tobytes(), []).append(rank)
    return tuple(
        Batch(frozen(np.array(group)), _instructions(table, first[group], int(first[group[0] + 1])))
        for group in alike.values()
    )


def _instructions(table: _Table, begins: IntArray, end: int) -> tuple[Instruction, ...]:
    """Return the tasks of ranks that do the same; their rows start at `begins`."""
    count = end - int(begins[0])
    fields: dict[str, list[Any]] = {}
    for name, column in table.items():
        own = column[begins[0] : end]
        if name in COLUMNS and len(begins) > 1:
            fields[name] = _varying(column[begins[:, None] + np.arange(count)])
        else:
            fields[name] = own.tolist()
    fields["kind"] = [TaskKind(kind) for kind in fields["kind"]]
    fields |= {"duration_us": [0.0] * count, "dst_size": [-1] * count, "joined": [0] * count}
    ordered = [fields[name] for name in Instruction._fields]
    return tuple(map(Instruction._make, zip(*ordered, strict=True)))


def _varying(values: npt.NDArray[np.integer[Any]]) -> list[Any]:
    """Return the number of every task, [ranks, tasks], as an int or as one per rank."""
    same = (values == values[0]).all(axis=0)
    found: list[Any] = values[0].tolist()
    formulas = _Formulas(len(values))
    for task in np.flatnonzero(~same).tolist():
        found[task] = formulas.of(np.ascontiguousarray(values[:, task]))
    return found


class _Formulas:
    """Numbers per rank, those that are known already, or known ones turned, without new arrays."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._base = frozen(np.arange(ranks))
        self._known: dict[bytes, RankInt] = {}
        self._tables: dict[tuple[int, int], tuple[IntArray, dict[int, int]]] = {}

    def of(self, values: IntArray) -> RankInt:
        """Return the formula of one number per rank."""
        key = values.tobytes()
        if key not in self._known:
            self._known[key] = self._turned(values)
        return self._known[key]

    def _turned(self, values: IntArray) -> RankInt:
        bounds = int(values.min()), int(values.max())
        if bounds not in self._tables:
            places = {value: place for place, value in enumerate(values.tolist())}
            self._tables[bounds] = frozen(values), places
        table, places = self._tables[bounds]
        turn = places.get(int(values[0]))
        are_different = len(places) == self._ranks
        if turn is not None and are_different and (np.roll(table, -turn) == values).all():
            return PerRank(self._base, turn, self._ranks, table)
        return PerRank.of(values)
