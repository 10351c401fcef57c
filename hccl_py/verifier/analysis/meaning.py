"""The meaning of ops: the bytes of inputs that belong in each range of the outputs.

One row per range of an output: it holds the bytes of one rank's input, or the reduction of all
ranks' inputs. All ops of HCCL are here, v-ops with their counts and displacements. Bytes in no row
may hold anything: the output of ranks that are not the root, gaps between displaced blocks.

Nothing here is taken from the operators: they cut the data that executors move, and the judge of a
result must not share their mistakes. So a few lines say the same twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import InPlace
from hccl_py.values import IntArray

EVERYONE = -1
"""As a source: the reduction of all ranks' inputs."""

BLOCK = 1 << 20
"""Rows that are in memory at once."""

Row = tuple[int, int, int, int, int]


@dataclass(frozen=True, eq=False)
class Expected:
    """Bytes start .. stop of OUT of `rank` hold those from `offset` of IN of `source`."""

    rank: IntArray
    start: IntArray
    stop: IntArray
    source: IntArray
    offset: IntArray

    def __len__(self) -> int:
        return len(self.rank)


def expected_blocks(op: OpParam, ranks: int, at: IntArray | None = None) -> Iterator[Expected]:
    """Yield the expected ranges of all ranks, or of those in `at`, some ranks at a time: all
    together can be ranks² rows.
    """
    at = np.arange(ranks) if at is None else at
    each = max(1, BLOCK // ranks) if op.name in _ROW_PER_PEER else max(len(at), 1)
    for first in range(0, len(at), each):
        yield expected_ranges(op, ranks, at[first : first + each])


def expected_ranges(op: OpParam, ranks: int, at: IntArray | None = None) -> Expected:
    """Return the expected ranges of all ranks' outputs, or of those in `at`, without empty ones."""
    rows = _MEANINGS[op.name](op, ranks, np.arange(ranks) if at is None else at)
    table = np.array(rows, np.int64).reshape(-1, 5)
    rank, start, size, source, offset = table[table[:, 2] > 0].T
    return Expected(rank, start, start + size, source, offset)


def in_place_offsets(
    op: OpParam, ranks: int, in_place: bool | InPlace = True
) -> list[tuple[str, IntArray]]:
    """Return the layouts in which IN and OUT share memory: a name, and by rank the offset of OUT in
    IN, in bytes.

    HCCL demands the same pointers. Where the sizes differ, frameworks also give each rank its own
    slot of the larger buffer.
    """
    zero = np.zeros(ranks, np.int64)
    slots = np.arange(ranks, dtype=np.int64) * op.size
    layouts = {InPlace.START: ("IN and OUT begin at the same address", zero)}
    if op.name == "all_gather" and ranks > 1:
        layouts[InPlace.SLOT] = "IN is the rank's own slot of OUT", -slots
    if op.name == "reduce_scatter" and ranks > 1:
        layouts[InPlace.SLOT] = "OUT is the rank's own slot of IN", slots
    if isinstance(in_place, InPlace):  # with one rank, or equal sizes, the slot is the buffer
        return [layouts.get(in_place, layouts[InPlace.START])]
    return list(layouts.values())


def _rows(*columns: int | IntArray) -> IntArray:
    return np.stack(np.broadcast_arrays(*columns), axis=-1).reshape(-1, 5)


def _all_reduce(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    return _rows(at, 0, op.size, EVERYONE, 0)


def _all_gather(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    source = np.arange(ranks)
    return _rows(at[:, None], source * op.size, op.size, source, 0)


def _reduce_scatter(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    return _rows(at, 0, op.size, EVERYONE, at * op.size)


def _broadcast(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    return _rows(at, 0, op.size, _root(op), 0)


def _reduce(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    return _rows(_at_root(op, at), 0, op.size, EVERYONE, 0)


def _scatter(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    return _rows(at, 0, op.size, _root(op), at * op.size)


def _gather(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    source = np.arange(ranks)
    return _rows(_at_root(op, at)[:, None], source * op.size, op.size, source, 0)


def _all_to_all(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    rank, source = at[:, None], np.arange(ranks)
    return _rows(rank, source * op.size, op.size, source, rank * op.size)


def _all_gather_v(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    counts, displs = _blocks(op, ranks)
    return _rows(at[:, None], displs * op.unit, counts * op.unit, np.arange(ranks), 0)


def _reduce_scatter_v(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    counts, displs = _blocks(op, ranks)
    return _rows(at, 0, counts[at] * op.unit, EVERYONE, displs[at] * op.unit)


def _all_to_all_v(op: OpParam, ranks: int, at: IntArray) -> IntArray:
    """`matrix[i][j]` elements go from i to j; without displacements, blocks are packed."""
    sends = np.array(op.matrix or op.counts, np.int64).reshape(ranks, ranks)
    from_, to = _packed(sends), _packed(sends.T)
    displs = np.array(op.displs, np.int64).reshape(ranks, -1) if op.displs else None
    if displs is not None:
        from_ = displs[:, :ranks]
        to = displs[:, ranks:] if displs.shape[1] > ranks else to
    size, source = sends.T[at] * op.unit, np.arange(ranks)
    return _rows(at[:, None], to[at] * op.unit, size, source, from_.T[at] * op.unit)


def _pairs(op: OpParam, ranks: int, at: IntArray) -> Sequence[Row]:
    """Messages are packed at both ends in the order in which they are listed."""
    pairs = op.pairs or tuple((rank, (rank + 1) % ranks) for rank in range(ranks))
    sent, received = [0] * ranks, [0] * ranks
    rows, wanted = [], set(at.tolist())
    for source, rank, *count in pairs:
        size = (count[0] if count else op.count) * op.unit
        if rank in wanted:
            rows.append((rank, received[rank], size, source, sent[source]))
        sent[source] += size
        received[rank] += size
    return rows


def _nothing(op: OpParam, ranks: int, at: IntArray) -> Sequence[Row]:
    return ()


def _root(op: OpParam) -> int:
    return 0 if op.root is None else op.root


def _at_root(op: OpParam, at: IntArray) -> IntArray:
    mine: IntArray = at[at == _root(op)]
    return mine


def _blocks(op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
    counts = op.counts or (op.count,) * ranks
    displs = op.displs or tuple(accumulate(counts[:-1], initial=0))
    return np.array(counts, np.int64), np.array(displs, np.int64)


def _packed(sizes: IntArray) -> IntArray:
    """Return the beginning of each entry of a row when they lie side by side."""
    return np.cumsum(sizes, axis=1) - sizes


_ROW_PER_PEER = (
    "all_gather",
    "all_gather_v",
    "all_to_all",
    "all_to_all_v",
    "all_to_all_vc",
    "gather",
)
"""Ops whose outputs have a range from every rank; other outputs are one range, or one a message."""

_MEANINGS: dict[str, Callable[[OpParam, int, IntArray], Sequence[Row] | IntArray]] = {
    "all_gather": _all_gather,
    "all_gather_v": _all_gather_v,
    "all_reduce": _all_reduce,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all_v,
    "all_to_all_vc": _all_to_all_v,
    "barrier": _nothing,
    "batch_send_recv": _pairs,
    "broadcast": _broadcast,
    "gather": _gather,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_v": _reduce_scatter_v,
    "scatter": _scatter,
    "send_recv": _pairs,
}
