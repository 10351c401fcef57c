"""Steps of a rank: no task waits for more, or for less, than its stream does."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random

import pytest

from hccl_executors import EXECUTORS
from hccl_platform.lowering.moves import run_step
from hccl_platform.lowering.part import MOVE, Cell, RankPart, Task, part_of
from hccl_platform.lowering.steps import Place, RankStep, is_local, steps_of, turns_of
from hccl_py.enums import POST, WAIT
from hccl_py.errors import DeadlockError
from hccl_py.formats import from_json
from hccl_py.plugins.executor import Executor
from hccl_py.program.matching import shared_cells
from hccl_py.program.program import Program
from hccl_py.verifier import verify_program
from tests.platform.counting_programs import all_gather
from tests.platform.test_part import a_program, right_outputs
from tests.recording import op_of, recorded

SEEDS = 150


def all_steps(program: Program, part: RankPart) -> tuple[RankStep, ...]:
    return steps_of(program, part, turns_of(program, part), range(len(part.streams)))


def places_of(part: RankPart) -> set[Place]:
    """Return the places of the tasks that are in steps."""
    return {
        (stream, at)
        for stream, tasks in enumerate(part.streams)
        for at, task in enumerate(tasks)
        if task.kind == MOVE or (task.kind == POST and not is_local(part.cells[task.number]))
    }


def done_without(part: RankPart, wait: Place) -> set[Place]:
    """Walk the streams in turn, with every post of another rank there but the one that a wait
    takes. Return the tasks that are done.
    """
    at, counts = [0] * len(part.streams), Counter[int]()
    done, is_moving = set[Place](), True
    while is_moving:
        is_moving = False
        for stream, tasks in enumerate(part.streams):
            while at[stream] < len(tasks) and (stream, at[stream]) != wait:
                task = tasks[at[stream]]
                if task.kind != MOVE and is_local(part.cells[task.number]):
                    if task.kind == WAIT and not counts[task.number]:
                        break
                    counts[task.number] += 1 if task.kind == POST else -1
                elif task.kind != WAIT:
                    done.add((stream, at[stream]))
                at[stream] += 1
                is_moving = True
    return done


def done_in_steps_without(steps: tuple[RankStep, ...], wait: Place) -> set[Place]:
    left, done = [step.before for step in steps], set[Place]()
    ready = [number for number, count in enumerate(left) if not count]
    while ready:
        step = steps[ready.pop()]
        if wait in [each.place for each in step.waits]:
            continue
        done.update(step.places)
        for number in step.then:
            left[number] -= 1
            if not left[number]:
                ready.append(number)
    return done


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_step_needs_what_the_streams_of_its_tasks_need(executor: type[Executor]) -> None:
    program = a_program(executor)
    if program is None:
        pytest.skip("one rank only")
    for rank in {0, program.ranks - 1}:
        part = part_of(program, rank)
        steps = all_steps(program, part)
        assert sorted(p for step in steps for p in step.places) == sorted(places_of(part))
        waits = [
            (stream, at)
            for stream, tasks in enumerate(part.streams)
            for at, task in enumerate(tasks)
            if task.kind == WAIT and not is_local(part.cells[task.number])
        ]
        for wait in Random(rank).sample(waits, min(len(waits), 30)):
            assert done_in_steps_without(steps, wait) == done_without(part, wait), wait
    run_all(program, Random(program.task_count))


def run_all(program: Program, random: Random) -> None:
    """Run the steps of all ranks in a drawn order; a notify is a count."""
    parts = [part_of(program, rank) for rank in range(program.ranks)]
    steps = [all_steps(program, part) for part in parts]
    left = [[step.before for step in mine] for mine in steps]
    ready = [(r, n) for r, mine in enumerate(left) for n, count in enumerate(mine) if not count]
    posts = Counter[int]()
    slots_in_use = range(program.ranks * len(program.buffers))
    with right_outputs(program, slots_in_use) as slots:
        while ready:
            able = [(r, n) for r, n in ready if _is_due(parts[r], steps[r][n], posts)]
            assert able, "the steps wait for each other"
            rank, number = random.choice(able)
            ready.remove((rank, number))
            part = parts[rank]
            for stream, at in steps[rank][number].places:
                task = part.streams[stream][at]
                if task.kind == MOVE:
                    run_step(slots, part.moves.steps[task.number])
                else:
                    posts[task.number] += 1
            for other in steps[rank][number].then:
                left[rank][other] -= 1
                if not left[rank][other]:
                    ready.append((rank, other))
    assert all(not count for mine in left for count in mine)


def _is_due(part: RankPart, step: RankStep, posts: Counter[int]) -> bool:
    cells = [(part.streams[w.place[0]][w.place[1]].number, w.posts) for w in step.waits]
    return all(posts[cell] >= needed for cell, needed in cells)


@cache
def clean_programs() -> tuple[Program, ...]:
    drawn = [all_gather(Random(seed)) for seed in range(SEEDS)]
    return tuple(program for program in drawn if not verify_program(program).errors)


def test_programs_that_share_cells_end_right_in_every_order() -> None:
    """Several streams post to one that waits for each of them: only the program's walk says which
    post is whose.
    """
    assert sum(len(shared_cells(program)) > 0 for program in clean_programs()) > 10
    for seed, program in enumerate(clean_programs()):
        for order in range(3):
            run_all(program, Random(3 * seed + order))


def test_streams_that_wait_for_each_other_are_found_before_the_run() -> None:
    copy = ["copy", ["IN", 0, 4], ["OUT", 0, 4]]
    streams = {
        "0": [["local_wait", 0], copy, ["local_post", 1, 0]],
        "1": [["local_wait", 0], ["local_post", 0, 0]],
    }
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_gather", "dtype": "uint8", "count": 4},
        "ranks": 1,
        "buffers": {"0": {"IN": 4, "OUT": 4}},
        "tasks": {"0": streams},
    }
    program = from_json(json.dumps(document))
    with pytest.raises(DeadlockError, match="2 of 2 streams can never go on"):
        all_steps(program, part_of(program, 0))


class Walked(Exception):
    """The program's walk was asked for."""


