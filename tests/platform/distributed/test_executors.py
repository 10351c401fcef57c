"""Every built-in executor in real processes and shared memory, bit for bit against numpy."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from hccl_executors import EXECUTORS
from tests.platform.distributed.sessions import Run, runs_of, wrong_results

SIZES = (2, 3, 4, 5, 6, 8)


def by_size(runs: list[Run]) -> dict[int, list[Run]]:
    found = defaultdict(list)
    for run in runs:
        found[run.program.ranks].append(run)
    return dict(found)


def test_every_executor_gives_numpys_result() -> None:
    runs = [run for e in EXECUTORS for run in runs_of(e, SIZES, tries=60, most=1)]
    assert len({run.text.split()[0] for run in runs}) > 80
    assert {run.program.op.mode.value for run in runs} == {"op_base", "graph"}
    assert any(run.program.op.in_place for run in runs)
    wrong = [text for ranks, some in by_size(runs).items() for text in wrong_results(ranks, some)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_ten_calls_of_every_executor_give_numpys_result() -> None:
    os.nice(10)
    sizes = (*range(2, 9), 12, 16)
    runs = [run for e in EXECUTORS for run in runs_of(e, sizes, tries=1000, most=10, seed=1)]
    for ranks, some in sorted(by_size(runs).items()):
        wrong = wrong_results(ranks, some)
        assert not wrong, "\n".join(wrong)
