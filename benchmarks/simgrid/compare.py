"""Hold contended times against SimGrid: the same links, routes and tasks, replayed by its actors.

    python benchmarks/simgrid/compare.py [/usr/bin/python3]

Needs a Python that has SimGrid's module (Debian: apt-get install python3-simgrid); the argument
says which. Writes results.json, which a test holds our side to, and prints the table of
docs/contended.md. Seconds are those of the simulation alone: without reading input, building
platforms, compiling kernels, and on our side in the best of three.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cases import CASES, Case, exported

from hccl_py.program import kernels
from hccl_py.simulator import Stragglers, simulate_contended, simulate_tasks

HERE = Path(__file__).parent


def ours(case: Case) -> dict[str, Any]:
    """Simulate a case here."""
    program, topology, cost = case.program(), case.place(), case.cost()
    slow = Stragglers.parse(case.slow)
    alone_us = simulate_tasks(program, topology, cost, slow).total_us
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        timeline = simulate_contended(program, topology, cost, slow)
        best = min(best, time.perf_counter() - begin)
    tasks, ranks = program.task_count, program.ranks
    return {
        "ranks": ranks,
        "tasks": tasks,
        "alone_us": alone_us,
        "ours_us": timeline.total_us,
        "ours_s": best,
    }


def simgrid(case: Case, python: str) -> dict[str, Any]:
    """Replay a case with SimGrid."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(exported(case), file)
        file.flush()
        command = [python, str(HERE / "replay.py"), file.name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {"simgrid_us": found["end_us"], "simgrid_s": found["seconds"]}


def row(name: str, r: dict[str, Any]) -> str:
    """Return one line of the table."""
    ratio = r["ours_us"] / r["simgrid_us"]
    return (
        f"| {name} | {r['ranks']} | {r['tasks']} | {r['alone_us']:.2f} | {r['ours_us']:.2f} "
        f"| {r['simgrid_us']:.2f} | {ratio:.6f} |"
    )


def main() -> None:
    """Run all cases."""
    python = sys.argv[1] if len(sys.argv) > 1 else "/usr/bin/python3"
    kernels.WORTH_COMPILING = 0
    print("| case | ranks | tasks | alone µs | ours µs | SimGrid µs | ours / SimGrid |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    results = {}
    for case in CASES:
        results[case.name] = ours(case) | simgrid(case, python)
        print(row(case.name, results[case.name]), flush=True)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (HERE / "results.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
