"""Times of large programs: recording, simulation by batches, task by task, and contended; and of
the commands that do so, as whole processes.

    python benchmarks/scale.py                    # our figures, each against its budget
    python benchmarks/scale.py --peers            # SimGrid's SMPI replay of the same ring besides
    python benchmarks/scale.py --write            # the same into docs/benchmarks.md
    python benchmarks/scale.py --plot scale.svg   # cost against ranks

All-reduce of 64 MiB. Every case runs in processes of its own, three times, the best counts; so peak
memory is the case's own, with Python, numpy and what is loaded besides. Kernels are warm: a first
process compiles them. Budgets are those of a machine on which a bare import of the dependencies
takes 0.09 s: what this one takes for that, in the same run, scales them. The peer needs smpirun
(Debian: libsimgrid-dev); it replays the same sends of a ring, uncontended, with SimGrid's factors
set to neutral ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BYTES = 64 << 20
RUNS = 3

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FIRST_MARK, LAST_MARK = "<!-- benchmarks/scale.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Case:
    """One program; `budget_s` is for record + simulate, or for what `how` does after recording."""

    name: str
    ranks: int
    servers: int = 0
    how: str = "batches"
    budget_s: float = 0.0
    budget_mb: float = 0.0


CASES = [
    Case("ring, 1 024 ranks", 1024, 0, "batches", 0.25, 200),
    Case("ring, 4 096 ranks", 4096, 0, "batches", 0.8, 300),
    Case("ring, 16 384 ranks", 16384, 0, "batches", 4.0, 400),
    Case("ring, 4 088 ranks, uneven chunks", 4088),
    Case("mesh + NHR, 8 x 2 048", 8 * 2048, 2048, "batches", 1.0, 1200),
    Case("mesh + NHR, 8 x 2 000", 8 * 2000, 2000, "batches", 2.0, 1200),
    Case("mesh + NHR, 8 x 8 192", 8 * 8192, 8192, "batches", 4.0, 1200),
    Case("ring, 1 024 ranks, task by task", 1024, 0, "tasks", 5.0, 2500),
    Case("ring, 1 024 ranks, contended", 1024, 0, "contended", 0.0, 2500),
]
COMMANDS = [
    Case("`hccl-py simulate`, ring, 1 024 ranks", 1024, 0, "command", 0.9),
    Case("`hccl-py simulate`, ring, 4 096 ranks", 4096, 0, "command", 1.2),
    Case("`hccl-py simulate`, ring, 16 384 ranks", 16384, 0, "command", 4.0),
]
CONTENDED_OVER_TASKS = 5.0
IMPORTS = "import numpy, pydantic, rich.console, typer, ml_dtypes"
IMPORTS_S = 0.09
"""What a bare import of the dependencies takes on the machine of the budgets."""
GROWTH = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def measure(ranks: int, servers: int, how: str) -> dict[str, float]:
    """Record and simulate one all-reduce: a flat ring, or mesh and NHR over servers of 8."""
    from hccl_executors import AllReduceComm, AllReduceMeshExecutor
    from hccl_py.call.op_param import OpParam
    from hccl_py.enums import DataType, ReduceOp
    from hccl_py.operators import make_operator
    from hccl_py.orchestration.record import record
    from hccl_py.program.program import Program
    from hccl_py.simulator import CostModel, simulate_batches, simulate_contended, simulate_tasks
    from hccl_py.topology import Topology, topology_of

    cost = CostModel.of("atlas-800t-a2")

    def recorded(topology: Topology) -> Program:
        level1 = "NHR" if servers else "ring"
        executor = AllReduceMeshExecutor() if servers else AllReduceComm()
        op = OpParam("all_reduce", BYTES // 4, DataType.FP32, ReduceOp.SUM, level1=level1)
        return record(executor, op, topology, make_operator("all_reduce"), 200 << 20)

    def timed(program: Program, topology: Topology) -> float:
        walks: dict[str, Any] = {
            "batches": simulate_batches,
            "tasks": simulate_tasks,
            "contended": simulate_contended,
        }
        return float(walks[how](program, topology, cost).total_us)

    small = topology_of(servers=8, devices=8) if servers else topology_of(256, preset="ring")
    timed(recorded(small), small)  # loads the compiled kernels
    shape = {"servers": servers, "devices": 8} if servers else {"ranks": ranks, "preset": "ring"}
    topology = topology_of(**shape)  # type: ignore[arg-type]
    begin = time.perf_counter()
    program = recorded(topology)
    middle = time.perf_counter()
    simulated = timed(program, topology)
    end = time.perf_counter()
    return {
        "tasks": program.task_count,
        "record_s": middle - begin,
        "simulate_s": end - middle,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "simulated_us": simulated,
    }


def best(ranks: int, servers: int, how: str, runs: int = RUNS) -> dict[str, float]:
    """Return the smallest figure of several processes."""
    command = [sys.executable, __file__, "--case", str(ranks), str(servers), how]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(runs)
    ]
    return {key: min(run[key] for run in found) for key in found[0]}


def replay(ranks: int) -> float:
    """Return the seconds that SMPI takes to replay the sends of a ring all-reduce."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for rank in range(ranks):
            (here / f"{rank}").write_text("".join(_actions(rank, ranks)))
        (here / "trace").write_text("".join(f"{here / str(rank)}\n" for rank in range(ranks)))
        (here / "hosts").write_text("".join(f"h{rank}\n" for rank in range(ranks)))
        (here / "platform.xml").write_text(
            '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
            '<platform version="4.1"><cluster id="c" prefix="h" suffix="" '
            f'radical="0-{ranks - 1}" speed="1Gf" bw="18.3GBps" lat="5us"/></platform>'
        )
        neutral = {
            "network/model": "CM02",
            "network/latency-factor": 1,
            "network/bandwidth-factor": 1,
            "network/TCP-gamma": 0,
            "network/weight-S": 0,
            "network/crosstraffic": 0,
            "smpi/host-speed": "1f",
        }
        command = ["smpirun", "-np", str(ranks), "-hostfile", str(here / "hosts")]
        command += ["-platform", str(here / "platform.xml"), "-replay", str(here / "trace")]
        command += [f"--cfg={key}:{value}" for key, value in neutral.items()]
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - begin


