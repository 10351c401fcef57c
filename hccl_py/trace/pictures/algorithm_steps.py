"""The steps of an algorithm as numbers: the moves of every step, from where to where, and when.

Up to 16 ranks a step is what no other transfer of it has to precede (flow.py), and every rank has
a card: bits say which parts of the data it holds after each step. Larger programs have servers as
nodes; their steps are the rounds and labels of transfers in the order in which these begin, and
transfers with a label that does not count its steps are parted where one begins after another has
ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from hccl_py.call.ops import OPS
from hccl_py.enums import RDMA_WRITES, READS, REDUCES, WRITES
from hccl_py.errors import ParameterError
from hccl_py.printable import one_line
from hccl_py.program.program import Program
from hccl_py.topology import Topology
from hccl_py.trace.pictures.captions import stem
from hccl_py.trace.pictures.flow import MAX_RANKS, Flow, flow_of
from hccl_py.trace.pictures.held_cells import HeldCells, cells_of
from hccl_py.trace.pictures.pairings import Clause, ServerPlaces, clauses_of, ending_of, sentence
from hccl_py.trace.pictures.seats import Seats, grid_seats, seats_of_ranks
from hccl_py.trace.scene import UNREACHED, Scene
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

READ, REDUCE, RDMA = 1, 2, 4
"""Bits of a move: the receiver reads it, it is added to the data there, it goes over RDMA."""

MOST_NODES = 256
"""Nodes of a picture; more ranks or servers share nodes."""

MOST_MOVES = 2000
"""Moves of a step that are drawn, those with most bytes."""

_MOST_WAVES = 64
"""Steps that transfers with one label are parted in; a label with more is one step."""


class StepTimes(NamedTuple):
    """Times by task row, in µs, and whether the task is reached."""

    start_us: Floats
    arrive_us: Floats
    is_reached: IntArray


class StepMoves(NamedTuple):
    """One row for each step and pair of nodes, by step; `kind` has READ, REDUCE and RDMA."""

    step: IntArray
    source: IntArray
    target: IntArray
    bytes: IntArray
    kind: IntArray
    begin_us: Floats
    end_us: Floats


class StepNodes(NamedTuple):
    """Nodes of the picture: ranks, servers or blocks of them; the node of every rank."""

    noun: Literal["rank", "server", "block"]
    of_rank: IntArray
    names: tuple[str, ...]


class AlgorithmStep(NamedTuple):
    """A step: its label, what it does in words, its time, and the bytes that a rank sends at most.

    `inside` are the pairs inside every node, by places there, where all nodes do the same.
    """

    label: str
    clauses: tuple[Clause, ...]
    ending: str
    begin_us: float
    end_us: float
    each: int
    pairs: int
    inside: tuple[tuple[int, int], ...] = ()

    @property
    def said(self) -> str:
        """The step in one sentence."""
        return sentence(self.clauses, self.ending)

    @property
    def phase(self) -> str:
        """The label without the number of the step."""
        return stem(self.label)


@dataclass(frozen=True)
class AlgorithmSteps:
    """All steps of a program. `step` is that of every task row that moves data, 0 before the first;
    `cells` are the contents of ranks where they are followed, `share` what part of all that it
    gets has come to every node after each step. `timed` says whether times are those of a model.
    """

    nodes: StepNodes
    seats: Seats
    places: ServerPlaces
    step: IntArray
    steps: tuple[AlgorithmStep, ...]
    moves: StepMoves
    share: Floats
    cells: HeldCells | None
    timed: bool

    def moves_of(self, number: int) -> range:
        """Return the moves of a step; the first step is 1."""
        first, stop = np.searchsorted(self.moves.step, [number, number + 1])
        return range(int(first), int(stop))


def steps_of_scene(scene: Scene) -> AlgorithmSteps:
    """Return the steps of a scene's program, at the scene's times."""
    row, bars = scene.bars.row, scene.bars
    start, arrive = np.empty(len(row)), np.empty(len(row))
    reached = np.empty(len(row), np.int64)
    start[row], arrive[row] = bars.start_us, np.maximum(bars.end_us, bars.effect_us)
    reached[row] = bars.state != UNREACHED
    times = StepTimes(start, arrive, reached)
    return algorithm_steps(scene.program, scene.topology, times)


def steps_of_timeline(timeline: Timeline) -> AlgorithmSteps:
    """Return the steps of a timeline's program, at its times."""
    program = timeline.program
    reached = np.zeros(program.task_count, np.int64)
    reached[program.linked.order] = 1
    arrive = np.maximum(timeline.end_us, timeline.effect_us)
    times = StepTimes(timeline.start_us, arrive, reached)
    return algorithm_steps(program, timeline.links.topology, times)


