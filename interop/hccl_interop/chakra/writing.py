"""From a job to a trace: kernels and calls become nodes, streams and events dependencies.

A node depends on the node before it on its stream, and on the nodes before the events that its
stream has waited for. The trace is a folder with a file for every rank, PREFIX.RANK.et.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hccl_interop.chakra.reading import CHAKRA
from hccl_interop.chakra.schema import messages
from hccl_interop.chakra.values import (
    DTYPE,
    GROUP_NAME,
    OPS,
    REDUCE_OP,
    ROOT,
    STREAMS,
    WORLD,
    CommType,
    NodeType,
)
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.documents.disk import PathLike, check_place, format_path, refusal, write_file
from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError, ProgramFileError
from hccl_py.jobs import Event, Job
from hccl_py.jobs.overlap import call_spans
from hccl_py.jobs.steps import Communicate, Compute, JobGroup, Record, Step, Wait
from hccl_py.operators import make_operator
from hccl_py.simulator.timeline import Timeline

_VERSION = "1.1.1-chakra.1.0.0"

_TYPES = {op: kind for kind, op in OPS.items() if kind != CommType.REDUCE_SCATTER_BLOCK}
"""The node type of every op."""

_FIELDS = {bool: "bool_val", int: "int64_val", str: "string_val"}
"""The field of an attribute's value."""


def check_folder(path: PathLike) -> None:
    """Refuse, before the work, a folder with other files than a trace of hccl-py, which is
    replaced.
    """
    folder = Path(path)
    shown = f"{format_path(path):.200}"
    try:
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.suffix != ".et":
                raise ProgramFileError(
                    f"{shown}: the folder is there and holds no Chakra trace.", "Name a new one."
                )
            check_place(file, CHAKRA)
        if folder.exists() and not folder.is_dir():
            raise ProgramFileError(f"{shown}: it is a file, no folder.", "Name a new folder.")
        if not folder.resolve().parent.is_dir():
            raise ProgramFileError(f"{shown}: there is no folder to make it in.", "Make it first.")
    except (OSError, ValueError) as error:
        raise refusal("written", error, f"{shown}: ", ProgramFileError) from None


def write_trace(
    job: Job, path: PathLike, timeline: Timeline | None = None, prefix: str = "trace"
) -> int:
    """Write a job to a folder, which is made if missing; return the number of nodes.

    With a timeline of the job's program, nodes have their begin and duration in whole microseconds;
    without one, kernels have their rounded durations.

    Raises ParameterError for a call that Chakra has no node for, and for streams that wait for each
    other; FileError where the folder cannot be written or has other files.
    """
    check_folder(path)
    times = None if timeline is None else JobTimes(timeline)
    writer = _TraceWriter(job, times)
    files = [writer.file(rank) for rank in range(job.topology.size)]
    folder = Path(path)
    try:
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.et"):
            old.unlink()
    except OSError as error:
        raise refusal("written", error, f"{format_path(path):.200}: ", ProgramFileError) from None
    for rank, data in enumerate(files):
        write_file(folder / f"{prefix}.{rank}.et", data, CHAKRA)
    return writer.nodes


class _Item(NamedTuple):
    """A step of a rank; for a call with its number and the rank's part."""

    step: Step
    number: int = -1
    part: tuple[JobGroup, Plan] | None = None


