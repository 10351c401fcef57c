"""A ring whose steps are exchanges: over RDMA, DataAck ends them."""

from typing import Any

from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest


class ExchangingRing:
    """AllReduce by a ring in CCL_In: p - 1 exchanges that reduce, then p - 1 that gather."""

    op = "all_reduce"
    algorithm = "none"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        planes = (PlaneRequest("flat", "ring"),)
        return ResourceRequest(planes=planes, max_count=rank.ccl_bytes // op.unit)

    def orchestrate(self, op: Any, rank: Any) -> None:
        ring, p = rank.flat, rank.size
        work = rank.ccl_in.head(rank.user_in.size)
        rank.main.copy(work, rank.user_in)
        chunks = work.split(p)
        for step in rank.main.steps("reduce-scatter", p - 1):
            send, recv = chunks[(rank.id - 1 - step) % p], chunks[(rank.id - 2 - step) % p]
            exchange(rank.main, ring.right, ring.left, send, recv, reduce=True)
        for step in rank.main.steps("all-gather", p - 1):
            send, recv = chunks[(rank.id - step) % p], chunks[(rank.id - 1 - step) % p]
            exchange(rank.main, ring.right, ring.left, send, recv)
        rank.main.copy(rank.user_out, work)
