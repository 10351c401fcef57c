"""The flow of data through a program: the transfers that happen at once, and the ranks' contents
afterwards.

    band 1   all transfers that no other transfer has to precede
    band 2   those that only transfers of band 1 have to precede, and so on

An Ack lets a transfer begin, and so does the arrival of its data: each begins a new band. On one
stream a new label does, such as "halving 2/2" after "halving 1/2". Nothing takes time otherwise, so
bands are the steps of an algorithm. Transfers with one label share a band where each stream has it
once: ranks that could begin a step earlier than others do not.

Data has coordinates: the rank whose input it is, and a chunk of the inputs. Inputs are cut where
the algorithm cuts them: bytes that travel together all the way are one chunk. Where inputs are
reduced, chunk c of all ranks becomes one, and a rank holds contributions to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import POST, RDMA_WRITES, WAIT, TaskKind, moves_data
from hccl_py.errors import ParameterError
from hccl_py.printable import brief
from hccl_py.program.describe import ranges_of
from hccl_py.program.program import Program
from hccl_py.program.transports import ACK
from hccl_py.trace.pictures.data_units import Units
from hccl_py.trace.pictures.input_chunks import Content, InputChunk, Place, UnitParts, parts_of
from hccl_py.verifier.analysis.meaning import expected_ranges

MAX_RANKS = 16
MAX_TASKS = 20_000
MAX_ROUNDS = 8
"""Attempts to draw bands with one label together: of 1 629 programs of the built-in executors, all
took two, or would never have ended.
"""


class PictureMove(NamedTuple):
    """Data from one rank to another in a band; `reduces`: it is added to the data there."""

    source: int
    target: int
    parts: frozenset[InputChunk]
    reduces: bool
    rdma: bool


class Band(NamedTuple):
    """Transfers that happen at once, and the parts that every rank `holds` when the next begins.

    `adds` has the ranks that reduce memory of their own in between.
    """

    labels: tuple[str, ...]
    moves: tuple[PictureMove, ...]
    adds: tuple[int, ...]
    holds: tuple[frozenset[InputChunk], ...]


@dataclass(frozen=True)
class Flow:
    """The bands of a program. `sources` are the ranks whose input matters, `holds` what each rank
    has in the beginning, `wanted` what it must have in the end. `step_of` has the band of every
    task that moves data, by row, the first being 1; 0 for what is moved at home before.

    Of a chunk that is reduced a rank holds the parts that are in its best partial result.
    """

    op: OpParam
    executor: str
    ranks: int
    sources: tuple[int, ...]
    chunks: int
    reduces: bool
    holds: tuple[frozenset[InputChunk], ...]
    wanted: tuple[frozenset[InputChunk], ...]
    bands: tuple[Band, ...]
    step_of: Mapping[int, int]


_Key: TypeAlias = tuple[int, str]
"""A round, and a label in it."""


class _MovingTask(NamedTuple):
    """A task that moves data: `size` units from `src` on, to as many from `dst` on."""

    rank: int
    src: Place
    dst: Place
    size: int
    reduces: bool
    rdma: bool
    key: _Key

    @property
    def travels(self) -> bool:
        return self.src[0] != self.dst[0]

    @property
    def sources(self) -> list[Place]:
        return _run(self.src, self.size)

    @property
    def targets(self) -> list[Place]:
        return _run(self.dst, self.size)


class _BandState(NamedTuple):
    """A band: its transfers with what they carried, the ranks that reduced at home, and memory."""

    transfers: list[tuple[_MovingTask, Content]]
    adds: set[int]
    memory: dict[Place, Content]


def flow_of(program: Program) -> Flow:
    """Follow the data of a small program; ParameterError for one that is too large or moves none.

    A program that cannot end is followed as far as it gets. What is not right with it is not
    looked for: `hccl_py.verify` does that.
    """
    _check_counts(program)
    meaning = expected_ranges(program.op, program.ranks)
    if not len(meaning):
        raise ParameterError(
            f"{program.op.name} of {program.op.count} elements has no data to follow.",
            "Give an op with outputs, and a larger count.",
        )
    units = Units(program, meaning)
    tasks = _tasks(program, units)
    inputs = parts_of(program, meaning, units)
    begin = {
        (rank, program.buffers.index("IN"), n): frozenset([(rank, n)]) for rank, n in inputs.units
    }
    levels = _levels(program, tasks)
    states = list(_states([(level, tasks[row]) for level, row in levels], begin))
    parts = inputs.cut([[carried for _, carried in state.transfers] for state in states])
    return Flow(
        op=program.op,
        executor=program.executor,
        ranks=program.ranks,
        sources=parts.sources,
        chunks=parts.chunks,
        reduces=parts.reduces,
        holds=parts.held(begin),
        wanted=parts.wanted,
        bands=tuple(_band(state, parts) for state in states),
        step_of=_numbered(levels, tasks),
    )


def _numbered(
    levels: Sequence[tuple[int, int]], tasks: Mapping[int, _MovingTask]
) -> dict[int, int]:
    """Return the number of every row's band: as `_states` yields them."""
    found: dict[int, int] = {}
    number, last = 0, -1
    for level, row in levels:
        if tasks[row].travels and level != last:
            number, last = number + 1, level
        found[row] = number
    return found


