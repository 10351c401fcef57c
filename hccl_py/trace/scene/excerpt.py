"""The part of a large program that is shown: some ranks, timed with the rest.

The whole program is timed by its batches, which expands nothing, and the times of the ranks that
are shown are kept on the way. 16 384 ranks are too many to look at; a few that differ, and those
that they work with, stand for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hccl_py.clocks.carried import carried
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.links import Links
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.program.describe import format_ranks
from hccl_py.program.program import Program
from hccl_py.simulator.batches import RankTimes, time_ranks
from hccl_py.topology import Topology
from hccl_py.trace.scene.model import DONE, STUCK, UNREACHED, Traffic
from hccl_py.values import Floats, IntArray

MOST_TASKS = 1_500_000
"""Tasks up to which a program is shown whole: expanding, timing and drawing them takes some ten
seconds and 1 GB, and no viewer is quick with more.
"""

_SHOWN = 200_000
"""Tasks of a part: they are drawn at once, on any machine."""

_FEWEST, _MOST = 8, 256
"""Ranks of a part: fewer do not show which ranks work together, more are too many to look at."""

TAIL = 0.1
"""How much longer a program that never ends is drawn than it gets, as a share of that."""


class ShownTasks(NamedTuple):
    """The rows of `program` with their times: those of some `ranks`, or of all.

    `partner` is by row, as in Linked but both ways; `left_out` says which tasks are not shown.
    """

    program: Program
    ranks: IntArray
    start_us: Floats
    end_us: Floats
    effect_us: Floats
    state: IntArray
    partner: IntArray
    usage: Floats
    traffic: Traffic
    total_us: float
    left_out: str


def part_to_show(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Stragglers,
    around: Sequence[int],
) -> ShownTasks:
    """Time a program and choose the ranks to show: those `around` and those that they work with, by
    default the first rank of every batch. Raises ParameterError for a rank that there is not.
    """
    wrong = [rank for rank in around if not 0 <= rank < program.ranks]
    if wrong:
        raise ParameterError(
            f"There is no rank {wrong[0]}.", f"The program has ranks 0 to {program.ranks - 1}."
        )
    ranks, most = _chosen(program, around)
    times = time_ranks(program, topology, cost, slow, ranks=ranks, most=most)
    start, end, effect, state, total = _ended(times)
    return ShownTasks(
        times.part,
        times.ranks,
        start,
        end,
        effect,
        state,
        _partners(times.part, start, end, effect, state),
        _usage(times, total),
        _traffic(program, Links.of(program, topology, cost, slow), times.ranks, total),
        total,
        _left_out(program, times, most, end, state),
    )


def _chosen(program: Program, around: Sequence[int]) -> tuple[list[int], int]:
    """Return the ranks that are shown, and how many tasks of each of their streams."""
    lengths: dict[int, tuple[int, ...]] = {}
    batch_of = np.empty(program.ranks, np.int64)
    for k, batch in enumerate(program.batches):
        batch_of[batch.ranks] = k
        streams = [instruction.stream for instruction in batch.instructions]
        lengths[k] = tuple(np.bincount(streams)) if streams else ()
    chosen: list[int] = []
    tasks = 0
    for rank in _nearest(program, around):
        more = int(sum(lengths[int(batch_of[rank])]))
        if len(chosen) >= _MOST or (len(chosen) >= _FEWEST and tasks + more > _SHOWN):
            break
        chosen.append(rank)
        tasks += more
    queues = [int(length) for rank in chosen for length in lengths[int(batch_of[rank])] if length]
    return chosen, _cut(queues)


def _cut(queues: list[int]) -> int:
    """Return the number of tasks of each queue that are shown, within the limit for all queues."""
    room = _SHOWN
    for place, length in enumerate(sorted(queues)):
        left = len(queues) - place
        if length * left > room:
            return max(room // left, 1)
        room -= length
    return max(queues, default=0)


def _nearest(program: Program, around: Sequence[int]) -> Iterator[int]:
    """Yield ranks: those asked for, or the first of every batch, then those that they work with,
    then those that these work with, and so on.
    """
    transports = program.transports
    order = np.argsort(transports.rank, kind="stable")
    first = np.searchsorted(transports.rank[order], np.arange(program.ranks + 1))
    near = list(around) or [int(batch.ranks[0]) for batch in program.batches if batch.instructions]
    seen = set(near)
    while near:
        yield from near
        far: list[int] = []
        for rank in near:
            ends = order[first[rank] : first[rank + 1]]
            for peer in np.unique(transports.peer[ends])[:_MOST].tolist():
                if peer not in seen:
                    seen.add(peer)
                    far.append(peer)
            if len(far) > _MOST:
                break
        near = far
    yield from (rank for rank in range(program.ranks) if rank not in seen)


def _ended(times: RankTimes) -> tuple[Floats, Floats, Floats, IntArray, float]:
    """Return the times of all tasks, their states, and the total: waits that block last until the
    end, and tasks that are never reached lie there.
    """
    start, end, effect = times.start_us.copy(), times.end_us.copy(), times.effect_us.copy()
    state = np.full(len(start), DONE)
    missing = np.isnan(end)
    if not missing.any():
        return start, end, effect, state, times.total_us
    total = times.total_us * (1 + TAIL) or 1.0
    tasks = times.part.tasks
    queue = tasks.rank.astype(np.int64) * times.part.streams + tasks.stream
    order = np.argsort(queue, kind="stable")
    before = np.full(len(order), -1)
    same = queue[order[1:]] == queue[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    is_first = missing & ((before < 0) | ~missing[before])
    for column in (start, end, effect):
        column[missing] = total
    state[missing] = UNREACHED
    stuck = np.flatnonzero(is_first)
    state[stuck] = STUCK
    start[stuck] = np.where(before[stuck] >= 0, end[before[stuck]], 0.0)
    return start, end, effect, state, total


def _partners(
    part: Program, start: Floats, end: Floats, effect: Floats, state: IntArray
) -> IntArray:
    """Return for waits their posts and for posts their waits, where both are shown.

    Notifies are bits, so the k-th post of one belongs to its k-th wait. Where some of its posts are
    not shown that may go wrong: then the times do not fit.
    """
    tasks, kind = part.tasks, part.tasks.kind
    found = np.full(len(tasks), -1, np.int64)
    turns = []
    for of_kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT):
        rows = np.flatnonzero((kind == of_kind) & (state == DONE))
        rows = rows[np.lexsort((rows, effect[rows], tasks.cell[rows]))]
        cells = tasks.cell[rows]
        begins = np.searchsorted(cells, cells)
        turns.append((rows, cells * (len(tasks) + 1) + np.arange(len(rows)) - begins))
    (posts, post_turn), (waits, wait_turn) = turns
    _, a, b = np.intersect1d(post_turn, wait_turn, assume_unique=True, return_indices=True)
    posts, waits = posts[a], waits[b]
    fits = end[waits] == np.maximum(start[waits], effect[posts])
    found[posts[fits]], found[waits[fits]] = waits[fits], posts[fits]
    return found


def _usage(times: RankTimes, total: float) -> Floats:
    used = np.maximum((times.tasks > 0).sum(axis=1), 1)
    busy, waiting = (times.spent.sum(axis=1) / used[:, None]).T
    return np.stack([busy, waiting, np.maximum(total - busy - waiting, 0.0)], axis=1)


def _traffic(program: Program, links: Links, ranks: IntArray, total: float) -> Traffic:
    """Return the bytes that the shown ranks send and receive, from and to any rank."""
    transports = program.transports
    sent = carried(program)
    shown = np.isin(transports.rank, ranks) | np.isin(transports.peer, ranks)
    ends = np.flatnonzero((sent > 0) & shown)
    classes = links.classes(transports)
    pair = transports.rank[ends].astype(np.int64) * program.ranks + transports.peer[ends]
    pairs, place = np.unique(pair, return_inverse=True)
    busy = sent[ends] * classes.beta_us[classes.of_end[ends]]
    added = [np.bincount(place.reshape(-1), column, len(pairs)) for column in (sent[ends], busy)]
    return Traffic(
        (pairs // program.ranks).astype(np.int32),
        (pairs % program.ranks).astype(np.int32),
        added[0].astype(np.int64),
        np.asarray(added[1] / (total or 1.0)),
    )


def _left_out(program: Program, times: RankTimes, most: int, end: Floats, state: IntArray) -> str:
    """Return a sentence about the tasks that are not shown."""
    ranks = times.ranks.tolist()
    said = f"Shown: {format_ranks(ranks)} of {program.ranks}"
    longest = int(times.tasks.max(initial=0))
    if longest > most:
        until = float(end[state == DONE].max(initial=0.0))
        said += f", of each stream the first {most} of up to {longest} tasks, until {until:.2f} us"
    return f"{said}; times are those of the whole program, whose link load is not computed."
