"""The verifier's word held against runs: a program that it calls clean never goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from hccl_py.formats import from_json
from hccl_py.verifier import Severity, verify
from tests.verifier.judge.interpreter import Machine, Pick, Wrong
from tests.verifier.judge.programs import Document, random_program

PROGRAMS, ORDERS = 200, 40


def picks(seed: int, actors: int) -> Iterator[Pick]:
    """Yield ways to pick an actor: by chance, by fixed priorities, one actor last or first."""
    random = Random(seed)
    for number in range(ORDERS):
        if number % 4 == 0:
            yield random.choice
        elif number % 4 == 1:
            rank = random.sample(range(actors), actors)
            yield lambda able, rank=rank: min(able, key=rank.__getitem__)  # type: ignore[misc]
        else:
            odd, sign = random.randrange(actors), 1 if number % 4 == 2 else -1
            yield lambda able, odd=odd, sign=sign: min(  # type: ignore[misc]
                able, key=lambda one: (sign * (one == odd), random.random())
            )


def defect_of(document: Document, seed: int) -> str | None:
    """Return the way in which a program goes wrong in some order; None if none was found."""
    try:
        machine = Machine(document)
        actors = len(machine.streams) + 2 * len(document["links"])
        calls = 3 if document.get("alternating") else 2
        for number, pick in enumerate(picks(seed, actors)):
            for place in machine.places():
                machine.run(pick, Random(number), place, calls)
    except Wrong as wrong:
        return str(wrong)
    return None


def judged(seeds: range) -> Counter[tuple[bool, bool]]:
    """Count programs by (called clean, went wrong); fail for one that is both."""
    found: Counter[tuple[bool, bool]] = Counter()
    for seed in seeds:
        document = random_program(seed)
        report = verify(from_json(json.dumps(document)))
        defect = defect_of(document, seed)
        assert not (report.ok and defect), f"seed {seed}: clean, but {defect}"
        found[report.ok, defect is not None] += 1
    return found


def test_nothing_clean_goes_wrong() -> None:
    found = judged(range(PROGRAMS))
    assert found[True, False] > PROGRAMS // 5, f"few programs are clean: {found}"
    assert found[False, True] > PROGRAMS // 5, f"few programs are wrong: {found}"


@pytest.mark.long
@pytest.mark.seeds(10)
def test_nothing_clean_goes_wrong_among_many(seed: int) -> None:
    judged(range(1000 * seed, 1000 * seed + 1000))


@pytest.mark.parametrize(
    ("notifies", "told"), [("counting", "WAITS_UNORDERED"), ("one-bit", "NOTIFY_OVERRUN")]
)
def test_waits_in_no_order_are_told_though_no_order_goes_wrong(notifies: str, told: str) -> None:
    """Main and sub 0 of rank 1 wait for one Ack and answer: whichever comes first, both end."""
    answers = [["wait", 0, 0], ["post", 0, 1]]
    document: Document = {
        "format": "hccl-py.program/1",
        "op": {"name": "barrier", "dtype": "uint8", "count": 0},
        "ranks": 2,
        "link": "sdma",
        "notifies": notifies,
        "exported": [],
        "buffers": {},
        "tasks": {
            "0": {"0": [["post", 1, 0], ["wait", 1, 1]] * 2},
            "1": {
                "0": [["local_post", 1, 0], *answers, ["local_wait", 0]],
                "1": [["local_wait", 0], *answers, ["local_post", 0, 0]],
            },
        },
    }
    report = verify(from_json(json.dumps(document)))
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    assert [finding.name for finding in errors] == [told]
    assert "either may take the other's post" in errors[0].message
    assert defect_of(document | {"links": []}, 0) is None


def test_the_interpreter_imports_nothing_of_the_product() -> None:
    module = "tests.verifier.judge.interpreter"
    code = f"import sys, {module}; print([name for name in sys.modules if 'hccl' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
