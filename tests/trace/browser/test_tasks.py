"""The page in a browser: tasks, what they wait for, what is wrong with them, how to find them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hccl_py.enums import TaskKind
from hccl_py.trace.scene import Scene
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import bar_at, deadlock, gather, ping, ring

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]


@pytest.fixture
def page(opens: Opens) -> OpenPage:
    """Two ranks with seven tasks each, all rows open."""
    page = opens(ping())
    if alike := page.all("#gutter button.alike"):
        alike[0].click()
        page.settle()
    return page


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ping()


def selected(page: OpenPage) -> int:
    return int(page.state()["selected"]["bar"])


def test_a_click_selects_and_shows_the_task(page: OpenPage, scene: Scene) -> None:
    read = bar_at(scene, 0, 0, 4)
    page.click_task(read)
    assert selected(page) == read
    shown = page.text("#side")
    for part in ("read", "rank 0 main, task 4 of 7", "1 MiB", "swap", "ping.py:7", "rank 1"):
        assert part in shown
    assert "rank 1 CCL [0 B, 1 MiB)" in shown
    assert "rank 0 user_out [1 MiB, 2 MiB)" in shown
    assert page.state()["cursor"] == pytest.approx(float(scene.bars.end_us[read]))


def test_a_wait_leads_to_its_post(page: OpenPage, scene: Scene) -> None:
    wait, post = bar_at(scene, 0, 0, 3), bar_at(scene, 1, 0, 2)
    page.click_task(wait)
    assert selected(page) == wait
    assert [post, wait] in page.state()["arrows"]
    assert "rank 1 main #2" in page.text("#side h2 + dl")
    page.keys("p")
    assert selected(page) == post
    page.keys("p")
    assert selected(page) == wait


def test_arrows_go_one_step_further(page: OpenPage, scene: Scene) -> None:
    """Wait 6 of rank 0 hangs on post 5 of rank 1, and that on wait 3 there and post 2 here."""
    far, near = bar_at(scene, 0, 0, 6), bar_at(scene, 1, 0, 5)
    page.click_task(bar_at(scene, 0, 0, 4))
    page.keys("\ue014", "\ue014")
    assert selected(page) == far
    assert page.state()["arrows"] == [[near, far]]
    page.keys("e")
    further = [bar_at(scene, 0, 0, 2), bar_at(scene, 1, 0, 3)]
    assert page.state()["arrows"] == [[near, far], further]
    page.keys("e", shift=True)
    assert page.state()["arrows"] == [[near, far]]
    page.keys("\ue00c")
    assert page.state()["arrows"] == []


def test_arrow_keys_go_along_a_stream_and_to_the_next(page: OpenPage, scene: Scene) -> None:
    page.keys("\ue014")
    assert selected(page) == bar_at(scene, 0, 0, 0)
    page.keys("\ue014", "\ue014")
    assert selected(page) == bar_at(scene, 0, 0, 2)
    page.keys("\ue012")
    assert selected(page) == bar_at(scene, 0, 0, 1)
    page.keys("\ue015")
    assert page.task(selected(page))["rank"] == 1
    page.keys("\ue013")
    assert page.task(selected(page))["rank"] == 0


def test_the_tooltip_says_whom_a_wait_waits_for(page: OpenPage, scene: Scene) -> None:
    wait = bar_at(scene, 0, 0, 3)
    box = page.run("return hcclPage.where(arguments[0])", wait)
    page.pointer(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "waits for rank 1 main #2" in page.text("#tooltip")


def test_a_double_click_zooms_to_the_task(page: OpenPage, scene: Scene) -> None:
    read = bar_at(scene, 1, 0, 4)
    page.click_task(read)
    page.keys("z")
    view = page.state()["view"]
    start, end = float(scene.bars.start_us[read]), float(scene.bars.end_us[read])
    assert view["from"] < start < end < view["to"]
    assert view["to"] - view["from"] < 4 * (end - start)


def test_the_critical_path_is_stepped_through(opens: Opens) -> None:
    page = opens(ring())
    path = [int(bar) for bar in ring().critical.bar]
    page.keys(".", ".", ".")
    assert page.state()["critical"]
    assert selected(page) == path[2]
    page.keys(",")
    assert selected(page) == path[1]
    page.keys("c")
    assert not page.state()["critical"]
    page.run("document.querySelector('#side h3 button[title^=Next]').click()")
    assert selected(page) == path[2]
    assert "notify_post" in page.text("#side")


def found(page: OpenPage, query: str) -> int:
    field = page.find("#query")
    field.clear()
    field.send_keys(query)
    page.settle()
    return int(page.state()["found"]["count"])


def test_search(opens: Opens) -> None:
    """Of a rank's 43 tasks 18 are waits; 3 of them for an Ack."""
    page = opens(gather())
    assert found(page, "notify_wait") == 4 * 18
    assert found(page, "notify_wait r2") == 18
    assert found(page, "notify_wait r2 ack") == 3
    assert found(page, "kind:read") == 4 * 3
    assert found(page, "read peer:3") == 3
    assert found(page, "label:all-gather r1") > 0
    assert found(page, "mesh_opbase.py:56") == 4
    assert found(page, "no such thing") == 0
    assert page.text("#hits") == "no task"


