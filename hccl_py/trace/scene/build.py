"""From a program to its scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program
from hccl_py.simulator.analysis.alike import first_alike
from hccl_py.simulator.analysis.order import before_on_stream
from hccl_py.simulator.entry import simulate
from hccl_py.simulator.tasks import simulate_reached
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology import Topology
from hccl_py.trace.scene.bars import bars_of, lanes_of, notifies_of, phases_of, states_of
from hccl_py.trace.scene.excerpt import MOST_TASKS, TAIL, ShownTasks, part_to_show
from hccl_py.trace.scene.memory_states import memory_states
from hccl_py.trace.scene.model import Bars, Critical, Lanes, Scene, SceneFinding
from hccl_py.trace.scene.traffic import link_load, traffic_of
from hccl_py.values import IntArray
from hccl_py.verifier.finding import Report


def scene_of(
    program: Program,
    topology: Topology | None = None,
    *,
    timeline: Timeline | None = None,
    cost: CostModel | None = None,
    network: Literal["uncontended", "contended"] = "uncontended",
    slow: Stragglers = EVEN,
    report: Report | None = None,
    title: str = "",
    facts: Sequence[tuple[str, str]] = (),
    clock: Literal["model", "measured"] = "model",
    around: Sequence[int] = (),
) -> Scene:
    """Return the scene of a program.

    It is timed as `simulate` does, unless a `timeline` says the times. A program that can never end
    is timed, task by task alone, as far as it gets. `report` has the verifier's findings about it.

    Of a program of more than MOST_TASKS tasks some ranks are shown: those `around`, by default the
    first of every batch, and those that they work with. Raises ParameterError for a topology with
    another number of ranks, and for a program as large as that in a contended network.
    """
    if timeline is None and program.task_count > MOST_TASKS:
        part = _part(program, topology, cost, network, slow, around)
        return replace(_scene(program, part, title, facts, "model"), topology=topology)
    if timeline is None:
        timeline = _timed(program, topology, cost, network, slow)
    timeline, total = _ended(timeline)
    program = timeline.program  # with the pairs of post and wait that the times are of
    scene = _scene(program, _whole(timeline, total), title, facts, clock)
    row, reached = scene.bars.row, program.linked.order.astype(np.int64)
    bar_of = np.empty(len(row), np.int64)
    bar_of[row] = np.arange(len(row))
    memory, why = memory_states(program, _as_they_take_effect(timeline), timeline.effect_us, bar_of)
    has_path = clock == "model" and not len(program.linked.stuck)
    return replace(
        scene,
        topology=topology,
        critical=_critical(timeline, bar_of, is_shown=has_path),
        links=link_load(timeline, reached, total),
        memory=memory,
        memory_left_out=why,
        findings=_findings(program, scene.lanes, report),
        is_verified=report is not None,
    )


def _scene(
    program: Program,
    shown: ShownTasks,
    title: str,
    facts: Sequence[tuple[str, str]],
    clock: Literal["model", "measured"],
) -> Scene:
    """Return the scene of some tasks, without all that needs the whole program."""
    tasks = shown.program.tasks
    lanes, order = lanes_of(shown.program, tasks)
    notifies, notify = notifies_of(shown.program, tasks)
    times = shown.start_us, shown.end_us, shown.effect_us
    bars = bars_of(tasks, order, lanes, times, shown.partner, shown.state, notify)
    return Scene(
        program=shown.program,
        topology=None,
        title=title or program.op.name,
        facts=tuple(facts),
        clock=clock,
        total_us=shown.total_us,
        ranks=shown.ranks,
        left_out=shown.left_out,
        twins=_twins(shown.ranks, lanes, bars),
        lanes=lanes,
        bars=bars,
        phases=phases_of(bars),
        labels=tuple(program.labels),
        sources=tuple(program.lines),
        notifies=notifies,
        buffers=tuple(program.buffers),
        critical=_no_path(),
        usage=shown.usage,
        traffic=shown.traffic,
        links=None,
        memory=None,
        memory_left_out="What memory holds depends on ranks that are not shown.",
        findings=(),
        is_verified=False,
    )


def _whole(timeline: Timeline, total_us: float) -> ShownTasks:
    """Return all tasks of a program, with times for those that it never reaches, too."""
    program, linked = timeline.program, timeline.program.linked
    partner = linked.post_of.astype(np.int64)
    waits = np.flatnonzero(partner >= 0)
    partner[partner[waits]] = waits
    return ShownTasks(
        program=program,
        ranks=np.arange(program.ranks),
        start_us=timeline.start_us,
        end_us=timeline.end_us,
        effect_us=timeline.effect_us,
        state=states_of(program.tasks, linked.order, linked.stuck),
        partner=partner,
        usage=timeline.usage().of_ranks(),
        traffic=traffic_of(timeline, linked.order.astype(np.int64), total_us),
        total_us=total_us,
        left_out="",
    )


def _part(
    program: Program,
    topology: Topology | None,
    cost: CostModel | None,
    network: Literal["uncontended", "contended"],
    slow: Stragglers,
    around: Sequence[int],
) -> ShownTasks:
    if network != "uncontended":
        raise ParameterError(
            f"A program of {program.task_count} tasks is not drawn in a contended network.",
            f"Leave --network out, or draw one of at most {MOST_TASKS} tasks.",
        )
    if topology is not None and topology.size != program.ranks:
        raise ParameterError(
            f"The program has {program.ranks} ranks, the topology {topology.size}.",
            "Give the topology that it was recorded for.",
        )
    model = cost or CostModel.of("" if topology is None else topology.product.name)
    return part_to_show(program, topology, model, slow, around)


def _timed(
    program: Program,
    topology: Topology | None,
    cost: CostModel | None,
    network: Literal["uncontended", "contended"],
    slow: Stragglers,
) -> Timeline:
    """Return the times of a program, as far as it gets."""
    linked = program.linked
    leaves = len(linked.leftover) and not program.counts_posts
    ends = not (len(linked.stuck) or len(linked.overruns) or leaves)
    if topology is not None and ends:
        return simulate(program, topology, cost, network=network, slow=slow, expand=True)
    model = cost or CostModel.of("" if topology is None else topology.product.name)
    return simulate_reached(program, topology, model, slow)


def _ended(timeline: Timeline) -> tuple[Timeline, float]:
    """Return a timeline with times for all tasks, and the total: waits that block last until the
    end, and tasks that are never reached lie there.
    """
    linked = timeline.program.linked
    if not len(linked.stuck):
        return timeline, timeline.total_us
    start, end, effect = (
        column.copy() for column in (timeline.start_us, timeline.end_us, timeline.effect_us)
    )
    reached = linked.order
    total = max(end[reached].max(initial=0.0), effect[reached].max(initial=0.0))
    total = total * (1 + TAIL) or 1.0
    is_missing = np.ones(len(start), bool)
    is_missing[reached] = False
    for column in (start, end, effect):
        column[is_missing] = total
    before = before_on_stream(timeline.program)[linked.stuck]
    start[linked.stuck] = np.where(before >= 0, end[before], 0.0)
    return replace(timeline, start_us=start, end_us=end, effect_us=effect), total


def _as_they_take_effect(timeline: Timeline) -> IntArray:
    """Return the rows that are reached, as they take effect; the walk decides between equals."""
    order = timeline.program.linked.order
    place = np.argsort(timeline.effect_us[order], kind="stable")
    found: IntArray = order[place].astype(np.int64)
    return found


def _critical(timeline: Timeline, bar_of: IntArray, *, is_shown: bool) -> Critical:
    if not is_shown or not len(bar_of):
        return _no_path()
    path = timeline.critical_path()
    return Critical(bar_of[path.rows], path.begin_us, path.end_us)


def _no_path() -> Critical:
    return Critical(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _twins(ranks: IntArray, lanes: Lanes, bars: Bars) -> IntArray:
    """Return for every rank the first one with the same bars at the same times, to any peers."""
    columns = (bars.kind, bars.start_us, bars.end_us, bars.effect_us, bars.size, bars.label)
    lane = np.searchsorted(lanes.rank, np.append(ranks, ranks[-1:] + 1))
    return ranks[first_alike(lanes.first[lane], [lanes.stream[bars.lane], *columns])]


def _findings(program: Program, lanes: Lanes, report: Report | None) -> tuple[SceneFinding, ...]:
    """Return findings with their bars; tasks of later copies of the op are those of the first."""
    if report is None:
        return ()
    number = {
        place: k
        for k, place in enumerate(zip(lanes.rank.tolist(), lanes.stream.tolist(), strict=True))
    }
    found = []
    for finding in report:
        bars = []
        for task in finding.tasks:
            lane = number.get((task.rank, task.stream))
            if lane is not None and lanes.first[lane + 1] > lanes.first[lane]:
                length = int(lanes.first[lane + 1] - lanes.first[lane])
                bars.append(int(lanes.first[lane]) + task.index % length)
        found.append(SceneFinding(finding, tuple(dict.fromkeys(bars))))
    return tuple(found)
