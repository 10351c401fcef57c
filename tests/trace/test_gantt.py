"""Time from left to right: drawings that were looked at, and what holds for all of them."""

import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

import hccl_py as hccl
from hccl_py.enums import TaskKind
from hccl_py.topology import topology_of
from hccl_py.trace.gantt.chart import chosen_groups, draw_gantt, format_runs, used_by_path
from hccl_py.trace.gantt.lanes import Lane, shown_bars
from hccl_py.trace.gantt.phases import phase_lines, phase_spans
from hccl_py.trace.gantt.window import Window
from hccl_py.trace.scene import CONNECTION, DONE, STUCK, UNREACHED, Scene, scene_of
from hccl_py.trace.steps import steps_of
from hccl_py.trace.words import MARKS, Words
from tests.recording import op_of, recorded
from tests.trace.drawn import DRAWINGS, SCENES, drawings, gantt

HOSTILE = "\x1b[2J\x07\u202e\x00前向"


def test_drawings_are_those_that_were_looked_at() -> None:
    drawn = drawings()
    assert {path.name for path in DRAWINGS.iterdir()} == drawn.keys()
    for name, text in drawn.items():
        assert text == (DRAWINGS / name).read_text("utf-8"), (
            f"drawings/{name}: `python -m tests.trace.drawn` draws anew; look at it"
        )


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("width", [20, 33, 80, 101])
def test_lines_fit(name: str, width: int) -> None:
    lines = gantt(SCENES[name](), max(width, 20))
    drawn = [line for line in lines if not line.startswith(("!", "   ", "also"))]
    assert all(cell_len(line) <= width and line == line.rstrip() for line in drawn)


@pytest.mark.parametrize("name", SCENES)
def test_plain_characters(name: str) -> None:
    assert "\n".join(gantt(SCENES[name](), 80, unicode=False)).isascii()


@pytest.mark.parametrize("name", SCENES)
def test_no_character_is_wide_where_chinese_is_usual(name: str) -> None:
    used = set("".join(gantt(SCENES[name](), 80)))
    assert {c for c in used if unicodedata.east_asian_width(c) in "AFW"} == set()


def test_all_words_are_narrow() -> None:
    words = Words((), unicode=True)
    chars = [words.to, words.frm, words.arrow, words.back, words.runs, words.waits, words.tick]
    chars += [words.mark(name)[0] for name in MARKS]
    assert all(unicodedata.east_asian_width(c) not in "AFW" for c in chars)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("columns", [50, 137])
def test_a_wait_ends_where_what_it_waits_for_takes_effect(name: str, columns: int) -> None:
    scene = SCENES[name]()
    bars, seen = scene.bars, 0
    for lane in range(len(scene.lanes)):
        drawn = Lane(
            scene, lane, Window(0.0, scene.total_us, columns), Words.of(scene, unicode=True)
        )
        for bar, stop in zip(drawn.bars.tolist(), drawn.stop.tolist(), strict=True):
            if bars.kind[bar] != TaskKind.NOTIFY_WAIT or bars.state[bar] != DONE:
                continue
            effect = float(bars.effect_us[bars.partner[bar]])
            first = int(bars.start_us[bar] / scene.total_us * columns)
            assert stop == max(round(effect / scene.total_us * columns), first + 1)
            assert drawn.marks[stop - 1] >= MARKS.index("wait")
            seen += 1
    assert seen


def test_stuck_waits_last_until_the_end_and_unreached_tasks_are_nowhere() -> None:
    scene = SCENES["deadlock"]()
    window = Window(0.0, scene.total_us, 60)
    bars, lane_of = scene.bars, scene.bars.lane
    stuck = np.flatnonzero(bars.state == STUCK)
    assert len(stuck) == 4 + 3 * 2  # all of rank 1; of others main, and who waits for rank 1's data
    for bar in stuck.tolist():
        drawn = Lane(scene, int(lane_of[bar]), window, Words.of(scene, unicode=True))
        assert drawn.marks[-1] == MARKS.index("stuck")
    never = set(np.flatnonzero(bars.state == UNREACHED).tolist())
    shown = {b for k in range(len(scene.lanes)) for b in shown_bars(scene, k, window).tolist()}
    assert never
    assert not never & shown


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(("begin", "end"), [(0.0, 1.0), (0.2, 0.5), (0.31, 0.32), (0.9, 1.0)])
def test_a_part_of_the_time_shows_what_overlaps_it(name: str, begin: float, end: float) -> None:
    scene = SCENES[name]()
    window = Window(begin * scene.total_us, end * scene.total_us, 80)
    bars = scene.bars
    for lane, stream in enumerate(scene.lanes.stream.tolist()):
        on = bars.connection == lane if stream == CONNECTION else bars.lane == lane
        since, until = (
            (bars.end_us, bars.effect_us) if stream == CONNECTION else (bars.start_us, bars.end_us)
        )
        inside = on & (until > since) & (until > window.begin_us) & (since < window.end_us)
        found = shown_bars(scene, lane, window)
        assert sorted(found.tolist()) == np.flatnonzero(inside).tolist()