def step_documents(steps: AlgorithmSteps) -> Iterator[dict[str, object]]:
    """Yield every step for `--json`: its words and times, and its transfers from node to node."""
    names, moves = steps.nodes.names, steps.moves
    for number, step in enumerate(steps.steps, 1):
        yield {
            "step": number,
            "label": step.label,
            "said": step.said,
            "begin_us": step.begin_us,
            "end_us": step.end_us,
            "bytes_each": step.each,
            "transfers": [
                {
                    "from": names[moves.source[k]],
                    "to": names[moves.target[k]],
                    "bytes": int(moves.bytes[k]),
                    "reduces": bool(moves.kind[k] & REDUCE),
                }
                for k in steps.moves_of(number)
            ],
        }


def algorithm_steps(
    program: Program, topology: Topology | None = None, times: StepTimes | None = None
) -> AlgorithmSteps:
    """Return the steps of a program; without times, what comes first is the order of its walk."""
    server = np.zeros(program.ranks, np.int64) if topology is None else topology.server
    places = ServerPlaces.of(server)
    flow = _flow(program)
    moving = _Moving.of(program, times or _in_turn(program))
    step = _numbered(program, moving, flow)
    nodes = _nodes(places)
    moves = _moves(moving, step[moving.row], nodes)
    seats = grid_seats(len(nodes.names))
    if nodes.noun == "rank" and program.ranks <= MAX_RANKS:
        pairs = zip(moves.source.tolist(), moves.target.tolist(), strict=True)
        seats = seats_of_ranks(places, topology, list(pairs))
    count = int(step.max(initial=0))
    return AlgorithmSteps(
        nodes,
        seats,
        places,
        step,
        tuple(_steps(program, moving, step[moving.row], nodes, places, flow)),
        moves,
        _shares(moving, step[moving.row], nodes, count),
        None if flow is None else cells_of(flow, moves.step, moves.source, moves.target),
        times is not None,
    )


def _flow(program: Program) -> Flow | None:
    """Return the flow of a program that is small enough to follow."""
    if program.ranks > MAX_RANKS or program.op.name not in OPS:
        return None
    try:
        return flow_of(program)
    except ParameterError:
        return None  # fine or large: its moves and times are drawn, not the contents of ranks


def _in_turn(program: Program) -> StepTimes:
    """Return the order in which tasks may run, in the place of times."""
    order = program.linked.order
    at = np.zeros(len(program.tasks))
    reached = np.zeros(len(program.tasks), np.int64)
    at[order], reached[order] = np.arange(len(order)), 1
    return StepTimes(at, at + 1.0, reached)


class _Moving(NamedTuple):
    """The tasks that move data from rank to rank: rows, with what is asked of them."""

    row: IntArray
    source: IntArray
    target: IntArray
    size: IntArray
    kind: IntArray
    key: IntArray
    label: IntArray
    start_us: Floats
    arrive_us: Floats

    @staticmethod
    def of(program: Program, times: StepTimes) -> _Moving:
        """Find them among the tasks that are reached."""
        tasks = program.tasks
        kinds = tasks.kind
        travels = np.isin(kinds, (*READS, *WRITES)) & (tasks.size > 0)
        travels &= (tasks.peer != tasks.rank) & (times.is_reached > 0)
        row = np.flatnonzero(travels)
        kind, at = kinds[row], tasks.instruction[row]
        own, peer = tasks.rank[row].astype(np.int64), tasks.peer[row].astype(np.int64)
        reads = np.isin(kind, READS)
        label = tasks.table.label[at].astype(np.int64)
        bits = READ * reads + REDUCE * np.isin(kind, REDUCES) + RDMA * np.isin(kind, RDMA_WRITES)
        return _Moving(
            row,
            np.where(reads, peer, own),
            np.where(reads, own, peer),
            tasks.size[row],
            bits,
            tasks.table.round[at].astype(np.int64) * (len(program.labels) + 1) + label + 1,
            label,
            times.start_us[row],
            times.arrive_us[row],
        )


