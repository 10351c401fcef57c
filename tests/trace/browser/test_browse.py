"""The page in a browser: what is there, and how one moves about in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hccl_py.trace.scene import scene_of
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import bar_at, gather, ping, recorded, ring

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]


def span(page: OpenPage) -> float:
    view = page.state()["view"]
    return float(view["to"] - view["from"])


def rows(page: OpenPage) -> list[Any]:
    """Return the rows of ranks and their lanes; those of links come behind."""
    return [row for row in page.state()["rows"] if row["kind"] in ("head", "lane")]


def shown_ranks(page: OpenPage) -> list[int]:
    return [row["rank"] for row in rows(page) if row["kind"] == "head"]


def test_a_page_shows_what_was_recorded(opens: Opens) -> None:
    page = opens(gather())
    (scene,) = page.state()["scenes"]
    assert (scene["tasks"], scene["lanes"], scene["ranks"]) == (4 * 43, 4 * 4, 4)
    assert "hello, world" in page.text("#title")
    assert page.driver.title == "hello, world · hccl-py"
    assert page.run("return document.getElementById('lanes').width") > 500


def test_ranks_that_do_the_same_are_folded_at_first(opens: Opens) -> None:
    page = opens(gather())
    assert shown_ranks(page) == [0]
    page.click("#gutter button.alike")
    assert shown_ranks(page) == [0, 1, 2, 3]
    page.click("#gutter button.alike")
    assert shown_ranks(page) == [0]


def test_ranks_are_folded_and_pinned(opens: Opens) -> None:
    page = opens(gather())
    assert len(rows(page)) == 1 + 4
    page.click("#gutter button.fold")
    assert len(rows(page)) == 1
    assert page.find("#gutter button.fold").get_attribute("aria-expanded") == "false"
    page.click("#gutter button.fold")
    page.click("#gutter button.alike")
    page.run("document.querySelector('[data-key=\"pin-0-2\"]').click()")
    page.settle()
    assert [row["rank"] for row in rows(page) if row["pinned"]] == [2] * 5
    assert shown_ranks(page) == [2, 0, 1, 3]
    page.keys("f", shift=True)
    assert len(rows(page)) == 4
    page.keys("u", shift=True)
    assert len(rows(page)) == 4 * 5


def test_many_ranks_that_do_the_same_come_folded(opens: Opens) -> None:
    program, topology = recorded("AllGatherMeshOpbaseExecutor", "all_gather", 8, 1 << 10)
    scene = scene_of(program, topology)
    page = opens(scene)
    page.click("#gutter button.alike")
    assert len(rows(page)) == 1 + 8 + 7
    page.find("#query").send_keys("r5 read\ue007")
    page.settle()
    assert len(rows(page)) == 1 + 8 + 7 + 8  # the rank of the task that was found is unfolded


def test_the_wheel_zooms_where_the_mouse_is(opens: Opens) -> None:
    page = opens(gather())
    whole = span(page)
    width = page.find("#lanes").rect["width"]
    at = (round(width * 0.75), 40)
    before = page.state()["view"]
    moment = before["from"] + 0.75 * whole
    for _ in range(4):
        page.wheel("#lanes", at, -200)
    view = page.state()["view"]
    assert span(page) < whole / 4
    share = (moment - view["from"]) / (view["to"] - view["from"])
    assert share == pytest.approx(0.75, abs=0.01)
    page.wheel("#lanes", at, 200)
    assert span(page) < whole / 2
    page.keys("0")
    assert span(page) == pytest.approx(whole)


def test_keys_and_buttons_zoom_and_move(opens: Opens) -> None:
    page = opens(gather())
    whole = span(page)
    page.keys("w", "w", "w")
    near = span(page)
    assert near == pytest.approx(whole * 0.7**3)
    left = page.state()["view"]["from"]
    page.keys("d")
    assert page.state()["view"]["from"] == pytest.approx(left + 0.2 * near)
    page.keys("a", "s")
    assert near < span(page) < whole
    page.click("[data-tool=zoom-in]")
    assert span(page) < near
    page.click("[data-tool=fit]")
    assert span(page) == pytest.approx(whole)


def test_the_view_is_dragged(opens: Opens) -> None:
    page = opens(gather())
    page.keys("w", "w", "w", "w")
    before, width = page.state()["view"], page.find("#lanes").rect["width"]
    page.drag("#lanes", (600, 200), (500, 200))
    moved = page.state()["view"]["from"] - before["from"]
    assert moved == pytest.approx(100 / width * (before["to"] - before["from"]), rel=0.02)
    assert page.state()["selected"] is None


def test_a_stretch_is_chosen_in_the_track_of_steps(opens: Opens) -> None:
    page = opens(gather())
    whole, width = page.state()["view"], page.find("#ticks").rect["width"]
    page.drag("#ticks", (round(width * 0.25), 9), (round(width * 0.5), 9))
    view = page.state()["view"]
    size = whole["to"] - whole["from"]
    assert view["from"] == pytest.approx(whole["from"] + 0.25 * size, abs=0.01 * size)
    assert view["to"] == pytest.approx(whole["from"] + 0.5 * size, abs=0.01 * size)
    page.drag("#ticks", (round(width * 0.4), 9), (round(width * 0.6), 9))
    moved = page.state()["view"]
    assert moved["from"] == pytest.approx(view["from"] + 0.2 * size, abs=0.01 * size)
    assert span(page) == pytest.approx(0.25 * size, abs=0.02 * size)


def test_rows_scroll(opens: Opens) -> None:
    page = opens(ring())
    page.click("#gutter button.alike")
    page.keys("u", shift=True)
    page.run("document.getElementById('scroller').scrollTop = 100000")
    page.settle()
    assert "load of links" in page.find("#gutter li:last-child").text
    ranks = [item.get_attribute("data-rank") for item in page.all("#gutter li[data-rank]")]
    assert ranks[-1] == "7"


def test_english_and_chinese(opens: Opens) -> None:
    page = opens(gather())
    assert page.text("#buffers") == "Buffers"
    page.click("[data-tool=language]")
    assert page.text("#buffers") == "内存"
    assert page.run("return document.documentElement.lang") == "zh-Hans"
    page.keys("g")
    assert page.text("#buffers") == "Buffers"


def test_chinese_where_the_browser_is(opens: Opens) -> None:
    chrome = opens(gather()).driver
    agent = chrome.execute_script("return navigator.userAgent")
    command = "Network.setUserAgentOverride"
    chrome.execute_cdp_cmd(command, {"userAgent": agent, "acceptLanguage": "zh-CN"})
    try:
        assert opens(gather()).text("#buffers") == "内存"
    finally:
        chrome.execute_cdp_cmd(command, {"userAgent": agent, "acceptLanguage": "en-US"})


@pytest.mark.parametrize("preferred", ["light", "dark"])
def test_light_and_dark(opens: Opens, preferred: str) -> None:
    page = opens(gather())
    feature = {"name": "prefers-color-scheme", "value": preferred}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    page.settle()
    assert page.state()["theme"] == preferred
    shade = "return parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert (page.run(shade) > 127) == (preferred == "light")
    page.click("[data-tool=theme]")
    assert page.state()["theme"] != preferred
    assert (page.run(shade) > 127) != (preferred == "light")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_browsers_without_the_newest_functions(opens: Opens) -> None:
    chrome = opens(gather()).driver
    old = {"source": "delete Uint8Array.fromBase64"}
    script = chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", old)
    try:
        page = opens(gather())
        assert page.run("return Uint8Array.fromBase64 === undefined")
        assert page.state()["scenes"][0]["tasks"] == 4 * 43
    finally:
        chrome.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_a_browser_that_cannot_show_the_page_says_so(opens: Opens) -> None:
    page = opens(gather())
    old = {"source": "delete window.DecompressionStream"}
    script = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", old)
    try:
        page.driver.refresh()
        page.wait(lambda: "cannot be shown" in page.text("#message"))
        assert "DecompressionStream" in page.text("#message")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        page.driver.get("about:blank")
        page.driver.get_log("browser")


def test_help_lists_the_keys(opens: Opens) -> None:
    page = opens(gather())
    page.keys("?")
    assert page.find("#help").get_attribute("open") is not None
    assert len(page.all("#help kbd")) > 20
    page.keys("\ue00c")  # Escape
    assert page.find("#help").get_attribute("open") is None


def test_what_is_left_out_is_said_first(opens: Opens) -> None:
    page = opens(replace(gather(), left_out="4 of 16384 ranks are shown."))
    note = page.find("#left-out")
    assert note.is_displayed()
    assert note.text == "4 of 16384 ranks are shown."
    assert not opens(gather()).find("#left-out").is_displayed()


def test_a_task_is_said_when_it_is_selected(opens: Opens) -> None:
    page = opens(ping())
    scene = ping()
    assert page.find("#lanes").get_attribute("role") == "application"
    page.click_task(bar_at(scene, 0, 0, 4))
    said = page.text("#said")
    assert "read 1M" in said
    assert "rank 0 main #4" in said


def test_links_have_rows_of_their_own(opens: Opens) -> None:
    """In a mesh of 4 there are 12 links; each carries nothing but one read of 64 KiB, which moves
    bytes for 2.54 µs at 25.8 GB/s, after a start of 0.9 µs: for 74 % of the time.
    """
    page = opens(gather())
    assert [row["kind"] for row in page.state()["rows"]][-1] == "links"
    page.click("#gutter li.links button.fold")
    kinds = [row["kind"] for row in page.state()["rows"]]
    assert kinds[-13:] == ["links"] + ["link"] * 12
    page.run("document.getElementById('scroller').scrollTop = 100000")
    page.settle()
    item = page.find("#gutter li:last-child").rect
    lanes = page.find("#lanes").rect
    page.pointer(lanes["x"] + lanes["width"] * 0.75, item["y"] + item["height"] / 2)
    assert "74 %" in page.text("#tooltip")
    assert "carries 64 KiB, " in page.text("#tooltip")
