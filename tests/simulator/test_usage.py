"""Busy, waiting and idle time, who waits for whom, and what links carry."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given

from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.simulator import CostModel, Timeline, simulate_tasks
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded
from tests.simulator.costs import COST
from tests.simulator.walks import timed, timelines


@given(timeline=timelines)
def test_busy_waiting_and_idle_sum_to_the_total(timeline: Timeline) -> None:
    usage, tasks = timeline.usage(), timeline.program.tasks
    whole = usage.busy_us + usage.waiting_us + usage.idle_us
    assert whole == pytest.approx(np.full(whole.shape, timeline.total_us), rel=1e-12)
    busy, waiting = np.zeros_like(whole), np.zeros_like(whole)
    for row in range(len(tasks)):
        into = waiting if tasks.kind[row] == TaskKind.NOTIFY_WAIT else busy
        length = timeline.end_us[row] - timeline.start_us[row]
        into[tasks.rank[row], tasks.stream[row]] += length
    assert usage.busy_us == pytest.approx(busy)
    assert usage.waiting_us == pytest.approx(waiting)
    assert usage.tasks.sum() == len(tasks)


def test_the_share_of_a_rank_is_that_of_the_streams_it_uses() -> None:
    timeline = timed("AllReduceComm", (4,))
    usage = timeline.usage()
    assert usage.of_ranks().sum(axis=1) == pytest.approx(np.full(4, timeline.total_us))
    idle = usage.tasks[0] == 0
    assert usage.of_ranks()[0, 0] == pytest.approx(usage.busy_us[0, ~idle].mean())


@given(timeline=timelines)
def test_waits_say_who_posted(timeline: Timeline) -> None:
    program, found = timeline.program, timeline.waits()
    wanted: dict[tuple[int, int], float] = defaultdict(float)
    for row in np.flatnonzero(program.tasks.kind == TaskKind.NOTIFY_WAIT).tolist():
        on = int(program.tasks.rank[program.linked.post_of[row]])
        length = float(timeline.end_us[row] - timeline.start_us[row])
        if length:
            wanted[int(program.tasks.rank[row]), on] += length
    local = np.array([wanted.pop((r, r), 0.0) for r in range(program.ranks)])
    assert found.local_us == pytest.approx(local)
    pairs = list(zip(found.rank.tolist(), found.on.tolist(), strict=True))
    assert pairs == sorted(wanted)
    assert found.us.tolist() == pytest.approx([wanted[pair] for pair in pairs])
    both = found.us.sum() + found.local_us.sum()
    assert both == pytest.approx(timeline.usage().waiting_us.sum())


def test_a_straggler_is_waited_for() -> None:
    found = timed("AllReduceComm", (1, 1, 1, 1), ("rank=2:50x",)).waits()
    assert found.on[np.argmax(found.us)] == 2


@given(timeline=timelines)
def test_links_carry_the_bytes_of_their_routes(timeline: Timeline) -> None:
    program, use, network = timeline.program, timeline.link_use(), timeline.links.network
    tasks = program.tasks
    wanted: dict[int, int] = defaultdict(int)
    for row in np.flatnonzero(tasks.end >= 0).tolist():
        kind = TaskKind(int(tasks.kind[row]))
        if not kind.moves_data or not tasks.size[row]:
            continue
        here, there = tasks.rank[[row]].astype(np.int64), tasks.peer[[row]]
        source, target = (there, here) if kind.reads_remote else (here, there)
        rdma = program.transports.is_rdma[tasks.end[row : row + 1]]
        for link in network.routes(source, target, rdma).link.tolist():
            wanted[link] += int(tasks.size[row])
    assert dict(zip(use.link.tolist(), use.bytes.tolist(), strict=True)) == wanted
    assert use.gbps.tolist() == timeline.links.capacities(use.link).tolist()
    assert use.share == pytest.approx(use.bytes / (use.gbps * 1e3 * timeline.total_us))
    busiest = use.busiest(3)
    assert (np.diff(use.share[busiest]) <= 0).all()
    assert len(busiest) == min(3, len(use.link))


def test_a_ring_fills_its_links_but_for_the_latency() -> None:
    cost = CostModel.of("ring").formula()
    topology = topology_of(4, preset="ring")
    program = recorded("AllGatherComm", op_of("all_gather", 1 << 20), topology, 200 << 20)
    timeline = simulate_tasks(program, topology, cost)
    use = timeline.link_use()
    forward = {("0", "1"), ("1", "2"), ("2", "3"), ("3", "0")}
    assert {use.names(k) for k in range(len(use.link))} == forward
    assert use.bytes.tolist() == [3 * (4 << 20)] * 4
    share = 1 - (3 + 1) * cost.hccs.alpha_us / timeline.total_us  # one is the barrier's
    assert use.share == pytest.approx(np.full(4, share))


def test_links_that_never_fill_have_no_share() -> None:
    topology = topology_of(2, preset="ring")
    free = COST.model_copy(update={"hccs": COST.hccs.model_copy(update={"gbps": None})})
    program = recorded("AllGatherComm", op_of("all_gather"), topology)
    use = simulate_tasks(program, topology, free).link_use()
    assert np.isinf(use.gbps).all()
    assert use.share.tolist() == [0.0, 0.0]


def test_links_need_a_topology() -> None:
    program = recorded("AllGatherComm", op_of("all_gather"), 2)
    with pytest.raises(ParameterError, match="needs a topology") as caught:
        simulate_tasks(program, None, COST).link_use()
    assert caught.value.hint == "Give simulate a topology."


def test_nothing_to_move() -> None:
    timeline = timed("AllReduceComm", (1,))
    assert len(timeline.link_use().link) == len(timeline.waits().us) == 0
    topology = topology_of(3)
    empty = recorded("AllGatherComm", op_of("all_gather", 0), topology)
    free = COST.formula().model_copy(
        update={"hccs": COST.hccs.model_copy(update={"alpha_us": 0.0})}
    )
    timeline = simulate_tasks(empty, topology, free)
    assert timeline.total_us == 0
    assert not timeline.usage().idle_us.any()
    assert len(timeline.link_use().link) == 0
