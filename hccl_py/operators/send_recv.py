"""SendRecv: messages of one size between pairs of ranks, each sent and received by one call."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.errors import ParameterError
from hccl_py.operators.base import Variant
from hccl_py.operators.batch_send_recv import PairOperator
from hccl_py.topology.topology import Topology


class SendRecv(PairOperator):
    """HCCL's Send at one rank and Recv at the other, for every pair of the list; by default every
    rank r sends to (r + 1) mod N. A rank sends at most one message and receives at most one.
    """

    facts = OPS["send_recv"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse a rank that sends or receives twice."""
        super().check(op, topology)
        for end, what in ((0, "sends"), (1, "receives")):
            ranks = Counter(pair[end] for pair in op.pairs)
            twice = next((rank for rank, times in ranks.items() if times > 1), None)
            if twice is not None:
                raise ParameterError(
                    f"send_recv: rank {twice} {what} more than once.", "Use batch_send_recv."
                )

    def variants(self) -> tuple[Variant, ...]:
        """Return the ring, one pair, and swapping neighbours."""
        return (
            lambda op, ranks: op,
            lambda op, ranks: replace(op, pairs=((0, ranks - 1),)),
            lambda op, ranks: replace(
                op, pairs=tuple((rank, rank ^ 1) for rank in range(ranks // 2 * 2))
            ),
        )
