"""The page in a browser: buffers, traffic, phases, and two schedules together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import hccl_py as hccl
from hccl_py.trace.scene import Scene, scene_of
from tests.trace.browser.chromium import OpenPage
from tests.trace.browser.programs import SIZE, bar_at, gather, ping, recorded, ring

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

Opens = Callable[..., OpenPage]

SLICE = 1 << 16
"""Bytes of a rank's input in `gather`."""

LEFT, RIGHT, END, HOME = "\ue012", "\ue014", "\ue010", "\ue011"


def held(page: OpenPage, buffer: str, rank: int = 0) -> list[tuple[int, int, list[int]]]:
    memory = page.run("return hcclPage.memory(arguments[0])", rank)
    return [(start, stop, origins) for name, start, stop, origins in memory if name == buffer]


def bytes_shown(page: OpenPage) -> list[Any]:
    return [spot for spot in page.run("return hcclPage.stage()") if spot["kind"] == "bytes"]


def test_buffers_at_the_beginning_and_at_the_end(pictures: Opens) -> None:
    page = pictures(gather())
    page.keys("b", HOME)
    assert held(page, "IN") == [(0, SLICE, [0])]
    assert held(page, "OUT") == []
    assert len(bytes_shown(page)) == 4
    page.keys(END)
    wanted = [(rank * SLICE, (rank + 1) * SLICE, [rank]) for rank in range(4)]
    assert held(page, "OUT") == wanted
    assert page.state()["cursor"] > 0
    page.keys("]")
    for rank in range(4):
        assert f"data of rank {rank}" in page.text("#side .contents")
    page.run("document.querySelector('#side .contents .link').click()")
    assert page.state()["mode"] == "lanes"
    assert page.task(page.state()["selected"]["bar"])["dst_rank"] == 0


def test_buffers_follow_the_task_that_is_selected(opens: Opens) -> None:
    scene = ping()
    page = opens(scene)
    page.click_task(bar_at(scene, 0, 0, 4))
    page.keys("l", "b")
    assert held(page, "OUT") == [(0, SIZE, [0]), (SIZE, 2 * SIZE, [1])]
    page.keys("]")
    page.keys(LEFT, shift=True)
    assert held(page, "OUT") == [(0, SIZE, [0])]
    page.keys(RIGHT, shift=True)
    assert held(page, "OUT") == [(0, SIZE, [0]), (SIZE, 2 * SIZE, [1])]


def test_buffers_of_another_rank_and_sums(pictures: Opens) -> None:
    page = pictures(ring())
    page.keys("b", HOME)
    assert held(page, "IN", 5) == [(0, 4 << 16, [5])]
    page.keys(END, *["]"] * 6)
    assert page.state()["rank"] == 5
    out = held(page, "OUT", 5)
    assert out[0][0] == 0
    assert out[-1][1] == 4 << 16
    assert all(origins == list(range(8)) for _, _, origins in out)
    assert "sum of 8 ranks" in page.text("#side .contents")


def test_buffers_of_the_ranks_of_a_server(pictures: Opens) -> None:
    topology = hccl.topology_of(servers=6, devices=4)
    op = hccl.OpParam("all_gather", 1 << 10, hccl.DataType.FP32)
    program = hccl.Communicator(topology=topology).plan(op).program
    page = pictures(scene_of(program, topology))
    page.keys("]", "]", "b", HOME)
    assert {spot["node"] for spot in bytes_shown(page)} == {4, 5, 6, 7}
    page.keys("]")
    assert {spot["node"] for spot in bytes_shown(page)} == {8, 9, 10, 11}
    page.keys("b")
    assert page.state()["rank"] == 2


def test_memory_that_is_not_followed_says_why(pictures: Opens) -> None:
    page = pictures(replace(gather(), memory=None, memory_left_out="It is too large."))
    assert page.find("#buffers").get_attribute("title") == "It is too large."
    assert not page.find("#buffers").is_enabled()
    page.keys("b")
    assert bytes_shown(page) == []


def cells(page: OpenPage) -> list[list[float]]:
    shown: Any = page.run("return hcclPage.traffic()")
    n = shown["cells"]
    return [shown["bytes"][row * n : (row + 1) * n] for row in range(n)]


def test_the_heat_map_of_a_mesh(opens: Opens) -> None:
    page = opens(gather())
    page.click("#traffic summary")
    assert cells(page) == [[0 if a == b else SLICE for b in range(4)] for a in range(4)]
    assert page.run("return document.querySelector('#traffic canvas').width") > 100
    page.run("document.querySelectorAll('#traffic .buttons button')[1].click()")
    assert "64 KiB" in page.text("#traffic dl")


