"""Every example of examples/torch runs and prints what it promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "torch"


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported torch and forks ranks: each would take seconds for that."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.torch.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:
        yield process


def run(forking: subprocess.Popen[str], name: str, ranks: int) -> list[str]:
    """Run an example in forked ranks; return its lines, sorted."""
    assert forking.stdin is not None
    assert forking.stdout is not None
    print(json.dumps([str(EXAMPLES / name), ranks]), file=forking.stdin, flush=True)
    is_well, printed, errors = json.loads(forking.stdout.readline())
    assert is_well, errors
    return lines_of(printed)


def run_apart(*command: str) -> list[str]:
    """Run an example as its readers do; return its lines, sorted."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return lines_of(done.stdout)


def lines_of(text: str) -> list[str]:
    return sorted(line for line in text.splitlines() if line)


def test_every_example_is_tested() -> None:
    tests = Path(__file__).read_text("utf-8")
    assert all(path.name in tests for path in EXAMPLES.glob("*.py"))


def test_eight_collectives() -> None:
    lines = run_apart("-m", "torch.distributed.run", "--nproc-per-node", "3", "collectives.py")
    for rank in range(3):
        mine = f"{rank + 1}., " * 4 + f"{rank + 1}."
        assert f"After broadcast on rank {rank}: tensor([1., 2., 3., 4., 5.])" in lines
        assert f"After all_reduce on rank {rank}: tensor([6., 6., 6., 6., 6.])" in lines
        assert f"After scatter on rank {rank}: tensor([{mine}])" in lines
        assert f"Rank {rank} left the barrier after the last rank came: True" in lines
    rows = ", ".join(f"tensor([{f'{n}., ' * 4}{n}.])" for n in (1, 2, 3))
    assert f"After gather on rank 0: [{rows}]" in lines
    assert sum(f": [{rows}]" in line and "all_gather" in line for line in lines) == 3
    assert "After reduce on rank 0: tensor([6., 6., 6., 6., 6.])" in lines
    assert "After reduce on rank 2: tensor([3., 3., 3., 3., 3.])" in lines
    assert "After ReduceScatter on rank 0: tensor([ 6., 12.])" in lines
    assert "After ReduceScatter on rank 1: tensor([14., 56.])" in lines
    assert "After ReduceScatter on rank 2: tensor([ 36., 288.])" in lines


def test_point_to_point() -> None:
    assert run_apart("point_to_point.py") == [
        "after recv, Rank 0 has data 2.0",
        "after recv, Rank 1 has data 1.0",
        "after send, Rank 0 has data 1.0",
        "after send, Rank 1 has data 2.0",
    ]


def test_distributed_sgd_does_not_depend_on_the_number_of_ranks(
    forking: subprocess.Popen[str],
) -> None:
    """The losses of one process, which averages nothing with anybody."""
    alone, together = (run(forking, "sgd_digits.py", ranks) for ranks in (1, 4))
    assert len(alone) == 10
    assert alone == together
    assert float(alone[-1].split()[-1]) < 0.5


def test_gradient_averaging(forking: subprocess.Popen[str]) -> None:
    lines = run(forking, "gradient_averaging.py", 4)
    assert sum("the same parameters: True" in line for line in lines) == 4
    for name, share in (("ring", 1.0), ("server", 1.5)):
        found = [line for line in lines if f", {name}: " in line]
        shares = [float(re.findall(r"([\d.]+) x 2", line)[0]) for line in found]
        assert shares == pytest.approx([share] * 4, abs=0.01)


@pytest.mark.parametrize(
    ("name", "ranks", "expected"),
    [
        ("column_parallel.py", 4, ["all (6, 12), equal to A B: True"] * 4),
        ("pipeline.py", 2, ["gradients equal those of one process: True"] * 2),
        ("hybrid_groups.py", 4, ["-> 10 in all"] * 4),
    ],
)
def test_parallelism(
    name: str, ranks: int, expected: list[str], forking: subprocess.Popen[str]
) -> None:
    lines = run(forking, name, ranks)
    assert sum(expected[0] in line for line in lines) == len(expected), lines
