"""The amounts of ops whose parts differ in size, as tables of elements, and their legality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.errors import ParameterError
from hccl_py.operators.base import MAX_COUNT, Variant
from hccl_py.values import IntArray


def blocks_of(op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
    """Return counts and displacements of all_gather_v and reduce_scatter_v, shape [ranks] each."""
    counts = op.counts or (op.count,) * ranks
    displs = op.displs or tuple(accumulate(counts[:-1], initial=0))
    return np.array(counts, np.int64), np.array(displs, np.int64)


def end_of(counts: IntArray, displs: IntArray) -> int:
    """Return the end of the last part, in elements."""
    return int(extents(displs[None], counts[None])[0])


def check_blocks(op: OpParam, ranks: int) -> None:
    """Refuse counts and displacements that are not one per rank, or make blocks overlap."""
    if not op.counts:
        raise ParameterError(f"{op.name} needs counts.", "Give the elements of every rank's part.")
    check_numbers(op, "counts", op.counts, (ranks,))
    if not op.displs:
        return
    check_numbers(op, "displs", op.displs, (ranks,))
    counts, displs = blocks_of(op, ranks)
    found = first_overlap(displs[None], counts[None])
    if found is not None:
        _, a, b = found
        raise ParameterError(
            f"{op.name}: the part of rank {a} ends at element {displs[a] + counts[a]}, "
            f"the part of rank {b} begins at {displs[b]}.",
            "Displacements keep the parts apart.",
        )


def first_overlap(displs: IntArray, counts: IntArray) -> tuple[int, int, int] | None:
    """Return the first row in which two parts share elements, and both parts; empty parts share
    none.
    """
    starts = np.where(counts > 0, displs, np.iinfo(np.int64).max)  # empty ones last
    order = np.argsort(starts, axis=1, kind="stable")
    ends = np.take_along_axis(np.where(counts > 0, displs + counts, 0), order, 1)
    overlap = ends[:, :-1] > np.take_along_axis(starts, order, 1)[:, 1:]
    if not overlap.any():
        return None
    row, at = (int(number) for number in np.argwhere(overlap)[0])
    return row, int(order[row, at]), int(order[row, at + 1])


def extents(displs: IntArray, counts: IntArray) -> IntArray:
    """Return the end of each row's last part; empty parts take no room."""
    ends: IntArray = np.where(counts > 0, displs + counts, 0).max(axis=1, initial=0)
    return ends


def refuse_others(op: OpParam, *members: str) -> None:
    """Refuse amounts of a kind that the op does not take."""
    for member in members:
        if getattr(op, member):
            raise ParameterError(
                f"{op.name} takes no {member}.",
                "all_to_all takes a count, all_to_all_v counts and displs, all_to_all_vc a matrix.",
            )


def spread_blocks() -> tuple[Variant, ...]:
    """Return the sweep's amounts: c(1 + r mod 3), every second rank without data, gaps and another
    order.
    """
    return (
        lambda op, ranks: replace(
            op, counts=_numbers(op.count * (1 + r % 3) for r in range(ranks))
        ),
        lambda op, ranks: replace(op, counts=_numbers(op.count * (r % 2) for r in range(ranks))),
        lambda op, ranks: replace(
            op,
            counts=_numbers(op.count * (1 + r % 2) for r in range(ranks)),
            displs=_numbers((ranks - 1 - r) * (2 * op.count + 5) for r in range(ranks)),
        ),
    )


