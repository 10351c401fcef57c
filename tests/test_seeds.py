"""What `scripts/check --all` takes anew under every seed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DRAWN = "tests/platform/distributed/test_chaos.py"


def seeds_under(seed: int) -> list[int]:
    """Return the seeds of the long tests of a file."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "long", DRAWN]
    done = subprocess.run(
        [*command, f"--hypothesis-seed={seed}"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(number) for number in re.findall(r"\[(\d+)\]", done.stdout)]


@pytest.mark.sweep
def test_other_cases_under_every_seed() -> None:
    first, second = seeds_under(0), seeds_under(1)
    assert len(first) == len(second) > 1
    assert sorted({*first, *second}) == list(range(2 * len(first)))
