"""Run by test_tensors_of_npus.py: programs of torch_npu over the npu platform, on the fake runtime.

One process for every rank is forked after the imports. Each function whose name begins with
`check_` is one check, made by all ranks; its outcome is the first error of any rank, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_npu  # noqa: F401

import hccl_py as hccl
from hccl_platform.processes.launch import launch
from hccl_py.errors import HcclError

RANKS = 4
TYPES = ("float32", "float16", "bfloat16", "int8", "int16", "int32", "int64")


def ramp(rank: int, dtype: str = "float32", count: int = 12) -> Any:
    """Small whole numbers that tell ranks and places apart, on the host."""
    return (torch.arange(count) % 5 + rank % 2 + 1).to(getattr(torch, dtype))


def near(host: Any) -> Any:
    return host.to(torch.npu.current_device())


def same(found: Any, wanted: Any) -> None:
    host = found.cpu()
    assert host.dtype == wanted.dtype, (host.dtype, wanted.dtype)
    assert torch.equal(host, wanted), (host, wanted)


def everyone(**more: Any) -> list[Any]:
    return [ramp(rank, **more) for rank in range(RANKS)]


def check_reductions(comm: hccl.Communicator, rank: int) -> None:
    """What hardware reduces and what torch must, in every type that the product takes."""
    for dtype in TYPES:
        stacked = torch.stack(everyone(dtype=dtype))
        right = {
            "sum": stacked.sum(0, dtype=stacked.dtype),
            "max": stacked.amax(0),
            "min": stacked.amin(0),
            "prod": stacked.prod(0, dtype=stacked.dtype),
        }
        for op, wanted in right.items():
            if op == "prod" and dtype in ("int16", "bfloat16"):
                continue  # the product takes none
            same(comm.all_reduce(near(ramp(rank, dtype)), op).outputs[0], wanted)


def check_order_with_torch(comm: hccl.Communicator, rank: int) -> None:
    """Inputs come from ops just before, outputs go to ops right after; nobody waits."""
    data, total = near(torch.ones(5000)), near(torch.zeros(5000))
    found = []
    for turn in range(10):
        data.fill_(float(turn + rank))
        out = comm.all_reduce(data).outputs[0]
        data.fill_(-1.0)  # the input may be overwritten: the call comes first
        total.add_(out)
        found.append(out)
    sums = [RANKS * turn + sum(range(RANKS)) for turn in range(10)]
    same(total, torch.full((5000,), float(sum(sums))))
    for out, wanted in zip(found, sums, strict=True):
        same(out, torch.full((5000,), float(wanted)))


def check_streams(comm: hccl.Communicator, rank: int) -> None:
    """The caller's current stream is the one, or the one given."""
    first, second = torch.npu.Stream(), torch.npu.Stream()
    data = near(torch.zeros(3000))
    torch.npu.synchronize()
    with torch.npu.stream(first):
        data.fill_(float(rank))
        one = comm.all_reduce(data).outputs[0]
    other = near(torch.full((3000,), 2.0))
    torch.npu.synchronize()
    two = comm.all_reduce(other, stream=second).outputs[0]
    first.synchronize()
    second.synchronize()
    same(one, torch.full((3000,), float(sum(range(RANKS)))))
    same(two, torch.full((3000,), 2.0 * RANKS))


def check_views_and_gaps(comm: hccl.Communicator, rank: int) -> None:
    wide = near(ramp(rank).view(3, 4))
    right = sum(each.view(3, 4) for each in everyone())
    same(comm.all_reduce(wide.t()).outputs[0], right.t())
    base = near(torch.zeros(4, 3))
    comm.all_reduce(wide, out=base.t())
    same(base, right.t().contiguous())
    memory = near(torch.cat([torch.zeros(2), ramp(rank), torch.zeros(2)]))
    inside = memory[2:-2]
    comm.all_reduce(inside, out=inside)
    same(memory, torch.cat([torch.zeros(2), sum(everyone()), torch.zeros(2)]))


def check_pending_calls(comm: hccl.Communicator, rank: int) -> None:
    pending = [comm.all_gather(near(ramp(rank, "bfloat16")), async_op=True) for _ in range(3)]
    for each in pending:
        same(each.wait().outputs[0], torch.cat(everyone(dtype="bfloat16")))
        assert each.is_completed()


