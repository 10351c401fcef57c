"""Memory that several ranks touch, found from the batches without expanding them.

A slot is a buffer of a rank: slot = rank · buffers + buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.values import IntArray, RankInt, values_of

if TYPE_CHECKING:
    from hccl_py.program.program import Program


def atomic_slots(program: Program) -> frozenset[int]:
    """Return the slots that tasks of several ranks reduce into with nothing but the hardware's
    atomicity between them: `TaskKind.is_atomic` says which kinds that may be.
    """
    reducing = [(b, i) for b in program.batches for i in b.instructions if i.kind.is_atomic]
    if not any(i.kind.writes_remote for _, i in reducing):
        return frozenset()  # every rank reduces into its own memory
    buffers, over_sdma = len(program.buffers), set[int]()
    pairs: set[tuple[int, int]] = set()
    for batch, i in reducing:
        owners = i.peer if i.kind.writes_remote else batch.ranks
        slots = _slots(batch, i, owners, i.dst_buffer, buffers).tolist()
        pairs.update(zip(slots, batch.ranks[_moves_bytes(batch, i)].tolist(), strict=True))
        if i.kind is not TaskKind.RDMA_WRITE_REDUCE:
            over_sdma.update(slots)  # reductions over RDMA alone take turns
    ranks = Counter(slot for slot, _ in pairs)
    return frozenset(slot for slot, count in ranks.items() if count > 1 and slot in over_sdma)


def remote_slots(program: Program, names: Collection[str]) -> frozenset[int]:
    """Return the slots of buffers with these names that ranks other than their owner touch."""
    buffers, found = len(program.buffers), set()
    wanted = {k for k, name in enumerate(program.buffers) if name in names}
    for batch in program.batches:
        for i in batch.instructions:
            if i.kind.reads_remote and i.src_buffer in wanted:
                found.update(_slots(batch, i, i.peer, i.src_buffer, buffers).tolist())
            if i.kind.writes_remote and i.dst_buffer in wanted:
                found.update(_slots(batch, i, i.peer, i.dst_buffer, buffers).tolist())
    return frozenset(found)


def exposed_slots(program: Program, rank: int) -> frozenset[int]:
    """Return the slots of a rank that peers touch: what its process has to show them."""
    touched = remote_slots(program, program.buffers)
    return frozenset(slot for slot in touched if slot // len(program.buffers) == rank)


def _slots(
    batch: Batch, i: Instruction, owners: RankInt | IntArray, buffer: int, buffers: int
) -> IntArray:
    """Return the slots of one side of an instruction, for the ranks where it moves bytes."""
    everywhere = np.broadcast_to(values_of(owners), len(batch.ranks))
    return everywhere[_moves_bytes(batch, i)].astype(np.int64) * buffers + int(buffer)


def _moves_bytes(batch: Batch, i: Instruction) -> IntArray:
    return np.flatnonzero(np.broadcast_to(values_of(i.size), len(batch.ranks)))