def _band(state: _BandState, parts: UnitParts) -> Band:
    moved: dict[tuple[int, int], list[tuple[_MovingTask, Content]]] = defaultdict(list)
    for task, content in state.transfers:
        moved[task.src[0], task.dst[0]].append((task, content))
    return Band(
        labels=tuple(
            dict.fromkeys(brief(task.key[1]) for task, _ in state.transfers if task.key[1])
        ),
        moves=tuple(
            PictureMove(
                source,
                target,
                parts.of(frozenset().union(*(content for _, content in carried))),
                any(task.reduces for task, _ in carried),
                any(task.rdma for task, _ in carried),
            )
            for (source, target), carried in sorted(moved.items())
        ),
        adds=tuple(sorted(state.adds)),
        holds=parts.held(state.memory),
    )


# ---- from tasks to bands ----


def _check_counts(program: Program) -> None:
    if program.ranks > MAX_RANKS or program.task_count > MAX_TASKS:
        raise ParameterError(
            f"{program.ranks} ranks and {program.task_count} tasks are too many for a picture.",
            f"Record a program with at most {MAX_RANKS} ranks and {MAX_TASKS} tasks.",
        )


def _tasks(program: Program, units: Units) -> dict[int, _MovingTask]:
    """Return the tasks that move data, by row."""
    tasks, table, found = program.tasks, program.tasks.table, {}
    for row in np.flatnonzero(moves_data(tasks.kind) & (tasks.size > 0)).tolist():
        at, (src, dst) = int(tasks.instruction[row]), ranges_of(program, row)
        kind, label = TaskKind(int(table.kind[at])), int(table.label[at])
        read, written = units.within(src), units.within(dst)
        found[row] = _MovingTask(
            rank=int(tasks.rank[row]),
            src=(src.rank, src.buffer, read.start),
            dst=(dst.rank, dst.buffer, written.start),
            size=len(read),
            reduces=kind.reduces,
            rdma=kind in RDMA_WRITES,
            key=(int(table.round[at]), program.labels[label] if label >= 0 else ""),
        )
    return found


class _Event(NamedTuple):
    """A task as bands see it, on its queue, a rank and a stream: a wait for the post in row `post`,
    a post, which may be an Ack, or a task that moves data.
    """

    row: int
    queue: tuple[int, int]
    post: int
    is_ack: bool
    task: _MovingTask | None


def _levels(program: Program, tasks: dict[int, _MovingTask]) -> list[tuple[int, int]]:
    """Return the rows of all tasks that move data behind their bands, in an order in which they
    may run.
    """
    events = _events(program, tasks)
    once = _labels_once(events)
    floors: dict[_Key, int] = {}
    for _ in range(MAX_ROUNDS):
        levels = _bands_of(events, floors)
        raised = _last_bands(tasks, levels, once)
        if raised == floors:
            break
        floors = raised
    else:
        levels = _bands_of(events, {})
    return sorted(((level, row) for row, level in levels.items()), key=lambda pair: pair[0])


