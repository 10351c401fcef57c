"""all_gather and all_gather_v of July 2025: their operators' files."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.conditions import (
    classic,
    default_by_call,
    is_unified,
    limited,
    suits_rdma,
)
from tests.selection.oracle.facts import (
    DOUBLE_RING,
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
    if call.ranks == 1 and call.op_base:
        return "AllGatherSingleExecutor", level1
    if call.device == "910A":
        return classic("AllGather", call), level1
    if call.device == "910_93":
        return _all_gather_a3(call, level1)
    if call.aiv and call.single_mesh and call.aiv_copies and call.bytes <= 256 * MB:
        if call.op_base and call.bytes <= 700 * KB:
            return "AllGatherMeshAivSmallCountExecutor", level1
        return "AllGatherMeshAivExecutor", level1
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call)
    level1 = limited(call, level1)
    if (
        call.aiv
        and call.aiv_copies
        and topology(call) == MESH
        and call.op_base
        and call.ccl >= 16 * MB
        and suits_rdma(call)
    ):
        return "AllGatherAivRdmaExecutor", level1
    if topology(call) != MESH:
        return ring_or_comm("AllGather", call), level1
    if call.op_base:
        if call.single_mesh:
            return "AllGatherMeshOpbaseExecutor", level1
        if level1 == PIPELINE:
            return "AllGatherMeshOpbasePipelineExecutor", level1
        return "AllGatherMeshExecutor", level1
    return ("AllGatherMeshExecutor" if call.bytes > MB else "AllGatherMeshGraphExecutor"), level1


def _all_gather_a3(call: Call, level1: str) -> Taken:
    entry = 512 * KB if call.op_base else 4 * MB
    if call.aiv and call.aiv_copies and call.server_num == 1 and call.bytes <= entry:
        small = call.bytes <= (700 * KB if call.op_base else 760 * KB)
        name = "AllGatherMeshAivSmallCountExecutor" if small else "AllGatherMeshAivExecutor"
        return name, level1
    if call.uneven_servers or call.uneven_pods:
        return "AllGatherComm", level1
    total = call.bytes * call.ranks
    limited = call.op_base and (
        (call.devices % 4 == 0 and call.ccl * 4 < total)
        or (call.devices % 2 == 0 and call.ccl * 2 < total)
        or (call.devices % 2 != 0 and call.ccl < total)
    )
    several = (
        call.devices > 2
        and call.server_num != 1
        and call.pod_num == 1
        and call.bytes <= (4 * MB if call.devices % 4 == 0 else MB)
        and not limited
        and not call.no_inter_hccs
    )
    single = (
        call.server_num == 1
        and (call.op_base or not call.unfolded)
        and call.bytes <= 2 * MB
        and call.devices > 2
        and not call.no_inter_hccs
    )
    if several:
        return "AllGatherSmallCount", level1
    if single:
        name = "AllGatherMeshOpbaseExecutor" if call.op_base else "AllGatherMeshExecutor"
        return name, level1
    level1 = level1 if level1 in (RING, NB, WHOLE) else NHR
    if is_unified(call):
        return "AllGatherSemiRingExecutor", level1
    if topology(call) == DOUBLE_RING:
        return "AlignedAllGatherDoubleRingFor91093Executor", level1
    if topology(call) == SINGLE_RING:
        return "AllGatherRingFor91093Executor", level1
    return "AllGatherComm", level1


def all_gather_v(call: Call, level1: str, automatic: bool) -> Taken:
    if call.device != "910B" or not call.single_mesh:
        return None, level1
    if call.graph:
        return "AllGatherVMeshExecutor", level1
    if call.aiv and call.aiv_copies and call.bytes <= 256 * MB:
        big = call.bytes > 700 * KB
        name = "AllGatherVMeshAivExecutor" if big else "AllGatherVMeshAivSmallCountExecutor"
        return name, level1
    return "AllGatherVMeshOpbaseExecutor", level1
