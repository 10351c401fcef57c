"""AllGather in a mesh, as on HCCL's C++ API: every rank writes its input into every output.

The outputs are registered, so data is copied once, from user memory to user memory, and the notify
that says "it is there" travels behind it:

    worker for peer p     post 0 ──►  you may write into my output
                          wait 0      p's output may be written
                          write with notify 1 ──►  my input, to my place in p's output
                          wait 1      p's input has come

n - 1 workers, two notifies a channel, 5 tasks a worker beside its start and end; every link carries
one input each way.

    hccl-py check gather_by_writes:GatherByWrites
    hccl-py simulate all_gather --executor gather_by_writes:GatherByWrites --ranks 8 -b 64M
"""

from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.channels import ChannelRank
from hccl_py.plugins.executor import (
    ChannelRequest,
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)

READY, WRITTEN = 0, 1  # notifies of a channel
WAKE = 0  # the one notify of a worker


class GatherByWrites:
    """A worker per peer writes the rank's input to its place in the peer's output."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require(
            (not topology.has_rdma, "does not wait until RDMA has read its input"),
            (not op.in_place, "writes into outputs, which must not be inputs"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        n = rank.size
        return ChannelResources(
            channels=tuple(
                ChannelRequest((rank.id + d) % n, notifies=2, memory=(Buffer.USER_OUT,))
                for d in range(1, n)
            ),
            # Main has a notify for the end of each worker.
            threads=(n - 1, *[1] * (n - 1)),
        )

    def orchestrate(self, op: OpParam, rank: ChannelRank[Region, Chunks]) -> None:
        main, mine = rank.main, rank.user_out[rank.id]
        for worker in rank.workers:
            main.post(worker.notifies[WAKE])
        main.copy(mine, rank.user_in)
        for k, (worker, channel) in enumerate(zip(rank.workers, rank.channels, strict=True)):
            worker.wait(worker.notifies[WAKE])
            channel.post(worker, READY)
            channel.wait(worker, READY)
            channel.write_with_notify(worker, channel.remote(mine), rank.user_in, WRITTEN)
            channel.wait(worker, WRITTEN)
            worker.post(main.notifies[k])
        for notify in main.notifies:
            main.wait(notify)
