"""Times of contended simulation as a command, on one core, and of SimGrid for the same case.

    python benchmarks/contended.py                            # our figures
    python benchmarks/contended.py --simgrid /usr/bin/python3 # SimGrid's besides, up to 64 ranks
    python benchmarks/contended.py --write                    # the same into docs/benchmarks.md

Each case is one `hccl-py simulate --network contended`, a whole process held to one core, after one
of a few ranks that loads the compiled kernels. SimGrid (Debian: python3-simgrid) replays the tasks
that benchmarks/simgrid/cases.py exports; its time is that of the simulation alone. What the two
compute is held together in benchmarks/simgrid/compare.py.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "simgrid"))
import cases
import compare
from cases import uneven

HERE = Path(__file__).parent
SIMGRID = HERE / "simgrid"
PAGE = HERE.parent / "docs" / "benchmarks.md"
FIRST_MARK, LAST_MARK = "<!-- benchmarks/contended.py -->", "<!-- end -->"

FULL, DIRECT = "RunAlltoAllVFullMesh", "RunAlltoAllDirectFullmesh"
ALL_PAIRS = "AllGatherMeshOpbaseExecutor"
AT_ONCE = "cases:EverybodyAtOnce"
"""A stream for every peer, which no executor of HCCL's has; in benchmarks/simgrid/cases.py."""

MOST_RANKS = 64
"""So many ranks SimGrid is given: its actors are threads in Python."""


@dataclass(frozen=True)
class Case:
    """One call: bytes per rank as -b takes them, or a table of up to `most` elements of each rank
    for each; `budget_s` is for the whole process.
    """

    name: str
    executor: str
    network: str
    ranks: int
    mib: int
    budget_s: float = 0.0
    slow: tuple[str, ...] = ()
    op: str = "all_to_all"
    level1: str = ""
    most: int = 0


CASES = [
    Case(
        "all-gather, all pairs at once, torus 4 x 4", ALL_PAIRS, "torus:4x4", 16, 4, op="all_gather"
    ),
    Case("all-to-all, eight at once, torus 8 x 8", DIRECT, "torus:8x8", 64, 16),
    Case("all-to-all, pair by pair, torus 8 x 8", FULL, "torus:8x8", 64, 4),
    Case("all-to-all, eight at once, torus 16 x 16", DIRECT, "torus:16x16", 256, 256, 10),
    Case("the same, a slow link", DIRECT, "torus:16x16", 256, 256, 10, slow=("link=0-1:4x",)),
    Case(
        "all-gather, 65 280 pairs at once, torus 16 x 16",
        ALL_PAIRS,
        "torus:16x16",
        256,
        256,
        10,
        op="all_gather",
    ),
    Case(
        "all-to-all, 4 032 pairs at once, all uneven, torus 8 x 8",
        *(AT_ONCE, "torus:8x8", 64, 0),
        op="all_to_all_v",
        most=200_000,
    ),
    Case(
        "all-to-all, 65 280 pairs at once, all uneven, torus 16 x 16",
        *(AT_ONCE, "torus:16x16", 256, 0, 10),
        op="all_to_all_v",
        most=200_000,
    ),
    Case(
        "all-to-all, eight at once, all uneven, torus 16 x 16",
        *(DIRECT, "torus:16x16", 256, 0, 10),
        op="all_to_all_v",
        most=200_000,
    ),
    Case(
        "all-gather, 1 047 552 pairs at once, torus 32 x 32",
        ALL_PAIRS,
        "torus:32x32",
        1024,
        4,
        10,
        op="all_gather",
    ),
    Case(
        "ring all-reduce, fat-tree of 1 024",
        *("AllReduceComm", "fat-tree:16", 1024, 64, 5),
        op="all_reduce",
        level1="ring",
    ),
    Case(
        "the same, a quarter of the links up",
        *("AllReduceComm", "fat-tree:16,oversubscription=4", 1024, 64, 5),
        op="all_reduce",
        level1="ring",
    ),
]


def command(case: Case, counts: Path) -> list[str]:
    """Return the command line of a case; the table of counts is in a file."""
    line = ["hccl-py", "simulate", case.op, "--topology", case.network]
    size = ["--counts", str(counts)] if case.most else ["-b", f"{case.mib}M"]
    line += ["--executor", case.executor, *size, "--network", "contended"]
    if case.level1:
        line += ["--algo", f"level0:NA;level1:{case.level1}"]
    for slow in case.slow:
        line += ["--slow", slow]
    return line


def timed(case: Case) -> dict[str, Any]:
    """Run a command on one core: seconds by the clock and of the core, and what it reports."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as counts:
        if case.most:
            json.dump(uneven(case.ranks, case.most), counts)
            counts.flush()
        line = [*command(case, Path(counts.name)), "--json"]
        line[0] = str(Path(sys.executable).with_name(line[0]))
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(line, check=True, stdout=subprocess.PIPE, cwd=SIMGRID)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout) | {"wall_s": wall, "core_s": spent}


def simgrid_s(case: Case, python: str, ours_us: float) -> float:
    """Return the seconds that SimGrid takes to replay a case; an error where its time differs."""
    place, kib = {"preset": case.network}, (case.mib << 10) // case.ranks
    executor = case.executor.removeprefix("cases:")
    same = cases.Case(case.name, executor, place, kib, case.op, most=case.most)
    found = compare.simgrid(same, python)
    if abs(found["simgrid_us"] - ours_us) > 1e-6 * ours_us:
        raise SystemExit(f"{case.name}: {ours_us} us here, {found['simgrid_us']} us by SimGrid")
    return float(found["simgrid_s"])


def table(python: str | None) -> Iterator[str]:
    """Yield the lines of the table of all cases."""
    for case in (CASES[2], CASES[3], CASES[-1]):
        timed(case)  # compiles what is not cached
    yield (
        "| | Tasks | Simulate | Whole process | of it, core | Peak memory | Budget "
        "| SimGrid, simulate | of ours |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for case in CASES:
        found = timed(case)
        peer, ratio = "", ""
        if python is not None and case.ranks <= MOST_RANKS:
            spent = simgrid_s(case, python, found["simulated_us"])
            peer, ratio = f"{spent:.1f} s", f"{spent / found['simulate_s']:.1f} x"
        yield (
            f"| {case.name} | {found['tasks']:,} | {found['simulate_s']:.2f} s "
            f"| {found['wall_s']:.1f} s | {found['core_s']:.1f} s | {found['peak_rss_mb']:.0f} MB "
            f"| {f'{case.budget_s:g} s' if case.budget_s else ''} "
            f"| {peer} | {ratio} |"
        )


def write(lines: list[str], load: float) -> None:
    """Put the figures between the marks in docs/benchmarks.md, with the day and the commit."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    before, rest = PAGE.read_text(encoding="utf-8").split(FIRST_MARK)
    _, after = rest.split(LAST_MARK, 1)
    measured = [f"Measured on {day} at commit {commit}; the load average before was {load:.1f}."]
    page = "\n".join([before + FIRST_MARK, "", *measured, "", *lines, "", LAST_MARK + after])
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Print one line per case, and write them where that is wanted."""
    parser = argparse.ArgumentParser(description="Time contended simulation.")
    parser.add_argument("--simgrid", metavar="PYTHON")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    lines = []
    for line in table(given.simgrid):
        print(line, flush=True)
        lines.append(line)
    if given.write:
        write(lines, load)


if __name__ == "__main__":
    main()
