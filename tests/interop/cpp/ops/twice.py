"""AllGather with two channels of every pair on one layer, half of the data over each."""

from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.channels import ChannelRank
from hccl_py.plugins.executor import ChannelRequest, ChannelResources, OpParam, RankView, Topology


class Twice:
    """Every worker writes one half to one peer."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return not topology.has_rdma and not op.in_place

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        n, memory = rank.size, (Buffer.USER_OUT,)
        channels = tuple(
            ChannelRequest((rank.id + d) % n, 2, memory=memory) for d in range(1, n) for _ in "ab"
        )
        return ChannelResources(channels, (len(channels), *[1] * len(channels)))

    def orchestrate(self, op: OpParam, rank: ChannelRank[Region, Chunks]) -> None:
        main = rank.main
        given = rank.user_in.split(2, even=True, unit=op.unit)
        place = rank.user_out[rank.id].split(2, even=True, unit=op.unit)
        for worker in rank.workers:
            main.post(worker.notifies[0])
        main.copy(rank.user_out[rank.id], rank.user_in)
        for k, (worker, channel) in enumerate(zip(rank.workers, rank.channels, strict=True)):
            worker.wait(worker.notifies[0])
            channel.post(worker, 0)
            channel.wait(worker, 0)
            channel.write_with_notify(worker, channel.remote(place[k % 2]), given[k % 2], 1)
            channel.wait(worker, 1)
            worker.post(main.notifies[k])
        for notify in main.notifies:
            main.wait(notify)