def test_what_stands_outside_of_the_time_is_not_drawn() -> None:
    scene = SCENES["all_gather_mesh"]()
    words = Words.of(scene, unicode=True)
    lines = [line.plain for line in draw_gantt(scene, words, 80, [(0,)], (12.0, 20.0))]
    assert lines[0].split()[0] == "us"
    assert lines[0].endswith("20.00")
    main, sub = (next(line for line in lines if line.startswith(f"  {n}")) for n in ("main", "sub"))
    assert set(main[10:]) <= set("╌ wait◂sub0")
    assert set(sub[10:]) <= set("⣿ read256K◂3CCL_Out▸user_out")
    assert "░" not in "".join(lines)


def test_ranks_that_do_the_same_are_drawn_once() -> None:
    scene = SCENES["ring_all_reduce"]()
    lines = gantt(scene, 80)
    assert sum(line.startswith("  main") for line in lines) == 1
    assert lines[1].startswith("ranks 0-7, as rank 0 ")


def test_the_groups_that_matter_are_drawn_first() -> None:
    scene = SCENES["deadlock"]()
    assert chosen_groups(scene, 1) == [(1,)]  # the culprit's
    assert chosen_groups(scene, 2) == [(0,), (1,)]  # what is stuck behind it
    assert chosen_groups(scene, 9) == scene.groups
    nhr = SCENES["nhr_all_reduce"]()
    on_path = {int(nhr.lanes.rank[nhr.bars.lane[bar]]) for bar in nhr.critical.bar.tolist()}
    assert all(set(group) & on_path for group in chosen_groups(nhr, len(on_path)))


def test_totals_of_a_rank_are_those_of_the_scene() -> None:
    scene = SCENES["nhr_all_reduce"]()
    headings = [line for line in gantt(scene, 160) if line.startswith("rank ")]
    for rank, line in enumerate(headings):
        busy, waits, idle = scene.usage[rank].tolist()
        assert line.endswith(
            f"busy {busy:.2f} us ({busy / scene.total_us:.0%}), waits {waits:.2f} "
            f"({waits / scene.total_us:.0%}), idle {idle:.2f} ({idle / scene.total_us:.0%})"
        )


def test_the_path_names_the_ranks_that_it_passes() -> None:
    scene = SCENES["ring_all_reduce"]()
    (line,) = (line for line in gantt(scene, 200) if line.startswith("  path"))
    parts = [part for part in line.replace("rank ", "r").split("╷")[1:] if part.strip()]
    named = [int(part.split()[0].lstrip("r")) for part in parts]
    bars = scene.critical.bar[scene.critical.end_us > scene.critical.begin_us]
    ranks = scene.lanes.rank[scene.bars.lane[bars]]
    passed = ranks[np.flatnonzero(np.diff(ranks, prepend=-1))].tolist()
    assert named == passed[:-1]  # the last one, a copy, is too narrow for a name
    spent = used_by_path(scene)
    assert sum(us for _, us in spent) == pytest.approx(scene.total_us)


def test_a_path_of_many_changes_is_counted() -> None:
    with hccl.Communicator(ranks=24, topology="ring") as comm:
        program = comm.plan(op_of("all_reduce", 1 << 20), "AllReduceComm").program
        scene = scene_of(program, comm.topology)
    (line,) = (line for line in gantt(scene, 60) if line.startswith("  path"))
    bars = scene.critical.bar[scene.critical.end_us > scene.critical.begin_us]
    lanes = scene.bars.lane[bars]
    changes = int((np.diff(lanes) != 0).sum())
    assert line.endswith(f" changes {changes} times between {len(set(lanes.tolist()))} streams")


@pytest.mark.parametrize(
    ("width", "totals"),
    [(60, "busy 37%, waits 63%, idle 0%"), (40, ""), (200, "waits 150.00 (63%)")],
)
def test_headings_say_as_much_as_there_is_room_for(width: int, totals: str) -> None:
    heading = gantt(SCENES["ring_all_reduce"](), width)[1]
    assert heading.startswith("ranks 0-7, as rank 0")
    assert totals in heading
    assert ("busy" in heading) == bool(totals)


def test_phases_begin_with_work_and_join_over_streams() -> None:
    scene = SCENES["two_levels"]()
    names = [span.name for span in phase_spans(scene, 0)]
    assert names == ["reduce-scatter", "reduce-scatter", "all-gather", "all-gather"]
    spans = phase_spans(SCENES["ring_all_reduce"](), 3)
    assert [s.name for s in spans] == [
        f"{phase} {k}/7" for phase in ("reduce-scatter", "all-gather") for k in range(1, 8)
    ]


