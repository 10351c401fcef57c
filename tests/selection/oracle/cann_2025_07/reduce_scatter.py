"""reduce_scatter and reduce_scatter_v of July 2025: their operators' files."""

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
    HD,
    KB,
    MB,
    MESH,
    NHR,
    PIPELINE,
    SINGLE_RING,
    Call,
    Taken,
    ring_or_comm,
    topology,
)


def reduce_scatter(call: Call, level1: str, automatic: bool) -> Taken:
    if call.ranks == 1:
        return "ReduceScatterSingleExecutor", level1
    if call.device == "910A":
        return classic("ReduceScatter", call), level1
    if call.device == "910_93":
        return _reduce_scatter_a3(call, level1)
    is_mesh = topology(call) == MESH
    large = call.op_base and call.ccl >= 16 * MB
    rdma = is_mesh and large and suits_rdma(call)
    inside = call.single_mesh and call.bytes <= 256 * MB
    if call.aiv and call.aiv_reduces and call.deterministic == "false" and (inside or rdma):
        if rdma:
            return "ReduceScatterAivRdmaExecutor", level1
        if call.op_base and call.bytes <= 2 * MB:
            return "ReduceScatterMeshAivSmallCountExecutor", level1
        return "ReduceScatterMeshAivExecutor", level1
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call)
    level1 = limited(call, level1)
    return _reduce_scatter_a2(call, level1), level1


def _reduce_scatter_a2(call: Call, level1: str) -> str:
    if topology(call) != MESH:
        return ring_or_comm("ReduceScatter", call)
    mesh_inline = call.inline and call.single_mesh
    if call.op_base:
        if mesh_inline:
            if call.deterministic == "true":
                return "ReduceScatterDeterExecutor"
            return "ReduceScatterMeshDmaEliminationExecutor"
        across = call.inline and call.rdma_inline and not call.single_mesh
        if call.deterministic == "false" and level1 == PIPELINE and across:
            return "ReduceScatterMeshOpbasePipelineExecutor"
        return "ReduceScatterMeshExecutor"
    if mesh_inline and call.deterministic == "true" and call.devices > 2:
        return "ReduceScatterDeterExecutor"
    return "ReduceScatterMeshGraphExecutor" if call.bytes <= MB else "ReduceScatterMeshExecutor"


def _reduce_scatter_a3(call: Call, level1: str) -> Taken:
    entry = MB if call.op_base else 4 * MB
    if call.aiv and call.aiv_reduces and call.server_num == 1 and call.bytes <= entry:
        small = (call.op_base and call.bytes <= 2 * MB) or (
            call.graph and call.bytes <= 760 * KB and call.ranks <= 48 // 4
        )
        name = "ReduceScatterMeshAivSmallCountExecutor" if small else "ReduceScatterMeshAivExecutor"
        return name, level1
    name, level1 = _reduce_scatter_a3_rings(call, level1)
    if name != "ReduceScatterComm" and level1 == HD:
        level1 = NHR
    return name, level1


def _reduce_scatter_a3_rings(call: Call, level1: str) -> tuple[str, str]:
    single = (
        call.server_num == 1
        and (call.op_base or not call.unfolded)
        and call.inline
        and call.devices > 2
        and call.bytes <= 2 * MB
        and not call.no_inter_hccs
    )
    power = call.power_of_ranks
    limited = call.op_base and power and call.ccl * 2 < call.bytes * call.ranks
    several = (
        call.inline
        and call.devices > 2
        and call.server_num != 1
        and call.pod_num == 1
        and not limited
        and not call.no_inter_hccs
    )
    if call.uneven_servers or call.uneven_pods:
        return "ReduceScatterComm", level1
    if several and not power and call.bytes <= 256 * KB:
        return "ReduceScatterComm", HD
    if single or (several and power and call.bytes <= 512 * KB):
        return "ReduceScatterDeterExecutor", level1
    if topology(call) == SINGLE_RING:
        return "ReduceScatterRingFor91093Executor", level1
    if topology(call) == DOUBLE_RING:
        if is_unified(call):
            return "ReduceScatterSemiRingExecutor", level1
        if call.ports == 7:
            return "ReduceScatterFastDoubleRingFor91093Executor", level1
        return "AlignedReduceScatterDoubleRingFor91093Executor", level1
    return "ReduceScatterComm", level1


def reduce_scatter_v(call: Call, level1: str, automatic: bool) -> Taken:
    if call.device != "910B" or not call.single_mesh:
        return None, level1
    aiv = call.aiv and call.bytes <= 256 * MB and call.aiv_reduces
    if call.op_base and aiv and call.deterministic == "false":
        if call.bytes > 2 * MB:
            return "ReduceScatterVAIVBigCountExecutor", level1
        return "ReduceScatterVMeshAivSmallCountExecutor", level1
    if not call.inline:
        return None, level1
    name = "ReduceScatterVMeshOpbaseExecutor" if call.op_base else "ReduceScatterVMeshExecutor"
    return name, level1
