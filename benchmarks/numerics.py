"""Times of `hccl-py numerics`: all sizes from one element to 1 GiB, and two calls with their cures.

    python benchmarks/numerics.py

Every row is a command in a process of its own; seconds are its CPU time, in user and system mode.
The bound is the same process with nothing to prove: `hccl-py explain` of the op.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

A3 = ("--topology", "atlas-900-a3")
BATCHES = ("-d", "bf16", "--buffsize", "512", "--shape", "184x5120", "--same-as", "736x5120")
ROWS = (
    ("all sizes, 8 ranks of A2", ("all_reduce", "--ranks", "8"), 10.0),
    ("all sizes, 8 ranks of A3", ("all_reduce", *A3, "--ranks", "8"), 10.0),
    (
        "all sizes, reduce_scatter, 2 x 4",
        ("reduce_scatter", "--servers", "2", "--devices", "4"),
        10.0,
    ),
    ("all sizes, 64 ranks of A3", ("all_reduce", *A3, "--servers", "4", "--devices", "16"), 60.0),
    ("two batches, with cures", ("all_reduce", *A3, "--ranks", "8", *BATCHES), 10.0),
)
"""A name, the words of the command, and its budget in seconds of CPU."""


def cpu_s(*command: str) -> float:
    """Return the CPU seconds of a command; its answer may be that bits differ (status 1)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hccl_py", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), command
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the table."""
    root = Path(__file__).resolve().parents[1]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    print(f"{datetime.date.today()}, commit {commit}, {os.cpu_count()} cores\n")
    bound = cpu_s("explain", "all_reduce", "--ranks", "8")
    print(f"explain all_reduce: {bound:.1f} s\n")
    print("| | CPU | budget | x explain |\n| --- | --- | --- | --- |")
    for name, words, budget in ROWS:
        cpu_s("numerics", *words)  # compiles what is not on disk yet
        found = cpu_s("numerics", *words)
        print(f"| {name} | {found:.1f} s | {budget:.0f} s | {found / bound:.0f} |", flush=True)


if __name__ == "__main__":
    main()
