"""The whole screen: what is selected and shown, what is found, and the app driven by its pilot."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.language import speaking
from hccl_py.topology import topology_of
from hccl_py.trace import screen
from hccl_py.trace.scene import STUCK, Scene, scene_of
from hccl_py.trace.screen.app import Viewer, describe_bar
from hccl_py.trace.screen.browser import Browser
from hccl_py.trace.screen.lanes_view import LanesView
from hccl_py.trace.screen.search import find_bars
from hccl_py.trace.words import Words
from tests.recording import op_of, recorded
from tests.trace.drawn import SCENES

MESH, NHR, DEADLOCK = "all_gather_mesh", "nhr_all_reduce", "deadlock"


# ---- what is selected and shown ----


def test_rows_are_headings_and_the_lanes_of_one_rank_of_each_group() -> None:
    browser = Browser(SCENES[DEADLOCK]())
    assert [row.lane < 0 for row in browser.rows].count(True) == len(browser.groups) == 4
    assert len(browser.rows) == 4 + 4 * 4
    browser.fold(1)
    assert len(browser.rows) == 4 + 3 * 4
    assert browser.rows[browser.row] == (1, -1)
    browser.fold_all()
    assert len(browser.rows) == 4
    browser = Browser(SCENES[MESH]())
    assert len(browser.rows) == 1 + 4
    browser.part()
    assert len(browser.rows) == 4 + 4 * 4


def test_a_wait_leads_to_its_post_and_the_post_back() -> None:
    scene = SCENES[NHR]()
    browser, bars = Browser(scene), scene.bars
    waits = np.flatnonzero(bars.kind == TaskKind.NOTIFY_WAIT)
    for wait in waits.tolist():
        browser.select(wait)
        post = browser.cause()
        assert post == bars.partner[wait]
        assert bars.kind[post] == TaskKind.NOTIFY_POST
        browser.select(post)
        assert browser.consequence() == wait
        assert scene.lanes.rank[browser.rows[browser.row].lane] == scene.lanes.rank[bars.lane[post]]


def test_a_task_of_a_rank_that_is_not_drawn_is_shown_on_that_rank() -> None:
    scene = SCENES[MESH]()
    browser = Browser(scene)
    bar = next(b for b in range(len(scene.bars)) if scene.lanes.rank[scene.bars.lane[b]] == 3)
    browser.fold(0)
    browser.select(bar)
    assert browser.drawn == [3]
    assert browser.rows[browser.row].lane == scene.bars.lane[bar]


def test_along_a_lane_and_between_lanes() -> None:
    scene = SCENES[MESH]()
    browser = Browser(scene)
    browser.down(1)
    browser.along(-100)
    assert browser.bar == scene.lanes.first[0]
    seen = [browser.bar]
    for _ in range(15):
        browser.along(1)
        seen.append(browser.bar)
    assert seen == list(range(16))
    browser.along(1)
    assert browser.bar == 15
    assert browser.back()
    browser.down(1)
    assert scene.bars.lane[browser.bar] == 1


def test_zoom_keeps_the_selected_task_in_its_place_and_stays_in_the_time() -> None:
    scene = SCENES[NHR]()
    browser = Browser(scene, 100)
    browser.select(int(np.argmax(scene.bars.end_us - scene.bars.start_us)))
    middle = sum(browser.span()) / 2
    before = (middle - browser.window.begin_us) / browser.window.us_per_column
    browser.zoom(0.1)
    after = (middle - browser.window.begin_us) / browser.window.us_per_column
    assert after == pytest.approx(before, abs=1e-6)
    assert browser.window.us_per_column == pytest.approx(scene.total_us / 1000)
    browser.pan(1e9)
    assert browser.window.end_us == pytest.approx(scene.total_us)
    browser.pan(-1e9)
    assert browser.window.begin_us == 0
    browser.zoom(1e9)
    assert browser.window[:2] == (0, scene.total_us)
    browser.show_selected()
    begin, end = browser.span()
    assert end - begin == pytest.approx(
        (browser.window.end_us - browser.window.begin_us) / 2, rel=1e-6
    )


def test_what_is_jumped_to_comes_into_the_window() -> None:
    scene = SCENES[NHR]()
    browser = Browser(scene, 100)
    browser.zoom(0.02, 0.0)
    browser.select(len(scene.bars) - 1)
    assert browser.window.begin_us <= browser.span()[1] <= browser.window.end_us


def test_the_critical_path_is_followed_from_end_to_end() -> None:
    scene = SCENES[NHR]()
    browser = Browser(scene)
    seen: list[int] = []
    while not seen or browser.bar != seen[-1]:
        seen.append(browser.bar)
        assert browser.on_path(1)
    path = scene.critical.bar
    assert seen[1:] == path[np.flatnonzero(np.diff(path, prepend=-1))].tolist()
    for bar in reversed(seen[1:-1]):
        browser.on_path(-1)
        assert browser.bar == bar
    assert not Browser(SCENES[DEADLOCK]()).on_path(1)


def test_a_finding_leads_to_its_culprit() -> None:
    scene = SCENES[DEADLOCK]()
    browser = Browser(scene)
    assert browser.show_finding(0)
    assert browser.bar == scene.findings[0].bars[0]
    assert scene.bars.state[browser.bar] == STUCK
    text = describe_bar(browser, Words.of(scene, unicode=True)).plain
    assert "begins and never ends" in text
    assert "!1 WAIT_WITHOUT_POST" in text


def test_details_say_what_waits_for_what() -> None:
    scene = SCENES[MESH]()
    browser = Browser(scene)
    words = Words.of(scene, unicode=True)
    assert "? lists all keys" in describe_bar(browser, words).plain
    post = int(np.flatnonzero(scene.bars.kind == TaskKind.NOTIFY_POST)[0])
    browser.select(post)
    text = describe_bar(browser, words).plain
    assert text.startswith("rank 0 main #1: post ▸ sub 0 #0\n0.35 to 0.35 us")
    assert "\nafter      rank 0 main #0: copy user_in[0:256K] ▸ CCL_Out[0:256K]" in text
    assert "\nwakes      rank 0 sub 0 #0: wait ◂ main #1" in text
    browser.select(browser.consequence())
    assert "\nwaits for  rank 0 main #1: post" in describe_bar(browser, words).plain


# ---- what is found ----


def listed(scene: Scene, fits: Callable[[int], bool]) -> list[int]:
    bars = [bar for bar in range(len(scene.bars)) if fits(bar)]
    return sorted(bars, key=lambda bar: (scene.bars.start_us[bar], bar))


@pytest.mark.parametrize("name", [MESH, NHR, "two_levels"])
def test_searches(name: str) -> None:
    scene = SCENES[name]()
    bars, lanes = scene.bars, scene.lanes
    kinds = [TaskKind(kind).spelling for kind in bars.kind.tolist()]
    ranks, peers = lanes.rank[bars.lane].tolist(), bars.peer.tolist()
    assert find_bars(scene, "").tolist() == listed(scene, lambda b: True)
    assert find_bars(scene, "kind:wait").tolist() == listed(scene, lambda b: "wait" in kinds[b])
    assert find_bars(scene, "rank:1 READ").tolist() == listed(
        scene, lambda b: ranks[b] == 1 and "read" in kinds[b]
    )
    assert find_bars(scene, "peer:2").tolist() == listed(scene, lambda b: peers[b] == 2)
    acks = find_bars(scene, "notify:ack peer:0").tolist()
    assert acks == listed(
        scene,
        lambda b: peers[b] == 0 and bars.notify[b] >= 0 and "Ack" in scene.notifies[bars.notify[b]],
    )
    assert acks
    streams = [lanes.names[lane] for lane in bars.lane.tolist()]
    assert find_bars(scene, '"stream:sub 1"').tolist() == listed(
        scene, lambda b: streams[b] == "sub 1"
    )
    source = scene.sources[int(bars.source[0])]
    assert 0 in find_bars(scene, f"source:{source}")
    assert len(find_bars(scene, "round:1")) == len(bars)
    assert len(find_bars(scene, "round:2")) == 0
    assert len(find_bars(scene, "label:gather label:no-such")) == 0


def test_a_byte_is_found_where_it_is_read_and_written() -> None:
    scene = SCENES[MESH]()
    bars, out = scene.bars, scene.buffers.index("CCL_OUT")

    def touches(bar: int, rank: int, byte: int) -> bool:
        ends = (
            (bars.src_rank[bar], bars.src_buffer[bar], bars.src_offset[bar]),
            (bars.dst_rank[bar], bars.dst_buffer[bar], bars.dst_offset[bar]),
        )
        return any(
            buffer == out
            and whose in (rank, whose if rank < 0 else rank)
            and 0 <= byte - offset < bars.size[bar]
            for whose, buffer, offset in ends
        )

    assert find_bars(scene, "at:CCL_Out[1K]").tolist() == listed(
        scene, lambda b: touches(b, -1, 1024)
    )
    assert find_bars(scene, "at:2.ccl_out[262143]").tolist() == listed(
        scene, lambda b: touches(b, 2, 262143)
    )
    assert len(find_bars(scene, "at:CCL_Out[256K]")) == 0
    assert len(find_bars(scene, "at:CCL_Out")) == 4 + 4 + 12 + 4 * 2  # those of no bytes, too


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("rank:x", "names no number"),
        ("kindd:wait", "Nothing is searched by 'kindd'"),
        ("at:nowhere[3]", "no place in memory"),
        (f"at:CCL_Out[{'9' * 5000}]", "no place in memory"),
        ("at:[3]", "no place in memory"),
    ],
)
def test_searches_that_make_no_sense(query: str, message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        find_bars(SCENES[MESH](), query)


def test_hits_are_gone_through_in_a_circle() -> None:
    scene = SCENES[MESH]()
    browser = Browser(scene)
    assert browser.next_hit(1) == -1
    assert browser.search("kind:read") == 12
    seen = [browser.bar]
    for _ in range(12):
        browser.next_hit(1)
        seen.append(browser.bar)
    assert seen[:-1] == find_bars(scene, "kind:read").tolist()
    assert seen[-1] == seen[0]
    browser.next_hit(-1)
    assert browser.bar == seen[-2]


# ---- the app ----


def drive(scene: Scene, act: Callable[[Viewer, Pilot[None]], Awaitable[None]]) -> None:
    async def run() -> None:
        app = Viewer(scene)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            await act(app, pilot)

    asyncio.run(run())


def wheel(
    kind: type[MouseScrollUp] | type[MouseScrollDown], lanes: LanesView, x: int
) -> MouseScrollUp | MouseScrollDown:
    """Return a turn of the wheel with ctrl."""
    return kind(lanes, x, 3, 0, 0, 0, False, False, True)


def lines(app: Viewer) -> list[str]:
    lanes = app.query_one(LanesView)
    return [lanes.render_line(y).text.rstrip() for y in range(lanes.size.height)]


def details(app: Viewer) -> str:
    return str(app.query_one("#details", Static).content)


def test_the_app_shows_lanes_and_the_selected_task() -> None:
    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        shown = lines(app)
        assert shown[0].startswith("us ")
        assert shown[1].startswith("- ranks 0-3 as 0 ")
        assert "╷all-gather" in shown[1]
        assert shown[3].startswith("   sub 0 ")
        assert "read 256K ◂r3" in shown[3]
        await pilot.press("down", "down", "right")
        assert details(app).startswith("rank 0 sub 0 #")
        await pilot.press("w")
        assert "rank 3 sub 2" in details(app) or "rank 0" in details(app)
        await pilot.press("b", "c")
        assert "on the critical path" in details(app)

    drive(SCENES[MESH](), act)


def test_keys_zoom_and_fold() -> None:
    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        total = app.browser.scene.total_us
        await pilot.press("plus", "plus")
        window = app.browser.window
        assert window.end_us - window.begin_us == pytest.approx(total / 4)
        await pilot.press("greater_than_sign")
        assert app.browser.window.begin_us > window.begin_us
        await pilot.press("0")
        assert app.browser.window[:2] == (0, total)
        await pilot.press("enter")
        assert lines(app)[1].startswith("+ ranks 0-3")
        assert lines(app)[2] == ""
        await pilot.press("a")
        assert sum(line.startswith("- rank ") for line in lines(app)) == 4

    drive(SCENES[MESH](), act)


def test_the_mouse_selects_folds_and_zooms() -> None:
    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.click(LanesView, offset=(90, 3))
        assert "read rank 3 CCL_Out[0:256K]" in details(app)
        lanes, before = app.query_one(LanesView), app.browser.window
        at = before.begin_us + (60 - 20) * before.us_per_column
        for scroll, share in ((MouseScrollUp, 0.5), (MouseScrollDown, 1.0)):
            lanes.post_message(wheel(scroll, lanes, 60))
            await pilot.pause()
            window = app.browser.window
            assert window.end_us - window.begin_us == pytest.approx(share * before.end_us)
            assert window.begin_us + 40 * window.us_per_column == pytest.approx(at)
        await pilot.click(LanesView, offset=(3, 1))
        assert lines(app)[1].startswith("+")

    drive(SCENES[MESH](), act)


def test_searching_in_the_app() -> None:
    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"rank:2 kind:read", "enter")
        assert details(app).startswith("rank 2 sub ")
        first = app.browser.bar
        await pilot.press("n")
        assert app.browser.bar != first
        await pilot.press("slash", *"nonsense:1", "enter")
        assert app.query_one("#search", Input).display  # to be put right
        await pilot.press("escape")
        assert not app.query_one("#search", Input).display
        assert app.focused is app.query_one(LanesView)

    drive(SCENES[MESH](), act)


def test_findings_lead_to_tasks_and_help_opens() -> None:
    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("e")
        assert isinstance(app.screen.query_one(OptionList), OptionList)
        await pilot.press("enter")
        await pilot.pause()
        assert "never ends" in details(app)
        assert app.browser.bar == app.browser.scene.findings[0].bars[0]
        await pilot.press("question_mark")
        assert "what the task waits for" in str(app.screen.query_one(Static).content)
        await pilot.press("escape")
        assert app.focused is app.query_one(LanesView)

    drive(SCENES[DEADLOCK](), act)


def test_nothing_from_a_file_is_obeyed() -> None:
    bad = "\x1b[2J\x07[bold]x[/bold]\u202e"
    program = recorded("AllGatherComm", op_of("all_gather", 1 << 16), 4)
    program = replace(
        program,
        labels=tuple(bad + label for label in program.labels),
        lines=tuple(bad + line for line in program.lines),
    )
    scene = scene_of(program, topology_of(4), title=bad, facts=[("executor", bad)])

    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        for key in ("right", "right", "w", "c", "down"):
            await pilot.press(key)
            assert all(line.isprintable() for line in lines(app))
            assert details(app).replace("\n", "").isprintable()
        assert "[bold]" in details(app)

    drive(scene, act)


def test_lanes_that_do_not_fit_scroll() -> None:
    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        assert len(app.browser.rows) == 16
        await pilot.press("end")
        assert app.browser.row == 15
        assert (
            app.query_one(LanesView).scroll_offset.y > 0
            or app.query_one(LanesView).size.height > 16
        )

    drive(SCENES["ring_all_reduce"](), act)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match="needs textual") as caught:
        screen.check_screen()
    assert "pip install 'hccl-py[view]'" in caught.value.hint


def test_the_app_speaks_chinese() -> None:
    """Title, keys, lanes, details and help, none in English."""

    async def act(app: Viewer, pilot: Pilot[None]) -> None:
        keys = {key: found.binding.description for key, found in app.screen.active_bindings.items()}
        assert (keys["slash"], keys["w"], keys["c"]) == ("搜索", "等待", "路径")
        assert details(app).endswith("按 → 选择任务，按 ? 列出所有按键")
        assert lines(app)[1].startswith("- rank 0-3，同 0 ")
        await pilot.press("down", "down", "right", "c")
        assert "在关键路径上" in details(app)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "放大、缩小" in str(app.screen.query_one(Static).content)

    with speaking("zh"):
        drive(SCENES[MESH](), act)
