"""Every built-in executor in real processes and shared memory, bit for bit against numpy."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from hccl_executors import EXECUTORS
from tests.platform.distributed.sessions import Run, runs_of, wrong_results

SIZES = (2, 3, 4, 5, 6, 8)
LONG_SIZES = (2, 3, 4, 5, 6, 7, 8, 16)


def by_size(runs: list[Run]) -> dict[int, list[Run]]:
    found = defaultdict(list)
    for run in runs:
        found[run.program.ranks].append(run)
    return dict(found)


@cache
def drawn_calls(seed: int) -> tuple[int, list[Run]]:
    """Return a number of ranks, another one for every eight seeds in a row, and two calls of every
    executor that suits so many.
    """
    ranks = LONG_SIZES[seed % len(LONG_SIZES)]
    runs = [run for e in EXECUTORS for run in runs_of(e, (ranks,), 200, most=2, seed=seed)]
    assert len(runs) > 50
    return ranks, runs


def test_every_executor_gives_numpys_result() -> None:
    runs = [run for e in EXECUTORS for run in runs_of(e, SIZES, tries=60, most=1)]
    assert len({run.text.split()[0] for run in runs}) > 80
    assert {run.program.op.mode.value for run in runs} == {"op_base", "graph"}
    assert any(run.program.op.in_place for run in runs)
    wrong = [text for ranks, some in by_size(runs).items() for text in wrong_results(ranks, some)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.seeds(len(LONG_SIZES))
def test_drawn_calls_of_every_executor_give_numpys_result(seed: int) -> None:
    wrong = wrong_results(*drawn_calls(seed))
    assert not wrong, "\n".join(wrong)
