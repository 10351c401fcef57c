"""PyTorch programs at the edges of what tensors can be; each one checks its own results."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

import hccl_py.torch
from hccl_py.torch.group import ProcessGroup

MOVED_ONLY = (torch.float8_e4m3fn, torch.float8_e5m2)
CYCLES = 50
UNUSUAL = (torch.int16, torch.uint16, torch.uint32, torch.uint64, torch.complex128)


def unusual_types(rank: int, size: int) -> None:
    for dtype in (*MOVED_ONLY, *UNUSUAL):
        own = torch.tensor([rank + 1, 0, 2]).to(dtype)
        rows = [torch.tensor([r + 1, 0, 2]).to(dtype) for r in range(size)]
        outs = [torch.empty(3, dtype=dtype) for _ in range(size)]
        dist.all_gather(outs, own)
        assert [out.tolist() for out in outs] == [row.tolist() for row in rows], dtype
        whole = torch.empty(3 * size, dtype=dtype)
        dist.all_gather_into_tensor(whole, own)
        assert whole.tolist() == [value for row in rows for value in row.tolist()], dtype
        dist.broadcast(own, 1)
        assert own.tolist() == rows[1].tolist(), dtype
    for dtype in UNUSUAL:
        own = torch.tensor([rank + 1, 0, 2]).to(dtype)
        dist.all_reduce(own)
        assert own.tolist() == [10, 0, 8], dtype
    for dtype in MOVED_ONLY:
        with pytest.raises(RuntimeError, match=r"sum does not take torch.float8_\w+"):
            dist.all_reduce(torch.ones(2).to(dtype))


def lazy_tensors(rank: int, size: int) -> None:
    """Torch negates when somebody looks; conjugated tensors it refuses itself."""
    negated = torch.tensor([1 + 1j * (rank + 1)]).conj().imag
    dist.all_reduce(negated)
    assert negated.tolist() == [-10.0]
    outs = [torch.zeros(1, dtype=torch.complex64).conj().imag for _ in range(size)]
    dist.all_gather(outs, torch.tensor([1.0 * rank]))
    assert [out.item() for out in outs] == [0.0, 1.0, 2.0, 3.0]


def outputs_that_do_not_fit(rank: int, size: int) -> None:
    """Every rank refuses them, and the group can still be used."""
    splits = [1] * size, [2] * size
    calls: list[Callable[[], object]] = [
        lambda: dist.all_gather([torch.zeros(3) for _ in range(size)], torch.ones(4)),
        lambda: dist.all_gather([torch.zeros(5) for _ in range(size)], torch.ones(4)),
        lambda: dist.reduce_scatter_tensor(torch.zeros(5), torch.ones(4 * size)),
        lambda: dist.reduce_scatter_tensor(torch.zeros(4), torch.ones(4 * size).double()),
        lambda: dist.all_to_all_single(torch.zeros(2 * size), torch.ones(4 * size)),
        lambda: dist.all_to_all_single(torch.zeros(size), torch.ones(2 * size), *splits),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=r"has \d elements of .*, the result \d+ of "):
            call()
    outs = [torch.zeros(3) for _ in range(size)] if rank == 1 else None
    if rank == 1:
        with pytest.raises(RuntimeError, match="has 3 elements"):
            dist.gather(torch.ones(4), outs, 1)
    else:
        dist.gather(torch.ones(4), outs, 1)
    dist.barrier()


def in_its_own_slot(rank: int, size: int) -> None:
    """Inputs lie in outputs, at some ranks or at all, in their slots or across them."""
    for at in (3 * rank, 3 * rank if rank == 2 else None, 1):
        whole = torch.zeros(3 * size)
        mine = torch.empty(3) if at is None else whole[at : at + 3]
        mine[:] = rank + 1
        dist.all_gather_into_tensor(whole, mine, async_op=True).wait()
        assert whole.tolist() == [r + 1.0 for r in range(size) for _ in range(3)]
    wanted = [4.0 * i + 6 for i in range(5 * rank, 5 * rank + 5)]
    for begin in (5 * rank, 3):
        parts = torch.arange(5.0 * size) + rank
        mine = parts[begin : begin + 5]
        dist.reduce_scatter_tensor(mine, parts)
        assert mine.tolist() == wanted
    squares = torch.arange(4.0 * size) + rank
    dist.all_to_all_single(squares, squares)
    assert squares.tolist() == [r + 4.0 * rank + i for r in range(size) for i in range(4)]


def shapes(rank: int, size: int) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    turned = x.clone().permute(2, 0, 1)
    dist.all_reduce(turned)
    assert torch.equal(turned, 4 * x.permute(2, 0, 1))
    joined = torch.empty(3, 2 * size, 4).transpose(0, 1)
    dist.all_gather_into_tensor(joined, x)
    assert torch.equal(joined, torch.cat([x] * size))
    outs = [torch.empty(4, 3, 2).permute(2, 1, 0) for _ in range(size)]
    dist.all_gather(outs, x)
    assert all(torch.equal(out, x) for out in outs)
    expanded = torch.full((1, 3), float(rank + 1)).expand(4, 3)
    dist.broadcast(expanded, 1)
    assert torch.equal(expanded, torch.full((4, 3), 2.0))
    point = torch.tensor(rank + 1.0)
    dist.all_reduce(point)
    assert point.item() == 10
    row = torch.empty(size)
    dist.all_gather_into_tensor(row, torch.tensor(float(rank)))
    assert row.tolist() == [0.0, 1.0, 2.0, 3.0]
    part = torch.tensor(0.0)
    dist.reduce_scatter_tensor(part, torch.arange(4.0))
    assert part.item() == 4 * rank


def nothing(rank: int, size: int) -> None:
    """Tensors without elements go through every call."""
    empty, zeros = torch.empty(0, 3), [0] * size
    dist.all_reduce(empty)
    dist.all_reduce(torch.empty(0, dtype=torch.int32), dist.ReduceOp.AVG)
    dist.reduce(empty, 1)
    dist.all_gather([torch.empty(0, 3) for _ in range(size)], empty)
    dist.all_gather_into_tensor(torch.empty(0, 3), empty)
    dist.reduce_scatter_tensor(torch.empty(0), torch.empty(0))
    dist.reduce_scatter(torch.empty(0), [torch.empty(0) for _ in range(size)])
    dist.all_to_all_single(torch.empty(0), torch.empty(0))
    dist.all_to_all_single(torch.empty(0), torch.empty(0), zeros, zeros)
    dist.gather(empty, [torch.empty(0, 3) for _ in range(size)] if rank == 0 else None, 0)
    dist.scatter(torch.empty(0), [torch.empty(0) for _ in range(size)] if rank == 0 else None, 0)
    if rank == 0:
        dist.send(empty, 1)
    if rank == 1:
        dist.recv(empty, 0)


def averages_and_inference(rank: int, size: int) -> None:
    whole = torch.tensor([3 * rank + 1, -rank])
    dist.all_reduce(whole, dist.ReduceOp.AVG)
    assert whole.tolist() == [22 // 4, -6 // 4]
    with pytest.raises(RuntimeError, match="is not offered"):
        dist.all_reduce(torch.ones(2), dist._make_nccl_premul_sum(2.0))
    with torch.inference_mode():
        tensor = torch.ones(3, dtype=torch.bfloat16)
        dist.all_reduce(tensor, async_op=True).wait()
        dist.all_reduce(column := torch.ones(3, 3)[:, 1])
    dist.all_reduce(tensor)
    assert tensor.tolist() == [16.0] * 3
    assert column.tolist() == [4.0] * 3


def folded_parts(rank: int, size: int) -> None:
    """Parts of 1 to 4 elements, of reductions that HCCL lacks: numbers 4 k + rank, k from 0."""
    ends = [1, 3, 6, 10]
    own = [4 * torch.arange(end - n, end) + rank for n, end in enumerate(ends, 1)]
    mine = torch.arange(ends[rank] - rank - 1, ends[rank])
    for op, added in ((dist.ReduceOp.BAND, 0), (dist.ReduceOp.BOR, 3), (dist.ReduceOp.AVG, 1)):
        part = torch.empty(rank + 1, dtype=torch.int64)
        dist.reduce_scatter(part, own, op)
        assert part.tolist() == (4 * mine + added).tolist(), op
    even = torch.empty(2, dtype=torch.int64)
    dist.reduce_scatter_tensor(even, 4 * torch.arange(8) + rank, dist.ReduceOp.BXOR)
    assert even.tolist() == [0, 0]
    dist.reduce_scatter_tensor(even, 4 * torch.arange(8) + rank, dist.ReduceOp.BOR)
    assert even.tolist() == [8 * rank + 3, 8 * rank + 7]


def large_objects(rank: int, size: int) -> None:
    data = os.urandom(10 << 20) if rank == 0 else None
    told: list[Any] = [data]
    dist.broadcast_object_list(told, 0)
    found: list[Any] = [None] * size
    dist.all_gather_object(found, told[0][: 1 + rank] if rank else told[0])
    assert [len(one) for one in found] == [10 << 20, 2, 3, 4]
    assert told[0] == found[0]


def waited_for_elsewhere(rank: int, size: int) -> None:
    tensor, seen = torch.ones(3), []
    work = dist.all_reduce(tensor, async_op=True)
    waiting = threading.Thread(target=lambda: seen.append(work.wait()))
    waiting.start()
    waiting.join()
    assert seen == [True]
    assert tensor.tolist() == [4.0] * 3


def many_messages(rank: int, size: int) -> None:
    """All pairs with several tags, sent in another order than received."""
    others, works = [r for r in range(size) if r != rank], []
    got = {(r, tag): torch.empty(5) for tag in range(3) for r in others}
    works += [dist.irecv(tensor, r, tag=tag) for (r, tag), tensor in got.items()]
    for r in others:
        sent = {tag: torch.full((5,), 100.0 * rank + 10 * r + tag) for tag in (2, 0, 1)}
        works += [dist.isend(tensor, r, tag=tag) for tag, tensor in sent.items()]
    for work in works:
        work.wait()
    for (r, tag), tensor in got.items():
        assert tensor.tolist() == [100.0 * r + 10 * rank + tag] * 5


def any_source_among_others(rank: int, size: int) -> None:
    if rank:
        for number in range(3):
            dist.send(torch.tensor([10.0 * rank + number]), 0, tag=5)
        return
    got = [torch.empty(1) for _ in range(9)]
    sources = [1, None, 2, None, 3, None, None, None, None]
    works = [dist.irecv(one, source, tag=5) for one, source in zip(got, sources, strict=True)]
    for work in works:
        work.wait()
    assert sorted(one.item() for one in got) == [10.0 * r + n for r in (1, 2, 3) for n in range(3)]
    assert [int(got[k].item()) // 10 for k in (0, 2, 4)] == [1, 2, 3]


def buffers_of_messages(rank: int, size: int) -> None:
    """A group has memory for the CCL buffers that it uses, messages for small ones of their own."""
    before, group = _shared_mb(), dist.new_group()
    dist.all_reduce(torch.ones(256), group=group)
    assert _shared_mb() - before < 1
    if rank < 2:
        data = torch.arange(8 << 20, dtype=torch.float32) * (1 - rank)  # 32 MB
        for tag in range(2):
            if rank == 0:
                dist.send(data, 1, group=group, tag=tag)
            else:
                dist.recv(data.zero_(), 0, group=group, tag=tag)
                assert torch.equal(data, torch.arange(8 << 20, dtype=torch.float32))
        assert _shared_mb() - before < 2 * (8 + 8) + 2  # of each tag: the sender's and the own
    dist.destroy_process_group(group)


def _shared_mb() -> float:
    """Return the shared memory that this process has touched."""
    with open("/proc/self/status") as file:
        found = next(line for line in file if line.startswith("RssShmem:"))
    return int(found.split()[1]) / 1024


def groups_come_and_go(rank: int, size: int) -> None:
    """Groups, one of them of gloo, leave no descriptor, thread or mapping."""

    def cycle(backend: str | None = None) -> None:
        group, tensor = dist.new_group(backend=backend), torch.ones(1000)
        dist.all_reduce(tensor, group=group)
        dist.all_reduce(tensor, group=group, async_op=True)
        if rank == 0:
            dist.send(tensor, 1, group=group)
        if rank == 1:
            dist.recv(tensor, 0, group=group)
        dist.destroy_process_group(group)

    cycle()
    cycle("gloo")
    before = _held()
    for _ in range(CYCLES):
        cycle()
    assert _held() == before


def a_group_that_is_let_go(rank: int, size: int) -> None:
    """It leaves nothing, either, and its calls end: so torch 2.6 destroys a group."""
    world = dist.group.WORLD
    assert isinstance(world, ProcessGroup)
    tensor = torch.ones(1000)

    def cycle() -> None:
        name = f"let go {tensor[0].item()}"
        group = ProcessGroup(replace(world.member, name=name, is_over=threading.Event()))
        group.allreduce([tensor])

    cycle()
    before = _held()
    cycle()
    assert _held() == before
    assert tensor.tolist() == [size**2] * 1000


def _held() -> tuple[int, int, int]:
    """Return the descriptors, threads and shared mappings of this process."""
    gc.collect()
    with open("/proc/self/maps") as file:
        mapped = sum("memfd:hccl_py" in line for line in file)
    return len(os.listdir("/proc/self/fd")), threading.active_count(), mapped


def calls_made_again(rank: int, size: int) -> None:
    """A call takes over from an earlier one of the same memory, op and parameters alone, and keeps
    no memory.
    """
    memory = torch.zeros(12)
    for turn in range(3):
        own = torch.arange(6.0) + rank + turn
        memory[:6] = own
        dist.all_reduce(memory[:6])
        total = size * (torch.arange(6.0) + turn) + sum(range(size))
        assert torch.equal(memory[:6], total)
        assert str(hccl_py.torch.last_trace()).startswith("all_reduce: all_reduce of 6 fp32")
        memory[:6] = own
        dist.all_reduce(memory[:6], dist.ReduceOp.AVG)
        assert torch.equal(memory[:6], total / size)
        memory[:6] = own
        dist.all_reduce(memory[:6], dist.ReduceOp.MAX)
        assert torch.equal(memory[:6], own - rank + size - 1)
        memory[:6] = own
        dist.all_reduce(memory[:6].view(torch.int32), dist.ReduceOp.BXOR)  # folded: not kept
        dist.all_reduce(memory.view(6, 2)[:, 1].zero_())
        for root in (0, turn % size):
            memory[:6] = own
            dist.broadcast(memory[:6], root)
            assert torch.equal(memory[:6], own - rank + root)
        parts = torch.empty(6 * size)
        dist.all_gather_into_tensor(parts, memory[:6])
        assert torch.equal(parts, memory[:6].repeat(size))
        large = torch.ones(1 << (17 + 2 * turn))  # buffers move
        dist.all_reduce(large)
        assert large.unique().tolist() == [size]
        leaf = torch.ones(4, requires_grad=True)
        dist.all_reduce(leaf)
        assert leaf.tolist() == [size] * 4
    array = np.ones(1000, np.float32)
    is_kept, given = weakref.ref(array), torch.from_numpy(array)
    del array
    for _ in range(2):
        dist.all_reduce(given)
    assert is_kept() is not None
    del given
    assert is_kept() is None


def an_exit_in_the_worker(rank: int, size: int) -> None:
    """A call that ends with an exit says so, and the queue goes on."""
    world = dist.group.WORLD
    assert isinstance(world, ProcessGroup)

    def leave(comm: object) -> None:
        raise SystemExit

    work = world._submit(leave, [], None, [])
    with pytest.raises(RuntimeError, match="SystemExit"):
        work.wait()
    tensor = torch.ones(4)
    dist.all_reduce(tensor, async_op=True).wait()
    assert tensor.tolist() == [size] * 4


def functions_of_a_repeated_call(rank: int, size: int) -> dict[str, int]:
    """Return how many Python functions of ours run in a call that is made again, by op: in a group
    of one, where no rank waits.
    """
    alone = [dist.new_group([member]) for member in range(size)][rank]
    data, part = torch.ones(256), torch.ones(256)
    calls: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(data, group=alone),
        "broadcast": lambda: dist.broadcast(data, rank, group=alone),
        "all_gather": lambda: dist.all_gather_into_tensor(data, part, group=alone),
        "barrier": lambda: dist.barrier(alone),
    }
    found = {}
    for name, call in calls.items():
        for _ in range(2):
            call()
        entered: list[str] = []

        def note(frame: Any, event: str, argument: Any, entered: list[str] = entered) -> None:
            module = frame.f_globals.get("__name__", "")
            if event == "call" and module.startswith(("hccl_py", "hccl_platform", "dataclasses")):
                entered.append(f"{module}.{frame.f_code.co_name}")

        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
        found[name] = len(entered)
    dist.destroy_process_group(alone)
    return found