def _actions(rank: int, ranks: int) -> Iterator[str]:
    yield f"{rank} init\n"
    left, right = (rank - 1) % ranks, (rank + 1) % ranks
    for _ in range(2 * (ranks - 1)):
        yield f"{rank} irecv {left} 0 {BYTES // ranks} 6\n"
        yield f"{rank} send {right} 0 {BYTES // ranks} 6\n"
        yield f"{rank} wait {left} {rank} 0\n"
    yield f"{rank} finalize\n"


def plot(path: Path) -> None:
    """Draw record and simulate time and peak memory against ranks."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for title, servers, colour in (
        ("ring", 0, "#0072b2"),
        ("mesh + NHR, 8 a server", 1, "#d55e00"),
    ):
        rows = [best(n, servers * n // 8, "batches", 1) for n in GROWTH]
        seconds = [row["record_s"] + row["simulate_s"] for row in rows]
        for axis, values in zip(axes, (seconds, [row["peak_mb"] for row in rows]), strict=True):
            axis.plot(GROWTH, values, marker="o", markersize=4, color=colour, label=title)
    for axis, label in zip(axes, ("record + simulate, s", "peak memory, MB"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="ranks", ylabel=label)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.savefig(path)


def command(case: Case) -> dict[str, float]:
    """Return the smallest figures of several whole processes: their time, and what they report."""
    line = [str(Path(sys.executable).with_name("hccl-py")), "simulate", "all_reduce", "--json"]
    line += ["--topology", "ring", "--ranks", str(case.ranks), "--executor", "AllReduceComm"]
    line += ["--algo", "level0:NA;level1:ring", "-b", str(BYTES)]
    found = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        done = subprocess.run(line, check=True, capture_output=True)
        row = {"whole_s": time.perf_counter() - begin} | json.loads(done.stdout)
        found.append(row | {"peak_mb": row["peak_rss_mb"]})
    keys = ("whole_s", "tasks", "record_s", "simulate_s", "peak_mb")
    return {key: min(row[key] for row in found) for key in keys}


def imports_s() -> float:
    """Return the seconds of a process that imports the dependencies and nothing else."""
    found = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", IMPORTS], check=True)
        found.append(time.perf_counter() - begin)
    return min(found)


def table() -> Iterator[str]:
    """Yield the lines of the table of all cases."""
    for case in CASES[:1] + CASES[4:5] + CASES[-2:]:
        best(case.ranks, case.servers, case.how, 1)  # compiles what is not cached
    slower = imports_s() / IMPORTS_S
    yield f"A bare import of the dependencies takes {slower * IMPORTS_S:.2f} s in this run: budgets"
    yield f"are scaled by {slower:.2f}."
    yield ""
    yield "| | Tasks | Record | Simulate | Whole process | Peak memory | Budget | × budget |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    tasks_s = 0.0
    for case in CASES + COMMANDS:
        is_command = case.how == "command"
        row = command(case) if is_command else best(case.ranks, case.servers, case.how)
        spent = row["simulate_s"] + (row["record_s"] if case.how == "batches" else 0.0)
        spent = row["whole_s"] if is_command else spent
        tasks_s = spent if case.how == "tasks" else tasks_s
        over, budget = spent / (slower * case.budget_s) if case.budget_s else 0.0, ""
        if case.budget_s:
            budget = f"{case.budget_s:g} s" + f", {case.budget_mb:g} MB" * (case.budget_mb > 0)
        elif case.how == "contended":
            budget = f"{CONTENDED_OVER_TASKS:g} × the time task by task"
            over = spent / (CONTENDED_OVER_TASKS * tasks_s)
        whole = f"{row['whole_s']:.2f} s" if is_command else ""
        yield (
            f"| {case.name} | {row['tasks']:,.0f} | {row['record_s']:.2f} s "
            f"| {row['simulate_s']:.2f} s | {whole} | {row['peak_mb']:.0f} MB | {budget} "
            f"| {f'{over:.2f}' if budget else ''} |"
        )


def against_peer() -> Iterator[str]:
    """Yield the times of SMPI's replay, if it is installed."""
    for ranks in (256, 1024) if shutil.which("smpirun") else ():
        row, peer = best(ranks, 0, "batches"), replay(ranks)
        ours = row["record_s"] + row["simulate_s"]
        yield f"SMPI replay, {ranks} ranks: {peer:.1f} s, {peer / ours:.0f} × ours."


def write(lines: list[str]) -> None:
    """Put the figures between the marks in docs/benchmarks.md, with the day and the commit."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(FIRST_MARK)
    _, after = rest.split(LAST_MARK)
    measured = [f"Measured on {day} at commit {commit}.", *lines]
    page = "\n".join([before + FIRST_MARK, "", *measured, "", LAST_MARK + after])
    PAGE.write_text(page, encoding="utf-8")


def report(peers: bool, into_page: bool) -> None:
    """Print one line per case, and write them where that is wanted."""
    lines = []
    for line in itertools.chain(table(), [""] if peers else [], against_peer() if peers else []):
        print(line, flush=True)
        lines.append(line)
    if into_page:
        write(lines)


def main() -> None:
    """Measure what the options name."""
    parser = argparse.ArgumentParser(description="Record and simulate large programs.")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(int(given.case[0]), int(given.case[1]), given.case[2])))
    elif given.plot:
        plot(given.plot)
    else:
        report(given.peers, given.write)


if __name__ == "__main__":
    main()
