"""Communicators that own some of the ranks: threads stand for processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.errors import ParameterError
from tests.thread_platform import ThreadJob, ThreadPlatform, in_threads


def values(rank: int, *shape: int) -> Any:
    """Numbers that tell ranks and places apart."""
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape) + 1000 * (rank + 1)


def test_every_process_gives_the_arrays_of_its_ranks() -> None:
    def body(comm: hccl.Communicator) -> Any:
        return comm.local_ranks, comm.all_gather([values(r, 2) for r in comm.local_ranks]).outputs

    right = np.concatenate([values(rank, 2) for rank in range(5)])
    found = in_threads(5, body, owners=[0, 0, 1, 1, 1])
    assert [local for local, _ in found] == [range(2), range(2, 5)]
    assert [len(outputs) for _, outputs in found] == [2, 3]
    assert all((output == right).all() for _, outputs in found for output in outputs)


def test_groups_are_those_of_this_process() -> None:
    def body(comm: hccl.Communicator) -> Any:
        rank = comm.local_ranks[0]
        pair = comm.create_group([3, 1])
        halves = comm.split([0, 0, 1, 1])
        with hccl.parallel_groups(comm, tp=2) as grid:
            sums = [g.all_reduce([values(rank, 2)]).outputs[0][0] for g in (*grid.tp, *grid.dp)]
        inner = None if pair is None else pair.create_group([0])
        gathered = None if pair is None else pair.all_gather([values(rank, 1)]).outputs[0].tolist()
        return pair and pair.local_ranks, gathered, list(halves), inner and inner.ranks, sums

    found = in_threads(4, body)
    assert [pair for pair, *_ in found] == [None, range(1, 2), None, range(1)]
    assert [gathered for _, gathered, *_ in found] == [None, [4000, 2000]] * 2
    assert [colors for _, _, colors, *_ in found] == [[0], [0], [1], [1]]
    assert [inner for *_, inner, _ in found] == [None, None, None, (0,)]
    assert [sums for *_, sums in found] == [
        [3000, 4000], [3000, 6000], [7000, 4000], [7000, 6000]
    ]  # fmt: skip


def test_group_names_do_not_depend_on_who_is_a_member() -> None:
    def body(comm: hccl.Communicator) -> Any:
        comm.create_group([0])
        comm.create_group([1], name="x")
        again = comm.create_group([0, 1], name="x")
        assert again is not None
        comm.barrier()
        return again.name, again.barrier().selection.tag

    first, second = in_threads(2, body)
    assert first == second
    assert first[0] == "x"


def test_a_process_without_ranks_is_refused() -> None:
    platform = ThreadPlatform(ThreadJob((0, 0)), 7)
    with (
        hccl.Communicator(2, platform=platform) as comm,
        pytest.raises(ParameterError, match="owns no rank of hccl_world_group") as caught,
    ):
        comm.barrier()
    assert caught.value.hint


SIZE = 3
ROWS = 4
"""Rows of a rank's part, so that every op has parts of one size."""


def given(name: str, rank: int) -> Any:
    """A rank's input of an op."""
    splits = name in ("reduce_scatter", "scatter", "all_to_all")
    return values(rank, ROWS * SIZE if splits else ROWS, 2)


def expected(name: str, rank: int) -> Any:
    """A rank's output of an op with root 1, None where it has none."""
    whole = [given(name, r) for r in range(SIZE)]
    parts = [np.split(each, SIZE) for each in whole] if len(whole[0]) > ROWS else []
    if name == "all_reduce" or (name, rank) == ("reduce", 1):
        return sum(whole)
    if name == "all_gather" or (name, rank) == ("gather", 1):
        return np.concatenate(whole)
    if name == "reduce_scatter":
        return sum(part[rank] for part in parts)
    if name == "all_to_all":
        return np.concatenate([part[rank] for part in parts])
    if name == "send_recv":
        return whole[rank - 1]
    return {"broadcast": whole[1], "scatter": parts[1][rank] if parts else None}.get(name)


OPS = (
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "scatter", "gather"),
    *("all_to_all", "send_recv"),
)


def call(comm: Any, name: str, inputs: Any, **how: Any) -> Any:
    """Call an op, with root 1 where it has one."""
    root = {"root": 1} if name in ("broadcast", "reduce", "scatter", "gather") else {}
    return getattr(comm, name)(inputs, **root, **how).outputs


