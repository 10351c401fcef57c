"""Perfetto and Chrome files are read back, and are the program: every task, flow and counter."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_py.cli import main
from hccl_py.enums import RDMA_WRITES, TaskKind
from hccl_py.errors import FileError, ParameterError
from hccl_py.program.describe import format_stream, notify_name, ranges_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, Timeline, simulate
from hccl_py.simulator.tasks import simulate_reached
from hccl_py.topology import Topology, topology_of
from hccl_py.trace.export import CHROME, PERFETTO, check_trace_file, write_trace_file
from hccl_py.trace.export.slices import LONGEST, brief
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.trace.timelines import check_timeline
from hccl_py.verifier import verify_program
from tests.recording import op_of, recorded, without, writing_twice
from tests.trace.perfetto_file import Row, Slice, read_perfetto

TWO_SERVERS = topology_of(servers=2, devices=2)
CASES: dict[str, tuple[Program, Topology]] = {
    "mesh": (
        recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1 << 20), 4, 1 << 24),
        topology_of(4),
    ),
    "ring": (recorded("AllReduceComm", op_of("all_reduce", 1 << 16), 6), topology_of(6)),
    "servers": (recorded("AllReduceComm", op_of("all_reduce", 1 << 16), TWO_SERVERS), TWO_SERVERS),
    "one rank": (recorded("AllReduceComm", op_of("all_reduce"), 1), topology_of(1)),
}
LARGE = 1 << 20


class Expected(NamedTuple):
    """A task as it should stand in a file, read off the program and its timeline."""

    place: tuple[str, str]
    name: str
    begin_us: float
    end_us: float
    args: dict[str, int | str]


def expected(program: Program, timeline: Timeline) -> list[Expected]:
    tasks, found = program.tasks, []
    for row in range(len(tasks)):
        kind = TaskKind(int(tasks.kind[row]))
        label, line = (
            int(column[tasks.instruction[row]]) for column in (tasks.table.label, tasks.table.line)
        )
        args: dict[str, int | str] = {"task": int(tasks.index[row])}
        args["round"] = int(tasks.table.round[tasks.instruction[row]])
        if tasks.peer[row] >= 0:
            args["peer"] = int(tasks.peer[row])
        if label >= 0:
            args["phase"] = program.labels[label]
        if line >= 0:
            args["source"] = program.lines[line]
        if kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT):
            args["notify"] = notify_name(program, int(tasks.cell[row]))
        if kind.moves_data:
            args["bytes"] = int(tasks.size[row])
            for name, memory in zip(("from", "to"), ranges_of(program, row), strict=True):
                args[name] = words(program, memory, int(tasks.rank[row]))
        found.append(
            Expected(
                (f"rank {tasks.rank[row]}", format_stream(int(tasks.stream[row]))),
                kind.spelling,
                float(timeline.start_us[row]),
                float(timeline.end_us[row]),
                args,
            )
        )
    return found


def words(program: Program, memory: Any, rank: int) -> str:
    names = {"IN": "user_in", "OUT": "user_out", "CCL_IN": "CCL_In", "CCL_OUT": "CCL_Out"}
    buffer = program.buffers[memory.buffer]
    whose = "" if memory.rank == rank else f"rank {memory.rank} "
    return f"{whose}{names.get(buffer, buffer.lower())}[{memory.start}:{memory.stop}]"


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def key(place: tuple[str, str], args: dict[str, int | str]) -> tuple[str, str, int]:
    return (*place, int(args["task"]))


def perfetto(tmp_path: Path, scene: Scene, **more: Any) -> list[Row]:
    path = tmp_path / "trace.pftrace"
    write_trace_file(path, {"": scene}, PERFETTO, **more)
    return read_perfetto(path)


def tasks_of(rows: list[Row]) -> Iterator[tuple[Row, Slice]]:
    for row in rows:
        for one in row.slices:
            if one.category == "task":
                assert row.is_thread
                yield row, one


@pytest.mark.parametrize("name", CASES)
def test_perfetto_has_every_task(name: str, tmp_path: Path) -> None:
    program, topology = CASES[name]
    rows = perfetto(tmp_path, scene_of(program, topology), flows=LARGE)
    found = {key((row.process, row.name), one.args): one for row, one in tasks_of(rows)}
    wanted = expected(program, simulate(program, topology))
    assert len(found) == len(wanted) == program.task_count
    for task in wanted:
        one = found[key(task.place, task.args)]
        assert (one.name, one.args) == (task.name, task.args)
        assert (one.begin, one.end) == (ns(task.begin_us), ns(task.end_us))


@pytest.mark.parametrize("name", CASES)
def test_perfetto_has_every_flow(name: str, tmp_path: Path) -> None:
    program, topology = CASES[name]
    rows = perfetto(tmp_path, scene_of(program, topology), flows=LARGE)
    ends: dict[int, list[tuple[str, str, int]]] = {}
    for row, one in tasks_of(rows):
        for flow in one.flows_out:
            ends.setdefault(flow, []).insert(0, key((row.process, row.name), one.args))
        for flow in one.flows_in:
            ends.setdefault(flow, []).append(key((row.process, row.name), one.args))
    tasks, post_of = program.tasks, program.linked.post_of

    def place(row: int) -> tuple[str, str, int]:
        stream = format_stream(int(tasks.stream[row]))
        return f"rank {tasks.rank[row]}", stream, int(tasks.index[row])

    waits = np.flatnonzero(post_of >= 0)
    wanted = sorted((place(int(post_of[wait])), place(int(wait))) for wait in waits)
    assert sorted((a, b) for a, b in ends.values()) == wanted


@pytest.mark.parametrize("name", CASES)
def test_perfetto_has_every_counter_and_phase(name: str, tmp_path: Path) -> None:
    program, topology = CASES[name]
    scene = scene_of(program, topology)
    rows = perfetto(tmp_path, scene)
    counters = {row.name: row.values for row in rows if row.values}
    total = simulate(program, topology).total_us
    assert scene.links is not None
    assert len(counters) == len(scene.links)
    for k, (source, target) in enumerate(scene.links.ends):
        (values,) = (v for n, v in counters.items() if n.startswith(f"{source} to {target}, "))
        times, loads = (np.array(column) for column in zip(*values, strict=True))
        assert loads[-1] == 0
        carried = (np.diff(times, append=times[-1]) * loads).sum() / 100
        assert carried * scene.links.gbps[k] == pytest.approx(scene.links.bytes[k], rel=1e-3)
        assert times[-1] <= ns(total)
    phases = [(row.name, one) for row in rows for one in row.slices if one.category == "phase"]
    assert len(phases) == len(scene.phases)
    named = {label for label in program.tasks.table.label.tolist() if label >= 0}
    assert {one.name for _, one in phases} == {program.labels[label] for label in named}
    assert all(name.startswith("phases of ") for name, _ in phases)


def test_rdma_writes_are_under_way_until_they_arrive(tmp_path: Path) -> None:
    program, topology = CASES["servers"]
    timeline = simulate(program, topology)
    rows = [row for row in perfetto(tmp_path, scene_of(program, topology)) if not row.is_thread]
    found = sorted(
        (row.process, row.name, one.begin, one.end, one.args["bytes"])
        for row in rows
        for one in row.slices
        if one.category == "under way"
    )
    tasks = program.tasks
    writes = np.flatnonzero(np.isin(tasks.kind, RDMA_WRITES))
    assert len(writes)
    assert found == sorted(
        (
            f"rank {tasks.rank[row]}",
            f"RDMA to rank {tasks.peer[row]}",
            ns(timeline.end_us[row]),
            ns(timeline.effect_us[row]),
            int(tasks.size[row]),
        )
        for row in writes.tolist()
    )


def test_writes_that_overlap_stand_beside_each_other(tmp_path: Path) -> None:
    program = writing_twice(CASES["servers"][0])
    scene = scene_of(program, TWO_SERVERS)
    rows = [row for row in perfetto(tmp_path, scene) if row.name.startswith("RDMA")]
    pairs = Counter((row.process, row.name) for row in rows)
    assert set(pairs.values()) == {2}
    writes = int(np.isin(program.tasks.kind, RDMA_WRITES).sum())
    assert sum(len(row.slices) for row in rows) == writes


def test_the_critical_path_is_a_track_without_gaps(tmp_path: Path) -> None:
    program, topology = CASES["ring"]
    timeline = simulate(program, topology)
    (row,) = (r for r in perfetto(tmp_path, scene_of(program, topology)) if r.name[:4] == "crit")
    path = timeline.critical_path()
    kinds = [TaskKind(int(program.tasks.kind[task])).spelling for task in path.rows]
    assert [one.name for one in row.slices] == kinds
    assert row.slices[0].begin == 0
    assert row.slices[-1].end == ns(timeline.total_us)
    assert all(a.end == b.begin for a, b in zip(row.slices, row.slices[1:], strict=False))


def test_flows_above_the_limit_are_those_of_the_longest_waits(tmp_path: Path) -> None:
    program, topology = CASES["ring"]
    path = tmp_path / "trace.pftrace"
    said = write_trace_file(path, {"": scene_of(program, topology)}, PERFETTO, 5)
    waits = int((program.linked.post_of >= 0).sum())
    sentence = f"5 of {waits} flows are written: those whose waits last longest."
    assert said == [sentence]
    rows = read_perfetto(path)
    lasting = sorted(
        (one.end - one.begin, bool(one.flows_in))
        for _, one in tasks_of(rows)
        if one.name == "notify_wait"
    )
    shown = [length for length, has_flow in lasting if has_flow]
    assert len(shown) == 5
    assert shown == [length for length, _ in lasting[-5:]]
    assert sum(len(one.flows_out) for _, one in tasks_of(rows)) == 5
    (about,) = (one for row in rows for one in row.slices if one.category == "about")
    assert about.args["left out"] == sentence


def deadlocked() -> Program:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    lost = next(
        i
        for i in reversed(program.batches[0].instructions)
        if i.kind is TaskKind.NOTIFY_POST and not isinstance(i.cell, int)
    )
    return without(program, lambda i: i is lost)


def test_a_deadlock_is_drawn_as_far_as_it_gets(tmp_path: Path) -> None:
    program = deadlocked()
    report = verify_program(program)
    assert not report.ok
    scene = scene_of(program, topology_of(4), report=report)
    path = tmp_path / "trace.pftrace"
    said = write_trace_file(path, {"": scene}, PERFETTO)
    rows = read_perfetto(path)
    reached = simulate_reached(program, topology_of(4), CostModel.of(""))
    slices = list(tasks_of(rows))
    stuck = [one for _, one in slices if one.args.get("state") == "never ends"]
    assert len(stuck) == len(program.linked.stuck)
    assert all(one.end == ns(scene.total_us) for one in stuck)
    assert len(slices) == int(np.isfinite(reached.end_us).sum()) + len(stuck)
    unreached = program.task_count - len(slices)
    assert said == ([f"{unreached} tasks that are never reached have no slice."] * bool(unreached))
    found = [
        (row.process, row.is_thread, one.name)
        for row in rows
        for one in row.slices
        if one.category == "finding"
    ]
    listed = [name for _, is_thread, name in found if not is_thread]
    assert Counter(listed) == Counter(finding.name for finding in report)
    assert [place for place in found if place[1]]


def chrome(tmp_path: Path, scenes: dict[str, Scene], **more: Any) -> list[dict[str, Any]]:
    path = tmp_path / "trace.json"
    write_trace_file(path, scenes, CHROME, **more)
    events: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["traceEvents"]
    return events


def named(events: list[dict[str, Any]], what: str) -> dict[Any, str]:
    return {
        (e["pid"] if what == "process_name" else (e["pid"], e["tid"])): e["args"]["name"]
        for e in events
        if e["name"] == what
    }


@pytest.mark.parametrize("name", CASES)
def test_chrome_has_every_task_and_flow(name: str, tmp_path: Path) -> None:
    program, topology = CASES[name]
    events = chrome(tmp_path, {"": scene_of(program, topology)}, flows=LARGE)
    processes, threads = named(events, "process_name"), named(events, "thread_name")
    found = {
        key((processes[e["pid"]], threads[e["pid"], e["tid"]]), e["args"]): e
        for e in events
        if e.get("cat") == "task"
    }
    wanted = expected(program, simulate(program, topology))
    assert len(found) == len(wanted)
    for task in wanted:
        one = found[key(task.place, task.args)]
        assert (one["name"], one["args"]) == (task.name, task.args)
        assert one["ts"] == task.begin_us
        assert one["dur"] == task.end_us - task.begin_us
    begun = {e["id"]: e for e in events if e["ph"] == "s"}
    ended = {e["id"]: e for e in events if e["ph"] == "f"}
    assert begun.keys() == ended.keys()
    assert len(begun) == int((program.linked.post_of >= 0).sum())
    assert all(begun[k]["ts"] <= ended[k]["ts"] for k in begun)


def test_chrome_counters_are_those_of_perfetto(tmp_path: Path) -> None:
    program, topology = CASES["servers"]
    scene = scene_of(program, topology)
    found: dict[str, list[tuple[int, float]]] = {}
    for event in chrome(tmp_path, {"": scene}):
        if event["ph"] == "C":
            found.setdefault(event["name"], []).append((ns(event["ts"]), event["args"]["%"]))
    assert found == {row.name: row.values for row in perfetto(tmp_path, scene) if row.values}


def test_scenes_of_a_rank_stand_together(tmp_path: Path) -> None:
    program, topology = CASES["mesh"]
    scene = scene_of(program, topology)
    events = chrome(tmp_path, {"measured": replace(scene, clock="measured"), "model": scene})
    names = named(events, "process_name")
    assert [names[pid] for pid in sorted(names)][:5] == [
        "program, measured",
        "program, model",
        "rank 0, measured",
        "rank 0, model",
        "rank 1, measured",
    ]
    arrows = [e for e in events if e["ph"] in "sf"]
    pairs: dict[int, set[str]] = {}
    for arrow in arrows:
        pairs.setdefault(arrow["id"], set()).add(names[arrow["pid"]].split(", ")[1])
    assert all(len(clocks) == 1 for clocks in pairs.values())
    assert len(pairs) == len(arrows) / 2


HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\x1b[2J\x00\x07\r\n‮",
    "\ud800 lone",
    "x" * 3_000_000,
)


def hostile(text: str) -> Scene:
    program, topology = CASES["mesh"]
    program = replace(program, stream_names=(text,) * 9)
    scene = scene_of(program, topology, title=text, facts=[(text, text)])
    buffers = (text,) * len(scene.buffers)
    return replace(
        scene,
        labels=(text,) * len(scene.labels),
        sources=(text,) * len(scene.sources),
        notifies=(text,) * len(scene.notifies),
        buffers=buffers,
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_of_files_do_no_harm(text: str, tmp_path: Path) -> None:
    scene = hostile(text)
    rows = perfetto(tmp_path, scene)
    assert len(list(tasks_of(rows))) == len(scene.bars)
    seen = {value for _, one in tasks_of(rows) for value in one.args.values()}
    seen |= {row.name for row in rows}
    texts = [value for value in seen if isinstance(value, str)]
    assert all(len(value) < LONGEST + 100 and value.isprintable() for value in texts)
    assert brief(text) in texts
    events = chrome(tmp_path, {"": scene})
    assert sum(e.get("cat") == "task" for e in events) == len(scene.bars)
    for file in ("trace.json", "trace.pftrace"):
        assert (tmp_path / file).stat().st_size < 4_000_000


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_program_files_do_no_harm(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text.encode("utf-8", "replace").decode()
    program, _ = CASES["mesh"]
    nasty = replace(
        program,
        labels=(text,) * len(program.labels),
        lines=(text,) * len(program.lines),
        executor=text,
        transports=replace(program.transports, notify_names=(text,) * 3),
    )
    path, files = tmp_path / "nasty.npz", (tmp_path / "a.pftrace", tmp_path / "a.json")
    nasty.save(path)
    options = ["--perfetto", str(files[0]), "--chrome", str(files[1])]
    status = main(["trace", str(path), *options])
    assert status == 0, capsys.readouterr().err
    assert len(list(tasks_of(read_perfetto(files[0])))) == program.task_count
    events = json.loads(files[1].read_text("utf-8"))["traceEvents"]
    assert sum(e.get("cat") == "task" for e in events) == program.task_count
    assert all(file.stat().st_size < 4_000_000 for file in files)
    assert len(capsys.readouterr().out) < 1_000_000


def test_missing_perfetto_is_said_before_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(ParameterError, match="need the package perfetto") as caught:
        check_trace_file(tmp_path / "x.pftrace", PERFETTO)
    assert "pip install 'hccl-py[perfetto]'" in caught.value.hint


def test_names_say_what_is_written(tmp_path: Path) -> None:
    check_trace_file(tmp_path / "x.perfetto-trace", PERFETTO)
    with pytest.raises(FileError, match="no folder"):
        check_trace_file(tmp_path / "no" / "x.json", CHROME)
    with pytest.raises(FileError, match="a Perfetto trace is not written"):
        check_trace_file(tmp_path / "x.json", PERFETTO)


def test_the_command_writes_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.pftrace", tmp_path / "a.json"]
    options = ["--perfetto", str(files[0]), "--chrome", str(files[1])]
    assert main(["trace", "all_gather", "--ranks", "3", *options, "--flows", "7"]) == 0
    assert "7 of 36 flows are written" in capsys.readouterr().err
    assert sum(len(one.flows_in) for _, one in tasks_of(read_perfetto(files[0]))) == 7
    assert json.loads(files[1].read_text("utf-8"))["traceEvents"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--flows", "7"], "--flows is about the files of --perfetto and --chrome"),
        (["--perfetto", "x.txt"], "ends in .pftrace or .perfetto-trace"),
        (["--chrome", "x.pftrace"], "ends in .json"),
    ],
)
def test_wrong_options(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "all_gather", *options]) == 2
    assert said in capsys.readouterr().err


def test_files_of_others_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, name in (("--perfetto", "a.pftrace"), ("--chrome", "a.json"), ("--svg", "a.svg")):
        path = tmp_path / name
        path.write_text("somebody's\n")
        assert main(["trace", "all_gather", option, str(path)]) == 2
        assert "it would be lost" in capsys.readouterr().err
        assert path.read_text() == "somebody's\n"
        path.unlink()
        for _ in range(2):  # what is ours is replaced
            assert main(["trace", "all_gather", option, str(path)]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("name", ["a.json", "a.html", "a.pftrace"])
def test_timelines_replace_no_files_of_others(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("somebody's\n")
    with pytest.raises(FileError, match="it would be lost"):
        check_timeline(str(path))
