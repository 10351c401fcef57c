"""All-to-all of July 2025: `alltoall_operator.cc`."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.conditions import contexts
from tests.selection.oracle.facts import (
    FFTS_CAPACITY,
    KB,
    MB,
    MESH,
    PIPELINE,
    Call,
    Taken,
    topology,
)


def all_to_all(call: Call, level1: str, automatic: bool) -> Taken:
    if _exchanges_by_aiv(call):
        if call.device == "910B" and call.op == "all_to_all" and not call.single_mesh:
            return "AlltoAllStagedAIVRdmaExecutor", level1
        if call.device == "910_93" and call.server_num > 1:
            return "AlltoAllMeshAivFor91093Executor", level1
        return "AlltoAllMeshAivExecutor", level1
    if call.ranks == 1 and call.op_base and not call.unfolded:
        return "RunAlltoAllSingleExecutor", level1
    if _is_direct(call) or call.unfolded:
        return "RunAlltoAllDirectFullmesh", level1
    if _exchanges_by_pipeline(call, level1):
        return "RunAlltoAllVTwoLevelPipeline", level1
    inside = (
        call.device == "910_93"
        and call.ranks <= 32
        and not call.no_inter_hccs
        and call.pod_num == 1
        and call.op_base
    )
    few = call.same_plane or call.ranks <= 2
    flat = inside or call.one_level or few or call.uneven_servers or call.uneven_pods
    return ("RunAlltoAllVFullMesh" if flat else "RunAlltoAllVStaged"), level1


def _exchanges_by_aiv(call: Call) -> bool:
    """IsSatisfyAlltoAllAivCondition."""
    if not (call.aiv and call.aiv_copies and call.ranks > 1):
        return False
    if call.op_base and call.ccl < 512 * KB * 16:
        return False
    if call.device == "910B":
        inside = call.single_mesh
        if call.op == "all_to_all" and not inside:
            inside = (
                call.op_base
                and not call.uneven_servers
                and call.module_num <= 8
                and call.bytes <= 190 * KB
                and call.bytes * call.ranks <= call.ccl
            )
        return inside and topology(call) == MESH
    joined = call.pod_num == 1 and call.server_num > 1 and not call.no_inter_hccs
    if call.op == "all_to_all":
        return (call.server_num == 1 and call.bytes <= 512 * KB) or joined
    return call.server_num == 1 or joined


def _is_direct(call: Call) -> bool:
    """IsSupportDirectFullmeshForAlltoallv."""
    if not call.op_base or call.device == "910A":
        return False
    if call.device == "910_93":
        return not call.no_inter_hccs
    return call.single_mesh and (call.op == "all_to_all_v" or exceeds(call))


def exceeds(call: Call) -> bool:
    """IsAlltoAllvcSatisfyBufferSize: every rank sends and receives more than a CCL buffer."""
    if not call.matrix:
        return call.bytes * call.ranks > call.ccl
    sent = [sum(row) for row in call.matrix]
    received = [sum(column) for column in zip(*call.matrix, strict=True)]
    return all(size > call.ccl for size in (*sent, *received))


def _exchanges_by_pipeline(call: Call, level1: str) -> bool:
    """IsSatisfyAlltoallPipelineCondition."""
    return (
        call.device == "910B"
        and level1 == PIPELINE
        and contexts(call) <= FFTS_CAPACITY
        and call.devices > 1
        and call.op_base
        and call.ranks > call.devices
        and call.ranks % call.devices == 0
        and not call.uneven_servers
        and call.ccl >= 80 * MB
    )