def _numbered(program: Program, moving: _Moving, flow: Flow | None) -> IntArray:
    """Return the step of every row that moves data; -1 for the others."""
    step = np.full(len(program.tasks), -1, np.int64)
    if flow is not None:
        step[np.fromiter(flow.step_of, np.int64)] = np.fromiter(flow.step_of.values(), np.int64)
        return step
    found = np.zeros(len(moving.row), np.int64)
    begins: list[tuple[float, int, int]] = []
    for key in np.unique(moving.key).tolist():
        own = np.flatnonzero(moving.key == key)
        label = int(moving.label[own[0]])
        counts = label >= 0 and stem(program.labels[label]) != program.labels[label]
        waves = np.zeros(len(own), np.int64) if counts else _waves(moving, own)
        for wave in range(int(waves.max()) + 1):
            mine = own[waves == wave]
            found[mine] = len(begins)
            begins.append((float(moving.start_us[mine].min()), key, len(begins)))
    place = np.empty(len(begins), np.int64)
    place[[number for *_, number in sorted(begins)]] = np.arange(len(begins)) + 1
    step[moving.row] = place[found] if len(begins) else 0
    return step


def _waves(moving: _Moving, own: IntArray) -> IntArray:
    """Part transfers where one begins when another one of the same wave has ended."""
    order = own[np.argsort(moving.start_us[own], kind="stable")]
    start, arrive = moving.start_us[order], moving.arrive_us[order]
    bounds, at = [0], 0
    while at < len(order) and len(bounds) <= _MOST_WAVES:
        first = float(arrive[at])
        while True:  # the earliest end among those that begin before it
            stop = int(np.searchsorted(start, first, "left"))
            least = float(arrive[at : max(stop, at + 1)].min())
            if least >= first:
                break
            first = least
        at = max(stop, at + 1)
        bounds.append(at)
    if len(bounds) > _MOST_WAVES:
        return np.zeros(len(own), np.int64)
    wave = np.searchsorted(np.array(bounds[1:]), np.arange(len(order)), "right")
    found = np.empty(len(own), np.int64)
    found[np.searchsorted(own, order)] = wave
    return found


