"""The page's first view in a browser: steps, what may be chosen, findings, and every width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import hccl_py as hccl
from hccl_py.trace.scene import Scene, scene_of
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import deadlock, gather, ping_tasks, program_of, recorded, ring

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]

LEFT, RIGHT, END, HOME, ESCAPE = "\ue012", "\ue014", "\ue010", "\ue011", "\ue00c"
MOST_MS = 8
"""Milliseconds of script that one drawing of the stage may take."""


def servers(count: int, devices: int, name: str = "all_reduce") -> Scene:
    topology = hccl.topology_of(servers=count, devices=devices)
    reduce = hccl.ReduceOp.SUM if "reduce" in name else None
    op = hccl.OpParam(name, 1 << 14, hccl.DataType.FP32, reduce)
    return scene_of(hccl.Communicator(topology=topology).plan(op).program, topology)


def said(page: OpenPage) -> str:
    return f"{page.text('#step-name')}. {page.text('#step-said')}"


def spots(page: OpenPage, kind: str) -> list[Any]:
    found: list[Any] = page.run("return hcclPage.stage()")
    return [spot for spot in found if spot["kind"] == kind]


def press_on(page: OpenPage, x: float, y: float) -> None:
    box = page.find("#cards").rect
    page.pointer(box["x"] + x, box["y"] + y, press=True)


def test_the_page_opens_in_the_middle_of_the_first_step(pictures: Opens) -> None:
    page = pictures(ring())
    assert page.state()["mode"] == "picture"
    assert page.state()["place"] == 0.5
    assert said(page).startswith("Step 1 of 14: reduce-scatter 1/7. Every rank sends to the next;")
    assert len(spots(page, "card")) == len(spots(page, "move")) == 8
    assert not page.find("#lanes").is_displayed()


def test_keys_go_from_step_to_step(pictures: Opens) -> None:
    page = pictures(ring())
    page.keys(RIGHT, RIGHT)
    assert page.state()["steps"][0] == 3
    page.keys(LEFT)
    assert page.state()["place"] == 1.5
    page.keys(END)
    assert page.text("#step-name") == "The end"
    assert page.text("#step-said") == "64 of 64 sums are where they shall be."
    page.keys(HOME)
    assert page.text("#step-said") == "0 of 64 sums are where they shall be."


def test_playing_moves_on_and_stops(pictures: Opens) -> None:
    page = pictures(ring())
    page.keys(" ")
    begin = page.wait(lambda: (at := page.state()["place"]) > 0.5 and at)
    page.wait(lambda: page.state()["place"] > begin)
    page.keys(" ")
    stopped = page.state()["place"]
    page.settle()
    assert page.state()["place"] == stopped


def test_the_scale_changes_and_the_place_stays(pictures: Opens) -> None:
    page = pictures(ring())
    page.keys(RIGHT, "s")
    assert page.text("#scale") == "Time"
    assert page.state()["place"] == pytest.approx(1.5, abs=0.01)


def test_a_frame_of_the_film_leads_to_its_step(pictures: Opens) -> None:
    page = pictures(ring())
    frames = page.all("#film .frame")
    assert len(frames) == 15
    page.run(
        "document.querySelector('#film .frame[data-step=\"9\"]').dispatchEvent("
        "new MouseEvent('click', {bubbles: true}))"
    )
    assert page.state()["steps"][0] == 9
    marked = page.all("#film .frame.on")
    assert [frame.get_attribute("data-step") for frame in marked] == ["9"]


def test_ranks_and_chunks_are_chosen(pictures: Opens) -> None:
    page = pictures(ring())
    card = spots(page, "card")[3]
    press_on(page, card["x"] + 8, card["y"] + 6)
    assert page.state()["rank"] == 3
    assert "rank 3" in page.text("#side")
    cell = next(spot for spot in spots(page, "cell") if spot["node"] == 2 and spot["column"] == 5)
    press_on(page, cell["x"] + cell["wide"] / 2, cell["y"] + cell["high"] / 2)
    assert page.state()["chunk"] == 5
    page.keys(ESCAPE)
    assert (page.state()["rank"], page.state()["chunk"]) == (None, None)
    page.keys("f", "f", "]")
    assert (page.state()["chunk"], page.state()["rank"]) == (1, 0)


def test_an_arrow_leads_to_its_task_and_the_task_to_its_step(pictures: Opens) -> None:
    page = pictures(ring())
    page.keys(RIGHT)
    move = spots(page, "move")[0]
    (ax, ay), (cx, cy), (bx, by) = move["curve"]
    press_on(page, 0.0625 * ax + 0.375 * cx + 0.5625 * bx, 0.0625 * ay + 0.375 * cy + 0.5625 * by)
    assert page.state()["mode"] == "lanes"
    task = page.task(page.state()["selected"]["bar"])
    assert {task["src_rank"], task["dst_rank"]} == {0, 1}
    page.keys("l")
    assert page.state()["steps"][0] == 2


def test_lanes_are_one_key_away(pictures: Opens) -> None:
    page = pictures(gather())
    page.keys("l")
    assert page.find("#lanes").is_displayed()
    page.click("[data-tool=mode]")
    assert page.find("#cards").is_displayed()


def raced() -> Scene:
    """Rank 0 reads before rank 1 has copied: no post says that it may."""
    tasks = ping_tasks()
    for rank in "01":
        tasks[rank]["0"] = [task for task in tasks[rank]["0"] if task[0] not in ("post", "wait")]
    program = program_of(tasks)
    return scene_of(program, report=hccl.verify(program))


def test_a_finding_lights_up_where_it_happens(pictures: Opens) -> None:
    page = pictures(raced())
    assert "✗" in page.text("#facts .verdict")
    assert page.state()["steps"][0] == 1
    assert page.state()["rank"] is not None
    assert page.text("#side .found strong").endswith("step 1")
    assert page.state()["buffers"]
    assert "rank 0 CCL [0 B, 1 MiB)" in page.text("#side")
    page.keys("e")
    assert page.all("#side .found[aria-pressed=true]")


def test_a_program_that_never_ends_is_drawn_as_far_as_it_gets(pictures: Opens) -> None:
    page = pictures(deadlock())
    assert len(spots(page, "card")) == 2
    assert len(page.all("#side .found")) > 0


def test_the_critical_path_is_drawn_on_the_stage(pictures: Opens) -> None:
    page = pictures(ring())
    shade = (
        "const canvas = document.getElementById('cards'); const { width, height } = canvas;"
        "const g = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});"
        "g.drawImage(canvas, 0, 0); const { data } = g.getImageData(0, 0, width, height);"
        "let found = 0; for (let k = 0; k < data.length; k += 4)"
        " found += data[k] === 209 && data[k + 1] === 70 && data[k + 2] === 11; return found"
    )
    assert page.run(shade) == 0
    page.keys("c")
    assert page.run(shade) > 50
    page.keys(".", ".")
    assert page.state()["criticalStep"] == 1


def test_what_is_verified_is_said_and_nothing_else(pictures: Opens) -> None:
    assert not pictures(gather()).all("#facts .verdict")
    assert "verified" in pictures(replace(gather(), is_verified=True)).text("#facts .verdict")


def test_many_ranks_are_servers(pictures: Opens) -> None:
    page = pictures(servers(6, 4))
    assert len(spots(page, "card")) == 6
    assert page.text("#step-said").startswith("In every server, ")


@pytest.mark.parametrize(
    ("executor", "op", "ranks"),
    [("AllGatherMeshOpbaseExecutor", "all_gather", 8), ("AllReduceRing", "all_reduce", 16)],
)
def test_the_stage_is_drawn_quickly(pictures: Opens, executor: str, op: str, ranks: int) -> None:
    program, topology = recorded(executor, op, ranks, 1 << 14)
    page = pictures(scene_of(program, topology))
    assert min(page.run("return Array.from({length: 16}, () => hcclPage.measureStage())")) < MOST_MS


@pytest.mark.parametrize("width", [390, 800, 1440])
@pytest.mark.parametrize("name", ["all_reduce", "all_to_all"])
def test_all_is_reached_at_every_width(pictures: Opens, width: int, name: str) -> None:
    page = pictures(servers(2, 4, name))
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.settle()
        for mode in ("picture", "lanes"):
            assert page.state()["mode"] == mode
            assert page.run("return document.documentElement.scrollWidth") <= width
            for button in page.all("#bar button, #transport button, #scrub"):
                if button.is_displayed():
                    assert button.rect["x"] >= 0
                    assert button.rect["x"] + button.rect["width"] <= width
            page.keys("l")
        page.run("document.getElementById('side').scrollIntoView()")
        assert page.find("#side").is_displayed()
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
