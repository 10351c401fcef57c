"""Bandwidth of the distributed platform between processes of one host: in shared memory, by
messages, and through torch, against torch gloo, MPI and the emulated platform in the same run.

    python benchmarks/processes.py            # prints
    python benchmarks/processes.py --write    # the same into docs/benchmarks.md

8 processes, fp32, plans cached, arrays allocated, all_reduce in place. Ranks begin each call
together; a figure is the median over calls of what the slowest rank needed, the better of two
rounds. gloo and MPI are left out where torch or mpi4py is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import hccl_py as hccl
from hccl_platform.processes.launch import launch

RANKS = 8
SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
OPS = ("all_reduce", "all_gather")
BUDGETS = {
    (
        "all_reduce",
        "64 MiB",
    ): "3 x gloo, 2 x MPI, 2.5 x emulated at most; in torch 2 x gloo; messages 0.8 x gloo",
    ("all_gather", "64 MiB"): "5 x gloo",
    ("all_reduce", "1 KiB"): "in torch 3 x gloo",
}
BUSY = os.getloadavg()[0]
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
MARKS = ("<!-- benchmarks/processes.py -->\n", "<!-- end -->")

Times = dict[str, float]
Ops = dict[str, tuple[str, int]]


def repeats(size: int) -> int:
    return 100 if size < 1 << 16 else 30 if size < 1 << 24 else 6


def timed(call: Callable[[], object], together: Callable[[], object], size: int) -> list[float]:
    """Time calls that all ranks begin together; in microseconds."""
    times = []
    for _ in range(repeats(size) // 10 + 2):
        call()
    for _ in range(repeats(size)):
        together()
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    return times


def of_slowest(rows: list[list[float]]) -> float:
    """Return the median over calls of what the slowest rank needed."""
    return statistics.median(max(times) for times in zip(*rows, strict=True))


def calls(comm: hccl.Communicator, op: str, size: int) -> Callable[[], object]:
    """Return a call of a communicator, with arrays of its own."""
    ranks = comm.local_ranks
    share = size // RANKS if op == "all_gather" else size
    data = [np.zeros(size // 4, np.float32) for _ in ranks]
    if op == "all_gather":
        parts = [np.full(share // 4, rank + 1.0, np.float32) for rank in ranks]
        return lambda: comm.all_gather(parts, out=data)
    return lambda: comm.all_reduce(data, out=data)  # in place, as gloo does it


def distributed(ops: Ops) -> Times:
    """Time the platform; rank 0 hands the figures over."""
    result = os.memfd_create("result")

    def work() -> int:
        with hccl.Communicator(RANKS, platform="distributed") as comm:
            token = [np.zeros(1, np.float32)]
            found = {}
            for name, (op, size) in ops.items():
                call = calls(comm, op, size)
                own = timed(call, lambda: comm.all_reduce(token, out=token), size)
                rows = comm.all_gather([np.array(own)]).outputs[0].reshape(RANKS, -1)
                found[name] = of_slowest(rows.tolist())
            if comm.local_ranks[0] == 0:
                os.write(result, json.dumps(found).encode())
        return 0

    assert launch(RANKS, work) == 0
    os.lseek(result, 0, os.SEEK_SET)
    return json.loads(os.read(result, 1 << 16))


def emulated(ops: Ops) -> Times:
    """Time all ranks in one process."""
    found = {}
    with hccl.Communicator(RANKS) as comm:
        for name, (op, size) in ops.items():
            call = calls(comm, op, size)
            for _ in range(100):  # until numba is loaded
                call()
                if "numba" in sys.modules or size < 1 << 20:
                    break
            found[name] = statistics.median(timed(call, lambda: None, size))
    return found


PEER = """
import json, sys, time
sys.path.insert(0, {folder!r})
from processes import OPS, RANKS, of_slowest, repeats, timed
ops = json.loads({ops!r})
"""

TORCH = """
import warnings, torch, torch.distributed as dist
warnings.simplefilter('ignore')
rank, store, backend, dtype = int(sys.argv[1]), *sys.argv[2:5]
torch.set_num_threads(1)
if backend == "hccl_py":
    import hccl_py.torch
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS)
found = {}
for name, (op, size) in ops.items():
    kind = getattr(torch, dtype)
    data = torch.zeros(size // kind.itemsize, dtype=kind)
    part = torch.zeros(len(data) // RANKS, dtype=kind)
    if op == "all_gather":
        call = lambda: dist.all_gather_into_tensor(data, part)
    else:
        call = lambda: dist.all_reduce(data)
    own, rows = timed(call, dist.barrier, size), [None] * RANKS
    dist.all_gather_object(rows, own)
    found[name] = of_slowest(rows)
if rank == 0:
    print(json.dumps(found))
dist.destroy_process_group()
"""

STEP = """
import os, warnings, torch, torch.distributed as dist
warnings.simplefilter('ignore')
rank, store, backend, _ = int(sys.argv[1]), *sys.argv[2:5]
torch.set_num_threads(1)
before = time.process_time()
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS)
start_s = time.process_time() - before
torch.manual_seed(0)
layers = [torch.nn.Linear(256, 256) for _ in range(8)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
samples = torch.randn(8, 256)
def step():
    model.zero_grad()
    model(samples).sum().backward()
for _ in range(10):
    step()
dist.barrier()
before = time.process_time()
own = timed(step, dist.barrier, 1 << 20)
spent, rows = time.process_time() - before, [None] * RANKS
with model.no_sync():
    alone = timed(step, dist.barrier, 1 << 20)
dist.all_gather_object(rows, (own, alone, spent, start_s))
if rank == 0:
    times, alone, cpus, starts = zip(*rows)
    found = {"step": of_slowest(times), "alone": of_slowest(alone)}
    print(json.dumps(found | {"CPU": sum(cpus), "start": sum(starts) / RANKS}))
dist.destroy_process_group()
"""

MESSAGES = """
import warnings, torch, torch.distributed as dist
warnings.simplefilter('ignore')
rank, store, backend, _ = int(sys.argv[1]), *sys.argv[2:5]
torch.set_num_threads(1)
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS)
found = {}
for name, (_, size) in ops.items():
    data, count = torch.zeros(size, dtype=torch.uint8), 4 * repeats(size)
    def there_and_back():
        for turn in (0, 1):
            if turn == rank:
                dist.send(data, 1 - turn)
            elif rank < 2:
                dist.recv(data, turn)
    there_and_back()
    dist.barrier()
    cpu, start = time.process_time(), time.perf_counter()
    for _ in range(count if rank < 2 else 0):
        there_and_back()
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    dist.barrier()
    rows = [None] * RANKS
    dist.all_gather_object(rows, (took, cpu))
    found[name] = rows[0][0] / count / 2 * 1e6
    found[f"CPU, {name}"] = (rows[0][1] + rows[1][1]) / count / 2 * 1e6
if rank == 0:
    print(json.dumps(found))
dist.destroy_process_group()
"""

MPI = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
found = {}
for name, (op, size) in ops.items():
    data = np.zeros(size // 4, np.float32)
    part = np.ones(size // 4 // RANKS, np.float32)
    if op == "all_gather":
        call = lambda: comm.Allgather(part, data)
    else:
        call = lambda: comm.Allreduce(MPI.IN_PLACE, data)
    found[name] = of_slowest(comm.allgather(timed(call, comm.Barrier, size)))
if comm.rank == 0:
    print(json.dumps(found))
"""


def peer_script(folder: str, text: str, ops: Ops) -> Path:
    head = PEER.format(folder=str(Path(__file__).parent), ops=json.dumps(ops))
    script = Path(folder, "peer.py")
    script.write_text(head + text)
    return script


def in_torch(ops: Ops, backend: str, dtype: str = "float32", program: str = TORCH) -> Times:
    """Time a backend of torch.distributed."""
    with tempfile.TemporaryDirectory() as folder:
        script = str(peer_script(folder, program, ops))
        common = [f"{folder}/store", backend, dtype]
        commands = [[sys.executable, script, str(r), *common] for r in range(RANKS)]
        first, *others = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
        printed, _ = first.communicate()
        for other in others:
            other.communicate()
    return json.loads(printed)


def over_gloo(ops: Ops) -> Times:
    """Time the platform with messages in the place of shared memory."""
    os.environ["HCCL_PY_WIRE"] = "gloo"
    try:
        return distributed(ops)
    finally:
        del os.environ["HCCL_PY_WIRE"]


def mpi(ops: Ops) -> Times:
    """Time MPI."""
    with tempfile.TemporaryDirectory() as folder:
        script = str(peer_script(folder, MPI, ops))
        launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
        command = [launcher, "-n", str(RANKS), sys.executable, script]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def contenders() -> dict[str, Callable[[Ops], Times]]:
    """Return the contenders that are installed, the platform first."""
    found: dict[str, Callable[[Ops], Times]] = {
        "distributed": distributed,
        "emulated, one process": emulated,
    }
    if is_there("torch", "torch gloo and our backend"):
        found["messages over gloo"] = over_gloo
        found["hccl_py in torch"] = partial(in_torch, backend="hccl_py")
        found["torch gloo"] = partial(in_torch, backend="gloo")
    if is_there("mpi4py", "MPI"):
        found["MPI"] = mpi
    return found


def is_there(module: str, peer: str) -> bool:
    if importlib.util.find_spec(module) is not None:
        return True
    print(f"{module} is not installed: no comparison with {peer}")
    return False


def table(ops: Ops, times: dict[str, Times]) -> str:
    """Return a table: the platform's times, and the others' as multiples of them."""
    others = [name for name in times if name != "distributed"]
    lines = [
        f"| 8 processes, fp32 | distributed | {' | '.join(f'{n}, ×' for n in others)} | Budget |",
        "| --- |" + " --- |" * (len(others) + 2),
    ]
    for name, (op, _) in ops.items():
        own = times["distributed"][name]
        ratios = " | ".join(f"{times[other][name] / own:.2f}" for other in others)
        budget = BUDGETS.get((op, name.removeprefix(f"{op}, ")), "")
        lines.append(f"| {name} | {own:,.0f} µs | {ratios} | {budget} |")
    return "\n".join(lines) + "\n"


def bf16_line(rounds: int) -> str:
    """Return a line with the speed of our backend relative to gloo in torch's bf16."""
    op = {"all_reduce, 64 MiB": ("all_reduce", SIZES["64 MiB"])}
    found = [
        {backend: in_torch(op, backend, "bfloat16") for backend in ("hccl_py", "gloo")}
        for _ in range(rounds)
    ]
    ours, gloo = (min(v for one in found for v in one[b].values()) for b in ("hccl_py", "gloo"))
    return f"In torch, bf16, all_reduce of 64 MiB: gloo takes {gloo / ours:.2f} × as long (1.5).\n"


def steps_line(rounds: int) -> str:
    """Return a line with a training step of DistributedDataParallel, relative to gloo's."""
    found: dict[str, list[Times]] = {"hccl_py": [], "gloo": []}
    for _ in range(rounds):
        for backend, times in found.items():
            times.append(in_torch({}, backend, program=STEP))
    ours, gloo = (
        {key: min(times[key] for times in found[backend]) for key in found[backend][0]}
        for backend in ("hccl_py", "gloo")
    )
    return (
        f"A step of DistributedDataParallel, 0.5 M parameters: gloo takes "
        f"{gloo['step'] / ours['step']:.2f} × as long (2) and {gloo['CPU'] / ours['CPU']:.2f} × "
        f"the CPU time (1); if nothing were sent at all, "
        f"{gloo['step'] / min(ours['alone'], gloo['alone']):.2f} × as long.\n"
        f"`init_process_group` takes {ours['start']:.2f} s of CPU in every "
        f"process (0.10), gloo's {gloo['start']:.2f} s.\n"
    )


def messages_lines(rounds: int) -> str:
    """Return lines with messages between two of the processes, relative to gloo's."""
    sizes = {"4 KiB": 4 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
    ops = {name: ("send", size) for name, size in sizes.items()}
    found: dict[str, list[Times]] = {"hccl_py": [], "gloo": []}
    for _ in range(rounds):
        for backend, times in found.items():
            times.append(in_torch(ops, backend, program=MESSAGES))
    best = {
        backend: {key: min(row[key] for row in rows) for key in rows[0]}
        for backend, rows in found.items()
    }
    lines = [
        f"- {name}: {best['gloo'][name] / best['hccl_py'][name]:.2f} × as long, and "
        f"{best['gloo'][f'CPU, {name}'] / best['hccl_py'][f'CPU, {name}']:.2f} × the CPU time of "
        "both"
        for name in sizes
    ]
    return "A message, `send` to `recv`; gloo takes\n\n" + "\n".join(lines) + "\n"


def measured() -> str:
    """Say when, at which commit, and how busy the machine was before."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    day, cores = time.strftime("%Y-%m-%d", time.gmtime()), len(os.sched_getaffinity(0))
    return (
        f"Measured on {day} at commit {commit}, on {cores} cores; the load average before was "
        f"{BUSY:.1f}."
    )


def write(text: str) -> None:
    """Put the table into the page."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(MARKS[0])
    assert rest, f"{PAGE} lacks {MARKS[0]}"
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}", "utf-8")


def main() -> None:
    """Measure everything, so many rounds that no contender has a quiet moment for itself."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    ops = {f"{op}, {size}": (op, SIZES[size]) for op in OPS for size in arguments.sizes}
    times: dict[str, Times] = {}
    for _ in range(arguments.rounds):
        for name, measure in contenders().items():
            found = measure(ops)
            known = times.setdefault(name, found)
            times[name] = {key: min(known[key], value) for key, value in found.items()}
    text = f"{measured()}\n\n{table(ops, times)}"
    if "torch gloo" in times and "64 MiB" in arguments.sizes:
        text += f"\n{bf16_line(arguments.rounds)}"
    if "torch gloo" in times:
        text += f"\n{steps_line(arguments.rounds)}\n{messages_lines(arguments.rounds)}"
    print(text)
    if arguments.write:
        write(text)


if __name__ == "__main__":
    main()
