"""The critical path and slack: by their definition, on every task of small programs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.clocks.durations import Durations
from hccl_py.enums import TaskKind
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.simulator import CostModel, Timeline, simulate_contended, simulate_tasks
from hccl_py.simulator.analysis.critical import _spread_slack, _trace_back
from hccl_py.simulator.chain import longest_chain
from hccl_py.simulator.tasks import TaskCosts, _time_tasks
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded
from tests.simulator.costs import COST
from tests.simulator.walks import Walk, alone, timed, timelines


def costs_of(timeline: Timeline) -> TaskCosts:
    links = timeline.links
    durations = Durations(timeline.program, links.topology, links.cost, links.slow)
    return TaskCosts.of(timeline.program, durations)


def total_with(timeline: Timeline, costs: TaskCosts, row: int, delay: float) -> float:
    """Return the total with one task's effect so much later."""
    program = timeline.program
    kind = program.tasks.kind[row]
    on_stream, after = costs.on_stream.copy(), costs.after.copy()
    if kind == TaskKind.NOTIFY_POST or costs.connection[row] >= 0:
        after[row] += delay
    else:
        on_stream[row] += delay
    _, end, effect, _ = _time_tasks.plain(
        program.linked.order,
        program.linked.post_of,
        costs.queue,
        program.tasks.kind,
        on_stream,
        after,
        costs.connection,
        program.ranks * program.streams,
        len(program.transports),
        timeline.launch_us,
    )
    return float(max(end.max(), effect.max()))


@given(timeline=alone, data=st.data())
def test_slack_is_what_a_task_may_be_late(timeline: Timeline, data: Any) -> None:
    costs, slack, total = costs_of(timeline), timeline.slack(), timeline.total_us
    rows = np.flatnonzero(timeline.program.tasks.kind != TaskKind.NOTIFY_WAIT).tolist()
    for row in data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=8)):
        late = total_with(timeline, costs, row, float(slack[row]))
        assert late == pytest.approx(total, rel=1e-12)
        later = total_with(timeline, costs, row, float(slack[row]) + 1.0)
        assert later == pytest.approx(total + 1.0, rel=1e-12)


@given(timeline=timelines)
def test_the_path_has_no_gap_and_no_slack(timeline: Timeline) -> None:
    check_path(timeline)


def check_path(timeline: Timeline) -> None:
    path, slack = timeline.critical_path(), timeline.slack()
    assert path.begin_us[0] == 0
    assert path.end_us[-1] == timeline.total_us
    assert (path.begin_us[1:] == path.end_us[:-1]).all()
    assert (path.spans_us >= 0).all()
    assert path.spans_us.sum() == pytest.approx(timeline.total_us)
    assert (slack >= 0).all()
    binds = path.end_us == timeline.effect_us[path.rows]
    assert not slack[path.rows[binds]].any()
    passed = timeline.program.tasks.kind[path.rows[~binds]]
    on_connections = {TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE}
    assert set(passed) <= {TaskKind.NOTIFY_POST, *on_connections}
    assert len(set(path.rows.tolist())) == len(path.rows)
    place = np.empty(len(slack), np.int64)
    place[timeline.program.linked.order] = np.arange(len(slack))
    assert (np.diff(place[path.rows]) > 0).all()


@given(timeline=alone)
def test_the_path_is_the_longest_chain_of_the_graph(timeline: Timeline) -> None:
    """Longest paths over the graph of all tasks, found task by task."""
    program, costs = timeline.program, costs_of(timeline)
    done: dict[tuple[str, int], float] = {}
    stream: dict[int, float] = {}
    connection: dict[int, float] = {}
    kinds = program.tasks.kind
    for row in program.linked.order.tolist():
        start = stream.get(int(costs.queue[row]), 0.0)
        if kinds[row] == TaskKind.NOTIFY_WAIT:
            start = max(start, done["effect", int(program.linked.post_of[row])])
        end = start + float(costs.on_stream[row])
        effect = end + float(costs.after[row])
        if costs.connection[row] >= 0:
            sent = connection.get(int(costs.connection[row]), 0.0)
            effect = max(effect, sent + float(costs.after[row]))
            if kinds[row] != TaskKind.NOTIFY_POST:
                connection[int(costs.connection[row])] = effect
        done["effect", row] = effect
        stream[int(costs.queue[row])] = end
    assert timeline.critical_path().spans_us.sum() == pytest.approx(max(done.values()))


