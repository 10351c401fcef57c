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
