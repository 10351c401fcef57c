"""Pipeline parallelism: two stages of a model on two ranks, micro-batches one after the other.

Rank 0 sends activations forward, rank 1 sends gradients back; the result is that of one process.

    torchrun --nproc-per-node 2 examples/torch/pipeline.py
"""

import torch
import torch.distributed as dist
from torch import nn

import hccl_py.torch  # noqa: F401  (registers the backend)

MICRO_BATCHES, BATCH, WIDTH = 4, 8, 16


def stages() -> tuple[nn.Module, nn.Module]:
    """Return both stages, with the same parameters in every process."""
    torch.manual_seed(7)
    first = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
    return first, nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(MICRO_BATCHES, BATCH, WIDTH, generator=generator)
    return x, x.sum(dim=2, keepdim=True)


def first_stage(stage: nn.Module, x: torch.Tensor) -> None:
    """Send all activations, then take the gradients in the same order."""
    activations = [stage(micro) for micro in x]
    sends = [dist.isend(activation.detach(), dst=1) for activation in activations]
    for activation in activations:
        gradient = torch.empty_like(activation)
        dist.recv(gradient, src=1)
        activation.backward(gradient)
    for send in sends:
        send.wait()


def second_stage(stage: nn.Module, y: torch.Tensor) -> float:
    """Work on each micro-batch as it arrives; return the mean loss."""
    total, sends = 0.0, []
    for target in y:
        received = torch.empty(BATCH, WIDTH)
        dist.recv(received, src=0)
        received.requires_grad_()
        loss = nn.functional.mse_loss(stage(received), target) / MICRO_BATCHES
        loss.backward()
        sends.append(dist.isend(received.grad, dst=0))
        total += loss.item()
    for send in sends:
        send.wait()
    return total


if __name__ == "__main__":
    dist.init_process_group("hccl_py")
    rank = dist.get_rank()
    x, y = data()
    mine = stages()[rank]
    if rank == 0:
        first_stage(mine, x)
    else:
        print(f"loss {second_stage(mine, y):.6f}\n", end="", flush=True)

    whole = nn.Sequential(*stages())
    for a, b in zip(x, y, strict=True):
        (nn.functional.mse_loss(whole(a), b) / MICRO_BATCHES).backward()
    same = all(
        torch.allclose(ours.grad, theirs.grad, atol=1e-6)
        for ours, theirs in zip(mine.parameters(), whole[rank].parameters(), strict=True)
    )
    print(f"rank {rank}: gradients equal those of one process: {same}\n", end="", flush=True)
    dist.destroy_process_group()