def _nodes(places: ServerPlaces) -> StepNodes:
    """Return ranks where there are few, else servers; blocks where these are many or one."""
    ranks = len(places.server)
    if ranks <= MAX_RANKS or (places.servers == 1 and ranks <= MOST_NODES):
        return StepNodes("rank", np.arange(ranks), tuple(map(str, range(ranks))))
    if 1 < places.servers <= MOST_NODES:
        return StepNodes("server", places.server, tuple(map(str, range(places.servers))))
    by = -(-ranks // MOST_NODES)
    names = tuple(f"{first}-{min(first + by, ranks) - 1}" for first in range(0, ranks, by))
    return StepNodes("block", np.arange(ranks) // by, names)


def _moves(moving: _Moving, step: IntArray, nodes: StepNodes) -> StepMoves:
    """Add up the transfers of a step from node to node."""
    count = len(nodes.names)
    source, target = nodes.of_rank[moving.source], nodes.of_rank[moving.target]
    keys, place = np.unique((step * count + source) * count + target, return_inverse=True)
    place = place.reshape(-1)
    size = np.zeros(len(keys), np.int64)
    kind = np.zeros(len(keys), np.int64)
    begin, end = np.full(len(keys), np.inf), np.zeros(len(keys))
    np.add.at(size, place, moving.size)
    np.bitwise_or.at(kind, place, moving.kind)
    np.minimum.at(begin, place, moving.start_us)
    np.maximum.at(end, place, moving.arrive_us)
    found = StepMoves(
        keys // (count * count), keys // count % count, keys % count, size, kind, begin, end
    )
    kept = _largest(found)
    if kept is None:
        return found
    return StepMoves(
        found.step[kept],
        found.source[kept],
        found.target[kept],
        found.bytes[kept],
        found.kind[kept],
        found.begin_us[kept],
        found.end_us[kept],
    )


def _largest(moves: StepMoves) -> IntArray | None:
    """Return the moves that are drawn, where some are not."""
    if not (np.bincount(moves.step) > MOST_MOVES).any():
        return None
    order = np.lexsort((-moves.bytes, moves.step))
    first = np.searchsorted(moves.step, moves.step)
    return np.sort(order[np.arange(len(order)) - first < MOST_MOVES])


def _steps(
    program: Program,
    moving: _Moving,
    step: IntArray,
    nodes: StepNodes,
    places: ServerPlaces,
    flow: Flow | None,
) -> list[AlgorithmStep]:
    order = np.argsort(step, kind="stable")
    edges = np.searchsorted(step[order], np.arange(1, int(step.max(initial=0)) + 2))
    found = []
    for number, (first, stop) in enumerate(itertools.pairwise(edges), 1):
        own = order[first:stop]
        kinds, ranks = moving.kind[own], len(places.server)
        pairs = np.unique(moving.source[own] * ranks + moving.target[own])
        source, target = pairs // ranks, pairs % ranks
        sent = np.bincount(moving.source[own], moving.size[own])
        adds = flow is not None and bool(flow.bands[number - 1].adds)
        found.append(
            AlgorithmStep(
                _label(program, moving.label[own]),
                clauses_of(source, target, places),
                ending_of(
                    reads=bool((kinds & READ).all()),
                    reduces=bool((kinds & REDUCE).all()),
                    adds=adds,
                ),
                float(moving.start_us[own].min(initial=np.inf)),
                float(moving.arrive_us[own].max(initial=0.0)),
                int(sent.max(initial=0)),
                len(pairs),
                _inside(source, target, nodes),
            )
        )
    return found


def _label(program: Program, labels: IntArray) -> str:
    """Return the label of a step's transfers; what several have in common, joined."""
    texts = [program.labels[label] for label in dict.fromkeys(labels.tolist()) if label >= 0]
    if len(texts) > 1:
        texts = list(dict.fromkeys(map(stem, texts)))
    return one_line(", ".join(texts[:3]))[:80]


def _inside(source: IntArray, target: IntArray, nodes: StepNodes) -> tuple[tuple[int, int], ...]:
    """Return the pairs inside nodes by places, where nodes are servers and all do the same."""
    if nodes.noun == "rank":
        return ()
    places, count = ServerPlaces.of(nodes.of_rank), len(nodes.names)
    own = nodes.of_rank[source] == nodes.of_rank[target]
    width = int(places.place.max()) + 1
    keys = places.place[source[own]] * width + places.place[target[own]]
    pairs, times = np.unique(keys, return_counts=True)
    if not (times == count).all():
        return ()
    return tuple((pair // width, pair % width) for pair in pairs.tolist())


def _shares(moving: _Moving, step: IntArray, nodes: StepNodes, count: int) -> Floats:
    """Return the part of all that it gets that every node has, after each step; [steps, nodes]."""
    width = len(nodes.names)
    at = np.maximum(step - 1, 0) * width + nodes.of_rank[moving.target]
    got = np.bincount(at, moving.size, count * width).reshape(count, width)
    got = np.cumsum(got, axis=0)
    return got / np.maximum(got[-1:], 1.0) if count else np.zeros((0, width))


def step_of_finding(steps: AlgorithmSteps, rows: Sequence[int]) -> int:
    """Return the step of the first task of `rows` that moves data, or that such a task follows on
    its stream; 0 where no task is known.
    """
    for row in rows:
        ahead = steps.step[row : row + 256]
        moving = ahead[ahead > 0]
        if len(moving):
            return int(moving[0])
    return 0