class _TraceWriter:
    """The files of a job, and what its ranks share: groups, tags, attributes of calls."""

    def __init__(self, job: Job, times: JobTimes | None) -> None:
        self.job, self.times = job, times
        self._metadata, self.node = messages()
        self._names: dict[Communicator, str] = {}
        self._tags: dict[tuple[int, int], dict[Communicator, int]] = {}
        self._attributes: dict[object, list[Any]] = {}
        self.items: list[list[_Item]] = [[] for _ in range(job.topology.size)]
        calls = 0
        for step in job.steps:
            if not isinstance(step, Communicate):
                item = _Item(step)
                for rank in step.ranks.tolist():
                    self.items[rank].append(item)
                continue
            for part in step.parts:
                members = np.intersect1d(part[0].members, step.ranks)
                item = _Item(step, calls, part)
                for rank in members.tolist():
                    self.items[rank].append(item)
                if len(members) and not _is_message(part[1].op):
                    self._name(part[0])
            calls += 1
        self.nodes = 0

    def file(self, rank: int) -> bytes:
        """Return the file of a rank."""
        metadata = self._metadata(version=_VERSION)
        metadata.attr.add(name=STREAMS).string_list.values.extend(self.job.stream_names)
        found = [metadata, *self._groups(rank)]
        found += _Rank(self, rank, len(found) - 1).nodes()
        self.nodes += len(found) - 1
        return b"".join(_framed(message.SerializeToString(deterministic=True)) for message in found)

    def _name(self, group: JobGroup) -> str:
        """Return the number of a communicator's process group, as text; 0 has all ranks."""
        who = group.communicator
        if who not in self._names:
            size = self.job.topology.size
            is_world = who.parent is None and np.array_equal(group.members, np.arange(size))
            taken = WORLD in self._names.values()
            others = len(self._names) + 1 - taken
            self._names[who] = WORLD if is_world and not taken else str(others)
        return self._names[who]

    def tag(self, group: JobGroup, source: int, destination: int) -> int:
        """Return the tag of a communicator's messages between two ranks."""
        known = self._tags.setdefault((source, destination), {})
        return known.setdefault(group.communicator, len(known))

    def _groups(self, rank: int) -> Iterator[Any]:
        """Yield the node with the process groups of a rank, as PyTorch writes it."""
        mine: dict[str, dict[str, object]] = {}
        for item in self.items[rank]:
            if item.part is not None and not _is_message(item.part[1].op):
                group = item.part[0]
                name = self._name(group)
                if name not in mine:
                    mine[name] = _group(name, group)
        if mine:
            node = self.node(id=0, name="## process_group:init ##", type=NodeType.METADATA_NODE)
            node.inputs.values = f"['{json.dumps(list(mine.values()))}']"
            node.inputs.types = "['String']"
            yield node

    def attributes(self, group: JobGroup, op: OpParam) -> list[Any]:
        """Return the attributes of a call, the same at every rank of a group."""
        key = group.communicator, op
        if key not in self._attributes:
            said = _said(op, len(group.members), self._name(group))
            attributes = [
                {"name": name, _FIELDS[type(value)]: value} for name, value in said.items()
            ]
            self._attributes[key] = list(self.node(attr=attributes).attr)
        return self._attributes[key]


def _group(name: str, group: JobGroup) -> dict[str, object]:
    return {
        "pg_name": name,
        "pg_desc": group.communicator.name,
        GROUP_NAME: group.communicator.name,
        "ranks": group.members.tolist(),
        "group_size": len(group.members),
    }


