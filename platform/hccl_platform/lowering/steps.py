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

A step needs no more of other ranks than each of its tasks does, so no task waits for a notify that
its stream does not wait for. A reduction that other ranks may hold up (`RankPart.atomic`) begins a
step of its own, so that the tasks of other streams can go on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_platform.lowering.part import MOVE, Cell, RankPart, Task
from hccl_py.enums import POST, WAIT
from hccl_py.program.program import Program

Place: TypeAlias = tuple[int, int]
"""A task of a part: its stream, and its position among the tasks there."""

Turns: TypeAlias = dict[Place, int]
"""For every wait, and every post between streams of a rank, its number among the waits or posts of
its cell. Wait n takes post n.
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
    """Return the turns of a part. The notifies between streams that share a cell may order them;
    else the program's walk does, whose order all ranks can keep.

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
    None if two streams share a cell and nothing on this rank says which of them is first, or the
    walk does not end.

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
    return turns if at == [len(tasks) for tasks in part.streams] else None


def _turns_of_walk(program: Program, part: RankPart, shared: set[int]) -> Turns:
    linked, tasks = program.linked, program.tasks
    if len(linked.stuck):
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
    """A stream of which the tasks before `at` are in steps. Its next task needs what `needs` names:
    waits by their numbers, and steps, of number n as ~n.
    """

    def __init__(self) -> None:
        self.at = 0
        self.needs: set[int] = set()


class _StepMaker:
    """Steps in the making: what they need, and their tasks."""

    def __init__(self, part: RankPart, turns: Mapping[Place, int]) -> None:
        self._part, self._turns = part, turns
        self._waits: list[StepWait] = []
        self._needs: list[frozenset[int]] = []
        self._implied: list[frozenset[int]] = []  # by a step: its needs, and those of its steps
        self._places: list[list[Place]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._posted: dict[tuple[int, int], frozenset[int]] = {}

    def advance(self, number: int, stream: _Stream) -> None:
        """Put the tasks of a stream into steps, up to a wait for a post that is in none yet."""
        tasks = self._part.streams[number]
        for at in range(stream.at, len(tasks)):
            task, place = tasks[at], (number, at)
            if task.kind == MOVE or not is_local(self._part.cells[task.number]):
                if task.kind == WAIT:
                    stream.needs.add(len(self._waits))
                    self._waits.append(StepWait(place, self._turns[place] + 1))
                else:
                    self._add(place, task, stream)
            elif task.kind == POST:
                self._posted[task.number, self._turns[place]] = frozenset(stream.needs)
            else:
                post = self._posted.get((task.number, self._turns[place]))
                if post is None:
                    return
                stream.needs |= post
            stream.at = at + 1

    def finish(self, streams: Sequence[_Stream]) -> tuple[RankStep, ...]:
        """Return all steps, with one for the waits that no task comes after."""
        self._step(set().union(*(stream.needs for stream in streams)))
        then: list[list[int]] = [[] for _ in self._places]
        for number, needs in enumerate(self._needs):
            for other in sorted(~n for n in needs if n < 0):
                then[other].append(number)
        steps = []
        for number, needs in enumerate(self._needs):
            waits = tuple(self._waits[n] for n in sorted(needs) if n >= 0)
            before = len(needs) - len(waits)
            steps.append(RankStep(waits, tuple(self._places[number]), before, tuple(then[number])))
        return tuple(steps)

    def _add(self, place: Place, task: Task, stream: _Stream) -> None:
        """Put a task into a step; one that other ranks may hold up begins a step of its own."""
        number = self._step(stream.needs)
        if task.kind == MOVE and task.number in self._part.atomic:
            number = self._new_step(frozenset([~number]))
        self._places[number].append(place)
        stream.needs = {~number}

    def _step(self, needs: set[int]) -> int:
        """Return the step of tasks with these needs: where they are one step, that one."""
        key = frozenset(needs.difference(*(self._implied[~n] for n in needs if n < 0)))
        if len(key) == 1 and min(key) < 0:
            return ~min(key)
        if key not in self._numbers:
            self._numbers[key] = self._new_step(key)
        return self._numbers[key]

    def _new_step(self, needs: frozenset[int]) -> int:
        implied = [needs, *(self._needs[~n] for n in needs if n < 0)]
        self._implied.append(frozenset().union(*implied))
        self._needs.append(needs)
        self._places.append([])
        return len(self._needs) - 1


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
