"""PyTorch programs that the processes of the tests run; each one checks its own results."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import hccl_py.torch

INTEGERS = (torch.int8, torch.uint8, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def trace() -> hccl_py.torch.CallTrace:
    last = hccl_py.torch.last_trace()
    assert last is not None
    return last


# ---- collectives ----


def reduces(rank: int, size: int, name: str) -> None:
    """Small whole numbers, so that every type holds the exact result."""
    op = getattr(dist.ReduceOp, name)
    values = [[1 + (7 * r + i) % 3 for i in range(13)] for r in range(size)]
    folds: dict[str, Any] = {
        "SUM": lambda t: t.sum(0),
        "AVG": lambda t: t.sum(0) // size,
        "PRODUCT": lambda t: t.prod(0),
        "MIN": lambda t: t.min(0).values,
        "MAX": lambda t: t.max(0).values,
        "BAND": lambda t: torch.tensor([c[0] & c[1] & c[2] & c[3] for c in t.T.tolist()]),
        "BOR": lambda t: torch.tensor([c[0] | c[1] | c[2] | c[3] for c in t.T.tolist()]),
        "BXOR": lambda t: torch.tensor([c[0] ^ c[1] ^ c[2] ^ c[3] for c in t.T.tolist()]),
    }
    whole = folds[name](torch.tensor(values))
    bitwise = name.startswith("B")
    for dtype in INTEGERS if bitwise else (*INTEGERS, *FLOATS):
        expected = whole.to(dtype)
        if name == "AVG" and dtype.is_floating_point:
            expected = (torch.tensor(values).sum(0).double() / size).to(dtype)
        tensor = torch.tensor(values[rank], dtype=dtype)
        dist.all_reduce(tensor, op)
        assert torch.equal(tensor, expected), (dtype, tensor, expected)
        at_root = torch.tensor(values[rank], dtype=dtype)
        dist.reduce(at_root, 1, op)
        assert rank != 1 or torch.equal(at_root, expected), (dtype, at_root)
        parts = [torch.tensor(values[rank], dtype=dtype) for _ in range(size)]
        mine = torch.empty(13, dtype=dtype)
        dist.reduce_scatter(mine, parts, op)
        assert torch.equal(mine, expected), (dtype, mine)


def moves(rank: int, size: int) -> None:
    for dtype in (*INTEGERS, *FLOATS, torch.bool, torch.complex64):
        own = torch.tensor([rank + 1, 0, 2]).to(dtype)
        outs = [torch.empty(3, dtype=dtype) for _ in range(size)]
        dist.all_gather(outs, own)
        for other, out in enumerate(outs):
            assert torch.equal(out, torch.tensor([other + 1, 0, 2]).to(dtype)), dtype
        copy = own.clone()
        dist.broadcast(copy, 2)
        assert torch.equal(copy, torch.tensor([3, 0, 2]).to(dtype)), dtype
        gathered = [torch.empty(3, dtype=dtype) for _ in range(size)] if rank == 1 else None
        dist.gather(own, gathered, 1)
        assert gathered is None or torch.equal(torch.stack(gathered), torch.stack(outs))
        part = torch.empty(3, dtype=dtype)
        dist.scatter(part, [out.clone() for out in outs] if rank == 3 else None, 3)
        assert torch.equal(part, own), dtype


def views(rank: int, size: int) -> None:
    """Tensors that are not contiguous, empty, or need gradients."""
    matrix = torch.full((4, 6), float(rank))
    dist.all_reduce(matrix[:, ::2])
    assert matrix[0].tolist() == [6.0, rank, 6.0, rank, 6.0, rank]
    transposed = torch.full((3, 2), float(rank)).t()
    dist.broadcast(transposed, 1)
    assert torch.equal(transposed, torch.ones(2, 3))
    empty = torch.empty(0)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    weight = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        dist.all_reduce(weight)
    assert weight.tolist() == [4.0, 4.0, 4.0]


def uneven(rank: int, size: int) -> None:
    outs = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(outs, torch.full((rank + 1,), float(rank)))
    assert [out.tolist() for out in outs] == [[float(r)] * (r + 1) for r in range(size)]
    parts = [torch.full((r + 1,), float(rank + 1)) for r in range(size)]
    mine = torch.empty(rank + 1)
    dist.reduce_scatter(mine, parts)
    assert mine.tolist() == [10.0] * (rank + 1)
    sent = torch.cat([torch.full((rank + r,), 10.0 * rank + r) for r in range(size)])
    received = torch.empty(sum(r + rank for r in range(size)))
    dist.all_to_all_single(
        received, sent, [r + rank for r in range(size)], [rank + r for r in range(size)]
    )
    expected = [10.0 * r + rank for r in range(size) for _ in range(r + rank)]
    assert received.tolist() == expected
    outs = [torch.empty(r + rank) for r in range(size)]
    dist.all_to_all(outs, list(sent.split([rank + r for r in range(size)])))
    assert torch.cat(outs).tolist() == expected


def into_tensors(rank: int, size: int) -> None:
    whole = torch.empty(size, 2)
    dist.all_gather_into_tensor(whole, torch.full((1, 2), float(rank)))
    assert whole[:, 1].tolist() == [0.0, 1.0, 2.0, 3.0]
    mine = torch.empty(2)
    dist.reduce_scatter_tensor(mine, torch.arange(2.0 * size))
    assert mine.tolist() == [4.0 * 2 * rank, 4.0 * (2 * rank + 1)]
    swapped = torch.empty(size)
    dist.all_to_all_single(swapped, torch.tensor([10.0 * rank + r for r in range(size)]))
    assert swapped.tolist() == [10.0 * r + rank for r in range(size)]


def sparse(rank: int, size: int) -> None:
    """Rank r has r + 1 values; all of them add up."""
    index = torch.tensor([list(range(rank + 1)), [0] * (rank + 1)])
    tensor = torch.sparse_coo_tensor(index, torch.full((rank + 1,), float(rank + 1)), (6, 2))
    dist.all_reduce(tensor)
    assert tensor.to_dense()[:, 0].tolist() == [10.0, 9.0, 7.0, 4.0, 0.0, 0.0]


def coalesced(rank: int, size: int) -> None:
    tensors = [torch.ones(2) * rank, torch.ones(3)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert tensors[0].tolist() == [6.0, 6.0]
    assert tensors[1].tolist() == [4.0] * 3
    outs = [torch.empty(size, 2), torch.empty(size, 3)]
    with dist._coalescing_manager():
        for out in outs:
            dist.all_gather_into_tensor(out, torch.full((1, out.shape[1]), float(rank)))
    assert outs[1][:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]


def objects(rank: int, size: int) -> None:
    found: list[Any] = [None] * size
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": r} for r in range(size)]
    told = [("from", 0)] if rank == 0 else [None]
    dist.broadcast_object_list(told, 0)
    assert told == [("from", 0)]


def traced(rank: int, size: int) -> None:
    dist.all_reduce(torch.ones(8))
    assert (trace().call, trace().executor) == ("all_reduce", "AllReduceMeshSmallCountExecutor")
    assert not trace().folded
    dist.all_reduce(torch.ones(8, dtype=torch.int32), dist.ReduceOp.BXOR)
    assert trace().folded
    assert "folded at every rank" in str(trace())


# ---- groups and asynchronous calls ----


def groups(rank: int, size: int) -> None:
    odd, even = dist.new_group([1, 3]), dist.new_group([0, 2])
    tensor = torch.tensor([float(rank)])
    work = dist.all_reduce(tensor, group=odd if rank % 2 else even, async_op=True)
    assert work.wait()
    assert work.is_completed()
    assert tensor.item() == (4.0 if rank % 2 else 2.0)
    dist.destroy_process_group(odd)


def in_order(rank: int, size: int) -> None:
    """Calls that nobody waits for in between happen in the order in which they were made."""
    tensor = torch.ones(1)
    works = [dist.all_reduce(tensor, async_op=True) for _ in range(5)]
    works[-1].wait()
    assert all(work.is_completed() for work in works)
    assert tensor.item() == 4.0**5
    future = dist.all_reduce(tensor, dist.ReduceOp.MAX, async_op=True).get_future()
    assert future.then(lambda done: done.value()[0] + 1).wait().item() == 4.0**5 + 1


def refused(rank: int, size: int) -> None:
    with pytest.raises(RuntimeError, match="whole numbers"):
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="The tensor is a sparse_coo tensor"):
        dist.broadcast(torch.ones(2).to_sparse(), 0)


# ---- messages ----


def messages(rank: int, size: int) -> None:
    behind, before = (rank + 1) % size, (rank - 1) % size
    sent, received = torch.full((4,), float(rank)), torch.empty(4)
    send, receive = dist.isend(sent, behind), dist.irecv(received, before)
    send.wait()
    receive.wait()
    assert received.tolist() == [float(before)] * 4
    pair = [dist.P2POp(dist.isend, sent, behind), dist.P2POp(dist.irecv, received, before)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()


def tags(rank: int, size: int) -> None:
    """A later message is taken first, by its tag."""
    if rank == 0:
        works = [dist.isend(torch.tensor([float(tag)]), 1, tag=tag) for tag in (3, 7)]
        for work in works:
            work.wait()
    elif rank == 1:
        first, second = torch.empty(1), torch.empty(1)
        dist.recv(first, 0, tag=7)
        dist.recv(second, 0, tag=3)
        assert (first.item(), second.item()) == (7.0, 3.0)


def any_source(rank: int, size: int) -> None:
    if rank:
        dist.send(torch.tensor([float(rank)]), 0)
        return
    received = torch.empty(1)
    sources = {dist.recv(received) for _ in range(size - 1)}
    assert sources == {1, 2, 3}


# ---- torch on top of it ----


def functional(rank: int, size: int) -> None:
    world = dist.group.WORLD
    tensor = torch.full((size, 2), float(rank + 1))
    assert funcol.all_reduce(tensor, "sum", world)[0, 0] == 10
    assert funcol.all_gather_tensor(tensor, 0, world).shape == (size * size, 2)
    assert funcol.reduce_scatter_tensor(tensor, "sum", 0, world)[0, 0] == 10
    shifted = funcol.all_to_all_single(tensor, [1] * size, [1] * size, world)
    assert shifted[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert funcol.broadcast(tensor, 1, world)[0, 0] == 2
    both = funcol.all_reduce_coalesced([tensor, 2 * tensor], "sum", world)
    assert [found[0, 0].item() for found in both] == [10.0, 20.0]
    leaf = torch.ones(size, 2, requires_grad=True)
    funcol.all_gather_tensor_autograd(leaf, 0, world).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad[0, 0] == size


def compiled(rank: int, size: int) -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x, "sum", dist.group.WORLD) + 1

    assert torch.compile(step, backend="aot_eager")(torch.ones(3)).tolist() == [5.0] * 3


def data_parallel(rank: int, size: int) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    for hook in (None, default_hooks.allreduce_hook):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        parallel = nn.parallel.DistributedDataParallel(model)
        if hook is not None:
            parallel.register_comm_hook(dist.group.WORLD, hook)
        parallel(torch.ones(3, 4) * rank).sum().backward()
        assert model.weight.grad is not None
        assert torch.allclose(model.weight.grad, torch.full((2, 4), 4.5))


def fully_sharded(rank: int, size: int) -> None:
    from torch.distributed.fsdp import fully_shard

    def model() -> nn.Sequential:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    alone, sharded = model(), model()
    mesh = init_device_mesh("cpu", (size,))
    for layer in (sharded[0], sharded[2], sharded):
        fully_shard(layer, mesh=mesh)
    ours, theirs = (torch.optim.SGD(m.parameters(), 0.1) for m in (sharded, alone))
    for step in range(2):
        torch.manual_seed(step)
        x = torch.randn(2 * size, 8)
        sharded(x[2 * rank : 2 * rank + 2]).pow(2).mean().backward()
        alone(x).pow(2).mean().backward()
        for optimizer in (ours, theirs):
            optimizer.step()
            optimizer.zero_grad()
    for part, whole in zip(sharded.parameters(), alone.parameters(), strict=True):
        assert torch.allclose(part.full_tensor(), whole, atol=1e-5)


def tensor_parallel(rank: int, size: int) -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (size,))
    x = torch.arange(32.0).reshape(8, 4)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    assert torch.equal(rows.redistribute(mesh, [Shard(1)]).to_local(), x[:, rank : rank + 1])
    product = rows @ distribute_tensor(x.t().contiguous(), mesh, [Replicate()])
    assert torch.allclose(product.full_tensor(), x @ x.t())
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    data = torch.randn(4, 8)
    alone = model(data)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    assert torch.allclose(parallelize_module(model, mesh, plan)(data), alone, atol=1e-5)


def pipelined(rank: int, size: int) -> None:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    torch.manual_seed(0)
    stages = [nn.Linear(8, 8) for _ in range(size)]
    x = torch.randn(8, 8)
    expected = x
    for stage in stages:
        expected = stage(expected)
    mine = PipelineStage(stages[rank], rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(mine, 4, loss_fn=lambda a, b: (a - b).pow(2).mean())
    if rank == 0:
        schedule.step(x)
    elif rank == size - 1:
        losses: list[torch.Tensor] = []
        out = schedule.step(target=torch.zeros(8, 8), losses=losses)
        assert torch.allclose(out, expected, atol=1e-5)
    else:
        schedule.step()
    assert stages[rank].weight.grad is not None


def meshes(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=mesh["tensor"].get_group())
    assert tensor.item() == (1.0 if rank < 2 else 5.0)


def checkpoints(rank: int, size: int) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.tensor import Shard, distribute_tensor

    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    mesh = init_device_mesh("cpu", (size,))
    dcp.save({"w": distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])}, checkpoint_id=folder[0])
    state = {"w": distribute_tensor(torch.zeros(8), mesh, [Shard(0)])}
    dcp.load(state, checkpoint_id=folder[0])
    assert torch.equal(state["w"].full_tensor(), torch.arange(8.0))
