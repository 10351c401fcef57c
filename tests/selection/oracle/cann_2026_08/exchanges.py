"""All-to-all of August 2026: `alltoall_operator.cc`."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.exchanges import exceeds
from tests.selection.oracle.cann_2026_08.conditions import contexts
from tests.selection.oracle.facts import (
    FFTS_CAPACITY,
    HD,
    KB,
    MB,
    MESH,
    NHR,
    PIPELINE,
    RING,
    Call,
    Taken,
    topology,
)


def all_to_all(call: Call, level1: str, automatic: bool) -> Taken:
    return _exchange(call, level1), level1


def _exchange(call: Call, level1: str) -> str:
    if _exchanges_by_aiv(call):
        return _vector_exchange(call)
    asked = call.device == "910B" and call.expansion == "AI_CPU"
    if call.ranks == 1 and call.op_base and not (call.unfolded or asked):
        return "RunAlltoAllSingleExecutor"
    large = call.ccl >= 80 * MB
    back_to_back = (call.server_num, call.pod_num) == (2, 2)
    if (
        call.device == "910_93"
        and back_to_back
        and call.devices > 1
        and not call.uneven_pod_devices
        and call.op_base
        and large
        and level1 in (RING, HD, NHR, PIPELINE)
    ):
        return "RunAlltoAllVPipelineFor91093"
    if _is_direct(call) or (call.device == "910_93" and call.unfolded):
        return "RunAlltoAllDirectFullmesh"
    pipes = (
        call.device == "910B"
        and level1 in (RING, HD, PIPELINE)
        and call.devices > 1
        and call.op_base
        and call.ranks > call.devices
        and call.ranks % call.devices == 0
        and not call.uneven_servers
        and large
    )
    if pipes and call.op == "all_to_all_v" and not call.one_level:
        return "RunAlltoAllVContinuousPipeline"
    if pipes and contexts(call) <= FFTS_CAPACITY:
        return "RunAlltoAllVTwoLevelPipeline"
    joined = not call.no_inter_hccs and call.pod_num == 1
    inside = call.device == "910_93" and call.ranks <= 32 and joined and call.op_base
    few = call.same_plane or call.ranks <= 2
    flat = inside or call.one_level or few or call.uneven_servers or call.uneven_pods
    return "RunAlltoAllVFullMesh" if flat else "RunAlltoAllVStaged"


def _vector_exchange(call: Call) -> str:
    """SelectAlgforAiv."""
    if call.device == "910B" and call.op == "all_to_all" and not call.single_mesh:
        return "AlltoAllStagedAIVRdmaExecutor"
    if call.device == "910_93" and call.server_num > 1:
        return "AlltoAllMeshAivFor91093Executor"
    few = call.graph and call.op == "all_to_all" and call.bytes <= 760 * KB
    if call.device == "910_93" and few:
        return "AlltoAllMeshAivSmallCountExecutor"
    return "AlltoAllMeshAivExecutor"


def _exchanges_by_aiv(call: Call) -> bool:
    """IsSatisfyAlltoAllAivCondition."""
    if not (call.aiv and call.aiv_copies and call.ranks > 1):
        return False
    if call.op_base and call.ccl < 512 * KB * 16:
        return False
    if call.device == "910B":
        is_mesh = topology(call) == MESH or call.ranks == call.module_num
        fits = call.bytes <= 190 * KB and call.bytes * call.ranks <= call.ccl
        even = call.op_base and not call.uneven_servers and call.module_num <= 8
        across = call.op == "all_to_all" and even and fits
        return (call.single_mesh or across) and is_mesh
    joined = call.pod_num == 1 and call.server_num > 1 and not call.no_inter_hccs
    if call.op == "all_to_all":
        return (call.server_num == 1 and (call.bytes <= 512 * KB or call.graph)) or joined
    return call.server_num == 1 or joined


def _is_direct(call: Call) -> bool:
    """IsSupportDirectFullmeshForAlltoallv."""
    if call.device == "910_93":
        return call.server_num == 1 or not call.no_inter_hccs
    if call.device != "910B" or call.graph:
        return False
    return call.single_mesh and (call.op == "all_to_all_v" or exceeds(call))
