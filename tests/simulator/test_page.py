"""Timelines in notebooks."""

import re

import pytest

from hccl_py import Communicator
from hccl_py.enums import DataType
from hccl_py.op_param import OpParam
from hccl_py.simulator import simulate
from hccl_py.simulator.timeline import Timeline


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
    assert html.count("<svg") == 3


def test_of_many_ranks_the_first_are_shown_and_the_others_counted() -> None:
    html = timeline(40)._repr_html_()
    assert html.count("<svg") == 32
    assert "and 8 more ranks" in html
