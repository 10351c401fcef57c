"""The eight collectives of torch.distributed on three ranks, each shown before and after.

torchrun --nproc-per-node 3 examples/torch/collectives.py
"""

import time

import torch
import torch.distributed as dist

import hccl_py.torch


def show(text: str) -> None:
    """Print one line at once, so that lines of several processes do not mix."""
    print(text + "\n", end="", flush=True)


def example_broadcast(rank: int, size: int) -> None:
    tensor = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]) if rank == 0 else torch.zeros(5)
    show(f"Before broadcast on rank {rank}: {tensor}")
    dist.broadcast(tensor, src=0)
    show(f"After broadcast on rank {rank}: {tensor}")


def example_reduce(rank: int, size: int) -> None:
    tensor = torch.tensor([rank + 1.0] * 5)
    show(f"Before reduce on rank {rank}: {tensor}")
    dist.reduce(tensor, dst=0, op=dist.ReduceOp.SUM)
    show(f"After reduce on rank {rank}: {tensor}")


def example_all_reduce(rank: int, size: int) -> None:
    tensor = torch.tensor([rank + 1.0] * 5)
    show(f"Before all_reduce on rank {rank}: {tensor}")
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    show(f"After all_reduce on rank {rank}: {tensor}")


def example_gather(rank: int, size: int) -> None:
    tensor = torch.tensor([rank + 1.0] * 5)
    gathered = [torch.zeros(5) for _ in range(size)] if rank == 0 else None
    show(f"Before gather on rank {rank}: {tensor}")
    dist.gather(tensor, gathered, dst=0)
    if rank == 0:
        show(f"After gather on rank 0: {gathered}")


def example_all_gather(rank: int, size: int) -> None:
    tensor = torch.tensor([rank + 1.0] * 5)
    gathered = [torch.zeros(5) for _ in range(size)]
    show(f"Before all_gather on rank {rank}: {tensor}")
    dist.all_gather(gathered, tensor)
    show(f"After all_gather on rank {rank}: {gathered}")


def example_scatter(rank: int, size: int) -> None:
    parts = None
    if rank == 0:
        parts = [torch.tensor([i + 1.0] * 5) for i in range(size)]
        show(f"Rank 0: Tensor to scatter: {parts}")
    tensor = torch.zeros(5)
    show(f"Before scatter on rank {rank}: {tensor}")
    dist.scatter(tensor, parts, src=0)
    show(f"After scatter on rank {rank}: {tensor}")


def example_reduce_scatter(rank: int, size: int) -> None:
    parts = [torch.tensor([rank + 1.0, 2.0 * (rank + 1)]) ** (j + 1) for j in range(size)]
    tensor = torch.zeros(2)
    show(f"Before ReduceScatter on rank {rank}: {parts}")
    dist.reduce_scatter(tensor, parts, op=dist.ReduceOp.SUM)
    show(f"After ReduceScatter on rank {rank}: {tensor}")


def example_barrier(rank: int, size: int) -> None:
    delay = 0.1 * rank
    show(f"Rank {rank} sleeps {delay:.1f} seconds.")
    time.sleep(delay)  # ranks are not equally busy
    came = torch.tensor([time.monotonic()], dtype=torch.float64)
    dist.barrier()
    left = time.monotonic()
    dist.all_reduce(came, op=dist.ReduceOp.MAX)
    show(f"Rank {rank} left the barrier after the last rank came: {left >= came.item()}")


EXAMPLES = [
    example_broadcast,
    example_reduce,
    example_all_reduce,
    example_gather,
    example_all_gather,
    example_scatter,
    example_reduce_scatter,
    example_barrier,
]

if __name__ == "__main__":
    dist.init_process_group("hccl_py")
    for example in EXAMPLES:
        example(dist.get_rank(), dist.get_world_size())
        last = hccl_py.torch.last_trace()
        if dist.get_rank() == 0 and last is not None:
            show(f"  {last}")
        dist.barrier()
    dist.destroy_process_group()