class Unlinked:
    """Stands in for a program that has no walk yet."""

    @property
    def linked(self) -> None:
        raise Walked


def a_part(*streams: Sequence[tuple[int, str]]) -> RankPart:
    """Return a part of posts and waits: capital letters are notifies between its streams, others
    are posted by rank 1.
    """
    names = sorted({name for stream in streams for _, name in stream})
    cells = {
        k: Cell(0, 0 if n.isupper() else 1, "" if n.isupper() else "p", k)
        for k, n in enumerate(names)
    }
    tasks = (
        tuple(Task(kind, names.index(n), at) for at, (kind, n) in enumerate(s)) for s in streams
    )
    return RankPart(0, tuple(tasks), None, cells, frozenset(), frozenset())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "streams",
    [
        # Two streams wait for X, or post it, in no order.
        ([(POST, "X"), (POST, "X")], [(WAIT, "X")], [(WAIT, "X")]),
        ([(WAIT, "X"), (WAIT, "X")], [(POST, "X")], [(POST, "X")]),
        ([(WAIT, "r")], [(WAIT, "r")]),
        # In this walk the second stream would take what only the first can go on with.
        (
            [(POST, "X"), (WAIT, "Y"), (POST, "X")],
            [(WAIT, "r"), (WAIT, "X")],
            [(WAIT, "X"), (POST, "Y")],
        ),
    ],
)  # fmt: skip
def test_streams_in_no_order_of_their_own_take_that_of_the_walk(
    streams: Sequence[Sequence[tuple[int, str]]],
) -> None:
    with pytest.raises(Walked):
        turns_of(Unlinked(), a_part(*streams))  # type: ignore[arg-type]


def test_streams_that_join_order_what_they_share() -> None:
    first, second = [(WAIT, "r"), (POST, "X")], [(WAIT, "X"), (WAIT, "r")]
    turns = turns_of(Unlinked(), a_part(second, first))  # type: ignore[arg-type]
    assert (turns[1, 0], turns[0, 1]) == (0, 1)


def test_the_mesh_waits_four_times_for_all_others() -> None:
    """Its streams join after each exchange. Each adds to another rank, which may be busy."""
    program = recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 1 << 16), 8)
    steps = all_steps(program, part_of(program, 3))
    assert [len(step.waits) for step in steps if step.waits] == [7, 7, 7, 7]
    assert [len(s.places) for s in steps] == [8, 0, *[2] * 7, 8, 14, 0]
