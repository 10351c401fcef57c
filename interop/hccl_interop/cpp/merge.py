"""All ranks' tasks become one program, as columns.

Channels are joined first: the k-th channel of rank a to rank b on a network meets the k-th of b to
a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hccl_interop.cpp.lines import SourceLines
from hccl_interop.cpp.networks import networks_of
from hccl_interop.cpp.run import RankBuffers
from hccl_interop.cpp.traces import BITS, ChannelTrace, RankTrace, Traces
from hccl_py.call.op_param import OpParam
from hccl_py.enums import TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.program.builder import (
    BuildError,
    LinkColumns,
    RequestColumns,
    TaskColumns,
    program_from,
)
from hccl_py.program.program import Program
from hccl_py.topology.planes import PLANES
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

BUFFERS = ("IN", "OUT", "CCL", "DEV", "CCU0", "CCU1")
"""The parts of a rank's memory, in the recorder's order; the last two are buffers of the CCU, by
die.
"""

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
_NOTIFY_NAMES = tuple(f"notify {index}" for index in range(3))
_BIT_NAMES = tuple(f"notify {index // BITS} bit {index % BITS}" for index in range(8 * BITS))
"""Notifies of channels of the CCU, numbered by bit."""

_MESH, _CLOS = PLANES.index("level0"), PLANES.index("level1")
"""Planes of channels: the ports of devices to a Clos network are those of level 1."""


@dataclass(frozen=True)
class Meeting:
    """Both ends of every channel, [meetings, 2] each: rank, network, the channel's number at its
    rank (-1: that rank never acquires it), notifies and what the end shows.
    """

    rank: IntArray
    network: IntArray
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
    """Return both ends of every channel, in the order of networks and ranks."""
    keys: dict[tuple[int, int, int, int], list[tuple[int, ChannelTrace | None]]] = {}
    for trace in ranks:
        seen: dict[tuple[int, int], int] = {}
        for number, channel in enumerate(trace.channels):
            turn = seen.get((channel.peer, channel.network), 0)
            seen[channel.peer, channel.network] = turn + 1
            low, high = sorted((trace.rank, channel.peer))
            ends = keys.setdefault((channel.network, low, high, turn), [(-1, None), (-1, None)])
            ends[trace.rank == high] = (number, channel)
    order = sorted(keys)
    shape = (len(order), 2)
    rank = np.array([(low, high) for _, low, high, _ in order], np.int64).reshape(shape)
    network = np.array([(key[0], key[0]) for key in order], np.int64).reshape(shape)
    found = [keys[key] for key in order]
    numbers = np.array([[n for n, _ in ends] for ends in found], np.int64).reshape(shape)
    notifies = np.array([[c.notifies if c else 0 for _, c in e] for e in found], np.int64)
    shown = np.array([[c.shown if c else 0 for _, c in e] for e in found], np.int64)
    return Meeting(rank, network, numbers, notifies.reshape(shape), shown.reshape(shape))


def merged(
    traces: Traces,
    meeting: Meeting,
    lines: SourceLines,
    op: OpParam,
    topology: Topology,
    buffers: RankBuffers,
    name: str,
    calls: int,
) -> Program:
    """Return the program of all ranks; NotSupportedError where one reads over RoCE."""
    ranks = traces.ranks
    recorded = np.concatenate([trace.tasks for trace in ranks])
    sizes = _sizes(ranks, buffers, recorded)
    names = BUFFERS[: sizes.shape[1]]
    links = _links(meeting, topology, len(names))
    tasks = _task_columns(ranks, recorded, meeting, op.dtype.number)
    stacks = range(len(traces.stacks))
    tasks.label[:], labels = _texts([lines.label(s) for s in stacks], recorded["stack"])
    tasks.line[:], texts = _texts([lines.line(s) or "" for s in stacks], recorded["stack"])
    try:
        program = program_from(op, names, sizes, links, _requests(ranks), tasks, labels, texts)
    except BuildError as error:
        if error.row < 0:
            raise
        peer = meeting.rank.ravel()[tasks.end[error.row] ^ 1]
        raise NotSupportedError(
            f"RoCE joins rank {tasks.rank[error.row]} with rank {peer}, from which it reads: "
            "only writes over RoCE are modelled.",
            "Let the other side write, or record for --topology ascend950.",
        ) from None
    engines = {"ccu" if trace.launches else trace.engine for trace in ranks}
    engine = engines.pop() if len(engines) == 1 else ""
    names = traces.stream_names
    return replace(program, executor=name, rounds=calls, engine=engine, stream_names=names)


def _sizes(
    ranks: Sequence[RankTrace], buffers: RankBuffers, recorded: npt.NDArray[np.void]
) -> IntArray:
    """Return the bytes of buffers, [ranks, buffers]; memory that ranks allocate is one only where
    tasks use it.
    """
    own = np.array([trace.device_bytes for trace in ranks], np.int64)
    sizes = [buffers.inputs, buffers.outputs, np.full(len(ranks), buffers.ccl, np.int64), own]
    sizes += list(np.array([trace.buffer_bytes for trace in ranks], np.int64).T)
    parts = (recorded["src_part"], recorded["dst_part"])
    used = max(int(part.max(initial=2)) for part in parts) + 1
    return np.stack(sizes[:used], axis=1)


def _links(meeting: Meeting, topology: Topology, buffers: int) -> LinkColumns:
    masks = meeting.shown.ravel().tolist()
    planes = np.array([_CLOS if one.is_clos else _MESH for one in networks_of(topology)])
    parts = range(buffers)
    return LinkColumns(
        planes=PLANES,
        ranks=meeting.rank,
        plane=planes[meeting.network[:, 0]],
        kind=topology.link_kinds(meeting.rank[:, 0], meeting.rank[:, 1]),
        exports=[[part for part in parts if mask >> part & 1] for mask in masks],
        notifies=meeting.notifies,
        notify_names=_BIT_NAMES if (meeting.notifies < 0).any() else _NOTIFY_NAMES,
    )


def _task_columns(
    ranks: Sequence[RankTrace], recorded: npt.NDArray[np.void], meeting: Meeting, dtype: int
) -> TaskColumns:
    """Return the columns of all tasks in the order in which ranks recorded them."""
    lengths = [len(trace.tasks) for trace in ranks]
    rank = np.repeat(np.array([trace.rank for trace in ranks], np.int64), lengths)
    tasks = TaskColumns(rank, recorded["thread"].astype(np.int64))
    kind, target = recorded["kind"], recorded["target"]
    tasks.kind[:] = np.array(_KINDS, np.int8)[kind]
    tasks.src_buffer[:], tasks.dst_buffer[:] = recorded["src_part"], recorded["dst_part"]
    tasks.src_offset[:], tasks.dst_offset[:] = recorded["src_offset"], recorded["dst_offset"]
    tasks.src_size[:], tasks.dst_size[:] = recorded["size"], recorded["size"]
    tasks.notify[:], tasks.round[:] = recorded["index"], recorded["call"]
    tasks.reduce[:], tasks.dtype[:] = recorded["reduce"], recorded["dtype"]
    tasks.joined[:] = recorded["joined"]
    tasks.dtype[(tasks.src_buffer >= 0) & (tasks.dtype < 0)] = dtype
    posts, waits = kind == _LOCAL_POST, kind == _LOCAL_WAIT
    tasks.owner[posts] = target[posts]
    tasks.owner[waits] = np.where(target[waits] < 0, tasks.stream[waits], target[waits])
    away = ~posts & ~waits & (target >= 0)
    first = np.cumsum([0, *(len(trace.channels) for trace in ranks)])
    tasks.end[away] = _sides(meeting, first)[first[rank[away]] + target[away]]
    return tasks


def _sides(meeting: Meeting, first: IntArray) -> IntArray:
    """Return the side of a link that every channel is; those of rank r begin at first[r]."""
    channel, rank = meeting.channel.ravel(), meeting.rank.ravel()
    acquired = np.flatnonzero(channel >= 0)
    sides = np.full(first[-1], -1)
    sides[first[rank[acquired]] + channel[acquired]] = acquired
    return sides


def _requests(ranks: Sequence[RankTrace]) -> RequestColumns:
    """Return the requests of the ranks: all streams and local notifies are stated, but for those
    that kernels of the CCU make.
    """
    if any(trace.kernels for trace in ranks):
        return RequestColumns.as_used(len(ranks))
    queues = [
        (trace.rank, stream, notifies)
        for trace in ranks
        for stream, (notifies, _) in enumerate(trace.threads)
    ]
    rank, stream, notifies = np.array(queues, np.int64).reshape(-1, 3).T
    return replace(
        RequestColumns.as_used(len(ranks)),
        streams=np.array([len(trace.threads) for trace in ranks], np.int64),
        states_local=np.ones(len(ranks), bool),
        local=(rank, stream, notifies),
    )


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
