"""The scene is the program: lanes, bars, partners, phases, traffic, links, memory, findings."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.enums import RDMA_WRITES, TaskKind
from hccl_py.plugins.executor import ops_of
from hccl_py.program.describe import format_stream, notify_name, ranges_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate
from hccl_py.testing.calls import suits
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import PRESETS
from hccl_py.trace.scene import (
    CONNECTION,
    DONE,
    STUCK,
    UNREACHED,
    MemorySegment,
    MemoryStates,
    Scene,
    scene_of,
)
from hccl_py.verifier import verify_program
from tests.recording import BY_NAME, filled, op_of, recorded, without

SERVERS = topology_of(servers=2, devices=4)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Program, Topology]:
    """Draw an executor on some ranks, small enough to be looked at task by task."""
    preset = draw(st.sampled_from(["mesh", "atlas-800t-a2", "atlas-900-a3"]))
    servers = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    topology = Topology(PRESETS[preset], servers)
    count = draw(st.sampled_from([0, 1, 100, 1024]))
    names = []
    for name in sorted(BY_NAME):
        op = filled(op_of(ops_of(BY_NAME[name]())[0], count), topology.size)
        if suits(BY_NAME[name], op, topology):
            names.append(name)
    name = draw(st.sampled_from(names))
    op = filled(op_of(ops_of(BY_NAME[name]())[0], count), topology.size)
    return recorded(name, op, topology, 1 << 15), topology


@given(call=calls())
def test_bars_are_the_tasks_with_their_times(call: tuple[Program, Topology]) -> None:
    program, topology = call
    scene, timeline = scene_of(program, topology), simulate(program, topology)
    tasks, bars, lanes = program.tasks, scene.bars, scene.lanes
    assert sorted(bars.row.tolist()) == list(range(len(tasks)))
    row = bars.row
    assert np.array_equal(lanes.rank[bars.lane], tasks.rank[row])
    assert np.array_equal(lanes.stream[bars.lane], tasks.stream[row])
    assert (np.diff(bars.lane) >= 0).all()
    for mine, theirs in (
        (bars.kind, tasks.kind),
        (bars.size, tasks.size),
        (bars.peer, tasks.peer),
        (bars.number, tasks.index),
        (bars.start_us, timeline.start_us),
        (bars.end_us, timeline.end_us),
        (bars.effect_us, timeline.effect_us),
    ):
        assert np.array_equal(mine, theirs[row])
    assert scene.total_us == timeline.total_us
    assert (bars.state == DONE).all()
    assert np.array_equal(scene.usage, timeline.usage().of_ranks())
    for bar in range(len(bars)):
        checked_texts_and_memory(scene, bar)


def checked_texts_and_memory(scene: Scene, bar: int) -> None:
    """See that a bar says what its task does."""
    program, bars, row = scene.program, scene.bars, int(scene.bars.row[bar])
    tasks, kind = program.tasks, TaskKind(int(scene.bars.kind[bar]))
    label, line, turn = (
        int(column[tasks.instruction[row]])
        for column in (tasks.table.label, tasks.table.line, tasks.table.round)
    )
    assert (bars.label[bar], bars.source[bar], bars.round[bar]) == (label, line, turn)
    if kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT):
        notify = scene.notifies[bars.notify[bar]]
        assert notify == notify_name(program, int(tasks.cell[row]))
    else:
        assert bars.notify[bar] == -1
    source = bars.src_rank[bar], bars.src_buffer[bar], bars.src_offset[bar]
    target = bars.dst_rank[bar], bars.dst_buffer[bar], bars.dst_offset[bar]
    if kind.moves_data:
        for found, memory in zip((source, target), ranges_of(program, row), strict=True):
            assert found == memory[:3]
        assert bars.dst_size[bar] == tasks.dst_size[row]
    else:
        assert source == target == (-1, -1, -1)
    connection = int(bars.connection[bar])
    assert (connection >= 0) == (kind in RDMA_WRITES)
    if connection >= 0:
        assert scene.lanes.stream[connection] == CONNECTION
        assert scene.lanes.rank[connection] == tasks.rank[row]


@given(call=calls())
def test_lanes_are_the_streams_in_use_and_the_connections(call: tuple[Program, Topology]) -> None:
    program, topology = call
    scene = scene_of(program, topology)
    tasks, lanes = program.tasks, scene.lanes
    used = set(zip(tasks.rank.tolist(), tasks.stream.tolist(), strict=True))
    writes = np.isin(tasks.kind, RDMA_WRITES)
    behind = max((stream for _, stream in used), default=0) + 1
    wanted = used | {(rank, behind) for rank in tasks.rank[writes].tolist()}
    found = [
        (rank, behind if stream == CONNECTION else stream)
        for rank, stream in zip(lanes.rank.tolist(), lanes.stream.tolist(), strict=True)
    ]
    assert found == sorted(wanted)
    names = ["RDMA" if stream == behind else format_stream(stream) for _, stream in found]
    assert list(lanes.names) == names
    assert lanes.first[0] == 0
    assert lanes.first[-1] == len(tasks)
    lengths = np.diff(lanes.first)
    assert (lengths[lanes.stream == CONNECTION] == 0).all()
    assert (lengths[lanes.stream != CONNECTION] > 0).all()
    for rank in range(program.ranks):
        assert [k for k in range(len(lanes)) if lanes.rank[k] == rank] == list(scene.lanes_of(rank))


@given(call=calls())
def test_partners_are_posts_and_the_waits_that_consume_them(call: tuple[Program, Topology]) -> None:
    program, topology = call
    scene = scene_of(program, topology)
    bars, post_of = scene.bars, program.linked.post_of
    bar_of = np.argsort(bars.row)
    waits = np.flatnonzero(bars.kind == TaskKind.NOTIFY_WAIT)
    assert np.array_equal(bars.partner[waits], bar_of[post_of[bars.row[waits]]])
    posts = np.flatnonzero(bars.kind == TaskKind.NOTIFY_POST)
    assert np.array_equal(np.sort(bars.partner[waits]), posts)
    both = np.concatenate([waits, posts])
    assert np.array_equal(bars.partner[bars.partner[both]], both)
    assert (bars.end_us[waits] >= bars.effect_us[bars.partner[waits]]).all()
    others = np.setdiff1d(np.arange(len(bars)), both)
    assert (bars.partner[others] == -1).all()


@given(call=calls())
def test_phases_cover_what_has_a_label_once(call: tuple[Program, Topology]) -> None:
    scene = scene_of(*call)
    bars, phases = scene.bars, scene.phases
    covered = np.zeros(len(bars), np.int64)
    for k in range(len(phases)):
        inside = slice(int(phases.first[k]), int(phases.stop[k]))
        covered[inside] += 1
        assert (bars.lane[inside] == phases.lane[k]).all()
        assert (bars.label[inside] == phases.label[k]).all()
        assert (bars.round[inside] == phases.round[k]).all()
        assert phases.start_us[k] == bars.start_us[inside].min()
        assert phases.end_us[k] == bars.end_us[inside].max()
    assert np.array_equal(covered, bars.label >= 0)
    follows = phases.lane[1:] == phases.lane[:-1]
    assert (phases.start_us[1:] >= phases.end_us[:-1])[follows].all()
    touching = follows & (phases.first[1:] == phases.stop[:-1])
    same = (phases.label[1:] == phases.label[:-1]) & (phases.round[1:] == phases.round[:-1])
    assert not (touching & same).any()


@given(call=calls())
def test_the_critical_path_joins_from_start_to_end(call: tuple[Program, Topology]) -> None:
    """The program may take longer than its path, where its busiest link does."""
    scene, timeline = scene_of(*call), simulate(*call)
    path = scene.critical
    assume(len(scene.bars))
    assert path.begin_us[0] == 0
    assert path.end_us[-1] == timeline.makespan_us
    assert scene.total_us == max(timeline.makespan_us, timeline.busiest_link_us)
    assert np.array_equal(path.begin_us[1:], path.end_us[:-1])
    assert (path.end_us >= path.begin_us).all()
    bars = scene.bars
    assert (path.begin_us >= bars.start_us[path.bar]).all()
    assert (path.end_us <= np.maximum(bars.effect_us, bars.end_us)[path.bar]).all()


def test_traffic_of_a_mesh_all_gather_counted_by_hand() -> None:
    scene = scene_of(
        recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1000), 4), topology_of(4)
    )
    traffic = scene.traffic
    pairs = list(zip(traffic.source.tolist(), traffic.target.tolist(), strict=True))
    assert pairs == [(a, b) for a in range(4) for b in range(4) if a != b]
    assert traffic.bytes.tolist() == [4000] * 12


def test_traffic_of_a_ring_all_reduce_counted_by_hand() -> None:
    topology = topology_of(6, preset="ring")
    scene = scene_of(recorded("AllReduceComm", op_of("all_reduce", 6 * 32 * 5), topology), topology)
    traffic = scene.traffic
    pairs = list(zip(traffic.source.tolist(), traffic.target.tolist(), strict=True))
    assert pairs == [(rank, (rank + 1) % 6) for rank in range(6)]
    assert traffic.bytes.tolist() == [2 * 5 * 32 * 5 * 4] * 6  # 2 (n - 1) chunks of a sixth
    gbps = scene.links.gbps if scene.links else np.zeros(0)
    assert traffic.share == pytest.approx(traffic.bytes / (gbps[0] * 1e3 * scene.total_us))


@given(call=calls())
def test_link_load_adds_up_to_the_bytes(call: tuple[Program, Topology]) -> None:
    scene = scene_of(*call)
    links = scene.links
    assert links is not None
    width = scene.total_us / links.load.shape[1]
    full = np.isfinite(links.gbps)
    carried = links.load.astype(np.float64).sum(axis=1) * width * links.gbps * 1e3
    assert carried[full] == pytest.approx(links.bytes[full], rel=1e-4, abs=1e-3)
    assert (links.load[~full] == 0).all()
    capacity = links.gbps[full] * 1e3 * (scene.total_us or 1)
    assert links.share[full] == pytest.approx(links.bytes[full] / capacity)


KNOWN = (
    *("all_gather", "all_reduce", "reduce_scatter", "broadcast"),
    *("all_to_all", "scatter", "gather", "reduce"),
)


def promised(op: OpParam, rank: int, ranks: int, at: int) -> tuple[tuple[int, ...], int]:
    """Return whose input byte `at` of an output has by meaning of the op, and where from."""
    everyone = tuple(range(ranks))
    block = op.count * op.dtype.itemsize
    of, inside = at // block, at % block
    return {
        "all_gather": ((of,), inside),
        "all_reduce": (everyone, at),
        "reduce_scatter": (everyone, rank * block + at),
        "broadcast": ((op.root or 0,), at),
        "all_to_all": ((of,), rank * block + inside),
        "scatter": ((op.root or 0,), rank * block + at),
        "gather": ((of,), inside),
        "reduce": (everyone, at),
    }[op.name]


PROMISING = [
    ("AllGatherMeshOpbaseExecutor", "all_gather", 4),
    ("AllGatherComm", "all_gather", SERVERS),
    ("AllReduceComm", "all_reduce", 5),
    ("AllReduceMeshExecutor", "all_reduce", SERVERS),
    ("ReduceScatterComm", "reduce_scatter", 4),
    ("BroadCastComm", "broadcast", SERVERS),
    ("RunAlltoAllVFullMesh", "all_to_all", 4),
    ("ScatterMeshExecutor", "scatter", 4),
    ("GatherStar", "gather", 4),
    ("ReduceComm", "reduce", 4),
]


@pytest.mark.parametrize(("name", "op_name", "where"), PROMISING)
@pytest.mark.parametrize("count", [100, 1000])
def test_memory_ends_as_the_collective_promises(
    name: str, op_name: str, where: Topology | int, count: int
) -> None:
    topology = topology_of(where) if isinstance(where, int) else where
    checked_outputs(recorded(name, op_of(op_name, count), topology), topology)


@given(call=calls())
def test_memory_of_any_executor_ends_as_promised(call: tuple[Program, Topology]) -> None:
    checked_outputs(*call)


def checked_outputs(program: Program, topology: Topology) -> None:
    """See that outputs end up with what the collective says, where this file knows that."""
    memory = scene_of(program, topology).memory
    assert memory is not None
    op = program.op
    if op.name not in KNOWN or not op.count:
        return
    out = program.buffers.index("OUT")
    roots = [op.root or 0] if op.name in ("gather", "reduce") else range(program.ranks)
    held = memory.state(len(memory))
    for rank in roots:
        segments = [s for s in held if (s.rank, s.buffer) == (rank, out)]
        assert segments[0].start == 0
        assert segments[-1].stop == program.buffer_sizes[rank, out]
        assert all(a.stop == b.start for a, b in pairwise(segments))
        for segment in segments:
            for at in (segment.start, segment.stop - 1):
                origins, offset = promised(op, rank, program.ranks, at)
                assert segment.origins == origins
                assert segment.offset + at - segment.start == offset


def test_what_is_written_into_the_middle_leaves_both_sides() -> None:
    before = np.array([0, 0, 0])
    memory = MemoryStates(
        sizes=np.array([[100]]),
        bar=np.array([-1, 4, 5]),
        at_us=np.array([0.0, 1.0, 2.0]),
        rank=before.astype(np.int32),
        buffer=before.astype(np.int32),
        start=np.array([10, 30, 90]),
        stop=np.array([90, 50, 95]),
        content=np.array([0, 1, -1], np.int32),
        offset=np.array([200, 7, 0]),
        origins=((3,), (0, 1)),
    )
    left, middle = MemorySegment(0, 0, 10, 30, (3,), 200), MemorySegment(0, 0, 30, 50, (0, 1), 7)
    right, garbage = MemorySegment(0, 0, 50, 90, (3,), 240), MemorySegment(0, 0, 90, 95, (), 0)
    assert memory.state(0) == []
    assert memory.state(2) == [left, middle, right]
    assert memory.state(3) == [left, middle, right, garbage]


def test_over_rdma_links_are_busy_when_the_stream_has_let_go() -> None:
    topology = topology_of(servers=2, devices=1)
    program = recorded("AllReduceComm", op_of("all_reduce", 1 << 16), topology)
    cost = CostModel.of(topology.product.name).model_copy(update={"task_us": 500.0})
    scene = scene_of(program, topology, cost=cost)
    writes = scene.bars.connection >= 0
    first = scene.bars.end_us[writes].min()
    assert first > scene.bars.start_us[writes].min() + 400
    assert scene.links is not None
    width = scene.total_us / scene.links.load.shape[1]
    assert (scene.links.load[:, : int(first / width)] == 0).all()


def test_memory_changes_come_as_tasks_take_effect() -> None:
    program = recorded("AllReduceMeshExecutor", op_of("all_reduce"), SERVERS)
    scene = scene_of(program, SERVERS)
    memory, bars = scene.memory, scene.bars
    assert memory is not None
    begin = memory.begin
    assert (np.diff(memory.at_us) >= 0).all()
    assert np.array_equal(memory.at_us[begin:], bars.effect_us[memory.bar[begin:]])
    moves = np.flatnonzero((bars.dst_rank >= 0) & (bars.size > 0))
    assert set(memory.bar[begin:].tolist()) == set(moves.tolist())
    for k in range(begin, len(memory)):
        bar = int(memory.bar[k])
        assert (memory.rank[k], memory.buffer[k]) == (bars.dst_rank[bar], bars.dst_buffer[bar])
        assert bars.dst_offset[bar] <= memory.start[k] < memory.stop[k]
        assert memory.stop[k] <= bars.dst_offset[bar] + bars.dst_size[bar]
    first = memory.state(begin)
    source = program.buffers.index("IN")
    assert first == [MemorySegment(rank, source, 0, 4000, (rank,), 0) for rank in range(8)]


def test_a_call_in_place_begins_with_its_input_in_the_output() -> None:
    op = replace(op_of("all_reduce", 100), in_place=True)
    program = recorded("AllReduceComm", op, 3)
    memory = scene_of(program, topology_of(3)).memory
    assert memory is not None
    out = program.buffers.index("OUT")
    begun = [s for s in memory.state(memory.begin) if s.buffer == out]
    assert begun == [MemorySegment(rank, out, 0, 400, (rank,), 0) for rank in range(3)]


def broken() -> Program:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    posts = [i for i in program.batches[0].instructions if i.kind is TaskKind.NOTIFY_POST]
    return without(program, lambda i: i is posts[len(posts) // 2])


def test_a_deadlock_lasts_until_the_end() -> None:
    program = broken()
    scene = scene_of(program, topology_of(4))
    bars, linked = scene.bars, program.linked
    assert scene.never_ends
    states = {
        DONE: set(linked.order.tolist()),
        STUCK: set(linked.stuck.tolist()),
    }
    for state, rows in states.items():
        assert set(bars.row[bars.state == state].tolist()) == rows
    assert (bars.state == UNREACHED).sum() == len(bars) - sum(map(len, states.values()))
    assert not np.isnan(bars.effect_us).any()
    stuck = np.flatnonzero(bars.state == STUCK)
    assert (bars.end_us[stuck] == scene.total_us).all()
    for bar in stuck.tolist():
        before = bars.end_us[bar - 1] if bars.number[bar] else 0.0
        assert bars.start_us[bar] == before
    unreached = bars.state == UNREACHED
    assert (bars.start_us[unreached] == scene.total_us).all()
    assert bars.end_us[bars.state == DONE].max() < scene.total_us
    assert len(scene.critical) == 0
    assert not unreached[scene.phases.first].any()


def test_findings_know_their_bars() -> None:
    program = broken()
    report = verify_program(program)
    scene = scene_of(program, topology_of(4), report=report)
    assert [found.finding for found in scene.findings] == list(report)
    named = 0
    for found in scene.findings:
        places = [
            (
                int(scene.lanes.rank[scene.bars.lane[bar]]),
                int(scene.lanes.stream[scene.bars.lane[bar]]),
                int(scene.bars.number[bar]),
            )
            for bar in found.bars
        ]
        tasks = [(task.rank, task.stream, task.index) for task in found.finding.tasks]
        assert places[: len(tasks)] == list(dict.fromkeys(tasks))
        named += len(places)
    assert named


def test_twins_do_the_same_at_the_same_times() -> None:
    topology = topology_of(8, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce", 8 * 32), topology)
    even = scene_of(program, topology)
    assert even.twins.tolist() == [0] * 8
    assert even.groups == [tuple(range(8))]
    uneven = scene_of(program, topology, slow=Stragglers.parse(["rank=3:2x"]))
    assert uneven.twins[3] == 3
    assert [group for group in uneven.groups if 3 in group] == [(3,)]
    columns = ("kind", "start_us", "end_us", "effect_us", "size", "label")
    for scene in (even, uneven):
        for group in scene.groups:
            parts = [
                [getattr(scene.bars, c)[slice_of(scene, rank)].tolist() for c in columns]
                for rank in group
            ]
            assert all(part == parts[0] for part in parts)


def slice_of(scene: Scene, rank: int) -> slice:
    lanes = scene.lanes_of(rank)
    return slice(int(scene.lanes.first[lanes.start]), int(scene.lanes.first[lanes.stop]))


def test_a_program_without_tasks() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 0), 1)
    scene = scene_of(without(program, lambda _: True), topology_of(1))
    assert (len(scene.bars), len(scene.lanes), len(scene.phases)) == (0, 0, 0)
    assert scene.total_us == 0
