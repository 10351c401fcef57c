"""Executors of one template: a row has the template, the bytes of one round, and its source."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any, ClassVar

from hccl_executors.aicpu.all_gather import MeshAllGather, NhrAllGather
from hccl_executors.aicpu.all_reduce import (
    NhrAllReduce,
    NhrWholeAllReduce,
    OneShotAllReduce,
    TwoShotAllReduce,
    rounded_down,
)
from hccl_executors.aicpu.all_to_all import BoardsInTurn, PairsOfRanks
from hccl_executors.aicpu.chunk_steps import AllReduceInChunks, ReduceScatterInChunks
from hccl_executors.aicpu.from_root import MeshScatter, NhrBroadcast, NhrScatter, TwoShotBroadcast
from hccl_executors.aicpu.on_aicpu import BesideClos
from hccl_executors.aicpu.one_template import (
    SoleAllGather,
    SoleAllReduce,
    SoleBroadcast,
    SoleInSlots,
    SoleOnBoards,
    SolePlacedReduceScatter,
    SoleReduce,
    SoleReduceScatter,
    SoleScatter,
)
from hccl_executors.aicpu.reduce import NhrReduce, NhrWholeReduce, StarReduce, TwoShotReduce
from hccl_executors.aicpu.reduce_scatter import (
    MeshReduceScatter,
    NhrReduceScatter,
    NhrWholeReduceScatter,
    ReduceScatterInGroups,
    ReduceScatterInOrder,
)
from hccl_executors.aicpu.seats import (
    ALIGN,
    DETOUR,
    AnyChannelRank,
    RankGroup,
    Seat,
    cut,
    flat,
    flat_over,
    place_at,
    requests,
    slots,
)
from hccl_executors.aicpu.v_mesh import MeshAllGatherV, MeshReduceScatterV
from hccl_executors.sources import SCATTER_NHR, like_ascend950, over_tree
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import ChannelResources, OpParam, RankView

MESH, NHR = "level0:mesh", "level0:NA;level1:NHR"

_AR = "all_reduce/executor/ins_v2_all_reduce_sole_executor"


def _ar(template: str, executor: str = _AR) -> Any:
    return like_ascend950(executor, f"all_reduce/template/aicpu/ins_temp_all_reduce_{template}")


class AicpuAllReduceSoleMeshOneShot(SoleAllReduce):
    """AllReduce of small data in one server."""

    algorithm = MESH
    template = OneShotAllReduce()
    fidelity = _ar("mesh_1D_one_shot")


class AicpuAllReduceSoleMeshTwoShot(SoleAllReduce):
    """AllReduce in one server, sums in the order of the ranks."""

    algorithm = MESH
    template = TwoShotAllReduce()
    fidelity = _ar("mesh_1D_two_shot")


class AicpuAllReduceSoleMeshChunkTwoShot(SoleAllReduce):
    """AllReduce of large data in one server."""

    algorithm = MESH
    on_the_way = True
    template = AllReduceInChunks()
    fidelity = _ar("mesh_1D_two_shot_mesh_chunk")


class AicpuAllReduceSoleNHR(SoleAllReduce):
    """AllReduce over all servers."""

    algorithm = NHR
    on_the_way = True
    template = NhrAllReduce()
    fidelity = _ar("nhr")


class AicpuAllReduceSoleNHRTwoShotMultiLink(AicpuAllReduceSoleNHR):
    """The same in a Clos network, with one channel for two ranks."""


class AicpuAllReduceSoleNHRAicpuReduce(SoleAllReduce):
    """AllReduce over all servers of what links do not reduce."""

    algorithm = NHR
    template = NhrWholeAllReduce()
    fidelity = _ar("aicpu_reduce_nhr")


class AicpuAllReduceStrictOrderedMesh(SoleAllReduce):
    """AllReduce of up to 8 ranks in the order of the ranks: a ReduceScatter into the first half of
    the buffer by way of the second, and an AllGather from there.
    """

    algorithm = MESH
    order = "rank"
    side_by_side: ClassVar[bool] = False
    template: ClassVar[Any] = ReduceScatterInOrder()
    gather: ClassVar[Any] = MeshAllGather()
    fidelity = like_ascend950(
        "all_reduce/executor/ins_v2_all_reduce_order_preserved_executor",
        "reduce_scatter/template/aicpu/ins_temp_reduce_scatter_order_preserved_level1",
    )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        """Both templates ask for channels of their own, and use the first ones."""
        asked, threads = super().resources(op, rank), self.gather.threads(rank.size)
        return replace(
            asked,
            channels=(*asked.channels, *requests(self.gathers_over(rank), self.gather)),
            threads=tuple(map(max, zip_longest(asked.threads, threads, fillvalue=0))),
        )

    def gathers_over(self, rank: RankView) -> RankGroup:
        """Return the ranks to which the AllGather asks for channels."""
        return flat(rank)

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        n, half = rank.size, rank.buffer[rank.ccl_bytes // 2 // ALIGN * ALIGN :]
        sizes = rounded_down(int(rank.user_in.size), n, op.unit)
        given, result = cut(rank.user_in, sizes), cut(rank.user_out, sizes)
        starts = slots(rank.buffer, sizes[0] if self.side_by_side else 0, n)
        places = Chunks(starts.buffer, starts.offsets, result.sizes)
        mine = places[place.me]
        overlaps = mine.offset < mine.size  # HCCL's copy to that place would, of 2n - 1 elements
        total = place_at(rank.buffer, mine.offset * overlaps, mine.size)
        self.template.run(place, given, total, half, op.unit)
        threads = rank.threads[: len(self.gather.threads(n))]
        self.gather.run(place._replace(threads=threads), [total], [result], [places])

    def round_count(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // 2 // ALIGN * ALIGN // op.unit // rank.size * rank.size


class AllReduceOrderPreservedGroup(AicpuAllReduceStrictOrderedMesh):
    """AllReduce of more ranks in their order; the AllGather is by NHR."""

    template = ReduceScatterInGroups()
    gather = NhrAllGather()
    side_by_side = True
    fidelity = like_ascend950(
        "all_reduce/executor/ins_v2_all_reduce_order_preserved_executor",
        "reduce_scatter/template/aicpu/ins_temp_reduce_scatter_order_preserved_group",
    )

    def gathers_over(self, rank: RankView) -> RankGroup:
        return flat_over(rank, by_clos=self.gather.by_clos)


_AG = "all_gather/executor/ins_v2_all_gather_sole_executor"


class AicpuAllGatherSoleMesh(SoleAllGather):
    """AllGather in one server."""

    algorithm = MESH
    template = MeshAllGather()
    fidelity = like_ascend950(_AG, "all_gather/template/aicpu/ins_temp_all_gather_mesh_1D")


class AicpuAllGatherSoleNHR(SoleAllGather):
    """AllGather over all servers."""

    algorithm = NHR
    template = NhrAllGather()
    fidelity = like_ascend950(_AG, "all_gather/template/aicpu/ins_temp_all_gather_nhr")


class AicpuAllGatherSoleNHRMultiLink(AicpuAllGatherSoleNHR):
    """The same in a Clos network, with one channel for two ranks."""


class AicpuAllGatherSoleMeshConcur(BesideClos, SoleAllGather):
    """AllGather of large data in a server with a Clos network beside its mesh."""

    algorithm = MESH
    template = MeshAllGather(DETOUR)
    fidelity = like_ascend950(
        _AG, "all_gather/template/aicpu/ins_temp_all_gather_mesh_1D_Z_axis_detour"
    )


_RS = "reduce_scatter/executor/ins_v2_reduce_scatter_sole_executor"


def _rs(template: str, executor: str = _RS) -> Any:
    path = f"reduce_scatter/template/aicpu/ins_temp_reduce_scatter_{template}"
    return like_ascend950(executor, path)


class AicpuReduceScatterSoleMesh(SolePlacedReduceScatter):
    """ReduceScatter in one server."""

    algorithm = MESH
    template = MeshReduceScatter()
    fidelity = _rs("mesh_1D")

    def places(self, rank: AnyChannelRank) -> Region:
        return rank.buffer


class AicpuReduceScatterSoleMeshConcur(BesideClos, AicpuReduceScatterSoleMesh):
    """ReduceScatter of 2 ranks in a server with a Clos network beside its mesh."""

    template = MeshReduceScatter(DETOUR)
    fidelity = _rs("mesh_1D_Z_axis_detour")


class AicpuReduceScatterSoleMeshChunk(SoleReduceScatter):
    """ReduceScatter of large data in one server."""

    algorithm = MESH
    on_the_way = True
    template = ReduceScatterInChunks()
    fidelity = _rs("mesh_1D_meshchunk")


class AicpuReduceScatterSoleNHR(SolePlacedReduceScatter):
    """ReduceScatter over all servers."""

    algorithm = NHR
    on_the_way = True
    template = NhrReduceScatter()
    fidelity = _rs("nhr")


class AicpuReduceScatterSoleNHRMultiLink(AicpuReduceScatterSoleNHR):
    """The same in a Clos network, with one channel for two ranks."""


class AicpuReduceScatterSoleNHRAicpuReduce(SoleReduceScatter):
    """ReduceScatter over all servers of what links do not reduce."""

    algorithm = NHR
    template = NhrWholeReduceScatter()
    fidelity = _rs("aicpu_reduce_nhr")


class AicpuReduceScatterStrictOrderedMesh(SoleReduceScatter):
    """ReduceScatter of up to 8 ranks in the order of the ranks."""

    algorithm = MESH
    order = "rank"
    reserve = 0
    template: ClassVar[Any] = ReduceScatterInOrder()
    fidelity = _rs(
        "order_preserved_level1",
        "reduce_scatter/executor/ins_v2_reduce_scatter_order_preserved_executor",
    )


class ReduceScatterOrderPreservedGroup(AicpuReduceScatterStrictOrderedMesh):
    """ReduceScatter of more ranks in their order."""

    template = ReduceScatterInGroups()
    fidelity = _rs(
        "order_preserved_group",
        "reduce_scatter/executor/ins_v2_reduce_scatter_order_preserved_executor",
    )


_BC = "broadcast/executor/ins_v2_broadcast_sole_executor"

_RD = "reduce/executor/reduce_sole_executor"

_SC = "scatter/executor/ins_v2_scatter_sole_executor"

BCAST_NHR = "broadcast/template/aicpu/ins_temp_broadcast_nhr"


class AicpuBroadcastSoleMeshTwoShot(SoleBroadcast):
    """Broadcast in one server."""

    algorithm = MESH
    template = TwoShotBroadcast()
    fidelity = like_ascend950(_BC, "broadcast/template/aicpu/ins_temp_broadcast_mesh_1D_two_shot")


class AicpuBroadcastSoleNHR(SoleBroadcast):
    """Broadcast over all servers."""

    algorithm = NHR
    template = NhrBroadcast()
    fidelity = over_tree(like_ascend950(_BC, BCAST_NHR), BCAST_NHR)


class AicpuBroadcastSoleNHRTwoShotMultiLink(AicpuBroadcastSoleNHR):
    """The same in a Clos network, with one channel for two ranks."""


class AicpuReduceSoleMesh(SoleReduce):
    """Reduce of small data in one server."""

    algorithm = MESH
    template = StarReduce()
    fidelity = like_ascend950(_RD, "reduce/template/aicpu/reduce_mesh_1D")


class AicpuReduceSoleMeshTwoShot(SoleReduce):
    """Reduce of large data in one server."""

    algorithm = MESH
    template = TwoShotReduce()
    fidelity = like_ascend950(_RD, "reduce/template/aicpu/reduce_mesh_1D_two_shot")


class AicpuReduceSoleNHR(SoleReduce):
    """Reduce over all servers."""

    algorithm = NHR
    on_the_way = True
    template = NhrReduce()
    fidelity = like_ascend950(_RD, "reduce/template/aicpu/reduce_nhr")


class AicpuReduceSoleNHRAicpuReduce(SoleReduce):
    """Reduce over all servers of what links do not reduce."""

    algorithm = NHR
    template = NhrWholeReduce()
    fidelity = like_ascend950(_RD, "reduce/template/aicpu/reduce_aicpu_reduce_nhr")


class AicpuScatterSoleMesh(SoleScatter):
    """Scatter in one server."""

    algorithm = MESH
    template = MeshScatter()
    fidelity = like_ascend950(_SC, "scatter/template/aicpu/ins_temp_scatter_mesh_1D")


class AicpuScatterSoleNHR(SoleScatter):
    """Scatter over all servers."""

    algorithm = NHR
    template = NhrScatter()
    fidelity = over_tree(like_ascend950(_SC, SCATTER_NHR), SCATTER_NHR)


_PAIRS = like_ascend950(
    "all_to_all_v/executor/ins_v2_all_to_all_v_sole_executor",
    "all_to_all_v/template/aicpu/ins_temp_all_to_all_v_mesh_1D",
)


class AicpuAllToAllSoleMesh(SoleInSlots):
    """AllToAll over all ranks, in pairs."""

    op = "all_to_all"
    algorithm = MESH
    template = PairsOfRanks()
    fidelity = _PAIRS


class AicpuAllToAllSoleMeshSingleChannel(AicpuAllToAllSoleMesh):
    """The same for smaller data, with one channel for two ranks in any network."""


class AicpuAllToAllVSoleMesh(AicpuAllToAllSoleMesh):
    """AllToAllV over all ranks, in pairs."""

    op = "all_to_all_v"


class AicpuAllToAllVCSoleMesh(AicpuAllToAllSoleMesh):
    """AllToAllVC over all ranks, in pairs."""

    op = "all_to_all_vc"


class AicpuAllToAllSoleMeshUBX(SoleOnBoards):
    """AllToAll on a UBX server of several boards, and of small data on one."""

    op = "all_to_all"
    algorithm = MESH
    template = BoardsInTurn()
    fidelity = like_ascend950(
        "all_to_all_v/executor/ins_v2_all_to_all_v_sole_executor",
        "all_to_all_v/template/aicpu/ins_temp_ubx_all_to_all_v_mesh_1D",
    )


class AicpuAllToAllVSoleMeshUBX(AicpuAllToAllSoleMeshUBX):
    """AllToAllV on a UBX server of several boards."""

    op = "all_to_all_v"


class AicpuReduceScatterVSoleMesh(SoleInSlots):
    """ReduceScatterV over all ranks."""

    op = "reduce_scatter_v"
    algorithm = MESH
    template = MeshReduceScatterV()
    fidelity = like_ascend950(
        "reduce_scatter_v/executor/ins_v2_reduce_scatter_v_sole_executor",
        "reduce_scatter_v/template/aicpu/ins_temp_reduce_scatter_v_mesh_1D",
    )


class AicpuAllGatherVSoleMesh(SoleInSlots):
    """AllGatherV over all ranks; slots are as large as the first round's largest block."""

    op = "all_gather_v"
    algorithm = MESH
    template = MeshAllGatherV()
    fidelity = like_ascend950(
        "all_gather_v/executor/ins_v2_all_gather_v_sole_executor",
        "all_gather_v/template/aicpu/ins_temp_all_gather_v_mesh_1D",
    )

    def _slot(self, op: OpParam, rank: AnyChannelRank) -> int:
        return min(super()._slot(op, rank), op.extent * op.unit)