def test_found_tasks_are_gone_through(opens: Opens) -> None:
    scene = gather()
    page = opens(scene)
    assert found(page, "read r3") == 3
    page.find("#query").send_keys("\ue007")  # Enter
    page.settle()
    first = page.task(selected(page))
    assert (first["rank"], first["kind"]) == (3, TaskKind.READ)
    page.click("#next-hit")
    page.click("#next-hit")
    seen = page.state()["found"]["at"]
    assert seen == 2
    page.click("#next-hit")
    assert page.state()["found"]["at"] == 0
    assert page.text("#hits") == "1 of 3"
    rows = page.state()["rows"]
    assert any(row["rank"] == 3 and row["kind"] == "lane" for row in rows), "it is uncovered"
    page.find("#previous-hit").click()
    page.settle()
    assert page.state()["found"]["at"] == 2


def test_a_finding_leads_to_its_task(opens: Opens) -> None:
    scene = deadlock()
    page = opens(scene)
    (found, *_) = page.all("#side .found")
    assert "error" in found.get_attribute("class")
    page.run("document.querySelector('#side .found').click()")
    page.run("document.querySelector('#side .found ~ .chain .link').click()")
    page.settle()
    assert page.state()["mode"] == "lanes"
    task = page.task(selected(page))
    assert (task["rank"], task["number"], task["kind"]) == (0, 3, TaskKind.NOTIFY_WAIT)
    assert task["state"] == 1
    assert "never ends" in page.text("#said")
    assert "nothing posts what it waits for" in page.text("#side")
    page.keys("\ue014")
    assert "never begins" in page.text("#side")


def test_what_never_begins_is_not_drawn_in_time(opens: Opens) -> None:
    scene = deadlock()
    page = opens(scene)
    states = [page.task(bar_at(scene, 0, 0, number))["state"] for number in range(7)]
    assert states == [0, 0, 0, 1, 2, 2, 2]
    box = page.run("return hcclPage.where(arguments[0])", bar_at(scene, 0, 0, 5))
    assert box["width"] == 0


def test_every_wait_of_the_page_has_the_post_of_the_program(opens: Opens) -> None:
    scene = ring()
    page = opens(scene)
    waits = np.flatnonzero(scene.bars.kind == TaskKind.NOTIFY_WAIT)
    for wait in waits[:: len(waits) // 10].tolist():
        post = page.task(wait)["partner"]
        assert page.task(post)["kindName"] == "notify_post"
        assert page.task(post)["partner"] == wait
        assert page.task(post)["effect_us"] <= page.task(wait)["end_us"]