def _events(program: Program, tasks: Mapping[int, _MovingTask]) -> list[_Event]:
    """Return the events that bands depend on, in an order in which they may happen."""
    view, linked, transports = program.tasks, program.linked, program.transports
    kinds, posts = view.kind.tolist(), linked.post_of.tolist()
    queues = list(zip(view.rank.tolist(), view.stream.tolist(), strict=True))
    is_ack = ((view.cell < transports.cells) & (view.cell % transports.stride == ACK)).tolist()
    return [
        _Event(
            row, queues[row], posts[row] if kinds[row] == WAIT else -1, is_ack[row], tasks.get(row)
        )
        for row in linked.order.tolist()
        if kinds[row] in (WAIT, POST) or row in tasks
    ]


def _labels_once(events: Sequence[_Event]) -> set[_Key]:
    """Return the labels that no queue has again after another one."""
    queues: dict[tuple[int, int], list[_Key]] = defaultdict(list)
    for event in events:
        if event.task is not None and event.task.travels and event.task.key[1]:
            queues[event.queue].append(event.task.key)
    runs = [[key for key, _ in groupby(keys)] for keys in queues.values()]
    again = {key for keys in runs for key, number in Counter(keys).items() if number > 1}
    return {key for keys in runs for key in keys} - again


def _bands_of(events: Sequence[_Event], floors: Mapping[_Key, int]) -> dict[int, int]:
    """Return the band of every task that moves data; those with a floor come no earlier."""
    at: dict[tuple[int, int], int] = defaultdict(int)  # by queue
    begun: dict[tuple[int, int], tuple[_Key, int]] = {}  # by queue: label, band
    posted: dict[int, int] = {}
    arrived: dict[Place, int] = defaultdict(int)
    levels = {}
    for row, queue, post, is_ack, task in events:
        if post >= 0:
            at[queue] = max(at[queue], posted[post])
        elif task is None:
            posted[row] = at[queue] + is_ack
        else:
            fresh = max(arrived[place] for place in task.sources)
            if task.travels:
                key, last = begun.get(queue, (task.key, 0))
                after = last + (key != task.key)
                at[queue] = max(at[queue], fresh + 1, after, floors.get(task.key, 0))
                begun[queue] = task.key, at[queue]
                fresh = at[queue]
            arrived.update(dict.fromkeys(task.targets, fresh))
            levels[row] = at[queue]
    return levels


def _last_bands(
    tasks: Mapping[int, _MovingTask], levels: Mapping[int, int], labels: Collection[_Key]
) -> dict[_Key, int]:
    """Return the last band of every label among some."""
    last: dict[_Key, int] = defaultdict(int)
    for row, level in levels.items():
        task = tasks[row]
        if task.travels and task.key in labels:
            last[task.key] = max(last[task.key], level)
    return dict(last)


def _states(
    levels: list[tuple[int, _MovingTask]], begin: dict[Place, Content]
) -> Iterator[_BandState]:
    """Run the tasks; yield after each band."""
    memory, last = dict(begin), -1
    state: _BandState | None = None
    for level, task in levels:
        if task.travels and level != last:
            if state:
                yield state._replace(memory=dict(memory))
            state, last = _BandState([], set(), memory), level
        content: Content = frozenset().union(*_execute(task, memory))
        if state and task.travels and content:
            state.transfers.append((task, content))
        elif state and task.reduces and not task.travels:
            state.adds.add(task.rank)
    if state:
        yield state._replace(memory=memory)


def _execute(task: _MovingTask, memory: dict[Place, Content]) -> list[Content]:
    """Move or reduce unit by unit; return what was moved."""
    moved = [memory.get(place, frozenset()) for place in task.sources]
    for place, content in zip(task.targets, moved, strict=True):
        memory[place] = memory.get(place, frozenset()) | content if task.reduces else content
    return moved


def _run(place: Place, size: int) -> list[Place]:
    rank, buffer, first = place
    return [(rank, buffer, first + k) for k in range(size)]
