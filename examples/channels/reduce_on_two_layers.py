"""AllReduce over several servers whose ranks are joined twice: by a mesh in each server, and all of
them by a Clos network.

Inside a server each pair of ranks has two channels, one per layer, and half of the data goes over
each, so that the Clos network works, too, while servers keep to themselves. With L ranks a server
and S servers, data is cut into L parts and each of those into S blocks:

    inside    a worker per peer and layer     post 0, wait 0    both inputs lie in the HCCL buffers
                                              read and reduce   half of my part
    across    main, peer after peer           wait 0            both parts are summed in the server
              (posts 0 and 1 to all first)    read and reduce   my block of the part
                                              wait 1            both blocks are summed
                                              read              the peer's block
                                              post 2, wait 2    both have read
    inside    the workers again               post 1, wait 1    both parts are whole
                                              read              half of the peer's part
                                              post 2, wait 2    both have read

2(L - 1) workers, three notifies a channel. A rank moves 2(L - 1)/L of the data inside and
2(S - 1)/(S L) of it across. An Ascend 950 has 50 GB/s to each peer of its mesh and a port of 400
GB/s to the Clos network, so with 8 ranks a server either network carries about as much inside.

    hccl-py check reduce_on_two_layers:ReduceOnTwoLayers
    hccl-py simulate all_reduce --executor reduce_on_two_layers:ReduceOnTwoLayers \\
        --topology ascend950 --servers 2 --devices 8 -b 256M --network contended
"""

from collections.abc import Iterator

from hccl_py.orchestration import Region
from hccl_py.orchestration.channels import Channel, ChannelRank, Thread
from hccl_py.plugins.executor import (
    ChannelRequest,
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)

STAGED, SUMMED, TAKEN = 0, 1, 2  # notifies of a channel
WAKE = 0  # the one notify of a worker


class ReduceOnTwoLayers:
    """A worker per peer and layer inside, main across; sums grow in order of arrival."""

    op = "all_reduce"
    algorithm = "level0:mesh;level1:mesh"
    order = "arrival"
    most_layers = 2

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require(
            (not topology.has_rdma, "reads peers"),
            (topology.has_equal_servers, "needs equal servers"),
            (topology.reduces_inline(op.dtype, op.reduce), "reduces on the way"),
            (not op.deterministic, "adds in order of arrival"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        n, size = rank.size, int(rank.level0.size)
        first, layers = rank.id // size * size, self.layers(rank.topology)
        inside = [
            ChannelRequest(first + (rank.id + d) % size, notifies=3, layer=layer)
            for d in range(1, size)
            for layer in range(layers)
        ]
        across = [
            ChannelRequest((rank.id + d) % n, notifies=3, layer=1) for d in range(size, n, size)
        ]
        workers = len(inside)
        return ChannelResources(
            channels=(*inside, *across),
            threads=(workers, *[1] * workers),
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: ChannelRank[Region, Region]) -> None:
        main, size = rank.main, int(rank.level0.size)
        staged = rank.buffer.head(rank.user_in.size)
        parts = staged.split(size, even=True, unit=op.unit)
        output = rank.user_out.split(size, even=True, unit=op.unit)
        part = parts[rank.level0.id]
        main.copy(staged, rank.user_in)
        self.wake(rank)
        for worker, channel, layer in self.inside(rank):
            mine = self.share(part, layer, rank, op)
            channel.post(worker, STAGED)
            channel.wait(worker, STAGED)
            channel.read_reduce(worker, mine, channel.remote(mine))
        self.join(rank)
        self.across(part, rank, op)
        self.wake(rank)
        main.copy(output[rank.level0.id], part)
        for worker, channel, layer in self.inside(rank):
            peer = channel.peer % size
            theirs = self.share(parts[peer], layer, rank, op)
            channel.post(worker, SUMMED)
            channel.wait(worker, SUMMED)
            channel.read(worker, self.share(output[peer], layer, rank, op), channel.remote(theirs))
            channel.post(worker, TAKEN)
            channel.wait(worker, TAKEN)
        self.join(rank)

    def across(self, part: Region, rank: ChannelRank[Region, Region], op: OpParam) -> None:
        """Add up a part over all servers, in place: each server's rank one block of it."""
        main, size = rank.main, int(rank.level0.size)
        channels = rank.channels[len(rank.workers) :]
        blocks = part.split(rank.size // size, even=True, unit=op.unit)
        mine = blocks[rank.id // size]
        for channel in channels:
            channel.post(main, STAGED)
        for channel in channels:
            channel.wait(main, STAGED)
            channel.read_reduce(main, mine, channel.remote(mine))
        for channel in channels:
            channel.post(main, SUMMED)
        for channel in channels:
            theirs = blocks[channel.peer // size]
            channel.wait(main, SUMMED)
            channel.read(main, theirs, channel.remote(theirs))
            channel.post(main, TAKEN)
        for channel in channels:
            channel.wait(main, TAKEN)

    def layers(self, topology: Topology) -> int:
        """Return the number of layers that a server's ranks use: one server has only layer 0."""
        return self.most_layers if len(topology.servers) > 1 else 1

    def inside(self, rank: ChannelRank[Region, Region]) -> Iterator[tuple[Thread, Channel, int]]:
        """Yield worker, channel and layer of every channel in the server."""
        layers = self.layers(rank.topology)
        for k, worker in enumerate(rank.workers):
            yield worker, rank.channels[k], k % layers

    def share(
        self, part: Region, layer: int, rank: ChannelRank[Region, Region], op: OpParam
    ) -> Region:
        """Return the share of a part that goes over a layer."""
        return part.split(self.layers(rank.topology), even=True, unit=op.unit)[layer]

    def wake(self, rank: ChannelRank[Region, Region]) -> None:
        for worker in rank.workers:
            rank.main.post(worker.notifies[WAKE])
        for worker in rank.workers:
            worker.wait(worker.notifies[WAKE])

    def join(self, rank: ChannelRank[Region, Region]) -> None:
        for worker, notify in zip(rank.workers, rank.main.notifies, strict=True):
            worker.post(notify)
        for notify in rank.main.notifies:
            rank.main.wait(notify)


class ReduceOnOneLayer(ReduceOnTwoLayers):
    """The same with the mesh alone inside servers, to compare with."""

    most_layers = 1
