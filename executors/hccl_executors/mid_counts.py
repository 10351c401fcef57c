"""Small data over several superpods of Atlas A3: NHR through whole superpods, then between them.

All ranks of a superpod, in all its servers, are one plane, and ranks of the same place another one:

    all_reduce   sums of whole buffers over trees in every superpod, then between superpods
    all_gather   between superpods, then in the superpod the slots of one superpod after the other
    broadcast    over a tree in the root's superpod, then between superpods

So few steps take α and nothing forks. With P ranks in each of S superpods, l = ⌈log2 P⌉ and k =
⌈log2 S⌉: all_reduce (2l + 2k)(α + nβ) + (l + k)nγ, all_gather (k + lS)α + (PS - 1)/PS·nβ, broadcast
(l + k)(α + nβ). Source: HCCL's CollAllReduceMidCountFor91093Executor and its siblings (hcomm
8958adb).
"""

from __future__ import annotations

from collections.abc import Callable

from hccl_executors.rings.blocks import Opposite, RankBlocks, has_even_superpods
from hccl_executors.rings.places import sets
from hccl_executors.sources import like_newest
from hccl_executors.templates.nhr import nhr_all_gather, nhr_all_reduce_one_shot
from hccl_executors.templates.tree import tree_broadcast
from hccl_py.orchestration import Plane
from hccl_py.orchestration.subplane import Subplane
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)

ALIGN = 16 << 10
"""What rounds are multiples of."""


class TwoPlanes(BaseExecutor):
    """Stage the input in a CCL buffer, run on both planes, deliver; main alone."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs superpods of as many ranks, numbered superpod by superpod, and op-base mode."""
        return has_even_superpods(topology) and require(
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """NHR's links on both planes."""
        inside = Opposite(_pods(rank.topology), "NHR")
        return ResourceRequest(
            planes=(PlaneRequest("flat", inside), PlaneRequest("level2", "nhr")),
            max_count=_count(op, rank),
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        pods = _pods(rank.topology)
        inside = Subplane(rank.flat, pods.across())
        _RUNS[op.name](op, rank, inside, rank.level2)


def _pods(topology: Topology) -> RankBlocks:
    """Return the superpods, cut to single ranks."""
    pods = len(topology.superpods)
    return RankBlocks(pods, topology.size // pods, 1)


def _count(op: OpParam, rank: RankView) -> int:
    """Return the elements of a round, as HCCL computes them: where bytes should be aligned, it
    aligns elements.
    """
    if op.name == "broadcast":
        return rank.ccl_bytes // ALIGN * ALIGN // op.unit
    parts = rank.size if op.name == "all_gather" else 1
    aligned = rank.ccl_bytes // parts // ALIGN // op.unit * ALIGN
    return aligned or rank.ccl_bytes // parts // op.unit


def _all_reduce(op: OpParam, rank: AnyRank, inside: Plane, outside: Plane) -> None:
    work = rank.ccl_in.head(rank.user_in.size)
    rank.main.copy(work, rank.user_in)
    for plane in (inside, outside):
        nhr_all_reduce_one_shot(rank.main, plane, work)
    rank.main.copy(rank.user_out, work)


def _all_gather(op: OpParam, rank: AnyRank, inside: Plane, outside: Plane) -> None:
    slots, each = rank.stage_out(), int(inside.size)
    rank.main.copy(slots[rank.id], rank.user_in)
    pods = len(rank.topology.superpods)
    planes = (inside, outside)
    nhr_all_gather(rank.main, outside, sets(slots, planes, 1))
    for pod in range(pods):
        nhr_all_gather(rank.main, inside, slots.taken(pod * each, each))
    rank.deliver(slots)


def _broadcast(op: OpParam, rank: AnyRank, inside: Plane, outside: Plane) -> None:
    work, root = rank.ccl_out.head(rank.user_in.size), op.root or 0
    if rank.id == root:
        rank.main.copy(work, rank.user_in)
    pod, place = divmod(root, int(inside.size))
    if outside.id == pod:
        tree_broadcast(rank.main, inside, work, place)
    tree_broadcast(rank.main, outside, work, pod)
    if rank.id != root or not op.in_place:
        rank.main.copy(rank.user_out, work)


_RUNS: dict[str, Callable[[OpParam, AnyRank, Plane, Plane], None]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "broadcast": _broadcast,
}


class AllReduceMidCountFor91093Executor(TwoPlanes):
    """AllReduce of whole buffers over trees."""

    op = "all_reduce"
    algorithm = "level0:NA;level1:NHR;level2:NHR"
    fidelity = like_newest(
        "coll_all_reduce_mid_count_for_910_93_executor",
        "all_reduce_nhr_oneshot",
        "reduce_nhr_oneshot",
        "broadcast_nhr_oneshot",
    )


class AllGatherMidCountFor91093Executor(TwoPlanes):
    """AllGather by NHR, level2 first."""

    op = "all_gather"
    algorithm = "level0:NA;level1:NHR;level2:NHR"
    fidelity = like_newest("coll_all_gather_mid_count_for_910_93_executor", "all_gather_nhr")


class BroadcastMidCountFor91093Executor(TwoPlanes):
    """Broadcast over trees; HCCL takes it for two superpods of a server each."""

    op = "broadcast"
    algorithm = "level0:NA;level1:NHR;level2:NHR"
    fidelity = like_newest("coll_broadcast_midcount_for_910_93_executor", "broadcast_nhr_oneshot")
