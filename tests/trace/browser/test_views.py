"""The page in a browser: memory, traffic, links, ranks, phases, and two schedules together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import hccl_py as hccl
from hccl_py.trace.scene import scene_of
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import SIZE, bar_at, gather, ping, recorded, ring

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]

SLICE = 1 << 16
"""Bytes of a rank's input in `gather`."""


def held(page: OpenPage, buffer: str) -> list[tuple[int, int, list[int]]]:
    memory = page.run("return hcclPage.memory()")
    return [(start, stop, origins) for name, start, stop, origins in memory if name == buffer]


def test_memory_at_the_beginning_and_at_the_end(opens: Opens) -> None:
    page = opens(gather())
    page.click("#tab-memory")
    assert held(page, "IN") == [(0, SLICE, [0])]
    assert held(page, "OUT") == []
    page.find("#view-memory input[type=range]").send_keys("\ue010")  # End
    page.settle()
    wanted = [(rank * SLICE, (rank + 1) * SLICE, [rank]) for rank in range(4)]
    assert held(page, "OUT") == wanted
    assert page.state()["cursor"] > 0
    for rank in range(4):
        assert f"data of rank {rank}" in page.text("#view-memory tbody")


def test_memory_follows_the_task_that_is_selected(opens: Opens) -> None:
    scene = ping()
    page = opens(scene)
    page.click_task(bar_at(scene, 0, 0, 4))
    page.keys("4")
    assert held(page, "OUT") == [(0, SIZE, [0]), (SIZE, 2 * SIZE, [1])]
    page.find("#view-memory .controls button").click()
    page.settle()
    assert held(page, "OUT") == [(0, SIZE, [0])]