def test_phases_are_named_as_finely_as_there_is_room() -> None:
    spans = phase_spans(SCENES["ring_all_reduce"](), 0)
    total = SCENES["ring_all_reduce"]().total_us
    fine = phase_lines(spans, Window(0.0, total, 300), "|")
    assert len(fine) == 1
    assert all(f"|reduce-scatter {k}/7" in fine[0] for k in range(1, 8))
    coarse = phase_lines(spans, Window(0.0, total, 76), "|")
    assert [line.split() for line in coarse] == [
        ["|reduce-scatter", "|all-gather"],
        [f"|{k}/7" for _ in range(2) for k in range(1, 8)],
    ]
    (least,) = phase_lines(spans, Window(0.0, total, 34), "|")
    assert least.split() == ["|reduce-scatter", "|all-gather"]


def test_a_job_names_its_streams_and_kernels() -> None:
    lines = gantt(SCENES["job_with_overlap"](), 80)
    assert any(line.startswith("  compute") and " backward 1 100 us " in line for line in lines)
    assert any("╷gradients 1" in line and "╷gradients 0" in line for line in lines)


def hostile() -> Scene:
    program = recorded("AllGatherComm", op_of("all_gather", 1 << 16), 4)
    program = replace(
        program,
        labels=tuple(HOSTILE + label for label in program.labels),
        lines=tuple(HOSTILE + line for line in program.lines),
        executor=HOSTILE,
        stream_names=(HOSTILE,),
    )
    return scene_of(program, topology_of(4), title=HOSTILE)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_what_files_say_is_printable_and_fits(width: int) -> None:
    lines = gantt(hostile(), width)
    assert all(line.isprintable() and cell_len(line) <= width for line in lines)
    assert "\\x1b" in "".join(lines)


def test_texts_of_any_length_are_cut() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 1 << 16), 4)
    long = tuple("x" * 10_000_000 + label for label in program.labels)
    lines = tuple("x" * 10_000_000 + str(number) for number in range(len(program.lines)))
    scene = scene_of(replace(program, labels=long, lines=lines), topology_of(4))
    assert all(len(line) <= 80 for line in gantt(scene, 80))
    assert max(len(step.label) for step in steps_of(scene, range(len(scene.bars)))) < 300


def test_names_in_wide_characters_keep_the_columns() -> None:
    job = hccl.Job(hccl.Communicator(4).topology)
    stream = job.stream("计算")
    stream.compute(50.0, "前向计算")
    stream.compute(50.0, "反向")
    program = job.program()
    scene = scene_of(program, topology_of(4))
    lines = gantt(scene, 60)
    (lane,) = (line for line in lines if line.startswith("  计算"))
    assert cell_len(lane) == 60
    assert " 前向计算 50 us " in lane


def test_no_time_and_no_room_draw_nothing() -> None:
    scene = scene_of(recorded("AllGatherComm", op_of("all_gather", 0), 1), topology_of(1))
    words = Words.of(scene, unicode=True)
    assert list(draw_gantt(scene, words, 80, [(0,)])) == []
    scene = SCENES["all_gather_mesh"]()
    assert list(draw_gantt(scene, Words.of(scene, unicode=True), 12, [(0,)])) == []


@pytest.mark.parametrize(
    ("begin", "end", "labels"),
    [
        (0.0, 24.674, "0 5 10 15 20 24.67"),
        (24.67, 24.6743, "24.67 24.671 24.672 24.673 24.6743"),
        (1_000_000.0, 1_000_003.0, "1000000 1000000.5 1000001 1000001.5 1000002 1000003"),
        (10.0, 10.0000000000001, "10 10.00000000000002 10.0000000000001"),
    ],
)
def test_numbers_of_the_scale_differ(begin: float, end: float, labels: str) -> None:
    assert Window(begin, end, 66).scale().split() == labels.split()


def test_more_streams_than_are_drawn() -> None:
    scene = SCENES["all_gather_mesh"]()
    words = Words.of(scene, unicode=True)
    lines = [line.plain for line in draw_gantt(scene, words, 80, [(0,)], most_lanes=2)]
    assert "  and 2 more streams; --limit 0 draws all" in lines
    fewer = [line.plain for line in draw_gantt(scene, words, 80, [(0,)], most_lanes=3)]
    assert "  and 1 more stream; --limit 0 draws all" in fewer
    assert not any(line.startswith("  sub 1") for line in lines)


def test_runs_of_ranks() -> None:
    assert format_runs([4]) == "rank 4"
    assert format_runs([0, 1, 2, 5, 7, 8]) == "ranks 0-2, 5, 7-8"
    assert format_runs(range(0, 20, 2), 3) == "ranks 0, 2, 4, ..."