def _numbers(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(numbers)


class AllToAllParts:
    """The parts of the all_to_all family, by sender and receiver.

    `sends[i, j]` elements go from rank i, where they begin at `send_displs[i, j]` of its input, to
    rank j, where they begin at `recv_displs[j, i]` of its output.
    """

    def __init__(self, sends: IntArray, send_displs: IntArray, recv_displs: IntArray) -> None:
        self.sends = sends
        self.receives: IntArray = np.ascontiguousarray(sends.T)
        self.send_displs = send_displs
        self.recv_displs = recv_displs


@lru_cache(maxsize=4)
def exchange_of(op: OpParam, ranks: int) -> AllToAllParts:
    """Return the parts of the all_to_all family, packed where there are no displacements; the last
    few are cached, as every batch and round of a recording asks for its own.
    """
    table = op.matrix or op.counts
    sends = (
        np.array(table, np.int64).reshape(ranks, ranks)
        if table
        else np.full((ranks, ranks), op.count, np.int64)
    )
    from_, to = _packed(sends), _packed(sends.T)
    if op.displs:
        displs = np.array(op.displs, np.int64).reshape(ranks, -1)
        from_ = displs[:, :ranks]
        to = displs[:, ranks:] if displs.shape[1] > ranks else to
    for amounts in (sends, from_, to):
        amounts.flags.writeable = False
    return AllToAllParts(sends, from_, to)


class MessageList:
    """The messages of send_recv and batch_send_recv, in the order of the op's list.

    For message m: `src`, `dst`, `count`, and where it begins in the sender's input (`sent`) and in
    the receiver's output (`received`), in elements.
    """

    def __init__(self, src: IntArray, dst: IntArray, count: IntArray, ranks: int) -> None:
        self.src, self.dst, self.count = src, dst, count
        self.sent = _running(src, count)
        self.received = _running(dst, count)
        self._ranks = ranks

    @cached_property
    def by_sender(self) -> MessageTables:
        """Each rank's outgoing messages, in the order of the list."""
        return _ends(self.src, self.dst, (self.count, self.sent, self.received), self._ranks)

    @cached_property
    def by_receiver(self) -> MessageTables:
        """Each rank's incoming messages, in the order of the list."""
        return _ends(self.dst, self.src, (self.count, self.received, self.sent), self._ranks)


class MessageTables(NamedTuple):
    """Tables [rank, k] of a rank's k-th message: the peer, elements, and where they begin, here and
    at the peer.

    Ranks with fewer messages than the one with most have empty ones, with -1 as the peer.
    """

    peers: IntArray
    counts: IntArray
    displs: IntArray
    places: IntArray


@lru_cache(maxsize=16)
def messages_of(op: OpParam, ranks: int) -> MessageList:
    """Return the messages; without a list every rank r sends `count` to (r + 1) mod N."""
    if not op.pairs:
        src = np.arange(ranks)
        return MessageList(src, (src + 1) % ranks, np.full(ranks, op.count, np.int64), ranks)
    rows = [(pair[0], pair[1], pair[2] if len(pair) > 2 else op.count) for pair in op.pairs]
    src, dst, count = np.array(rows, np.int64).T
    return MessageList(src, dst, count, ranks)


def check_numbers(op: OpParam, what: str, numbers: object, shape: tuple[int, ...]) -> None:
    """Refuse a table of the wrong shape, or with numbers that are not whole or out of range."""
    hint = f"Give {' x '.join(map(str, shape))} whole numbers, for all ranks."
    try:
        table = np.array(numbers)
    except ValueError:
        raise ParameterError(
            f"{op.name} has {what} with rows of different lengths.", hint
        ) from None
    if table.shape != shape:
        found = " x ".join(map(str, table.shape)) or 0
        raise ParameterError(f"{op.name} has {what} of shape {found}.", hint)
    if table.dtype.kind not in "iu" and not all(type(n) is int for n in table.flat):
        raise ParameterError(f"{op.name} has {what} that are no whole numbers.", hint)
    for number in (table.min(), table.max()):
        if not 0 <= number <= MAX_COUNT:
            raise ParameterError(
                f"{op.name} has {what} with {number}.",
                f"Elements are counted from 0 to {MAX_COUNT}.",
            )


def _ends(
    owner: IntArray, peer: IntArray, numbers: Sequence[IntArray], ranks: int
) -> MessageTables:
    place = _running(owner, np.ones_like(owner))
    shape = ranks, int(place.max(initial=-1)) + 1
    table = MessageTables(
        np.full(shape, -1, np.int64), *(np.zeros(shape, np.int64) for _ in numbers)
    )
    for column, values in zip(table, (peer, *numbers), strict=True):
        column[owner, place] = values
    return table


def _packed(sizes: IntArray) -> IntArray:
    """Return the beginning of each entry of a row when they lie side by side."""
    return np.cumsum(sizes, axis=1) - sizes


def _running(owner: IntArray, count: IntArray) -> IntArray:
    """Return for every message the elements of its owner's earlier ones."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(count[order])
    starts = ends - count[order]
    first = np.searchsorted(owner[order], owner[order])
    found = np.empty_like(count)
    found[order] = starts - starts[first]
    return found
