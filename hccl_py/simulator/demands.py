"""Bytes that an op makes ranks send and receive, by any algorithm; lower bounds count them.

No switch adds anything up. So in an all-reduce every element takes 2(p - 1) messages at least: it
is a gossip of p ranks in one-way messages, in which each of p - 1 ranks must be heard of before any
rank knows the sum, and each of p - 1 ranks must then be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.operators.parts import blocks_of, exchange_of, messages_of
from hccl_py.values import IntArray

Ranks = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Demand:
    """Bytes that must enter and that must leave each rank, shape [ranks], and what all ranks
    together must receive. `into(inside)` is what must enter a set of ranks from outside. Messages
    between pairs are no collective: no rank waits for news from all.
    """

    enter: IntArray
    leave: IntArray
    total: int
    into: Callable[[Ranks], int]
    is_collective: bool = True


def demand_of(op: OpParam, ranks: int) -> Demand:
    """Return the demand of a call; a barrier demands news only, no bytes."""
    return _DEMANDS[op.name](op, ranks)


def _all_reduce(op: OpParam, ranks: int) -> Demand:
    each = np.full(ranks, op.size if ranks > 1 else 0, np.int64)
    return Demand(each, each, 2 * (ranks - 1) * op.size, lambda inside: op.size)


def _all_gather(op: OpParam, ranks: int) -> Demand:
    """Every rank lacks what the others have."""
    parts = _parts(op, ranks)
    lacking = parts.sum() - parts
    leave = parts if ranks > 1 else np.zeros_like(parts)
    return Demand(lacking, leave, int(lacking.sum()), lambda inside: int(parts[~inside].sum()))


def _reduce_scatter(op: OpParam, ranks: int) -> Demand:
    """The same backwards."""
    parts = _parts(op, ranks)
    others = parts.sum() - parts
    enter = parts if ranks > 1 else np.zeros_like(parts)
    return Demand(enter, others, int(others.sum()), lambda inside: int(parts[inside].sum()))


def _broadcast(op: OpParam, ranks: int) -> Demand:
    others, root = _others(op, ranks)
    leave = np.where(others, 0, op.size if ranks > 1 else 0)
    total = (ranks - 1) * op.size
    return Demand(others * op.size, leave, total, lambda inside: 0 if inside[root] else op.size)


def _reduce(op: OpParam, ranks: int) -> Demand:
    others, root = _others(op, ranks)
    enter = np.where(others, 0, op.size if ranks > 1 else 0)
    total = (ranks - 1) * op.size
    return Demand(enter, others * op.size, total, lambda inside: op.size if inside[root] else 0)


def _scatter(op: OpParam, ranks: int) -> Demand:
    others, root = _others(op, ranks)
    return _moved(np.full(ranks - 1, root), np.flatnonzero(others), op.size, ranks)


def _gather(op: OpParam, ranks: int) -> Demand:
    others, root = _others(op, ranks)
    return _moved(np.flatnonzero(others), np.full(ranks - 1, root), op.size, ranks)


def _all_to_all(op: OpParam, ranks: int) -> Demand:
    each = np.full(ranks, (ranks - 1) * op.size, np.int64)

    def into(inside: Ranks) -> int:
        return int(inside.sum()) * int((~inside).sum()) * op.size

    return Demand(each, each, ranks * (ranks - 1) * op.size, into)


def _exchange(op: OpParam, ranks: int) -> Demand:
    sends = exchange_of(op, ranks).sends * op.unit
    source, target = np.nonzero(sends)
    return _moved(source, target, sends[source, target], ranks)


def _messages(op: OpParam, ranks: int) -> Demand:
    found = messages_of(op, ranks)
    moved = _moved(found.src, found.dst, found.count * op.unit, ranks)
    return replace(moved, is_collective=False)


def _barrier(op: OpParam, ranks: int) -> Demand:
    nothing = np.zeros(ranks, np.int64)
    return Demand(nothing, nothing, 0, lambda inside: 0)


def _moved(source: IntArray, target: IntArray, size: IntArray | int, ranks: int) -> Demand:
    """Return the demand of messages; those to oneself stay where they are."""
    sizes = np.where(source != target, size, 0)
    enter, leave = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    np.add.at(enter, target, sizes)
    np.add.at(leave, source, sizes)

    def into(inside: Ranks) -> int:
        return int(sizes[inside[target] & ~inside[source]].sum())

    return Demand(enter, leave, int(sizes.sum()), into)


def _parts(op: OpParam, ranks: int) -> IntArray:
    counts, _ = blocks_of(op, ranks)
    return counts * op.unit


def _others(op: OpParam, ranks: int) -> tuple[Ranks, int]:
    """Return a mask of the ranks that are not the root, and the root."""
    root = op.root or 0
    return np.arange(ranks) != root, root


_DEMANDS: dict[str, Callable[[OpParam, int], Demand]] = {
    "all_gather": _all_gather,
    "all_gather_v": _all_gather,
    "all_reduce": _all_reduce,
    "all_to_all": _all_to_all,
    "all_to_all_v": _exchange,
    "all_to_all_vc": _exchange,
    "barrier": _barrier,
    "batch_send_recv": _messages,
    "broadcast": _broadcast,
    "gather": _gather,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_v": _reduce_scatter,
    "scatter": _scatter,
    "send_recv": _messages,
}
