"""A full mesh on the main stream, of which executors that break it change one step.

stage    copy my input to CCL_Out, and to its place in the output
tell     Ack to every peer: my CCL_Out is ready
take     from each peer: wait for its Ack, read, DataSignal: I have read yours
finish   wait for every peer's DataSignal
"""

from __future__ import annotations

from typing import Any

from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.orchestration import Link, Region
from hccl_py.plugins.executor import OpParam, PlaneRequest, RankView, ResourceRequest, Topology
from hccl_py.topology.presets import DEFAULT_PRESET
from hccl_py.values import RankInt
from hccl_py.verifier import Cases, Options

AnyRank = Any
COUNT = 256

CASES: dict[str, Any] = {
    "ranks": (4,),
    "topology": DEFAULT_PRESET,
    "counts": (COUNT,),
    "dtypes": (DataType.FP32,),
    "reduce_ops": (ReduceOp.SUM,),
    "modes": (Mode.OP_BASE,),
    "in_place": False,
}


def cases(**changes: Any) -> Cases:
    """Return one call of 4 ranks, or another one."""
    return Cases(**(CASES | changes))


class Gather:
    """A mesh all-gather on main; `wrong` is for those that break it."""

    op = "all_gather"
    algorithm = "level0:mesh"
    cases = cases()
    options = Options()

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        staged = self.stage(rank)
        self.tell(rank)
        for peer, link in rank.flat.others():
            self.take(rank, peer, link, staged)
        self.finish(rank)

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        return staged

    def tell(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.tx_ack(rank.main)

    def take(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        link.rx_ack(rank.main)
        self.read(rank, peer, link, staged)
        link.tx_data_signal(rank.main)

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        rank.main.copy(rank.user_out[peer], link.remote(staged))

    def finish(self, rank: AnyRank) -> None:
        for _, link in rank.flat.others():
            link.rx_data_signal(rank.main)


class Reduce(Gather):
    """The same as an all-reduce: what is read is added to the own input."""

    op = "all_reduce"

    def stage(self, rank: AnyRank) -> Region:
        staged: Region = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out, rank.user_in)
        return staged

    def read(self, rank: AnyRank, peer: RankInt, link: Link, staged: Region) -> None:
        rank.main.reduce(rank.user_out, link.remote(staged))
