"""One rank's part as steps: tasks that may run once certain notifies of other ranks have come.

One thread serves all streams of a rank. So a notify between its own streams only says which tasks
come before which, and is gone when they are put in order; what is left to wait for are the notifies
of others. All tasks that need the same of them are one step:

    main    copy, wake the subs      join the subs                    add, ...
    sub 1   post to 1, wait for 1    ─┐
    sub 2   post to 2, wait for 2    ─┤
                                      ▼
    step 0, after nothing                  copy, post to 1, post to 2
    step 1, after the posts of 1 and 2     add, ...

A step needs no more of other ranks than each of its tasks does. So no task waits longer than on its
stream, and where all waits of a step are over, so are those of the steps before it: nothing that
this rank could do meanwhile is of use to others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_platform.lowering.part import MOVE, Cell, RankPart, Task
from hccl_py.enums import POST, WAIT
from hccl_py.program.program import Program

Place: TypeAlias = tuple[int, int]
"""A task of a part: its stream, and its position among the tasks there."""

Turns: TypeAlias = dict[Place, int]
"""For waits, and for posts between the streams of a rank: which post of the run, or which wait, it
is among those of its cell. The n-th wait takes the n-th post.
"""


class StepWait(NamedTuple):
    """A wait of a step: its place, and how often its cell has been posted in this run when it is
    over.
    """

    place: Place
    posts: int


class RankStep(NamedTuple):
    """Tasks that run one after the other, once all waits are over and `before` steps have run;
    `then` are the steps that this one is before.
    """

    waits: tuple[StepWait, ...]
    places: tuple[Place, ...]
    before: int
    then: tuple[int, ...]


def turns_of(program: Program, part: RankPart) -> Turns:
    """Return the turns of a part. Where several streams share a cell, the notifies between them may
    say whose turn is first; else it is that of the program's walk, whose order all ranks can keep.

    Raises what `Linked.check` raises if a program of the last kind cannot end.
    """
    turns = turns_in_order(part.streams)
    streams: dict[tuple[int, int], set[int]] = defaultdict(set)
    for stream, tasks in enumerate(part.streams):
        for task in tasks:
            streams[task.kind, task.number].add(stream)
    shared = {
        number
        for (kind, number), found in streams.items()
        if len(found) > 1 and (kind == WAIT or (kind == POST and is_local(part.cells[number])))
    }
    if not shared:
        return turns
    joined = _turns_of_joins(part)
    return turns | (_turns_of_walk(program, part, shared) if joined is None else joined)


def turns_in_order(streams: Sequence[Sequence[Task]]) -> Turns:
    """Return the turns where the streams run one after the other, or share no cell."""
    counts: Counter[tuple[int, int]] = Counter()
    turns: Turns = {}
    for stream, tasks in enumerate(streams):
        for at, task in enumerate(tasks):
            if task.kind != MOVE:
                turns[stream, at] = counts[task.kind, task.number]
                counts[task.kind, task.number] += 1
    return turns


def is_local(cell: Cell) -> bool:
    """Return True for a notify between the streams of one rank."""
    return not cell.plane and cell.waiter == cell.poster


def _turns_of_joins(part: RankPart) -> Turns | None:
    """Return the turns of a walk over the streams, in which no post of another rank is missing;
    None if two streams share a cell and nothing on this rank says which of them is first.

    Stream s has passed its tasks before at[s]. known[s][t] is the number of tasks of stream t that
    come before its next one, by the notifies that it has waited for; `posted` has these numbers for
    every post between streams, in the order of the walk.
    """
    at = [0 for _ in part.streams]
    known = [list(at) for _ in part.streams]
    posted: dict[int, list[list[int]]] = defaultdict(list)
    counts: Counter[tuple[int, int]] = Counter()
    last: dict[tuple[int, int], Place] = {}
    turns: Turns = {}
    is_moving = True
    while is_moving:
        is_moving = False
        for stream, tasks in enumerate(part.streams):
            own = known[stream]
            while at[stream] < len(tasks):
                kind, number, _ = tasks[at[stream]]
                place, key = (stream, at[stream]), (kind, number)
                at[stream] += 1
                if kind != MOVE:
                    is_ours = is_local(part.cells[number])
                    if is_ours and kind == WAIT and counts[key] == len(posted[number]):
                        at[stream] -= 1
                        break
                    other, its_place = last.get(key, (stream, -1))
                    if own[other] <= its_place:
                        return None
                    if is_ours and kind == WAIT:
                        own[:] = map(max, own, posted[number][counts[key]])
                    elif is_ours:
                        posted[number].append([*own[:stream], at[stream], *own[stream + 1 :]])
                    turns[place], last[key] = counts[key], place
                    counts[key] += 1
                own[stream] = at[stream]
                is_moving = True
    return turns


def _turns_of_walk(program: Program, part: RankPart, shared: set[int]) -> Turns:
    linked, tasks = program.linked, program.tasks
    linked.check(program)
    turn_of: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for row in linked.order[tasks.kind[linked.order] == POST].tolist():
        cell = int(tasks.cell[row])
        turn_of[row] = counts[cell]
        counts[cell] += 1
    own = np.flatnonzero(tasks.rank == part.rank)
    places = zip(tasks.stream[own].tolist(), tasks.index[own].tolist(), strict=True)
    rows = dict(zip(places, own.tolist(), strict=True))
    turns: Turns = {}
    for stream, its_tasks in enumerate(part.streams):
        for at, task in enumerate(its_tasks):
            if task.kind != MOVE and task.number in shared:
                row = rows[stream, task.place]
                turns[stream, at] = turn_of[row if task.kind == POST else int(linked.post_of[row])]
    return turns


class _Stream:
    """A stream of which some tasks are in steps: `at` is the first that is not. `needs` has the
    waits before it as bits, `after` the steps before it but for those that come before these.
    """

    def __init__(self) -> None:
        self.at, self.needs, self.after = 0, 0, frozenset[int]()


class _StepMaker:
    """Steps in the making: by the bits of the waits that they need."""

    def __init__(self, part: RankPart, turns: Mapping[Place, int]) -> None:
        self._part, self._turns = part, turns
        self._waits: list[StepWait] = []
        self._numbers: dict[int, int] = {}
        self._places: list[list[Place]] = []
        self._before: list[set[int]] = []
        self._posted: dict[tuple[int, int], tuple[int, frozenset[int]]] = {}

    def advance(self, number: int, stream: _Stream) -> None:
        """Put the tasks of a stream into steps, up to a wait for a post that is in none yet."""
        tasks = self._part.streams[number]
        for at in range(stream.at, len(tasks)):
            task, place = tasks[at], (number, at)
            if task.kind == MOVE or not is_local(self._part.cells[task.number]):
                if task.kind == WAIT:
                    stream.needs |= 1 << len(self._waits)
                    self._waits.append(StepWait(place, self._turns[place] + 1))
                else:
                    self._add(place, stream)
            elif task.kind == POST:
                self._posted[task.number, self._turns[place]] = stream.needs, stream.after
            else:
                post = self._posted.get((task.number, self._turns[place]))
                if post is None:
                    return
                stream.needs |= post[0]
                stream.after |= post[1]
            stream.at = at + 1

    def finish(self, streams: Sequence[_Stream]) -> tuple[RankStep, ...]:
        """Return all steps, and a last one after everything, which has no task."""
        last = _Stream()
        for stream in streams:
            last.needs |= stream.needs
            last.after |= stream.after
        self._step(last)
        then: list[list[int]] = [[] for _ in self._places]
        for number, before in enumerate(self._before):
            for other in sorted(before):
                then[other].append(number)
        needs = {number: bits for bits, number in self._numbers.items()}
        steps = []
        for number, before in enumerate(self._before):
            bits = needs[number]
            for other in before:
                bits &= ~needs[other]
            waits = tuple(self._waits[k] for k in _set_bits(bits))
            places = tuple(self._places[number])
            steps.append(RankStep(waits, places, len(before), tuple(then[number])))
        return tuple(steps)

    def _add(self, place: Place, stream: _Stream) -> None:
        number = self._step(stream)
        self._places[number].append(place)
        stream.after = frozenset([number])

    def _step(self, stream: _Stream) -> int:
        """Return the step of what needs the same waits as the next task of a stream."""
        number = self._numbers.setdefault(stream.needs, len(self._places))
        if number == len(self._places):
            self._places.append([])
            self._before.append(set())
        self._before[number] |= stream.after - {number}
        return number


def _set_bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def steps_of(
    program: Program, part: RankPart, turns: Turns, numbers: Sequence[int]
) -> tuple[RankStep, ...]:
    """Return the steps of some streams of a part.

    Raises what `Linked.check` raises if the streams wait for each other for ever.
    """
    steps, streams = _StepMaker(part, turns), [_Stream() for _ in numbers]
    live = [(n, s) for n, s in zip(numbers, streams, strict=True) if part.streams[n]]
    while live:
        begun = [stream.at for _, stream in live]
        for number, stream in live:
            steps.advance(number, stream)
        if begun == [stream.at for _, stream in live]:
            program.linked.check(program)
            raise AssertionError("The walk goes on where this rank's own streams do not.")
        live = [(n, stream) for n, stream in live if stream.at < len(part.streams[n])]
    return steps.finish(streams)
