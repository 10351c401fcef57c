"""Limits of a product's hardware: sizes of tasks, inline reductions, alignment, and the resources
of a device.

Nothing here is judged without a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from hccl_py.enums import RDMA_WRITES, DataType, LinkKind, ReduceOp, TaskKind
from hccl_py.program.describe import format_ranks
from hccl_py.program.transports import DATA_ACK
from hccl_py.topology.presets import Product
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.moves import Mask, MoveColumns, memory_at, rows_where
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject

_INLINE = (TaskKind.READ_REDUCE, TaskKind.WRITE_REDUCE, TaskKind.RDMA_WRITE_REDUCE)
_NO_LIMIT = np.iinfo(np.int64).max


def find_hardware(subject: Subject) -> Iterator[Finding]:
    """Yield TRANSFER_TOO_LARGE, UNSUPPORTED_INLINE_REDUCE, RESOURCE_EXCEEDED and UNALIGNED where
    the options name a product.
    """
    product = subject.options.product
    if product is None:
        return
    denied = _denied(subject, product)
    rows = rows_where(subject, _too_large(subject, product, denied))
    yield from findings_at(subject, rows, partial(_large, subject, product))
    rows = rows_where(subject, _unsupported(subject, denied))
    yield from findings_at(subject, rows, partial(_inline, subject, product))
    yield from _exceeded(subject, product)
    rows = rows_where(subject, partial(_are_unaligned, product))
    yield from findings_at(subject, rows, partial(_unaligned, subject, product), shown=1)


def _too_large(subject: Subject, product: Product, denied: Mask) -> Callable[[MoveColumns], Mask]:
    table = subject.tasks.table
    limit = np.full(len(table.kind), product.sdma_bytes)
    limit[np.isin(table.kind, RDMA_WRITES)] = product.rdma_bytes
    # A reduction that hardware cannot do inline is a kernel: no DMA task, no limit.
    limit[(table.kind == TaskKind.REDUCE) & denied] = _NO_LIMIT
    return lambda moves: np.greater(moves.src.size, limit[moves.instruction])


def _unsupported(subject: Subject, denied: Mask) -> Callable[[MoveColumns], Mask]:
    wrong = np.isin(subject.tasks.table.kind, _INLINE) & denied
    return lambda moves: wrong[moves.instruction] & moves.moves_bytes


def _denied(subject: Subject, product: Product) -> Mask:
    """Mark the instructions whose data type the hardware cannot reduce with their op."""
    table = subject.tasks.table

    @cache
    def is_denied(dtype: int, reduce: int, over: bool) -> bool:
        if dtype < 0 or reduce < 0:
            return True
        return (DataType.from_number(dtype), ReduceOp(reduce)) not in _inline_of(product, over)

    columns = table.dtype, table.reduce, np.isin(table.kind, RDMA_WRITES)
    return np.array([*map(is_denied, *(column.tolist() for column in columns))], bool)


def _inline_of(product: Product, rdma: bool) -> frozenset[tuple[DataType, ReduceOp]]:
    return product.rdma_inline if rdma else product.inline


def _are_unaligned(product: Product, moves: MoveColumns) -> Mask:
    align = product.slice_align
    off = (moves.src.start % align != 0) | (moves.dst.start % align != 0)
    found: Mask = moves.moves_bytes & off
    return found


def _large(subject: Subject, product: Product, row: int) -> Finding:
    rdma = subject.kind(row) in RDMA_WRITES
    limit = product.rdma_bytes if rdma else product.sdma_bytes
    return subject.finding(
        "TRANSFER_TOO_LARGE",
        f"{subject.place(row)} {subject.action(row)}: {int(subject.tasks.size[row])} bytes, "
        f"but one {'RDMA' if rdma else 'SDMA'} task of {product.title} moves at most {limit}.",
        "Cut the slice into several tasks, or let a round take less: "
        "ResourceRequest(max_count=...).",
        rows=[(row, 0)],
        memory=memory_at(subject, row),
    )


def _inline(subject: Subject, product: Product, row: int) -> Finding:
    table, at = subject.tasks.table, int(subject.tasks.instruction[row])
    dtype, reduce = DataType.from_number(int(table.dtype[at])), ReduceOp(int(table.reduce[at]))
    rdma = subject.kind(row) in RDMA_WRITES
    known = _inline_of(product, rdma)
    types = ", ".join(sorted({dtype.value for dtype, _ in known}))
    ops = ", ".join(op.spelling for op in sorted({op for _, op in known}))
    how = "over RDMA" if rdma else "while it copies"
    only = f"only {types} with {ops}" if known else "nor anything else"
    return subject.finding(
        "UNSUPPORTED_INLINE_REDUCE",
        f"{subject.place(row)} {subject.action(row)}: {product.title} cannot reduce "
        f"{dtype.value} with {reduce.spelling} {how}, {only}.",
        "Where rank.inline_reduce is false, copy beside (rank.landing) and reduce there; "
        "exchange() does.",
        rows=[(row, 0)],
        memory=memory_at(subject, row),
    )


def _unaligned(subject: Subject, product: Product, row: int) -> Finding:
    align, memory = product.slice_align, memory_at(subject, row)
    sides = zip(("source", "destination"), memory, strict=True)
    off = [f"the {side} begins at byte {m.start}" for side, m in sides if m.start % align]
    return subject.finding(
        "UNALIGNED",
        f"{subject.place(row)} {subject.action(row)}: {' and '.join(off)}, "
        f"no multiple{'s' * (len(off) > 1)} of {align}.",
        f"DMA of {product.title} is fastest from and to multiples of {align} bytes: pad what is "
        "staged in CCL memory, and cut slices there.",
        rows=[(row, 0)],
        memory=memory,
    )


def _exceeded(subject: Subject, product: Product) -> Iterator[Finding]:
    """Yield RESOURCE_EXCEEDED for needs of ranks that a device cannot meet.

    Streams and notifies of the CCU's programs stand for its registers, which its recorder counts.
    """
    declared, device = subject.program.declared, f"a device of {product.title}"
    needs = (
        (
            _own_memory(subject),
            _NO_LIMIT if product.memory_bytes is None else product.memory_bytes,
            f"bytes of CCL and scratch memory, but {device} has",
            "Lower scratch_bytes, or the size of the CCL buffers (HCCL_BUFFSIZE).",
        ),
        (
            declared.notifies + _transport_notifies(subject),
            product.notifies,
            f"notifies, those of transports included, but {device} has",
            "Talk to fewer peers, or use fewer sub streams and extra notifies.",
        ),
        (
            declared.sub_streams + 1,
            product.streams,
            f"streams, main included, but {device} has",
            "Share sub streams between peers: ResourceRequest(sub_streams=...).",
        ),
        (
            _most_contexts(subject, product.contexts),
            product.contexts,
            f"tasks in one round, but one FFTS graph of {product.title} holds",
            "Use an algorithm of fewer steps, or larger slices.",
        ),
    )
    for needed, limit, words, hint in needs[:1] if subject.program.engine == "ccu" else needs:
        ranks = np.flatnonzero(needed > limit).tolist()
        if ranks:
            verb = "needs" if len(ranks) == 1 else "need up to"
            yield subject.finding(
                "RESOURCE_EXCEEDED",
                f"{format_ranks(ranks)} {verb} {int(needed.max())} {words} {limit}.",
                hint,
                ranks=ranks,
            )


def _transport_notifies(subject: Subject) -> IntArray:
    """Return the notifies that each rank's transport ends take; over SDMA there is no DataAck."""
    transports = subject.program.transports
    spared = (transports.kind == LinkKind.SDMA) & (transports.notifies > DATA_ACK)
    each = transports.notifies.astype(np.int64) - spared
    return np.bincount(transports.rank, each, subject.program.ranks).astype(np.int64)


def _most_contexts(subject: Subject, limit: int) -> IntArray:
    """Return the tasks of each rank's largest round; 0 for ranks with at most `limit` in all."""
    tasks = subject.tasks
    total = np.diff(tasks.first)
    most = np.zeros(len(total), np.int64)
    for rank in np.flatnonzero(total > limit).tolist():
        instructions = tasks.instruction[tasks.first[rank] : tasks.first[rank + 1]]
        most[rank] = np.unique(tasks.table.round[instructions], return_counts=True)[1].max()
    return most


def _own_memory(subject: Subject) -> IntArray:
    own = [name not in ("IN", "OUT") for name in subject.program.buffers]
    found: IntArray = subject.program.buffer_sizes[:, own].sum(axis=1)
    return found
