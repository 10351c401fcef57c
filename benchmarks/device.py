"""Times of programs of 8 ranks on one device by the device platform, against plain copies of the
same bytes on one stream, in the same run; before that, a check of the results.

    python benchmarks/device.py --device cuda            # prints
    python benchmarks/device.py --device cuda --write    # the same into docs/benchmarks.md

It needs torch and hccl-py's dependencies, and runs from a checkout that is not installed, too:

    PYTHONPATH=.:executors:platform python benchmarks/device.py --device cuda --write

Checked first: a call of every built-in executor that suits 2 to 8 ranks against numpy, and calls
whose inputs the caller rewrites right behind them on its current stream. Any wrong result ends the
run with status 1.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch

import hccl_py as hccl
from hccl_executors import EXECUTORS
from hccl_platform.device import DevicePlatform
from hccl_platform.lowering.moves import moves_of
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.measurement import Measurement
from hccl_py.communicator.planning import Plan
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.discovery import installed_executors
from hccl_py.program.program import Program
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.space import random_cases

RANKS = 8
SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
RUNS = {
    "all_reduce": ("", "AllReduceComm"),
    "all_gather": ("", "AllGatherComm"),
}
"""Executors by op: HCCL's choice for the size, and a ring."""

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
MARKS = ("<!-- benchmarks/device.py -->\n", "<!-- end -->")
HEAD = (
    f"| {RANKS} ranks, fp32 | executor | tasks | bytes moved | copies of them | one call alone "
    "| × | calls in a row | × | tasks on the device, end to end | issued in |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
LEGEND = """\
*bytes moved*: by all tasks of all ranks together. *copies of them*: `copy_` of as many bytes on one
stream, in pieces as large as the program's largest; the bound for the ratios × beside the times.
*one call alone*: the host waits for the device after each call. *calls in a row*: the host waits
once, behind all. *end to end*: from the first task's beginning to the last one's end, by events of
the device around every task, which cost time themselves. *issued in*: until one call has come back;
the host then goes on by itself. Where that is near *calls in a row*, the host takes the time."""


def communicator(
    topology: hccl.Topology | int, device: str, **settings: object
) -> hccl.Communicator:
    """Return a communicator, also where nothing is installed."""
    given = () if installed_executors().executors else EXECUTORS
    size = {"ranks": topology} if isinstance(topology, int) else {"topology": topology}
    return hccl.Communicator(
        **size, platform=DevicePlatform(), executors=given, device=device, **settings
    )


# ---- results ----


def call_of(executor: type) -> Case | None:
    """Return a small call of an executor by several ranks, without gaps between its outputs."""
    for case in random_cases(executor(), Cases(), Random(3), 100):
        is_small = case.op.extent * case.topology.size < 16 << 20
        if 2 <= case.topology.size <= RANKS and case.op.extent and is_small and not case.op.displs:
            return case
    return None


def wrong_executors(device: str) -> tuple[int, list[str]]:
    """Return the number of executors that were run, and a line for each with wrong results."""
    tried, wrong = 0, []
    for executor in EXECUTORS:
        case = call_of(executor)
        if case is None:
            continue
        tried += 1
        try:
            with communicator(case.topology, device, mode=case.op.mode, buffsize_mb=4) as comm:
                plan = comm.plan(case.op, executor.__name__)
                row = Measurement(comm, 3, 0, check=True).row(plan, lambda: None)
            if row.check != "success":
                wrong.append(f"{executor.__name__}, {case.text}: {row.first_wrong}")
        except Exception:  # one after the other, and all are said
            wrong.append(f"{executor.__name__}, {case.text}:\n{traceback.format_exc()}")
    return tried, wrong


def wrong_orders(device: str) -> list[str]:
    """Rewrite inputs on the caller's stream right behind calls; return the calls that are wrong."""
    if device == "cpu":
        return []
    module, count, found = torch.get_device_module(device), 1 << 22, []
    with communicator(RANKS, device) as comm:
        likes = comm.placement_templates
        assert likes is not None
        inputs = [torch.zeros(count, device=like.tensor.device) for like in likes]
        with module.stream(module.Stream()):
            for call in range(10):
                for rank, tensor in enumerate(inputs):
                    tensor.fill_(call + rank)
                outputs = comm.all_reduce(inputs).outputs
                for tensor in inputs:
                    tensor.zero_()
                found.append([output.sum() for output in outputs])
        comm.synchronize()
    total = RANKS * (RANKS - 1) / 2
    return [
        f"call {call}: {[float(s) / count for s in sums]} in place of {RANKS * call + total}"
        for call, sums in enumerate(found)
        if any(float(s) != (RANKS * call + total) * count for s in sums)
    ]


# ---- times ----


@dataclass(frozen=True)
class Row:
    """Microseconds of an op, of its copies and of its tasks."""

    name: str
    executor: str
    program: Program
    copies: float
    alone: float
    in_a_row: float
    timeline: float
    issued: float

    def __str__(self) -> str:
        moved = bytes_moved(self.program)
        times = (
            *(f"{self.alone:,.0f} µs", f"{self.alone / self.copies:.2f}"),
            *(f"{self.in_a_row:,.0f} µs", f"{self.in_a_row / self.copies:.2f}"),
        )
        cells = (
            *(self.name, self.executor, str(self.program.task_count), format_bytes(sum(moved))),
            *(f"{self.copies:,.0f} µs", *times),
            *(f"{self.timeline:,.0f} µs", f"{self.issued:,.0f} µs"),
        )
        return f"| {' | '.join(cells)} |"


def bytes_moved(program: Program) -> list[int]:
    """Return the bytes of every task that moves some."""
    rows = np.arange(len(program.tasks), dtype=np.int64)
    sizes: list[int] = moves_of(program, rows).size.tolist()
    return sizes


def format_bytes(size: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1 << 14:
            return f"{size} {unit}"
        size >>= 10
    return f"{size} GiB"


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def repeats(size: int) -> int:
    return 50 if size < 1 << 22 else 10


def median_us(work: Callable[[], object], device: str, runs: int, in_a_row: int = 1) -> float:
    """Return the median time of a piece of work; the host waits behind every `in_a_row` of them."""
    times = []
    for run in range(runs + 2):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(in_a_row):
            work()
        synchronize(device)
        if run >= 2:
            times.append((time.perf_counter() - start) * 1e6 / in_a_row)
    return statistics.median(times)


def issue_us(work: Callable[[], object], device: str, runs: int) -> float:
    """Return the median time until a call comes back, while the device has nothing else to do."""
    times = []
    for _ in range(runs):
        synchronize(device)
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e6)
    synchronize(device)
    return statistics.median(times)


def copies_us(program: Program, device: str, runs: int) -> float:
    """Time `copy_` of as many bytes on one stream, in pieces as large as the program's largest."""
    sizes = bytes_moved(program)
    piece, total = max(sizes), sum(sizes)
    there = torch.device(device)
    into, what = (torch.zeros(2 * piece, dtype=torch.uint8, device=there) for _ in range(2))

    def copy() -> None:
        for number in range(-(-total // piece)):
            start = number % 2 * piece
            stop = start + min(piece, total - number * piece)
            into[start:stop].copy_(what[start:stop], non_blocking=True)

    return median_us(copy, device, runs)


def rows(device: str, sizes: list[str]) -> Iterator[Row]:
    """Time every op at every size, each checked against numpy before."""
    for op, executors in RUNS.items():
        for name in sizes:
            for executor in executors:
                with communicator(RANKS, device) as comm:
                    yield row(comm, device, op, name, executor)


def row(comm: hccl.Communicator, device: str, op: str, name: str, executor: str) -> Row:
    size, runs = SIZES[name], repeats(SIZES[name])
    count = size // 4 // (RANKS if op == "all_gather" else 1)
    reduce = ReduceOp.SUM if op == "all_reduce" else None
    plan: Plan = comm.plan(OpParam(op, count, DataType.FP32, reduce), executor or None)
    checked = Measurement(comm, 3, 1, check=True).row(plan, lambda: None)
    if checked.check != "success":
        raise SystemExit(f"{op}, {name}, {plan.selection.executor}: {checked.first_wrong}")
    timeline = Measurement(comm, 1, 3, check=False).timeline(plan)
    there = [
        None if like is None else like.tensor.device
        for like in comm.placement_templates or [None] * RANKS
    ]
    inputs = [torch.ones(count, device=d or "cpu") for d in there]
    outputs = [torch.empty(size // 4, device=d or "cpu") for d in there]
    call = getattr(comm, op)

    def work() -> None:
        call(inputs, out=outputs, executor=plan.selection.executor)

    return Row(
        f"{op}, {name}",
        plan.selection.executor,
        plan.program,
        copies_us(plan.program, device, runs),
        median_us(work, device, runs),
        median_us(work, device, 3, runs),
        timeline.total_us,
        issue_us(work, device, runs),
    )


# ---- the page ----


def measured(device: str) -> str:
    """Say when, at which commit, on what."""
    git = ["git", "-C", str(PAGE.parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(git, check=False, capture_output=True, text=True)
    commit = f" at commit {found.stdout.strip()}" if found.returncode == 0 else ""
    day, cores = time.strftime("%Y-%m-%d", time.gmtime()), len(os.sched_getaffinity(0))
    where = f"{cores} cores"
    if device != "cpu":
        module = torch.get_device_module(device)
        where = f"{module.device_count()} × {module.get_device_name(0)}, {where}"
    python = ".".join(map(str, sys.version_info[:2]))
    return (
        f"Measured on {day}{commit}, on {where}, with torch {torch.__version__}, Python {python}."
    )


def write(text: str) -> None:
    """Put the table into the page."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(MARKS[0])
    assert rest, f"{PAGE} lacks {MARKS[0]}"
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}", "utf-8")


def main() -> None:
    """Check, then measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda", "npu"])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    arguments = parser.parse_args()
    device = arguments.device
    Config.load(device=device)
    print(measured(device), flush=True)
    tried, wrong = wrong_executors(device)
    print(f"{tried} executors were run on {device}; wrong: {len(wrong)}", *wrong, sep="\n")
    orders = wrong_orders(device)
    print(f"inputs rewritten behind calls; wrong: {len(orders)}", *orders, sep="\n", flush=True)
    if wrong or orders:
        raise SystemExit(1)
    lines = [HEAD]
    print(HEAD, flush=True)
    for found in rows(device, arguments.sizes):
        lines.append(str(found))
        print(found, flush=True)
    text = (
        f"{measured(device)}\nBefore, a call of each of {tried} executors gave numpy's result on "
        "it, and so did calls whose inputs were\nrewritten right behind them on the caller's "
        "stream.\n\n" + "\n".join(lines) + f"\n\n{LEGEND}\n"
    )
    print(f"\n{LEGEND}")
    if arguments.write:
        write(text)


if __name__ == "__main__":
    main()
