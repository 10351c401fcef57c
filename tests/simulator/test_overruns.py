"""Notifies that count posts: programs that one bit would break have times."""

import json
from typing import Literal

import pytest

from hccl_py.errors import DeadlockError, OrchestrationError, ParameterError
from hccl_py.formats import from_json
from hccl_py.program.program import Program
from hccl_py.simulator import simulate
from hccl_py.topology import topology_of
from tests.simulator.costs import FREE

TOPOLOGY = topology_of(2, preset="mesh")


def twice(late_us: int, waits: int = 2) -> Program:
    """Rank 0 posts at 0 and at 3 us; rank 1 waits from `late_us` on, with 1 us in between."""
    behind = [["compute", 1], ["wait", 0, 0]]
    return from_json(
        json.dumps(
            {
                "format": "hccl-py.program/1",
                "op": {"name": "barrier", "dtype": "uint8"},
                "ranks": 2,
                "link": "sdma",
                "exported": [],
                "buffers": {"0": {}, "1": {}},
                "tasks": {
                    "0": {"0": [["post", 1, 0], ["compute", 3], ["post", 1, 0]]},
                    "1": {"0": [["compute", late_us], ["wait", 0, 0], *behind * (waits - 1)]},
                },
            }
        )
    )


@pytest.mark.parametrize("network", ["uncontended", "contended"])
@pytest.mark.parametrize(
    ("program", "total", "early"),
    [
        (twice(5), 6, [2]),  # both posts are there when the first wait begins
        (twice(1), 3, []),  # the first one is consumed in time
        (twice(3), 4, []),  # at the very time of the second
        (twice(5, waits=1), 5, [2]),  # one stays
    ],
)
def test_times_of_posts_on_a_notify_that_is_set(
    program: Program,
    total: float,
    early: list[int],
    network: Literal["uncontended", "contended"],
) -> None:
    with pytest.raises((DeadlockError, OrchestrationError)):
        simulate(program, TOPOLOGY, FREE, network=network)
    timeline = simulate(program, TOPOLOGY, FREE, network=network, notifies="counting")
    assert timeline.total_us == total
    assert timeline.overruns().tolist() == early


def test_a_kind_that_is_none() -> None:
    with pytest.raises(ParameterError, match="notifies is 'two'"):
        simulate(twice(5), TOPOLOGY, FREE, notifies="two")  # type: ignore[arg-type]
