"""Programs of many passes, timed by a few: what streams with passes and without them take."""

from __future__ import annotations

import json
from typing import Any

from hccl_py.formats import from_json
from hccl_py.simulator import simulate_tasks
from hccl_py.simulator.steady import steady_state
from hccl_py.topology import topology_of
from tests.simulator.costs import FREE

PASSES = 10


def passes_of(us: float, first_us: float | None = None) -> list[list[Any]]:
    """Return the tasks of a stream of ten kernels, a pass each; the first one may take longer."""
    times = [us if first_us is None else first_us] + [us] * (PASSES - 1)
    return [["compute", time, {"round": number}] for number, time in enumerate(times)]


def total_us(times: int, *streams: list[list[Any]]) -> float:
    """Return what one rank takes for these streams and so many passes more."""
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "barrier"},
        "ranks": 1,
        "buffers": {},
        "tasks": {"0": {str(stream): tasks for stream, tasks in enumerate(streams) if tasks}},
    }
    timeline = simulate_tasks(from_json(json.dumps(document)), topology_of(1), FREE)
    state = steady_state(timeline, 1, 1, shares_links=False)
    assert state is not None
    return state.total_us(times)


def done(stream: int) -> list[Any]:
    """Return the post by which a stream tells main that its last pass is over."""
    return ["local_post", 0, stream - 1, {"round": PASSES - 1}]


def test_streams_that_no_stream_waits_for_count_by_themselves() -> None:
    """Main has no passes: it is over after 500 us, whatever sub 0 does."""
    main = [["compute", 500.0]]
    assert total_us(0, [], passes_of(2.0)) == 20
    assert total_us(100, [], passes_of(2.0)) == 220
    assert total_us(100, main, passes_of(2.0)) == 500
    assert total_us(300, main, passes_of(2.0)) == 620


def test_main_goes_on_when_the_last_pass_is_over() -> None:
    main = [["local_wait", 0], ["compute", 5.0]]
    assert total_us(0, main, [*passes_of(2.0), done(1)]) == 25
    assert total_us(100, main, [*passes_of(2.0), done(1)]) == 225


def test_main_waits_for_no_stream_that_another_one_has_outlasted() -> None:
    """Of ten passes sub 0 is done after 20 us, sub 1, which begins late, after 39 us. Of 110 sub 0
    is done after 220 us, sub 1 after 139 us: then main does not wait for it.
    """
    main = [["local_wait", 0], ["local_wait", 1], ["compute", 5.0]]
    early, late = [*passes_of(2.0), done(1)], [*passes_of(1.0, 30.0), done(2)]
    assert total_us(0, main, early, late) == 44
    assert total_us(100, main, early, late) == 225
