"""What is used and was not asked for, or the other way round."""

from __future__ import annotations

from hccl_py.enums import Buffer
from hccl_py.orchestration import Link, Region
from hccl_py.plugins.executor import OpParam, PlaneRequest, RankView, ResourceRequest
from hccl_py.values import RankInt
from tests.verifier.broken.mesh import AnyRank, Gather
from tests.verifier.broken.order import Forked


class NotifyIndexOutOfRange(Gather):
    """One extra notify was requested, and the second one is used."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=1),))

    def tell(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.post(rank.main, int(self.wrong))
            link.tx_ack(rank.main)

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        link.wait(rank.main, int(self.wrong))
        super().take(rank, peer, link, staged)


class UndeclaredChannel(Gather):
    """A ring has no links to the ranks beyond the neighbours."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "ring" if self.wrong else "mesh"),))


class UndeclaredStream(Gather):
    """One sub stream was requested, and two are woken."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=1)

    def finish(self, rank: AnyRank) -> None:
        with rank.fork(2 if self.wrong else 1) as (sub, *_):
            for _, link in rank.flat.others():
                link.rx_data_signal(sub)


class ResourceMismatch(Gather):
    """Rank 0 asks for another notify for each of its transports, the others do not."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        extra = 1 if self.wrong and rank.id == 0 else 0
        return ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=extra),))


class ResourceExceeded(Gather):
    """More notifies than a device has."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        notifies = 8192 - 3 * 2 + self.wrong
        return ResourceRequest((PlaneRequest("flat", "mesh"),), notifies=notifies)


class ResourceUnused(Forked):
    """Scratch that nobody uses."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        planes = (PlaneRequest("flat", "mesh"),)
        return ResourceRequest(planes, sub_streams=1, scratch_bytes=64 * self.wrong)


class RemoteNotExported(Gather):
    """Reads the peer's input itself, which only an own request exports."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        memory = None if self.wrong else Buffer.USER_IN
        return ResourceRequest((PlaneRequest("flat", "mesh", input_mem=memory),))

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        rank.main.copy(rank.user_out[peer], link.remote(rank.user_in))