class _Rank:
    """The nodes of one rank."""

    def __init__(self, writer: _TraceWriter, rank: int, first: int) -> None:
        self._writer, self._rank, self._next = writer, rank, first
        self._frontier: dict[int, tuple[int, ...]] = {}
        """By stream: the nodes that its next node depends on."""
        self._events: dict[Event, tuple[int, ...]] = {}
        self._kernels: dict[int, int] = {}

    def nodes(self) -> Iterator[Any]:
        """Yield nodes in topological order."""
        items = self._writer.items[self._rank]
        while items:
            left: list[_Item] = []
            stuck: set[int] = set()
            for item in items:
                step = item.step
                early = isinstance(step, Wait) and step.event not in self._events
                if early or step.stream in stuck:
                    stuck.add(step.stream)
                    left.append(item)
                    continue
                yield from self._issued(item)
            if len(left) == len(items):
                raise ParameterError(
                    f"Rank {self._rank} waits on stream "
                    f"{self._writer.job.name_of(left[0].step.stream)} for an event that never "
                    f"happens ({left[0].step.line}).",
                    "A trace has no place for a wait without end.",
                )
            items = left

    def _issued(self, item: _Item) -> Iterator[Any]:
        step = item.step
        before = self._frontier.get(step.stream, ())
        if isinstance(step, Record):
            self._events[step.event] = before
        elif isinstance(step, Wait):
            more = (node for node in self._events[step.event] if node not in before)
            self._frontier[step.stream] = (*before, *more)
        else:
            node = self._compute(step) if isinstance(step, Compute) else self._run(item)
            node.id, node.name = self._next, step.label
            node.data_deps.extend(sorted(before))
            node.attr.add(name="stream").int64_val = step.stream
            self._frontier[step.stream] = (self._next,)
            self._next += 1
            yield node

    def _compute(self, step: Compute) -> Any:
        us = float(step.duration_us[np.searchsorted(step.ranks, self._rank)])
        node = self._writer.node(type=NodeType.COMP_NODE, duration_micros=round(us))
        node.attr.add(name="is_cpu_op").bool_val = False
        number = self._kernels.get(step.stream, 0)
        self._kernels[step.stream] = number + 1
        if self._writer.times is not None:
            self._time(node, self._writer.times.kernel(self._rank, step.stream, number))
        return node

    def _run(self, item: _Item) -> Any:
        assert item.part is not None, "the step is a call"
        group, op = item.part[0], item.part[1].op
        node = self._writer.node(type=NodeType.COMM_COLL_NODE)
        node.attr.extend(self._writer.attributes(group, op))
        if _is_message(op):
            source, destination = (int(group.members[end]) for end in op.pairs[0][:2])
            is_sender = self._rank == source
            node.type = NodeType.COMM_SEND_NODE if is_sender else NodeType.COMM_RECV_NODE
            node.attr.add(name="comm_tag").int32_val = self._writer.tag(group, source, destination)
            node.attr.add(name="comm_src").int32_val = source
            node.attr.add(name="comm_dst").int32_val = destination
        if self._writer.times is not None:
            self._time(node, self._writer.times.call(self._rank, item.number))
        return node

    @staticmethod
    def _time(node: Any, span: tuple[float, float]) -> None:
        start, end = (round(us) for us in span)
        node.start_time_micros, node.duration_micros = start, end - start


def _is_message(op: OpParam) -> bool:
    """True for a call that is one message between two ranks."""
    return op.name in ("send_recv", "batch_send_recv") and len(op.pairs) == 1


def _said(op: OpParam, ranks: int, group: str) -> dict[str, object]:
    """Return the attributes of a call; ParameterError for one that Chakra has no node for."""
    if _is_message(op) and ranks == 2 and op.pairs[0][0] != op.pairs[0][1]:
        count = op.pairs[0][2] if len(op.pairs[0]) > 2 else op.count
        size, said = count * op.unit, dict[str, object]()
    elif op.name in _TYPES:
        parts = ranks if make_operator(op.name).facts.slots_in else 1
        size = op.size * parts
        said = {"comm_type": int(_TYPES[op.name]), "pg_name": group}
    else:
        raise ParameterError(
            f"Chakra has no node for {op.name}{' of several messages' if op.pairs else ''}.",
            f"It has {', '.join(_TYPES)}, and messages of groups of two ranks.",
        )
    said |= {"is_cpu_op": False, "comm_size": size, DTYPE: op.dtype.value}
    if op.reduce is not None:
        said[REDUCE_OP] = op.reduce.spelling
    if op.root is not None:
        said[ROOT] = op.root
    return said


def _framed(data: bytes) -> bytes:
    """Return a message behind its length, a varint."""
    length, head = len(data), bytearray()
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + data


class JobTimes:
    """Microseconds from the beginning of the job; ParameterError for a timeline of no job."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._call_start, self._call_end = call_spans(timeline)
        tasks = timeline.program.tasks
        kernels = np.flatnonzero(tasks.kind == TaskKind.COMPUTE)
        self._kernels = kernels[np.lexsort((kernels, tasks.stream[kernels], tasks.rank[kernels]))]
        self._streams = int(tasks.stream.max(initial=0)) + 1
        self._queue = tasks.rank[self._kernels] * self._streams + tasks.stream[self._kernels]

    def kernel(self, rank: int, stream: int, number: int) -> tuple[float, float]:
        """Return begin and end of a rank's kernel, the k-th on its stream."""
        first = int(np.searchsorted(self._queue, rank * self._streams + stream))
        row = self._kernels[first + number]
        return float(self._timeline.start_us[row]), float(self._timeline.end_us[row])

    def call(self, rank: int, number: int) -> tuple[float, float]:
        """Return begin and end of the k-th call of the job on a rank."""
        return float(self._call_start[rank, number]), float(self._call_end[rank, number])