def test_the_heat_map_of_a_ring(opens: Opens) -> None:
    """A rank gives seven eighths of the data to one neighbour twice: reduced, and to be kept."""
    page = opens(ring())
    page.click("#traffic summary")
    sent = [[(to, size) for to, size in enumerate(row) if size] for row in cells(page)]
    assert all(len(row) == 1 for row in sent)
    assert {size for ((_, size),) in sent} == {2 * 7 * (4 << 16) // 8}
    assert sorted(to for ((to, _),) in sent) == list(range(8))


def test_many_ranks_share_cells(opens: Opens) -> None:
    program, topology = recorded("AllReduceRing", "all_reduce", 130, 130)
    page = opens(scene_of(program, topology))
    page.click("#traffic summary")
    assert len(cells(page)) == 44  # three ranks each
    assert sum(map(sum, cells(page))) == sum(scene_of(program, topology).traffic.bytes.tolist())


def test_phases(opens: Opens) -> None:
    page = opens(ring())
    rows = page.all("#phases th .link")
    assert [row.text for row in rows] == ["reduce-scatter", "all-gather"]
    before = page.state()["view"]
    page.click("#phases tr:last-child .link")
    view = page.state()["view"]
    assert view["to"] - view["from"] < (before["to"] - before["from"]) / 2
    assert page.state()["steps"] == [8]


def against() -> tuple[Scene, Scene]:
    """Return the same ring at two sizes: the same phases, longer in the second."""
    larger, topology = recorded("AllReduceRing", "all_reduce", 8, 1 << 20)
    return ring(), scene_of(larger, topology, title="sixteen times as much")


def test_two_schedules_side_by_side(opens: Opens) -> None:
    page = opens(*against())
    first, second = page.state()["scenes"]
    assert (first["title"], second["title"]) == ("ring of 8", "sixteen times as much")
    assert second["total"] > first["total"]
    heads = [(row["scene"], row["rank"]) for row in page.state()["rows"] if row["kind"] == "head"]
    assert heads[:2] == [(0, 0), (1, 0)]
    changes = [cell.text for cell in page.all("#phases td:last-child")]
    assert len(changes) == 3
    assert all(change.startswith("+") and "µs" in change for change in changes)
    share = f"{(second['total'] / first['total'] - 1) * 100:.0f} %"
    assert share in changes[0]


def test_two_stages_go_along_with_each_other(pictures: Opens) -> None:
    """A mesh has one step for each of the seven that a ring has: both phases meet at their ends."""
    mesh, topology = recorded("AllReduceMeshExecutor", "all_reduce", 8, 1 << 16)
    page = pictures(ring(), scene_of(mesh, topology, title="mesh"))
    left, right = (page.find(name).rect for name in ("#cards", "#cards1"))
    assert left["x"] + left["width"] <= right["x"]
    assert page.text("#step-name").startswith("Step 1 of 14")
    steps = [page.state()["steps"]]
    for _ in range(13):
        page.keys(RIGHT)
        steps.append(page.state()["steps"])
    assert [step for step, _ in steps] == list(range(1, 15))
    others = [step for _, step in steps]
    assert others == sorted(others)
    assert others[0] == 1
    page.keys(END)
    assert page.text("#step-name1") == page.text("#step-name") == "The end"
    assert len(page.all("#film .film")) == 2


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
    page = opens(*against())
    page.click("#phases tr:last-child .link")
    shift = page.state()["scenes"][1]["shift"]
    assert shift < 0  # the larger one gets there later
    page.run("document.querySelector('#phases + button').click()")
    page.settle()
    assert page.state()["scenes"][1]["shift"] == 0


def test_a_task_of_the_second_schedule_is_selected(opens: Opens) -> None:
    page = opens(ping(), ping(label="other"))
    page.click_task(bar_at(ping(), 0, 0, 4), scene=1)
    assert page.state()["selected"] == {"scene": 1, "bar": bar_at(ping(), 0, 0, 4)}
    assert "other" in page.text("#side")


def test_a_task_has_its_time_in_the_other_schedule_beside(opens: Opens) -> None:
    first, other = against()
    page = opens(first, other)
    page.keys(".")
    bar = page.state()["selected"]["bar"]
    row = page.text("#side h2 + dl")
    assert "In B" in row
    lasts = float(other.bars.end_us[bar] - other.bars.start_us[bar])
    assert f"{lasts:.4g}"[:4] in row.split("In B")[1]
    page.run("document.querySelector('#side h2 + dl .link').click()")
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
    assert "arrives at" in page.text("#side")
