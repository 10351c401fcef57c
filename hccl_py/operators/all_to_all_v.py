"""AllToAllV and AllToAllVC: every rank sends a part of its own size to every rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hccl_py.call.op_param import OpParam, Table
from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer
from hccl_py.errors import ParameterError
from hccl_py.operators.base import Array, Operator, Variant, divided, lanes
from hccl_py.operators.parts import (
    check_numbers,
    exchange_of,
    extents,
    first_overlap,
    refuse_others,
)
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Chunks
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray


class AllToAllV(Operator):
    """`counts[i][j]` elements go from rank i to rank j; they lie where `displs` says, or packed."""

    facts = OPS["all_to_all_v"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse amounts that are not ranks x ranks, and displacements of another shape."""
        super().check(op, topology)
        refuse_others(op, "matrix")
        ranks = topology.size
        check_numbers(op, "counts", op.counts, (ranks, ranks))
        if op.displs:
            wide = len(np.atleast_2d(np.array(op.displs[0]))[0]) > ranks
            check_numbers(op, "displs", op.displs, (ranks, 2 * ranks if wide else ranks))
            _refuse_overlaps(op, ranks)

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count whose usual amounts, c(1 + (i + j) mod 3), fill the largest send buffer
        of `size` bytes, rounded up.
        """
        largest = max(sum(1 + (i + j) % 3 for j in range(ranks)) for i in range(min(ranks, 3)))
        return -(-size // (largest * unit))

    def variants(self) -> tuple[Variant, ...]:
        """Return amounts that differ by pair, some that are empty, and reversed parts with gaps."""
        return (
            lambda op, ranks: replace(op, counts=mixed_amounts(op.count, ranks)),
            lambda op, ranks: replace(op, counts=sparse_amounts(op.count, ranks)),
            _displaced,
        )

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        parts = exchange_of(op, ranks)
        sent = extents(parts.send_displs, parts.sends)
        return sent * op.unit, extents(parts.recv_displs, parts.receives) * op.unit

    def bind(self, op: OpParam, rank: CallRank[Chunks, Chunks], start: int, count: int) -> None:
        """Cut the input to one chunk per receiver and the output to one per sender."""
        parts, at = exchange_of(op, rank.size), lanes(rank)
        rank.user_in = divided(
            Buffer.USER_IN, op, parts.send_displs[at], parts.sends[at], start, count
        )
        rank.user_out = divided(
            Buffer.USER_OUT, op, parts.recv_displs[at], parts.receives[at], start, count
        )

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the parts sent to each rank, at their displacements; gaps stay zero."""
        ranks = len(inputs)
        parts = exchange_of(op, ranks)
        sizes = extents(parts.recv_displs, parts.receives)
        outputs: list[Array | None] = []
        for rank in range(ranks):
            output = np.zeros(sizes[rank], inputs[0].dtype)
            for source in range(ranks):
                count, to = parts.sends[source, rank], parts.recv_displs[rank, source]
                from_ = parts.send_displs[source, rank]
                if count:
                    output[to : to + count] = inputs[source][from_ : from_ + count]
            outputs.append(output)
        return outputs


def mixed_amounts(count: int, ranks: int) -> Table:
    """Return c(1 + (i + j) mod 3) for every pair."""
    return tuple(tuple(count * (1 + (i + j) % 3) for j in range(ranks)) for i in range(ranks))


def sparse_amounts(count: int, ranks: int) -> Table:
    """Return c for every third pair and nothing for the others."""
    return tuple(tuple(count * ((i + 2 * j) % 3 == 1) for j in range(ranks)) for i in range(ranks))


def _displaced(op: OpParam, ranks: int) -> OpParam:
    """Lay parts out in reverse order, with gaps."""
    counts = tuple(tuple(op.count * (1 + (i * j) % 2) for j in range(ranks)) for i in range(ranks))
    row = tuple((ranks - 1 - j) * (2 * op.count + 3) for j in range(ranks))
    return replace(op, counts=counts, displs=((*row, *row),) * ranks)


def _refuse_overlaps(op: OpParam, ranks: int) -> None:
    """Refuse parts from two ranks that overlap in a rank's output; inputs may be sent twice."""
    parts = exchange_of(op, ranks)
    found = first_overlap(parts.recv_displs, parts.receives)
    if found is not None:
        rank, a, b = found
        displs = parts.recv_displs[rank]
        raise ParameterError(
            f"{op.name}: in the output of rank {rank}, the part from rank {a} ends at element "
            f"{displs[a] + parts.receives[rank, a]}, the one from rank {b} begins at {displs[b]}.",
            "Displacements keep the parts apart.",
        )


class AllToAllVC(AllToAllV):
    """`matrix[i][j]` elements go from rank i to rank j; parts lie packed in rank order."""

    facts = OPS["all_to_all_vc"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse a matrix that is not ranks x ranks, and displacements."""
        Operator.check(self, op, topology)
        refuse_others(op, "counts", "displs")
        check_numbers(op, "matrix", op.matrix, (topology.size, topology.size))

    def variants(self) -> tuple[Variant, ...]:
        """Return amounts that differ by pair, and some that are empty."""
        return (
            lambda op, ranks: replace(op, matrix=mixed_amounts(op.count, ranks)),
            lambda op, ranks: replace(op, matrix=sparse_amounts(op.count, ranks)),
        )
