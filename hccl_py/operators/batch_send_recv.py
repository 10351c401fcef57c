"""The op of messages between pairs of ranks, all at once (HCCL: HcclBatchSendRecv)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hccl_py.call.op_param import OpParam, Table
from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer
from hccl_py.errors import ParameterError
from hccl_py.operators.base import Array, Operator, Variant, divided, lanes
from hccl_py.operators.parts import messages_of
from hccl_py.orchestration.rank import CallRank
from hccl_py.orchestration.region import Chunks
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray


class PairOperator(Operator):
    """Messages (source, destination, count): packed at both ends in the order of the list.

    The chunks of `rank.user_in` are the messages that a rank sends, those of `rank.user_out` the
    messages that it receives, both in the order of the list; ranks with fewer have empty chunks at
    the end.
    """

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse messages of the wrong form, and ranks that do not exist."""
        super().check(op, topology)
        for number, pair in enumerate(op.pairs):
            known = isinstance(pair, tuple) and len(pair) in (2, 3)
            if not known or not all(isinstance(n, int) and n >= 0 for n in pair):
                raise ParameterError(
                    f"{op.name}: message {number} is {pair!r}.",
                    "Give (source, destination) or (source, destination, count).",
                )
            for rank in pair[:2]:
                if rank >= topology.size:
                    raise ParameterError(
                        f"{op.name}: message {number} names rank {rank}.",
                        f"The communicator has ranks 0 to {topology.size - 1}.",
                    )

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        messages = messages_of(op, ranks)
        sent, received = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
        np.add.at(sent, messages.src, messages.count)
        np.add.at(received, messages.dst, messages.count)
        return sent * op.unit, received * op.unit

    def bind(self, op: OpParam, rank: CallRank[Chunks, Chunks], start: int, count: int) -> None:
        """Cut input and output to one chunk per message."""
        found, at = messages_of(op, rank.size), lanes(rank)
        sends = found.by_sender
        receives = found.by_receiver
        rank.user_in = divided(Buffer.USER_IN, op, sends.displs[at], sends.counts[at], start, count)
        rank.user_out = divided(
            Buffer.USER_OUT, op, receives.displs[at], receives.counts[at], start, count
        )

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the messages that each rank receives."""
        messages = messages_of(op, len(inputs))
        sizes = self.user_bytes(op, len(inputs))[1] // op.unit
        outputs: list[Array] = [np.zeros(size, inputs[0].dtype) for size in sizes.tolist()]
        for m in range(len(messages.src)):
            part = inputs[messages.src[m]][messages.sent[m] :][: messages.count[m]]
            outputs[messages.dst[m]][messages.received[m] :][: messages.count[m]] = part
        return list(outputs)


class BatchSendRecvOperator(PairOperator):
    """Any number of messages between any ranks, also to oneself, each with a count of its own."""

    facts = OPS["batch_send_recv"]

    def variants(self) -> tuple[Variant, ...]:
        """Return messages to both neighbours and oneself, and a star with three messages a pair."""
        return (
            lambda op, ranks: replace(op, pairs=_neighbours(op.count, ranks)),
            lambda op, ranks: replace(op, pairs=_star(op.count, ranks)),
        )


def _neighbours(count: int, ranks: int) -> Table:
    return tuple(
        (rank, (rank + distance) % ranks, count * (1 + (rank + distance) % 3))
        for rank in range(ranks)
        for distance in (1, 0, ranks - 1)
    )


def _star(count: int, ranks: int) -> Table:
    """Rank 0 talks twice with each other rank, in both directions."""
    return tuple(
        message
        for rank in range(1, ranks)
        for message in ((0, rank, count), (rank, 0, 2 * count), (0, rank, 3 * count))
    )
