"""Recorded programs, compared with what HCCL's own code did in the same calls.

`runs/` has golden runs of a release of HCCL (scripts/oracle/README.md says how they are made) and
`different.json`, the calls that differ, by cause: a call that differs and is not listed fails, and
so does a listed one that is equal. Every executor's smallest calls and a sample of all others are
compared in every run; a sweep compares all.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hccl_executors import EXECUTORS, run_proofs
from hccl_py.plugins.fidelity import Proof
from scripts.oracle.calls import size_of, words_of
from scripts.oracle.canonical import Event, run_of_threads
from scripts.oracle.golden import Golden, executor_of, read_golden
from scripts.oracle.judging import Judged, differences, judge, proofs_of

SAME = sorted(cls.__name__ for cls in EXECUTORS if cls.fidelity.is_same)
RUNS = Path(__file__).parent / "runs"
FEW, SAMPLED = 2, 200
"""Calls of every executor, and of all together, that are compared in every run."""

READ = {"AllGatherVMeshOpbaseExecutor": "is of cann-2025.07, whose code has no such tests"}
"""Executors that are `same` by reading alone, and the reason why no run of theirs can be had."""


@cache
def golden_runs() -> list[Golden]:
    """The golden runs of the newest release: of the classic executors, and of the Ascend 950's."""
    files = [RUNS / f"{name}-2026.08.jsonl.gz" for name in ("cann", "ascend950")]
    return [golden for file in files for golden in read_golden(file)]


@cache
def listed() -> dict[str, dict[str, Any]]:
    """The numbers of calls by outcome, and those that are known to differ, by cause."""
    found: dict[str, dict[str, Any]] = json.loads((RUNS / "different.json").read_text("utf-8"))
    return found


@cache
def different() -> dict[str, str]:
    """The cause of every call that is known to differ, by its words."""
    return {words: cause for cause, of in listed()["causes"].items() for words in of["calls"]}


def _order(golden: Golden) -> tuple[bool, bool, int]:
    """Those that are equal come first, then those that ran, then by ranks."""
    case = golden.answer.case
    return words_of(case) in different(), golden.streams is None, size_of(case)


def sample() -> list[Golden]:
    """The smallest calls of every executor in every mode, and others drawn from all."""
    by_kind: dict[tuple[str, str], list[Golden]] = defaultdict(list)
    for golden in golden_runs():
        by_kind[executor_of(golden.answer), golden.answer.case.get("mode", "")].append(golden)
    found = [golden for runs in by_kind.values() for golden in sorted(runs, key=_order)[:FEW]]
    return [*found, *random.Random(27).sample(golden_runs(), SAMPLED)]


def wrong(judged: Iterable[Judged]) -> list[str]:
    """The calls that differ and are not listed, and listed ones that are equal."""
    return [
        f"{one.words}: {one.problem or 'is equal, but listed in different.json'}"
        for one in judged
        if bool(one.problem) != (one.words in different())
    ]


def test_a_sample_does_what_hccl_did() -> None:
    found = wrong(map(judge, sample()))
    assert not found, "\n".join(found[:10])


@pytest.mark.sweep
def test_all_do_what_hccl_did() -> None:
    judged = list(map(judge, golden_runs()))
    found = wrong(judged)
    assert not found, "\n".join(found[:20])
    assert differences(judged) == listed(), "run scripts/oracle judge"
    assert proofs_of(judged) == shipped_proofs(), "run scripts/oracle judge"


def test_every_difference_has_a_reason() -> None:
    assert [name for name, of in listed()["causes"].items() if not of["why"].endswith(".")] == []
    assert {*different()} <= {words_of(golden.answer.case) for golden in golden_runs()}


def test_99_in_100_calls_are_equal() -> None:
    """Of those that HCCL's API takes; all that say to be the same are."""
    outcomes = listed()["outcomes"]
    assert sum(outcomes.values()) == len(golden_runs())
    assert outcomes["differ"] == len(different())
    refused = sum(len(of["calls"]) for name, of in listed()["causes"].items() if "refuses" in name)
    assert outcomes["differ"] - refused <= 0.01 * len(golden_runs())


def shipped_proofs() -> dict[str, Proof]:
    """The proofs that executors carry."""
    return {cls.__name__: cls.fidelity.proof for cls in EXECUTORS if cls.fidelity.proof}


@pytest.mark.parametrize("name", SAME)
def test_every_executor_that_is_same_is_proved_by_a_run(name: str) -> None:
    """By one that is equal now, and by no more than there are."""
    runs = sorted((one for one in golden_runs() if executor_of(one.answer) == name), key=_order)
    proof = shipped_proofs().get(name)
    assert (proof is not None) == (name not in READ)
    if proof is not None:
        assert any(judge(one).is_proof for one in runs)
        assert 0 <= proof.but_for_copies <= proof.calls <= len(golden_runs())
        assert {proof.source} == {one.source for one in runs}


def test_proofs_are_of_executors_that_there_are() -> None:
    found = json.loads((Path(run_proofs.__file__).parent / run_proofs.FILE).read_text("utf-8"))
    assert {name for rows in found.values() for name in rows} <= {cls.__name__ for cls in EXECUTORS}


def test_a_task_that_differs_is_found() -> None:
    """One stream whose digest is another one."""
    golden = next(one for one in sample() if one.streams and len(one.streams[0]) > 1)
    streams = [list(rank) for rank in golden.streams or []]
    streams[0][1] = "AAAA"
    found = judge(Golden(golden.answer, streams, "AAAA"))
    assert found.closeness == "no"
    assert found.problem.startswith("tasks: rank 0 sub 1 differs: python scripts/oracle compare ")


def test_a_task_that_differs_is_shown_beside_its_neighbours() -> None:
    """Where a golden run has all tasks: here posts are taken out of one stream."""
    posting = (one for one in golden_runs() if one.run and "post" in kinds_of(one.run[0][0]))
    golden = next(one for one in posting if judge(one).is_proof)
    assert golden.run is not None
    run = [[list(stream) for stream in rank] for rank in golden.run]
    run[0][0] = [event for event in run[0][0] if event.kind != "post"]
    problem = judge(Golden(golden.answer, [["AAAA"]], "AAAA", run)).problem
    assert "\nrank 0 main: task " in problem
    assert "\n  here > " in problem
    assert "\n  HCCL > " in problem


def kinds_of(stream: Iterable[Event]) -> set[str]:
    """The kinds of a stream's events."""
    return {event.kind for event in stream}


def test_some_small_calls_of_many_executors_have_all_tasks() -> None:
    whole = {executor_of(one.answer) for one in golden_runs() if one.run}
    print(f"all tasks of {sum(one.run is not None for one in golden_runs())} calls")
    assert len(whole) > 90


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
