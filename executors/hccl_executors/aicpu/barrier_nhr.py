"""The barrier of the Ascend 950: ranks say by the steps of NHR that they have come; no data moves.

HCCL: InsV2BarrierSoleExecutor with InsTempBarrierNhrAicpu.
"""

from __future__ import annotations

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.duplex import recv_write, send_recv_write, send_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.on_aicpu import OnAicpu
from hccl_executors.aicpu.seats import AnyChannelRank, flat_over, requests, seat
from hccl_executors.aicpu.sole import NHR
from hccl_executors.sources import like_ascend950
from hccl_py.plugins.executor import ChannelResources, OpParam, RankView


class AicpuBarrierSoleNHR(OnAicpu):
    """Barrier over all ranks. Of two ranks a step first serves the lower one. It adds nothing."""

    op = "barrier"
    algorithm = NHR
    order = "rank"
    template = NhrTemplate()
    fidelity = like_ascend950(
        "barrier/executor/ins_v2_barrier_sole_executor",
        "barrier/template/aicpu/ins_temp_barrier_nhr_aicpu",
    )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        """Channels to the ranks of the steps."""
        return ChannelResources(channels=requests(flat_over(rank), self.template))

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        """Exchange news with two ranks a step."""
        place = seat(rank, flat_over(rank), rank.threads, op)
        for step in nhr_steps.gather_steps(place.me, place.n):
            tx, rx = place.channel(step.to), place.channel(step.source)
            if step.to == step.source:
                send_recv_write(place.main, tx, rx, ())
            elif step.to < step.source:
                send_write(place.main, tx, ())
                recv_write(place.main, rx)
            else:
                recv_write(place.main, rx)
                send_write(place.main, tx, ())