class Shared:
    """Two streams write over one RDMA connection; the one that is recorded first comes later."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),), sub_streams=1)

    def orchestrate(self, op: Any, rank: Any) -> None:
        size = rank.user_in.size
        with rank.flat.fork() as subs:
            for sub, _, link in subs:
                rank.main.copy(rank.ccl_in.head(size), rank.user_in)
                rank.main.copy(link.remote(rank.ccl_out.head(size)), rank.ccl_in.head(size))
                link.tx_data_signal(rank.main)
                link.rx_data_signal(rank.main)
                sub.copy(link.remote(rank.ccl_out.head(2 * size)), rank.ccl_in.head(2 * size))


@pytest.mark.parametrize("walk", [simulate_tasks, simulate_contended])
def test_streams_that_share_a_connection(walk: Walk) -> None:
    topology = topology_of(servers=2, devices=1)
    program = recorded(Shared(), op_of("all_gather", 1 << 14), topology, 1 << 20)
    cost = COST.model_copy(update={"copy_gbps": 0.1})
    timeline = walk(program, topology, cost)
    kinds, tasks = program.tasks.kind, program.tasks
    writes = np.flatnonzero((kinds == TaskKind.RDMA_WRITE) & (tasks.rank == 0)).tolist()
    first = min(writes, key=lambda row: float(timeline.effect_us[row]))
    assert int(tasks.stream[first]) == int(walk is simulate_contended)
    check_path(timeline)


@given(timeline=timelines)
def test_parts_and_phases_sum_to_the_total(timeline: Timeline) -> None:
    path = timeline.critical_path()
    assert sum(path.parts()) == pytest.approx(timeline.total_us)
    assert all(part >= 0 for part in path.parts())
    assert sum(path.phases().values()) == pytest.approx(timeline.total_us)


@pytest.mark.parametrize("ranks", [2, 5])
def test_parts_of_a_ring_are_those_of_its_formula(ranks: int) -> None:
    cost = CostModel.of("ring").formula()
    topology = topology_of(ranks, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce", 32 * ranks), topology)
    steps, moved, reduced = longest_chain(program)
    parts = simulate_tasks(program, topology, cost).critical_path().parts()
    assert parts.alpha_us == pytest.approx(steps * cost.hccs.alpha_us)
    assert parts.link_us == pytest.approx(moved * cost.hccs.beta_us)
    assert parts.reduce_us == pytest.approx(reduced * cost.gamma_us)
    assert parts.notify_us == parts.copy_us == parts.compute_us == 0


def test_a_straggler_is_on_the_path() -> None:
    timeline = timed("AllReduceComm", (1, 1, 1, 1), ("rank=2:50x",))
    path = timeline.critical_path()
    ranks = timeline.program.tasks.rank[path.rows]
    assert path.spans_us[ranks == 2].sum() > 0.9 * timeline.total_us
    assert path.parts().reduce_us > 0


def test_one_rank_copies() -> None:
    timeline = timed("AllReduceComm", (1,))
    assert timeline.critical_path().parts().copy_us == timeline.total_us > 0
    assert not timeline.slack().any()


def test_a_program_of_no_bytes_and_no_costs() -> None:
    link = COST.hccs.model_copy(update={"alpha_us": 0.0})
    free = COST.formula().model_copy(update={"hccs": link})
    timeline = simulate_tasks(recorded("AllGatherComm", op_of("all_gather", 0), 3), None, free)
    assert timeline.critical_path().spans_us.sum() == timeline.total_us == 0
    assert not timeline.slack().any()


def test_compiled_kernels_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = timed("AllReduceMeshExecutor", (2, 2))
    path, slack = timeline.critical_path(), timeline.slack()
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    again = timeline.critical_path()
    assert np.array_equal(path.rows, again.rows)
    assert np.array_equal(path.begin_us, again.begin_us)
    assert np.array_equal(slack, timeline.slack())
    kernels: tuple[Any, ...] = (_trace_back, _spread_slack)
    assert all(kernel.compiled.signatures for kernel in kernels)