def check_every_op(comm: hccl.Communicator, rank: int) -> None:
    mine, all_of_them = near(ramp(rank)), everyone()
    whole, total = torch.cat(all_of_them), sum(all_of_them)
    part = slice(3 * rank, 3 * rank + 3)
    same(comm.all_gather(mine).outputs[0], whole)
    same(comm.reduce_scatter(mine).outputs[0], total[part])
    same(comm.broadcast(mine, 2).outputs[0], ramp(2))
    for result, right in (
        (comm.reduce(mine, 1).outputs[0], total),
        (comm.gather(mine, 1).outputs[0], whole),
    ):
        if rank == 1:
            same(result, right)
    parts = [mine if rank == 3 else None]
    same(comm.scatter(parts, 3, out=near(torch.zeros(3))).outputs[0], ramp(3)[part])
    same(comm.all_to_all(mine).outputs[0], torch.cat([each[part] for each in all_of_them]))
    same(comm.send_recv(mine).outputs[0], ramp(rank - 1))
    rows = [near(torch.full((rank + 1,), float(to))) for to in range(RANKS)]
    got = comm.all_to_all_v([rows]).outputs[0]
    same(got, torch.full((sum(range(1, RANKS + 1)),), float(rank)))
    firsts = torch.cat([ramp(each)[: each + 1] for each in range(RANKS)])
    same(comm.all_gather_v(mine[: rank + 1]).outputs[0], firsts)
    same(comm.all_reduce(mine, "avg").outputs[0], total / RANKS)
    comm.barrier()
    comm.synchronize()


def check_groups(comm: hccl.Communicator, rank: int) -> None:
    halves = comm.split([0, 0, 1, 1])
    (group,) = halves.values()
    members = range(0, 2) if rank < 2 else range(2, 4)
    same(group.all_reduce(near(ramp(rank))).outputs[0], sum(ramp(member) for member in members))
    group.close()


def check_what_is_refused(comm: hccl.Communicator, rank: int) -> None:
    elsewhere = f"npu:{(rank + 1) % RANKS}"
    for bad, words in (
        (torch.ones(3), "is on device cpu"),
        (torch.ones(3, device=elsewhere), f"is on device {elsewhere}"),
        (torch.ones(3).numpy(), "takes tensors on npu"),
        (torch.ones(3).to_sparse(), "is on device cpu"),
    ):
        with pytest.raises(HcclError, match=words) as caught:
            comm.all_reduce(bad)
        assert caught.value.hint
    same(comm.all_reduce(near(ramp(rank))).outputs[0], sum(everyone()))


def checks_in(names: dict[str, Any]) -> dict[str, Callable[..., None]]:
    return {name: made for name, made in names.items() if name.startswith("check_")}


def run_checks(names: dict[str, Any], folder: Path, rank: int, given: tuple[Any, ...]) -> None:
    """Make the checks of a module until one goes wrong; write what came out of them."""
    outcomes: dict[str, str | None] = {}
    for name, made in checks_in(names).items():
        try:
            made(*given)
            outcomes[name] = None
        except Exception:
            outcomes[name] = f"rank {rank}: {traceback.format_exc()}"
            break
    (folder / f"{rank}.json").write_text(json.dumps(outcomes))


def report(folder: Path, work: Callable[[Path], int], names: dict[str, Any]) -> None:
    """Fork the processes, and print what went wrong at some rank, by check."""
    launch(RANKS, lambda: work(folder))
    found: dict[str, str] = {}
    for rank in range(RANKS):
        path = folder / f"{rank}.json"
        outcomes = json.loads(path.read_text()) if path.exists() else {}
        for name in checks_in(names):
            error = outcomes.get(name, f"rank {rank} has not come to it")
            if error:
                found.setdefault(name, error)
    print(json.dumps(found))


def work(folder: Path) -> int:
    rank = int(os.environ["HCCL_PY_RANK"])
    torch.npu.set_device(rank)
    with hccl.Communicator(RANKS, platform="npu") as comm:
        run_checks(globals(), folder, rank, (comm, rank))
    return 0


if __name__ == "__main__":
    report(Path(sys.argv[1]), work, globals())
