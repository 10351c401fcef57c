"""Run by test_tensors_of_npus.py: torch.distributed on NPU tensors by the backend hccl_py, on the
fake runtime; checks as in tensor_checks.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch_npu  # noqa: F401

import hccl_py.torch as hccl_torch
from tests.platform.npu.tensor_checks import RANKS, everyone, near, ramp, report, run_checks, same


def check_collectives(rank: int) -> None:
    mine, all_of_them = near(ramp(rank)), everyone()
    whole, total = torch.cat(all_of_them), sum(all_of_them)
    part = slice(3 * rank, 3 * rank + 3)
    data = mine.clone()
    dist.all_reduce(data)
    same(data, total)
    trace = hccl_torch.last_trace()
    assert trace is not None
    assert trace.executor.startswith("AllReduce")
    data = near(ramp(rank))
    dist.broadcast(data, 2)
    same(data, ramp(2))
    outs = [torch.empty_like(mine) for _ in range(RANKS)]
    dist.all_gather(outs, mine)
    for out, right in zip(outs, all_of_them, strict=True):
        same(out, right)
    out = near(torch.zeros(12 * RANKS))
    dist.all_gather_into_tensor(out, mine)
    same(out, whole)
    out = near(torch.zeros(3))
    dist.reduce_scatter_tensor(out, mine)
    same(out, total[part])
    data = near(ramp(rank))
    dist.reduce(data, 1)
    if rank == 1:
        same(data, total)
    out = torch.empty_like(mine)
    dist.all_to_all_single(out, mine)
    same(out, torch.cat([each[part] for each in all_of_them]))
    rows = [near(torch.full((rank + 1,), float(to))) for to in range(RANKS)]
    outs = [near(torch.zeros(source + 1)) for source in range(RANKS)]
    dist.all_to_all(outs, rows)
    for source, out in enumerate(outs):
        same(out, torch.full((source + 1,), float(rank)))
    out = near(torch.zeros(3))
    parts = [near(each) for each in ramp(3).chunk(RANKS)]
    dist.scatter(out, parts if rank == 3 else None, 3)
    same(out, ramp(3)[part])
    outs = [torch.empty_like(mine) for _ in range(RANKS)]
    dist.gather(mine, outs if rank == 0 else None, 0)
    if rank == 0:
        for found, right in zip(outs, all_of_them, strict=True):
            same(found, right)


def check_types_and_ops(rank: int) -> None:
    for dtype in ("bfloat16", "float16", "int32", "int64"):
        stacked = torch.stack(everyone(dtype=dtype))
        for op, right in (
            (dist.ReduceOp.SUM, stacked.sum(0, dtype=stacked.dtype)),
            (dist.ReduceOp.MAX, stacked.amax(0)),
            (dist.ReduceOp.MIN, stacked.amin(0)),
        ):
            data = near(ramp(rank, dtype))
            dist.all_reduce(data, op)
            same(data, right)


def check_asynchronous_calls_in_order(rank: int) -> None:
    data = near(torch.zeros(4000))
    works = []
    for turn in range(5):
        data.fill_(float(turn + rank))
        works.append((dist.all_reduce(data, async_op=True), turn))
        works[-1][0].wait()
        same(data.clone(), torch.full((4000,), float(RANKS * turn + sum(range(RANKS)))))
    assert all(work.is_completed() for work, _ in works)


def check_messages(rank: int) -> None:
    """Round the ring, on the caller's stream, and both kinds at once."""
    out = near(torch.zeros(12))
    operations = [
        dist.P2POp(dist.isend, near(ramp(rank)), (rank + 1) % RANKS),
        dist.P2POp(dist.irecv, out, (rank - 1) % RANKS),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(out, ramp(rank - 1))
    if rank == 0:
        dist.send(near(torch.full((5,), 7.0)), 1)
    elif rank == 1:
        out = near(torch.zeros(5))
        dist.recv(out, 0)
        same(out, torch.full((5,), 7.0))


def check_host_and_device_side_by_side(rank: int) -> None:
    host, device = torch.tensor([float(rank)]), near(torch.tensor([float(rank)]))
    for _ in range(2):
        dist.all_reduce(host)
        dist.all_reduce(device)
    same(device, host)
    found: list[Any] = [None] * RANKS
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": each} for each in range(RANKS)]
    dist.barrier()


def check_groups_and_refusals(rank: int) -> None:
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    data = near(ramp(rank))
    dist.all_reduce(data, group=groups[rank // 2])
    first = rank // 2 * 2
    same(data, ramp(first) + ramp(first + 1))
    with pytest.raises(Exception, match="sparse"):
        dist.all_reduce(torch.ones(3).to_sparse().to(f"npu:{rank}"))


def work(folder: Path) -> int:
    rank = int(os.environ["HCCL_PY_RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group(
        "hccl_py", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    run_checks(globals(), folder, rank, (rank,))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    report(Path(sys.argv[1]), work, globals())
