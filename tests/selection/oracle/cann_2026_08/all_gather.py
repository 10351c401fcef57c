"""all_gather and all_gather_v of August 2026: their operators' files."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.conditions import classic
from tests.selection.oracle.cann_2026_08.conditions import (
    crosses_by_aiv,
    default_by_call,
    is_tiny_across,
    is_unified,
    limited,
    suits_rdma,
    with_adapted_rings,
    with_ahc,
    zero_copy_form,
)
from tests.selection.oracle.facts import (
    DOUBLE_RING,
    HD,
    JOINED,
    KB,
    MB,
    MESH,
    NB,
    NHR,
    PIPELINE,
    RING,
    SINGLE_RING,
    WHOLE,
    Call,
    Taken,
    ring_or_comm,
    topology,
)


def all_gather(call: Call, level1: str, automatic: bool) -> Taken:
    if call.ranks == 1:
        return "AllGatherSingleExecutor", level1
    if call.device == "910A":
        return classic("AllGather", call), level1
    if call.device == "910_93":
        return _all_gather_a3(call, level1)
    if call.aiv and call.single_mesh and call.aiv_copies and call.bytes <= 256 * MB:
        few = call.op_base and call.bytes <= 700 * KB
        return f"AllGatherMeshAiv{'SmallCount' if few else ''}Executor", level1
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call)
    joined = with_ahc(call, level1)
    if joined is None:
        return None, level1
    level1 = limited(call, joined)
    is_mesh, large = topology(call) == MESH, call.op_base and call.ccl >= 16 * MB
    if call.aiv and call.aiv_copies and is_mesh and large and suits_rdma(call):
        return "AllGatherAivRdmaExecutor", level1
    if not is_mesh:
        return ring_or_comm("AllGather", call), level1
    if call.op_base:
        if call.single_mesh:
            return "AllGatherMeshOpbaseExecutor", level1
        pipeline = "AllGatherMeshOpbasePipelineExecutor"
        return (pipeline if level1 == PIPELINE else "AllGatherMeshExecutor"), level1
    if call.module_num > 1 and call.devices > 1 and (call.bytes > MB or call.module_num <= 4):
        return "AllGatherMeshGraphPipelineExecutor", level1
    return ("AllGatherMeshExecutor" if call.bytes > MB else "AllGatherMeshGraphExecutor"), level1


def _all_gather_a3(call: Call, level1: str) -> Taken:
    cross = crosses_by_aiv(call, 32 * KB)
    inside = call.server_num == 1 and call.bytes <= (512 * KB if call.op_base else 4 * MB)
    if call.aiv and call.aiv_copies and (inside or cross) and not call.uneven_servers:
        if cross:
            return "AllGatherMeshAivFor91093Executor", level1
        few = call.bytes <= (700 * KB if call.op_base else 760 * KB)
        return f"AllGatherMeshAiv{'SmallCount' if few else ''}Executor", level1
    level1 = with_adapted_rings(call, level1)
    level1 = with_ahc(call, level1) or level1
    if call.uneven_servers:
        uneven = call.uneven_pod_devices
        return ("AllGatherComm" if uneven else "AllGatherARSFor91093Executor"), level1
    if is_tiny_across(call, 16 * KB):
        return "AllGatherComm", HD
    if _is_small_gather(call):
        return "AllGatherSmallCount", level1
    if call.pod_num > 1 and call.op_base and call.bytes <= 256 * KB:
        return "AllGatherMidCountFor91093Executor", level1
    found = topology(call)
    if call.zero_copy and (found == DOUBLE_RING or call.bytes * call.devices > 16 * MB):
        return f"AllGatherRingZerocopy{zero_copy_form(call, level1, '')}Executor", level1
    rounds = call.ccl // 2 // call.ranks // 128 * 128
    large = rounds >= 4 * MB and call.bytes * call.ranks > 608 * MB
    pipes = large and found in (DOUBLE_RING, SINGLE_RING) and level1 not in JOINED
    if call.pod_num > 1 and call.op_base and pipes:
        return "AllGatherPipelineFor91093Executor", level1
    level1 = level1 if level1 in (RING, NB, WHOLE, *JOINED) else NHR
    if is_unified(call):
        return "AllGatherSemiRingExecutor", level1
    by_links = {
        DOUBLE_RING: "AlignedAllGatherDoubleRingFor91093Executor",
        SINGLE_RING: "AllGatherRingFor91093Executor",
    }
    return by_links.get(found, "AllGatherComm"), level1


def _is_small_gather(call: Call) -> bool:
    """SmallCountOptimSinglePod."""
    total = call.bytes * call.ranks
    single = (
        call.server_num == 1
        and (call.ccl >= total if call.op_base else not call.unfolded)
        and call.bytes <= 512 * KB
        and call.devices > 2
        and not call.no_inter_hccs
    )
    limited = call.op_base and (
        (call.devices % 4 == 0 and call.ccl * 4 < total)
        or (call.devices % 2 == 0 and call.ccl * 2 < total)
        or (call.devices % 2 != 0 and call.ccl < total)
    )
    several = (
        call.devices > 2
        and call.server_num != 1
        and call.pod_num == 1
        and call.bytes * call.server_num <= (MB if call.devices % 4 == 0 else 512 * KB)
        and not limited
        and not call.no_inter_hccs
    )
    return single or several


def all_gather_v(call: Call, level1: str, automatic: bool) -> Taken:
    if call.device == "910_93":
        if call.uneven_servers or call.uneven_pods:
            return None, level1
        level1 = level1 if level1 in (RING, WHOLE, NB) else NHR
        two = topology(call) == DOUBLE_RING
        name = "AlignedAllGatherVDoubleRing" if two else "AllGatherVRing"
        return f"{name}For91093Executor", level1
    if call.device != "910B":
        return None, level1
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call)
    level1 = limited(call, level1, NHR)
    if call.op_base:
        aiv = call.aiv and call.single_mesh and call.aiv_copies and call.bytes <= 256 * MB
        if aiv:
            few = call.bytes <= 700 * KB
            return f"AllGatherVMeshAiv{'SmallCount' if few else ''}Executor", level1
        pipes = level1 == PIPELINE and not call.single_mesh
        return f"AllGatherVMesh{'OpbasePipeline' if pipes else ''}Executor", level1
    if call.single_mesh:
        return "AllGatherVMeshGraphExecutor", level1
    pipes = call.devices > 1 and (call.bytes > MB or call.module_num <= 4)
    return f"AllGatherVMesh{'GraphPipeline' if pipes else ''}Executor", level1
