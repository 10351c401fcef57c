"""Times of commands that show very large programs, as whole processes.

    python benchmarks/viewing.py            # a table
    python benchmarks/viewing.py --write    # the same into docs/benchmarks.md

A ring all-reduce of 64 MiB. CPU time is that of the command with its children; peak memory is that
of the process. Kernels are warm: a first, small command compiles them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FIRST_MARK, LAST_MARK = "<!-- benchmarks/viewing.py -->", "<!-- end of viewing.py -->"
RANKS = (1024, 4096, 16384)
HEAD = """\
| `hccl-py trace` of | Ranks | Tasks | Wall | CPU | Peak memory | File |
| --- | --- | --- | --- | --- | --- | --- |
"""


def measured(*arguments: str) -> tuple[float, float, float]:
    """Run a command; return its wall time and CPU time in seconds, and its peak memory in MB."""
    command = [sys.executable, "-m", "hccl_py", "trace", *arguments]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    wall = time.perf_counter() - begin
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def rows(folder: Path) -> list[str]:
    """Return a row for every command."""
    found = []
    for ranks in RANKS:
        call = ["all_reduce", "--ranks", str(ranks), "--topology", "ring"]
        call += ["--executor", "AllReduceComm", "-b", "64M"]
        program = folder / f"{ranks}.npz"
        cases: list[tuple[str, list[str], Path | None]] = [
            ("an op", [*call, "--save", str(program)], None),
            ("its .npz file", [str(program), "--topology", "ring"], program),
        ]
        for name, suffix in (("html", "html"), ("perfetto", "pftrace"), ("chrome", "json")):
            file = folder / f"{ranks}.{suffix}"
            cases.append((f"an op, `--{name}`", [*call, f"--{name}", str(file)], file))
        for name, arguments, file in cases:
            wall, cpu, peak = measured(*arguments)
            tasks = ranks * (10 * (ranks - 1) + 2)
            size = "" if file is None else f"{file.stat().st_size / 1e6:.1f} MB"
            found.append(
                f"| {name} | {ranks:,} | {tasks:,} | {wall:.1f} s | {cpu:.1f} s | "
                f"{peak:.0f} MB | {size} |"
            )
            print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write into docs/benchmarks.md")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as folder:
        measured("all_reduce", "--ranks", "1024", "--topology", "ring")
        table = HEAD + "\n".join(rows(Path(folder))) + "\n"
    if write:
        text = PAGE.read_text("utf-8")
        before, rest = text.split(FIRST_MARK)
        _, after = rest.split(LAST_MARK)
        PAGE.write_text(f"{before}{FIRST_MARK}\n\n{table}\n{LAST_MARK}{after}", "utf-8")


if __name__ == "__main__":
    main()
