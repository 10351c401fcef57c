"""Data parallel training with two ways to average gradients: DistributedDataParallel with a ring
all_reduce, and a parameter server, which reduces to rank 0 and broadcasts from there.

Both give the same parameters. A ring sends 2 (N - 1) K / N bytes from every rank, for gradients of
K bytes on N ranks; a parameter server sends as much as (N - 1) K from the server alone.

    torchrun --nproc-per-node 4 examples/torch/gradient_averaging.py
"""

import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import hccl_py.torch

WIDTH, STEPS = 256, 10


def averaged_by_ring(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP's hook: all_reduce, then divide."""
    work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def averaged_by_server(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP's hook: rank 0 gets the sum and sends the average to all."""
    gradients = bucket.buffer()
    dist.reduce(gradients, dst=0)
    SENT.append(sent_bytes())
    if dist.get_rank() == 0:
        gradients /= dist.get_world_size()
    dist.broadcast(gradients, src=0)
    done = torch.futures.Future()
    done.set_result(gradients)
    return done


def sent_bytes() -> int:
    """Return the bytes that the last call sent from here."""
    last = hccl_py.torch.last_trace()
    return 0 if last is None else last.sent_bytes


SENT: list[int] = []


def train(hook: Any) -> tuple[torch.Tensor, int, int, float]:
    """Return the parameters, bytes of gradients, bytes sent in the last step, seconds a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
    parallel = DistributedDataParallel(model, bucket_cap_mb=100)
    parallel.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    x = torch.randn(32, WIDTH)
    y = x.sum(dim=1, keepdim=True)
    start = time.perf_counter()
    for _ in range(STEPS):
        SENT.clear()
        optimizer.zero_grad()
        nn.functional.mse_loss(parallel(x), y).backward()
        optimizer.step()
        sent = sent_bytes() + sum(SENT)
    seconds = (time.perf_counter() - start) / STEPS
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    return parameters, parameters.numel() * 4, sent, seconds


if __name__ == "__main__":
    settings = hccl_py.torch.Settings(topology="ring", algo="level0:NA;level1:ring")
    dist.init_process_group("hccl_py", pg_options=settings)
    rank, size = dist.get_rank(), dist.get_world_size()
    results = {}
    for name, hook in (("ring", averaged_by_ring), ("server", averaged_by_server)):
        results[name], gradients, sent, seconds = train(hook)
        ring = 2 * (size - 1) * gradients / size
        print(
            f"rank {rank}, {name}: {sent} bytes sent for gradients of {gradients}, "
            f"{sent / ring:.3f} x 2(N-1)K/N, {seconds * 1e3:.1f} ms a step\n",
            end="",
            flush=True,
        )
        dist.barrier()
    same = torch.allclose(results["ring"], results["server"], atol=1e-5)
    print(f"rank {rank}: both end with the same parameters: {same}\n", end="", flush=True)
    dist.destroy_process_group()