def placed(name: str, rank: int, data: Any) -> tuple[Any, Any]:
    """An input and an output, in another relation to each other at every rank; None for none."""
    shape = data.shape if name == "reduce" else expected(name, 1).shape
    apart = np.zeros(shape, data.dtype)
    if rank == 2 and name in ("broadcast", "reduce"):
        return data, None
    if rank != 1 and name == "gather":
        return data, [None]
    if rank == 1:
        return data, [np.zeros((*shape, 2), data.dtype)[..., 0]]
    if rank == 0 and name in ("all_reduce", "broadcast", "reduce"):
        return data, [data]
    if rank == 0 and name in ("all_gather", "reduce_scatter"):
        memory = np.zeros(64, data.dtype)
        inside = memory[1 : 1 + data.size].reshape(data.shape)
        inside[...] = data
        return inside, [memory[: apart.size].reshape(shape)]
    return data, [apart]


@pytest.mark.parametrize("mode", ["op_base", "graph"])
@pytest.mark.parametrize("name", OPS)
def test_all_processes_record_one_program_wherever_their_arrays_lie(name: str, mode: str) -> None:
    def body(comm: hccl.Communicator) -> None:
        rank = comm.local_ranks[0]
        data, out = placed(name, rank, given(name, rank))
        before, right = data.copy(), expected(name, rank)
        [found] = call(comm, name, [data], **({} if out is None else {"out": out}))
        assert right is None or np.array_equal(found, right)
        assert out is None or found is out[0]
        if out is None or not np.shares_memory(data, out[0]):
            assert np.array_equal(data, before)

    in_threads(SIZE, body, mode=mode)


def test_a_root_elsewhere_needs_only_an_output() -> None:
    def body(comm: hccl.Communicator) -> None:
        rank = comm.local_ranks[0]
        for name in ("broadcast", "scatter"):
            data = given(name, rank) if rank == 1 else None
            out = None if rank == 1 else np.zeros_like(expected(name, rank))
            [found] = call(comm, name, [data], **({} if out is None else {"out": out}))
            assert np.array_equal(found, expected(name, rank))
            assert out is None or found is out

    in_threads(SIZE, body)


def test_empty_arrays_go_through_with_a_root_elsewhere() -> None:
    def body(comm: hccl.Communicator) -> Any:
        names = ("broadcast", "all_reduce")
        return [call(comm, name, [np.zeros((0, 3))])[0].shape for name in names]

    assert in_threads(2, body) == [[(0, 3), (0, 3)]] * 2


def test_pending_calls_of_all_processes_meet() -> None:
    def body(comm: hccl.Communicator) -> Any:
        rank = comm.local_ranks[0]
        data = values(rank, 3)
        first = comm.all_reduce([data], out=[data], async_op=True)
        second = comm.all_gather([data], async_op=True)
        third = comm.all_gather_v([values(rank, rank + 1)])
        return first.wait(10).outputs[0], second.wait(10).outputs[0], third.outputs[0]

    total = values(0, 3) + values(1, 3)
    for first, second, third in in_threads(2, body):
        assert np.array_equal(first, total)
        assert np.array_equal(second, np.concatenate([total, total]))
        assert np.array_equal(third, np.concatenate([values(0, 1), values(1, 2)]))


def test_amounts_of_other_processes_are_gathered() -> None:
    def body(comm: hccl.Communicator) -> None:
        rank = comm.local_ranks[0]
        mine = values(rank, rank + 1, 2)
        [gathered] = comm.all_gather_v([mine]).outputs
        assert np.array_equal(gathered, np.concatenate([values(r, r + 1, 2) for r in range(SIZE)]))
        [received] = comm.all_to_all_v(
            [[mine[: max(rank + 1 - r, 0)] for r in range(SIZE)]]
        ).outputs
        sent = [values(r, r + 1, 2)[: max(r + 1 - rank, 0)] for r in range(SIZE)]
        assert np.array_equal(received, np.concatenate(sent))
        pairs = [(0, 1), (2, 0), (0, 1)]
        lists = {0: [mine, mine], 1: [], 2: [mine[:2]]}
        # Where a rank sends nothing, its output says what the messages are made of.
        out = [np.zeros((2, 2), np.int32)] if rank == 1 else None
        [got] = comm.batch_send_recv([lists[rank]], pairs, out=out).outputs
        wanted = {0: values(2, 3, 2)[:2], 1: np.concatenate([values(0, 1, 2)] * 2)}
        assert np.array_equal(got, wanted[rank]) if rank in wanted else got is None

    in_threads(SIZE, body)
