"""Bandwidth of the emulated platform, against numpy, torch gloo and MPI in the same run.

    python benchmarks/emulated.py

all_reduce of fp32 over 8 ranks, warm: plans are cached and outputs allocated. The numpy bound is
what one core needs to add eight arrays into one and copy it to eight, in the best of several block
sizes. gloo and MPI run one process per rank; they are left out where torch or mpi4py is not
installed.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import hccl_py as hccl

RANKS = 8
SIZES = {"1 MiB": 1 << 20, "64 MiB": 64 << 20}
EXECUTORS = {"ring": "AllReduceComm", "mesh": "AllReduceMeshOpbaseLoopExecutor"}
BUDGETS = {"64 MiB": "at most 1.5 x the bound by the best", "1 MiB": "under 1.5 ms"}
BLOCKS = [1 << k for k in range(14, 21)]


def best_ms(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several runs, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def arrays(size: int) -> list[np.ndarray]:
    """Return an array of `size` bytes per rank, every page touched."""
    return [np.full(size // 4, rank + 1.0, np.float32) for rank in range(RANKS)]


def numpy_bound_ms(size: int, repeats: int) -> float:
    """Time adding all inputs into one array and copying it to all outputs, block by block."""
    inputs, outputs, total = arrays(size), arrays(size), arrays(size)[0]

    def run(block: int) -> None:
        for start in range(0, size // 4, block // 4):
            part = slice(start, start + block // 4)
            np.add(inputs[0][part], inputs[1][part], out=total[part])
            for array in inputs[2:]:
                np.add(total[part], array[part], out=total[part])
            for output in outputs:
                output[part] = total[part]

    return min(best_ms(partial(run, block), repeats) for block in BLOCKS)


def all_reduce_ms(executor: str, size: int, repeats: int, buffsize_mb: int | None = None) -> float:
    """Time a communicator's all_reduce and check its result."""
    inputs, outputs = arrays(size), arrays(size)
    with hccl.Communicator(ranks=RANKS, buffsize_mb=buffsize_mb) as comm:

        def run() -> None:
            comm.all_reduce(inputs, out=outputs, executor=executor)

        warm_up(run)
        found = best_ms(run, repeats)
    assert all((output == RANKS * (RANKS + 1) / 2).all() for output in outputs)
    return found


def warm_up(run: Callable[[], None]) -> None:
    """Run until numba is loaded and compiled: a session begins with numpy for small data."""
    for _ in range(100):
        run()
        if "numba" in sys.modules:
            break
    run()


def cached_call_us() -> float:
    """Time a small op whose program is cached."""
    inputs = [np.full(256, rank + 1.0, np.float32) for rank in range(4)]
    with hccl.Communicator(ranks=4) as comm:
        comm.all_gather(inputs)
        return best_ms(lambda: comm.all_gather(inputs), 2000) * 1e3


GLOO = """
import json, sys, time
import torch, torch.distributed as dist
rank, ranks, store, size, repeats = int(sys.argv[1]), *json.loads(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
data = torch.zeros(size // 4)
times = []
for _ in range(repeats):
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(data)
    dist.barrier()
    times.append(time.perf_counter() - start)
if rank == 0:
    print(min(times) * 1e3)
dist.destroy_process_group()
"""


def gloo_ms(size: int, repeats: int) -> float:
    """Time torch gloo with one process per rank."""
    with tempfile.TemporaryDirectory() as folder:
        settings = json.dumps([RANKS, str(Path(folder) / "store"), size, repeats])
        commands = [[sys.executable, "-c", GLOO, str(rank), settings] for rank in range(RANKS)]
        first, *others = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
        printed, _ = first.communicate()
        for other in others:
            other.communicate()
    return float(printed)


MPI = """
import json, sys, time
import numpy as np
from mpi4py import MPI
comm, (size, repeats) = MPI.COMM_WORLD, map(int, sys.argv[1:])
data = np.full(size // 4, comm.rank + 1.0, np.float32)
into, times = np.empty_like(data), []
for _ in range(repeats + 1):
    comm.Barrier()
    start = time.perf_counter()
    comm.Allreduce(data, into)
    times.append(comm.allreduce(time.perf_counter() - start, MPI.MAX))
assert (into == sum(range(1, comm.size + 1))).all()
if comm.rank == 0:
    print(json.dumps(min(times[1:]) * 1e3))
"""


def mpi_ms(size: int, repeats: int) -> float:
    """Time MPI's Allreduce with one process per rank."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "mpi_peer.py")
        script.write_text(MPI)
        launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
        command = [launcher, "-n", str(RANKS), sys.executable, str(script), str(size), str(repeats)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


def peers() -> dict[str, Callable[[int, int], float]]:
    """Return the peers that are installed."""
    found: dict[str, Callable[[int, int], float]] = {}
    for name, module, measure in (("torch gloo", "torch", gloo_ms), ("MPI", "mpi4py", mpi_ms)):
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed: no comparison with {name}")
        else:
            found[f"{name}, {RANKS} processes"] = measure
    return found


def main() -> None:
    """Print one line per contender and size."""
    others = peers()
    print(f"all_reduce, {RANKS} ranks, fp32, best times")
    for name, size in SIZES.items():
        repeats = 200 if size < 1 << 24 else 12
        bound = numpy_bound_ms(size, max(repeats // 4, 5))
        print(f"\n{name} per rank ({BUDGETS[name]})")
        print(f"  {'numpy bound, one core':38} {bound:9.3f} ms")
        contenders: dict[str, tuple[str, int | None]] = {
            f"{k}, {v}": (v, None) for k, v in EXECUTORS.items()
        }
        if size > 1 << 20:
            contenders |= {f"{k}, HCCL_BUFFSIZE=1": (v, 1) for k, v in EXECUTORS.items()}
        for label, (executor, buffsize_mb) in contenders.items():
            found = all_reduce_ms(executor, size, repeats, buffsize_mb)
            print(f"  {label:38} {found:9.3f} ms  {found / bound:5.2f} x bound")
        for label, measure in others.items():
            found = measure(size, min(repeats, 20))
            print(f"  {label:38} {found:9.3f} ms  {found / bound:5.2f} x bound")
    print("\nall_gather, 4 ranks x 1 KiB, cached program (under 200 us)")
    print(f"  {'mesh, AllGatherMeshOpbaseExecutor':38} {cached_call_us():9.1f} us")


if __name__ == "__main__":
    main()
