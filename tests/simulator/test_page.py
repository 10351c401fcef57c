"""Timelines in notebooks."""

import re
from dataclasses import replace

import pytest

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, TaskKind
from hccl_py.simulator import CostModel, Stragglers, simulate
from hccl_py.simulator.picture import timeline_svg
from hccl_py.simulator.tasks import simulate_reached
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded, without


def timeline(ranks: int, count: int = 64) -> Timeline:
    with Communicator(ranks=ranks, topology="ring") as comm:
        plan = comm.plan(OpParam("all_gather", count, DataType.FP32), "AllGatherComm")
        return simulate(plan.program, comm.topology)


def test_every_rank_has_a_row_whose_times_sum_to_the_total() -> None:
    found = timeline(3)
    html = found._repr_html_()
    assert f"all_gather: {found.total_us:.2f} µs of model time" in html
    rows = re.findall(r"<td>(\d+)</td>" + r"<td>([\d.]+)</td>" * 3, html)
    assert [int(row[0]) for row in rows] == [0, 1, 2]
    for row in rows:
        assert sum(map(float, row[1:])) == pytest.approx(found.total_us, abs=0.02)
    assert html.count("<svg") == 1 + 3


def test_of_many_ranks_the_first_are_shown_and_the_others_counted() -> None:
    html = timeline(40)._repr_html_()
    assert html.count("<svg") == 1 + 32
    assert "and 8 more ranks" in html


WORK, WAIT, CRITICAL = "#47a", "#bbb", "#d33"


def bars(found: Timeline, colour: str) -> list[tuple[float, int, float]]:
    """Return x, y and width of the picture's bars of a colour, without those of the legend."""
    picture = found._repr_html_().split("<table>")[0]
    pattern = r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)" height="\d+" fill="' + colour
    drawn = [(float(x), int(y), float(w)) for x, y, w in re.findall(pattern, picture)]
    return drawn[:-1]


def test_the_picture_has_what_ranks_do_and_what_binds() -> None:
    topology = topology_of(6, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce", 100_000), topology)
    found = simulate(program, topology, slow=Stragglers.parse(["rank=2:3x"]))
    work, usage = bars(found, WORK), found.usage()
    scale = 640 / found.total_us
    rows = sorted({y for _, y, _ in work})
    lengths = {y: sum(w for _, at, w in work if at == y) for y in rows}
    busy = [us * scale for us in usage.busy_us[:, 0].tolist()]
    assert len(rows) == 6  # all of them differ
    for y, wanted in zip(rows, busy, strict=True):
        assert lengths[y] == pytest.approx(wanted, abs=0.6 * len(work) / 6)
    waits = sum(w for _, _, w in bars(found, WAIT))
    assert waits == pytest.approx(usage.waiting_us.sum() * scale, abs=40)
    critical = sorted((x, x + w) for x, _, w in bars(found, CRITICAL))
    assert critical[0][0] == 150
    assert max(end for _, end in critical) == pytest.approx(790, abs=0.2)
    assert sum(b - a for a, b in critical) == pytest.approx(640, abs=0.5 * len(critical))


def test_ranks_that_do_the_same_are_drawn_once_and_many_are_counted() -> None:
    even = timeline(40)
    assert "ranks 0 to 39" in even._repr_html_()
    topology = topology_of(12, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce"), topology)
    slow = [f"rank={rank}:{rank + 2}x" for rank in range(12)]
    uneven = simulate(program, topology, slow=Stragglers.parse(slow))
    assert "and 4 more groups of ranks" in uneven._repr_html_()
    servers = topology_of(servers=1, devices=8)
    mesh = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), servers)
    assert "and 2 more streams" in simulate(mesh, servers)._repr_html_()


def test_without_tasks_or_with_too_many_there_is_no_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    empty = without(recorded("AllReduceComm", op_of("all_reduce"), 2), lambda _: True)
    assert 'role="img"' not in simulate(empty, topology_of(2))._repr_html_()
    monkeypatch.setattr("hccl_py.simulator.picture.MOST_TASKS", 5)
    assert 'role="img"' not in timeline(3)._repr_html_()


def test_a_timeline_that_never_ends_has_no_picture() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    posts = [i for i in program.batches[0].instructions if i.kind is TaskKind.NOTIFY_POST]
    stuck = without(program, lambda i: i is posts[len(posts) // 2])
    found = simulate_reached(stuck, topology_of(4), CostModel.of(""))
    assert timeline_svg(found) == ""


def test_names_of_files_are_escaped() -> None:
    found = timeline(3)
    op = replace(found.program.op, name="</svg><script>alert('&')</script>")
    nasty = replace(found, program=replace(found.program, op=op))
    assert "<script>" not in nasty._repr_html_()
