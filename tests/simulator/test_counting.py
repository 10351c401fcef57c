"""Times of programs whose notifies count, several streams posting one: against a clock that goes
from event to event.
"""

from collections import defaultdict, deque
from itertools import pairwise
from random import Random
from typing import Any, Literal

import numpy as np
import pytest

from hccl_py.clocks.cost import CostModel
from hccl_py.enums import POST, WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.matching import queues_of, shared_cells
from hccl_py.program.program import Program
from hccl_py.simulator import simulate, simulate_batches
from hccl_py.simulator.batches import time_ranks
from hccl_py.trace.scene.build import scene_of
from tests.counting import counting
from tests.simulator.costs import FREE
from tests.simulator.test_overruns import TOPOLOGY

NETWORKS: tuple[Literal["uncontended", "contended"], ...] = ("uncontended", "contended")


def drawn(random: Random) -> Program:
    """Up to three streams of a rank post one notify of the other, whose main takes all posts."""
    streams: dict[str, dict[str, list[Any]]] = {"0": {}, "1": {}}
    for rank in range(2):
        posts = 0
        for stream in range(3 if random.random() < 0.7 else 1):
            listed: list[Any] = []
            for _ in range(random.randint(0, 3)):
                listed += [["compute", random.uniform(1, 50)], ["post", 1 - rank, 0]]
                posts += 1
            streams[str(rank)].setdefault(str(stream), []).extend(listed)
        waits = streams[str(1 - rank)].setdefault("0", [])
        for _ in range(posts):
            at = random.randint(0, len(waits)) if rank else len(waits)
            waits[at:at] = [["wait", rank, 0], ["compute", random.uniform(1, 20)]]
    return counting(streams)


def by_events(program: Program) -> list[float]:
    """Return when every task ends: the earliest of all that can be done is done next."""
    tasks, queues = program.tasks, queues_of(program)
    us = tasks.table.duration_us[tasks.instruction].tolist()
    lists = [queues.rows[a:b].tolist() for a, b in pairwise(queues.first.tolist())]
    clock, at = [0.0] * len(lists), [0] * len(lists)
    arrived: dict[int, deque[float]] = defaultdict(deque)
    end = [float("nan")] * len(tasks)
    while True:
        ready = []
        for q, rows in enumerate(lists):
            if at[q] == len(rows):
                continue
            row = rows[at[q]]
            cell = int(tasks.cell[row])
            if tasks.kind[row] == WAIT and not arrived[cell]:
                continue
            begin = max(clock[q], arrived[cell][0]) if tasks.kind[row] == WAIT else clock[q]
            ready.append((begin + us[row], q, row))
        if not ready:
            return end
        done, q, row = min(ready)
        if tasks.kind[row] == WAIT:
            arrived[int(tasks.cell[row])].popleft()
        elif tasks.kind[row] == POST:
            arrived[int(tasks.cell[row])].append(done)
        clock[q] = end[row] = done
        at[q] += 1


@pytest.mark.parametrize("network", NETWORKS)
def test_waits_take_posts_as_they_arrive(network: Literal["uncontended", "contended"]) -> None:
    shared = again = 0
    for seed in range(300):
        program = drawn(Random(seed))
        if len(program.linked.stuck):
            continue
        timeline = simulate(program, TOPOLOGY, FREE, network=network)
        assert timeline.end_us.tolist() == pytest.approx(by_events(program))
        shared += len(shared_cells(program)) > 0
        again += timeline.program is not program
        if len(timeline.program.tasks):
            assert timeline.critical_path().spans_us.sum() == pytest.approx(timeline.total_us)
            assert timeline.slack().min() == pytest.approx(0, abs=1e-9)
    assert shared > 150
    assert again > 50


def late_first() -> Program:
    """The stream that comes first in the file posts last."""
    waits = [["wait", 0, 0], ["compute", 1], ["wait", 0, 0]]
    posts = {str(s): [["compute", us], ["post", 1, 0]] for s, us in ((0, 30), (1, 10))}
    return counting({"0": posts, "1": {"0": waits}})


def test_a_scene_shows_the_pairs_that_the_times_are_of() -> None:
    program = late_first()
    scene = scene_of(program, TOPOLOGY, cost=FREE)
    bars = scene.bars
    waits = np.flatnonzero(bars.kind == WAIT)
    ends = bars.end_us[waits].tolist()
    posted = [float(bars.effect_us[bars.partner[w]]) for w in waits.tolist()]
    assert sorted(ends) == [10.0, 30.0]
    assert posted == ends


def test_batches_of_programs_that_count_are_timed_by_tasks() -> None:
    for program in (late_first(), *(drawn(Random(seed)) for seed in range(10))):
        if len(program.linked.stuck):
            continue
        cost = CostModel.of("")
        clocks = simulate_batches(program, TOPOLOGY, cost)
        timeline = simulate(program, TOPOLOGY, cost)
        assert clocks.total_us == timeline.total_us
        last = np.zeros_like(clocks.end_us)
        np.maximum.at(last, (program.tasks.rank, program.tasks.stream), timeline.end_us)
        assert (clocks.end_us == last).all()


def test_parts_of_very_large_ones_are_not_shown() -> None:
    with pytest.raises(NotSupportedError, match="notifies that count"):
        time_ranks(late_first(), TOPOLOGY, FREE, ranks=[0], most=10)


def test_streams_that_wait_for_one_notify_take_turns_by_time() -> None:
    tasks = {
        "0": {
            "0": [["local_post", 1, 0], ["compute", 5], ["post", 1, 0]],
            "1": [["local_wait", 0], ["compute", 1], ["post", 1, 0]],
        },
        "1": {
            "0": [["local_post", 1, 0], ["wait", 0, 0], ["compute", 3]],
            "1": [["local_wait", 0], ["wait", 0, 0], ["compute", 4]],
        },
    }
    timeline = simulate(counting(tasks), TOPOLOGY, FREE)
    assert sorted(timeline.end_us[timeline.program.tasks.kind == WAIT].tolist()) == [0, 0, 1, 5]