def test_memory_of_another_rank_and_sums(opens: Opens) -> None:
    page = opens(ring())
    page.click("#tab-memory")
    page.run(
        "const s = document.querySelector('#view-memory select'); s.value = '0:5';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert held(page, "IN") == [(0, 4 << 16, [5])]
    page.find("#view-memory input[type=range]").send_keys("\ue010")
    page.settle()
    out = held(page, "OUT")
    assert out[0][0] == 0
    assert out[-1][1] == 4 << 16
    assert all(origins == list(range(8)) for _, _, origins in out)
    assert "sum of all 8 ranks" in page.text("#view-memory tbody")


def test_memory_that_is_not_followed_says_why(opens: Opens) -> None:
    page = opens(replace(gather(), memory=None, memory_left_out="It is too large."))
    page.click("#tab-memory")
    assert page.text("#view-memory") == "It is too large."


def cells(page: OpenPage) -> list[list[float]]:
    shown: Any = page.run("return hcclPage.traffic()")
    n = shown["cells"]
    return [shown["bytes"][row * n : (row + 1) * n] for row in range(n)]


def test_the_heat_map_of_a_mesh(opens: Opens) -> None:
    page = opens(gather())
    page.click("#tab-traffic")
    assert cells(page) == [[0 if a == b else SLICE for b in range(4)] for a in range(4)]
    assert page.run("return document.querySelector('#view-traffic canvas').width") > 100
    page.run("document.querySelectorAll('#view-traffic .controls button')[1].click()")
    assert "64 KiB" in page.text("#view-traffic tbody")


def test_the_heat_map_of_a_ring(opens: Opens) -> None:
    """A rank gives seven eighths of the data to one neighbour twice: reduced, and to be kept."""
    page = opens(ring())
    page.click("#tab-traffic")
    sent = [[(to, size) for to, size in enumerate(row) if size] for row in cells(page)]
    assert all(len(row) == 1 for row in sent)
    assert {size for ((_, size),) in sent} == {2 * 7 * (4 << 16) // 8}
    assert sorted(to for ((to, _),) in sent) == list(range(8))


def test_many_ranks_share_cells(opens: Opens) -> None:
    program, topology = recorded("AllReduceRing", "all_reduce", 130, 130)
    page = opens(scene_of(program, topology))
    page.click("#tab-traffic")
    assert len(cells(page)) == 44  # three ranks each
    assert sum(map(sum, cells(page))) == sum(scene_of(program, topology).traffic.bytes.tolist())


def test_links_by_load(opens: Opens) -> None:
    scene = gather()
    page = opens(scene)
    page.click("#tab-links")
    assert scene.links is not None
    rows = page.all("#view-links [role=option]")
    assert len(rows) > 3
    assert int(str(rows[0].get_attribute("aria-setsize"))) == len(scene.links)
    assert page.text("#view-links").count("■") == 4
    page.run("document.querySelector('#view-links [role=option]').click()")
    page.settle()
    assert page.text("#view-links").count("■") == 3
    assert page.run("return document.querySelector('#view-links canvas').width") > 100


def test_phases(opens: Opens) -> None:
    page = opens(ring())
    page.click("#tab-phases")
    names = [row.text.split("\n")[0] for row in page.all("#view-phases [role=option]")]
    assert names[0].startswith("reduce-scatter 1/7") or "reduce-scatter 1/7" in names
    before = page.state()["view"]
    page.run("document.querySelectorAll('#view-phases [role=option]')[2].click()")
    page.settle()
    view = page.state()["view"]
    assert view["to"] - view["from"] < (before["to"] - before["from"]) / 4


def test_two_schedules_side_by_side(opens: Opens) -> None:
    """The same ring at two sizes: the same phases, each of which takes longer in the second."""
    larger, topology = recorded("AllReduceRing", "all_reduce", 8, 1 << 20)
    other = scene_of(larger, topology, title="sixteen times as much")
    page = opens(ring(), other)
    first, second = page.state()["scenes"]
    assert (first["title"], second["title"]) == ("ring of 8", "sixteen times as much")
    assert second["total"] > first["total"]
    heads = [(row["scene"], row["rank"]) for row in page.state()["rows"] if row["kind"] == "head"]
    assert heads[:2] == [(0, 0), (1, 0)]
    page.click("#tab-phases")
    rows = page.all("#view-phases [role=option]")
    assert int(str(rows[0].get_attribute("aria-setsize"))) >= 14
    changes = [row.text.split("\n")[5] for row in rows if "reduce-scatter" in row.text]
    assert changes
    assert all(change.startswith("+") and change.endswith("µs") for change in changes)
    assert f"{(second['total'] / first['total'] - 1) * 100:.0f} %" in page.text(".controls")


def test_the_head_says_of_both_schedules_what_differs(opens: Opens) -> None:
    long = "a title that has no room " * 8
    page = opens(ping(), replace(ring(), title=long, clock="measured"))
    facts = page.text("#facts")
    assert "model time / measured time" in facts
    assert "2 / 8 ranks" in facts
    query = page.find("#query").rect
    for name in page.all("#title .name"):
        assert name.rect["width"] > 0
        assert name.rect["x"] + name.rect["width"] < query["x"]


def test_two_schedules_are_aligned_at_a_phase(opens: Opens) -> None:
    larger, topology = recorded("AllReduceRing", "all_reduce", 8, 1 << 20)
    page = opens(ring(), scene_of(larger, topology))
    page.click("#tab-phases")
    page.run("document.querySelectorAll('#view-phases [role=option]')[3].click()")
    page.settle()
    shift = page.state()["scenes"][1]["shift"]
    assert shift < 0  # the larger one gets there later
    page.find("#view-phases .controls button").click()
    page.settle()
    assert page.state()["scenes"][1]["shift"] == 0


def test_a_task_of_the_second_schedule_is_selected(opens: Opens) -> None:
    page = opens(ping(), ping(label="other"))
    page.click_task(bar_at(ping(), 0, 0, 4), scene=1)
    assert page.state()["selected"] == {"scene": 1, "bar": bar_at(ping(), 0, 0, 4)}
    assert "other" in page.text("#view-task")


def test_a_task_has_its_time_in_the_other_schedule_beside(opens: Opens) -> None:
    larger, topology = recorded("AllReduceRing", "all_reduce", 8, 1 << 20)
    other = scene_of(larger, topology)
    page = opens(ring(), other)
    page.keys(".", "1")
    bar = page.state()["selected"]["bar"]
    row = page.find("#view-task dl").text
    assert "In B" in row
    lasts = float(other.bars.end_us[bar] - other.bars.start_us[bar])
    assert f"{lasts:.4g}"[:4] in row.split("In B")[1]
    page.run("document.querySelector('#view-task dl .link').click()")
    assert page.state()["selected"] == {"scene": 1, "bar": bar}


def test_measured_times(opens: Opens) -> None:
    page = opens(replace(gather(), clock="measured"))
    assert "measured time" in page.text("#facts")


def test_waits_of_a_two_level_schedule_are_drawn_with_what_is_on_the_wire(opens: Opens) -> None:
    op = hccl.OpParam("all_reduce", 1 << 16, hccl.DataType.FP32, hccl.ReduceOp.SUM)
    topology = hccl.topology_of(servers=2, devices=4)
    program = hccl.Communicator(topology=topology).plan(op).program
    page = opens(scene_of(program, topology))
    assert "RDMA" in page.text("#gutter")
    page.keys("/")
    page.find("#query").send_keys("rdma_write")
    page.settle()
    page.find("#query").send_keys("\ue007")
    page.settle()
    task = page.task(page.state()["selected"]["bar"])
    assert task["effect_us"] > task["end_us"]
    assert "arrives at" in page.text("#view-task")
