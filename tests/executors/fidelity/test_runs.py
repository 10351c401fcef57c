"""Recorded programs, compared with what HCCL's own code did in the same calls.

`runs/` has golden runs of a release of HCCL (scripts/oracle/README.md says how they are made) and
`different.json`, the calls that differ, by cause: a call that differs and is not listed fails, and
so does a listed one that is equal. Every executor's smallest calls and a sample of all others are
compared in every run; a sweep compares all.
"""

import json
import random
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from hccl_executors import EXECUTORS
from scripts.oracle.calls import size_of, words_of
from scripts.oracle.canonical import run_of_threads
from scripts.oracle.golden import Golden, compare_golden, executor_of, problem_of, read_golden

SAME = sorted(cls.__name__ for cls in EXECUTORS if cls.fidelity.is_same)
RUNS = Path(__file__).parent / "runs"
FEW, SAMPLED = 2, 200
"""Calls of every executor, and of all together, that are compared in every run."""

READ = {
    "AllGatherMixExecutor": "fails in upstream's tests, which have no devices of two kinds",
    "AllGatherVMeshOpbaseExecutor": "is of cann-2025.07, whose code has no such tests",
    "AllReduceReducePlusBcast": "fails in upstream's tests on 310P",
    "BroadCastMixExecutor": "fails in upstream's tests, which have no devices of two kinds",
    "ReduceScatterMixExecutor": "fails in upstream's tests, which have no devices of two kinds",
}
"""Executors that are `same` by reading alone, and the reason why none of their runs can be had."""


@cache
def golden_runs() -> list[Golden]:
    """The golden runs of the newest release: of the classic executors, and of the Ascend 950's."""
    found = [read_golden(RUNS / f"{name}-2026.08.jsonl.gz")[1] for name in ("cann", "ascend950")]
    return [golden for runs in found for golden in runs]


@cache
def different() -> dict[str, str]:
    """The cause of every call that is known to differ, by its words."""
    found = json.loads((RUNS / "different.json").read_text("utf-8"))
    return {words: cause for cause, calls in found.items() for words in calls}


def _order(golden: Golden) -> tuple[bool, bool, int]:
    """Those that are equal come first, then those that ran, then by ranks."""
    case = golden.answer.case
    return words_of(case) in different(), golden.streams is None, size_of(case)


def sample() -> list[Golden]:
    """The smallest calls of every executor in every mode, and others drawn from all."""
    by_kind: dict[tuple[str, str], list[Golden]] = defaultdict(list)
    for golden in golden_runs():
        by_kind[executor_of(golden), golden.answer.case.get("mode", "")].append(golden)
    found = [golden for runs in by_kind.values() for golden in sorted(runs, key=_order)[:FEW]]
    return [*found, *random.Random(27).sample(golden_runs(), SAMPLED)]


def wrong(goldens: list[Golden]) -> list[str]:
    """The calls that differ and are not listed, and listed ones that are equal."""
    found = []
    for golden in goldens:
        words = words_of(golden.answer.case)
        differs = problem_of(*compare_golden(golden))
        if bool(differs) != (words in different()):
            found.append(f"{words}: {differs or 'is equal, but listed in different.json'}")
    return found


def test_a_sample_does_what_hccl_did() -> None:
    found = wrong(sample())
    assert not found, "\n".join(found[:10])


@pytest.mark.sweep
def test_all_do_what_hccl_did() -> None:
    found = wrong(golden_runs())
    assert not found, "\n".join(found[:20])


def is_proof(golden: Golden) -> bool:
    """Whether a call that says `same` is equal to a golden run in every task."""
    verdict, where = compare_golden(golden)
    return verdict.closeness is not None and verdict.fidelity.is_same and not where


@pytest.mark.parametrize("name", SAME)
def test_every_executor_that_is_same_is_proved_by_a_run(name: str) -> None:
    runs = sorted((one for one in golden_runs() if executor_of(one) == name), key=_order)
    assert any(map(is_proof, runs)) != (name in READ)


def test_a_task_that_differs_is_found() -> None:
    """One stream whose digest is another one."""
    golden = next(one for one in sample() if one.streams and len(one.streams[0]) > 1)
    streams = [list(rank) for rank in golden.streams or []]
    streams[0][1] = "AAAA"
    verdict, where = compare_golden(Golden(golden.answer, streams, "AAAA"))
    assert verdict.closeness == "no"
    assert where.startswith("rank 0 sub 1 differs: python scripts/oracle compare ")


def test_threads_and_channels_of_an_answer_are_named() -> None:
    """Two ranks with two channels, by hand: host and main have notifies 0 and 3, the channels of
    rank 0 begin at 6 (host, two of threads, one of main, host and main once more), those of rank 1
    at 8198.
    """
    threads, channel = [[2, 1, 2], [0, 1, 1]], [3, 1, 4, 3]
    asked = [
        {"threads": threads, "channels": [channel, channel]},
        {"threads": threads, "channels": [[3, 0, 4, 3]] * 2},
    ]
    host = [["local_post", 4], ["local_wait", 0]]
    here = [["local_wait", 4], ["post", 1, "SDMA", 8201, "READY", "POST"], ["local_post", 0]]
    far_host = [["local_post", 8196], ["local_wait", 8192]]
    wait = ["wait", 0, "SDMA", 8201, "READY", "WAIT"]
    there = [["local_wait", 8196], wait, ["local_post", 8192]]
    run = run_of_threads([[host, here], [far_host, there]], asked)
    assert [[str(event) for event in rank[0]] for rank in run] == [
        ["post rank 1 SDMA notify 0 of channel 1"],
        ["wait rank 0 SDMA notify 0 of channel 1"],
    ]
