"""Programs that are too large to be shown: some ranks, as they are in the whole picture."""

from pathlib import Path

import numpy as np
import pytest

from hccl_py.cli import main
from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.plugins.executor import ops_of
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from hccl_py.trace.scene import DONE, STUCK, UNREACHED, Scene, scene_of
from tests.recording import BY_NAME, op_of, recorded, without

SERVERS = topology_of(servers=4, devices=4)
COLUMNS = ("kind", "start_us", "end_us", "effect_us", "size", "peer", "round", "label", "source")
MEMORY = ("number", "src_rank", "src_buffer", "src_offset", "dst_rank", "dst_buffer", "dst_offset")


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make every program a large one."""
    monkeypatch.setattr("hccl_py.trace.scene.build.MOST_TASKS", 0)
    return monkeypatch


def whole_and_part(
    program: Program, topology: Topology, limits: pytest.MonkeyPatch, **more: object
) -> tuple[Scene, Scene]:
    part = scene_of(program, topology, **more)  # type: ignore[arg-type]
    with limits.context() as patch:
        patch.setattr("hccl_py.trace.scene.build.MOST_TASKS", 1 << 40)
        return scene_of(program, topology), part


def traffic(scene: Scene) -> list[tuple[int, int, int]]:
    source, target, size, _ = scene.traffic
    return list(zip(source.tolist(), target.tolist(), size.tolist(), strict=True))


def rows_of(whole: Scene, part: Scene) -> np.ndarray:
    """Return the bars of the whole scene that the part has, in its order."""
    lane_of = {
        (rank, stream): k
        for k, (rank, stream) in enumerate(
            zip(whole.lanes.rank.tolist(), whole.lanes.stream.tolist(), strict=True)
        )
    }
    lanes = [
        lane_of[rank, stream]
        for rank, stream in zip(part.lanes.rank.tolist(), part.lanes.stream.tolist(), strict=True)
    ]
    first = whole.lanes.first[lanes]
    return first[part.bars.lane] + part.bars.number


@pytest.mark.parametrize(
    "name",
    [
        "AllReduceComm",
        "AllReduceMeshExecutor",
        "RunAlltoAllVTwoLevelPipeline",
        "GatherMeshExecutor",
    ],
)
def test_a_part_is_what_the_whole_has_there(name: str, limits: pytest.MonkeyPatch) -> None:
    program = recorded(name, op_of(ops_of(BY_NAME[name]())[0]), SERVERS)
    limits.setattr("hccl_py.trace.scene.excerpt._SHOWN", 0)
    whole, part = whole_and_part(program, SERVERS, limits, around=[5])
    assert len(part.ranks) == 8
    assert 5 in part.ranks
    rows = rows_of(whole, part)
    for column in (*COLUMNS, *MEMORY):
        mine, theirs = getattr(part.bars, column), getattr(whole.bars, column)[rows]
        assert np.array_equal(mine, theirs), column
    assert np.allclose(part.usage, whole.usage[part.ranks], rtol=1e-12)
    touching = [pair for pair in traffic(whole) if set(pair[:2]) & set(part.ranks.tolist())]
    assert traffic(part) == touching
    names = [whole.notifies[k] if k >= 0 else "" for k in whole.bars.notify[rows].tolist()]
    assert [part.notifies[k] if k >= 0 else "" for k in part.bars.notify.tolist()] == names


def test_everything_is_shown_where_there_is_room(limits: pytest.MonkeyPatch) -> None:
    program = recorded("AllReduceMeshExecutor", op_of("all_reduce"), SERVERS)
    whole, part = whole_and_part(program, SERVERS, limits)
    assert part.ranks.tolist() == list(range(16))
    assert np.array_equal(part.bars.partner, whole.bars.partner)
    assert np.allclose(part.usage, whole.usage, rtol=1e-12)
    assert part.total_us == whole.total_us
    assert part.twins.tolist() == whole.twins.tolist()
    assert np.array_equal(part.traffic.bytes, whole.traffic.bytes)
    for mine, theirs in zip(part.traffic[:2], whole.traffic[:2], strict=True):
        assert np.array_equal(np.asarray(mine), np.asarray(theirs))
    assert np.allclose(part.traffic.share, whole.traffic.share)
    for name in ("lane", "start_us", "end_us", "label", "round", "first", "stop"):
        assert np.array_equal(getattr(part.phases, name), getattr(whole.phases, name)), name


def test_what_is_left_out_is_said(limits: pytest.MonkeyPatch) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), SERVERS)
    limits.setattr("hccl_py.trace.scene.excerpt._SHOWN", 160)
    whole, part = whole_and_part(program, SERVERS, limits, around=[3])
    longest = int(np.bincount(program.tasks.rank).max())
    assert len(part.bars) == 160
    end = part.bars.end_us.max()
    assert part.left_out == (
        f"Shown: ranks {ranks_said(part)} of 16, of each stream the first 20 of up to {longest} "
        f"tasks, until {end:.2f} us; times are those of the whole program, whose link load is not "
        "computed."
    )
    assert part.links is None
    assert part.memory is None
    assert part.memory_left_out
    assert len(part.critical) == 0
    assert part.total_us == whole.total_us
    assert np.allclose(part.usage, whole.usage[part.ranks], rtol=1e-12)
    waits = (part.bars.kind == TaskKind.NOTIFY_WAIT) & (part.bars.partner < 0)
    assert waits.any()
    assert (part.bars.peer[waits] >= 0).all()


def ranks_said(scene: Scene) -> str:
    ranks = scene.ranks.tolist()
    if ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]} to {ranks[-1]}"
    return f"{', '.join(map(str, ranks[:4]))} and {len(ranks) - 4} more"


def test_partners_of_a_part_are_those_of_the_whole(limits: pytest.MonkeyPatch) -> None:
    for name in ("AllReduceComm", "AllReduceMeshExecutor", "BroadCastComm"):
        program = recorded(name, op_of(str(BY_NAME[name].op)), SERVERS)
        limits.setattr("hccl_py.trace.scene.excerpt._SHOWN", 300)
        whole, part = whole_and_part(program, SERVERS, limits)
        rows = rows_of(whole, part)
        linked = part.bars.partner >= 0
        assert linked.any()
        assert np.array_equal(rows[part.bars.partner[linked]], whole.bars.partner[rows[linked]])
        both = np.isin(whole.bars.partner[rows], rows)
        assert np.array_equal(both, linked)


def test_a_deadlock_of_a_large_program_is_drawn(limits: pytest.MonkeyPatch) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    posts = [i for i in program.batches[0].instructions if i.kind is TaskKind.NOTIFY_POST]
    stuck = without(program, lambda i: i is posts[len(posts) // 2])
    whole, part = whole_and_part(stuck, topology_of(4), limits)
    assert whole.never_ends
    assert part.never_ends
    for state in (DONE, STUCK, UNREACHED):
        assert (part.bars.state == state).sum() == (whole.bars.state == state).sum()
    for column in ("start_us", "end_us", "state", "partner"):
        mine, theirs = getattr(part.bars, column), getattr(whole.bars, column)
        assert np.allclose(mine, theirs, rtol=1e-12), column


def test_the_ranks_nearest_to_one_are_chosen(limits: pytest.MonkeyPatch) -> None:
    topology = topology_of(64, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce", 64 * 32), topology)
    limits.setattr("hccl_py.trace.scene.excerpt._SHOWN", 100)
    assert scene_of(program, topology).ranks.tolist() == [0, 1, 2, 3, 4, 61, 62, 63]
    assert scene_of(program, topology, around=[40]).ranks.tolist() == list(range(36, 44))
    with pytest.raises(ParameterError, match="There is no rank 64"):
        scene_of(program, topology, around=[64])


def test_what_cannot_be_timed_in_parts_is_refused(limits: pytest.MonkeyPatch) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    with pytest.raises(ParameterError, match="not drawn in a contended network"):
        scene_of(program, topology_of(4), network="contended")
    with pytest.raises(ParameterError, match="The program has 4 ranks, the topology 5"):
        scene_of(program, topology_of(5))


@pytest.mark.sweep
def test_the_command_answers_for_thousands_of_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ring = ["all_reduce", "--topology", "ring", "--ranks", "1024", "--executor", "AllReduceComm"]
    files = ["--perfetto", str(tmp_path / "a.pftrace"), "--html", str(tmp_path / "a.html")]
    assert main(["trace", *ring, *files, "--rank", "500", "--limit", "3"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "of 1024; times are those of the whole program" in output
    assert "rank 500:" in output
    assert all((tmp_path / f"a.{suffix}").stat().st_size for suffix in ("pftrace", "html"))
