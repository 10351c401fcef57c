"""reduce_scatter and reduce_scatter_v of August 2026: their operators' files."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.conditions import classic
from tests.selection.oracle.cann_2026_08.conditions import (
    across_inline,
    can_strict,
    crosses_by_aiv,
    default_by_call,
    is_unified,
    limited,
    mesh_inline,
    needs_strict,
    suits_rdma,
    with_adapted_rings,
    with_ahc,
    zero_copy_form,
)
from tests.selection.oracle.facts import (
    COMMON,
    DOUBLE_RING,
    FLOATS,
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


def reduce_scatter(call: Call, level1: str, automatic: bool) -> Taken:
    if call.ranks == 1:
        return "ReduceScatterSingleExecutor", level1
    if call.device == "910B":
        return _reduce_scatter_a2(call, level1, automatic)
    if call.device == "910_93":
        name, level1 = _reduce_scatter_a3(call, level1)
        return name, level1
    few = call.op_base and call.server_num == 1 and call.bytes <= 256 * KB
    if few and call.ranks in (4, 8):
        return "ReduceScatterComm", HD
    return classic("ReduceScatter", call), level1


def _reduce_scatter_a2(call: Call, level1: str, automatic: bool) -> Taken:
    if call.deterministic == "strict" and call.ranks > 2:
        if call.uneven_servers:
            return None, level1
        if call.dtype in FLOATS:
            return "ReduceScatterOrderPreservedExecutor", level1
    is_mesh, large = topology(call) == MESH, call.op_base and call.ccl >= 16 * MB
    rdma = is_mesh and large and suits_rdma(call)
    total = call.bytes * call.ranks
    ordered = call.single_mesh and call.deterministic == "true" and total <= 8 * MB
    inside = call.single_mesh and call.bytes <= 256 * MB
    asked = call.deterministic == "false" or ordered
    if call.aiv and call.aiv_reduces and asked and (inside or rdma):
        if ordered:
            return "ReduceScatterAivDeterSmallExecutor", level1
        if rdma:
            return "ReduceScatterAivRdmaExecutor", level1
        few = call.op_base and call.bytes <= 2 * MB
        return f"ReduceScatterMeshAiv{'SmallCount' if few else ''}Executor", level1
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call)
    joined = with_ahc(call, level1)
    if joined is None:
        return None, level1
    level1 = limited(call, joined)
    if not is_mesh:
        return ring_or_comm("ReduceScatter", call), level1
    eager = _reduce_scatter_mesh(call, level1) if call.op_base else _reduce_scatter_graph(call)
    return eager, level1


def _reduce_scatter_mesh(call: Call, level1: str) -> str:
    order, pipes = call.deterministic, level1 == PIPELINE
    if order == "true" and pipes and call.devices > 2:
        return "ReduceScatterDeterPipelineExecutor"
    if mesh_inline(call):
        if order != "false":
            return "ReduceScatterDeterExecutor"
        return "ReduceScatterMeshDmaEliminationExecutor"
    if order == "false" and pipes and across_inline(call):
        return "ReduceScatterMeshOpbasePipelineExecutor"
    few = (call.bytes <= 512 * KB and order == "true") or call.bytes * call.ranks < 512 * KB
    if not call.single_mesh and call.inline and few:
        return "ReduceScatterMeshOpbaseSmallCountDeterministicExecutor"
    return "ReduceScatterMeshExecutor"


def _reduce_scatter_graph(call: Call) -> str:
    if mesh_inline(call) and call.deterministic != "false" and call.devices > 2:
        return "ReduceScatterDeterExecutor"
    if (
        call.module_num > 1
        and call.devices > 1
        and call.deterministic == "false"
        and across_inline(call)
        and (call.bytes > MB or call.module_num <= 4)
    ):
        return "ReduceScatterMeshGraphPipelineExecutor"
    return "ReduceScatterMeshExecutor" if call.bytes > MB else "ReduceScatterMeshGraphExecutor"


def _reduce_scatter_a3(call: Call, level1: str) -> Taken:
    cross = crosses_by_aiv(call, 128 * KB)
    inside = call.server_num == 1 and call.bytes <= (MB if call.op_base else 4 * MB)
    vectors = call.aiv and call.aiv_reduces and not call.uneven_servers
    few = call.bytes * call.ranks < 8 * MB
    if vectors and call.pod_num == 1 and call.deterministic != "false" and few:
        return "ReduceScatterMeshAivFor91093Executor", level1
    if needs_strict(call):
        name = "ReduceScatterOrderPreservedFor91093Executor"
        return (name if can_strict(call) else None), level1
    if vectors and call.deterministic == "false" and (inside or cross):
        if cross:
            return "ReduceScatterMeshAivFor91093Executor", level1
        least = MB if call.op_base else min(48 // call.ranks, 4) * 190 * KB
        few = call.bytes <= least
        return f"ReduceScatterMeshAiv{'SmallCount' if few else ''}Executor", level1
    found, level1 = _reduce_scatter_rings(call, with_adapted_rings(call, level1))
    return found, NHR if found != "ReduceScatterComm" and level1 == HD else level1


def _reduce_scatter_rings(call: Call, level1: str) -> Taken:
    level1 = with_ahc(call, level1) or level1
    if call.uneven_servers:
        uneven = call.uneven_pod_devices
        return ("ReduceScatterComm" if uneven else "ReduceScatterARSFor91093Executor"), level1
    power, seven = call.power_of_ranks, call.ports == 7
    limited = call.op_base and power and call.ccl * 2 < call.bytes * call.ranks
    free = call.inline and call.devices > 2 and not limited and not call.no_inter_hccs
    single = call.server_num == 1 and (call.op_base or not call.unfolded)
    single = single and free and call.bytes <= (512 * KB if seven else MB)
    several = free and call.server_num != 1 and call.pod_num == 1
    apart = (call.pod_num > 1 or call.no_inter_hccs) and call.bytes <= (4 if power else 2) * MB
    joined = call.server_num != 1 and call.pod_num == 1 and not call.no_inter_hccs
    by_host = not call.inline and (joined or apart)
    if by_host or (several and not power and call.bytes <= 256 * KB):
        return "ReduceScatterComm", HD
    fits = call.bytes * call.server_num <= (MB if seven else 2 * MB)
    if single or (several and power and fits):
        return "ReduceScatterDeterExecutor", level1
    found = topology(call)
    large = found == DOUBLE_RING or call.bytes * call.devices > 16 * MB
    if call.inline and call.zero_copy and large:
        return (
            f"ReduceScatterRingZerocopy{zero_copy_form(call, level1, 'Exchange')}Executor",
            level1,
        )
    rounds = call.ccl // call.ranks // 2 // 128 * 128
    pipes = rounds >= 4 * MB and call.bytes * call.ranks > 608 * MB
    pipes = pipes and call.inline and found in (SINGLE_RING, DOUBLE_RING)
    pipes = pipes and level1 not in JOINED
    if call.op_base and call.pod_num > 1 and pipes and not call.uneven_pod_devices:
        return "ReduceScatterPipelineFor91093Executor", level1
    if found == SINGLE_RING:
        return "ReduceScatterRingFor91093Executor", level1
    if found == DOUBLE_RING:
        semi = "ReduceScatterSemiRingExecutor"
        fast = "ReduceScatterFastDoubleRingFor91093Executor"
        return (semi if is_unified(call) else fast), level1
    return "ReduceScatterComm", level1


def reduce_scatter_v(call: Call, level1: str, automatic: bool) -> Taken:
    if call.device == "910_93":
        found = topology(call)
        if call.uneven_servers or call.uneven_pods or found == COMMON:
            return None, level1
        level1 = level1 if level1 in (RING, WHOLE, NB) else NHR
        if found == SINGLE_RING:
            return "ReduceScatterVRingFor91093Executor", level1
        kind = "ReduceScatterVFast" if call.ports == 7 else "AlignedReduceScatterV"
        return f"{kind}DoubleRingFor91093Executor", level1
    if call.device != "910B":
        return None, level1
    apart = level1 if level1 in (RING, NB, NHR) else NHR
    if call.graph and not call.single_mesh:
        return (None if call.uneven_servers else "ReduceScatterVDeterExecutor"), apart
    ordered = call.deterministic != "false" and topology(call) == MESH
    if ordered and call.dtype in FLOATS:
        return "ReduceScatterVDeterExecutor", level1
    level1 = limited(call, level1, NHR)
    plain = call.deterministic == "false"
    if call.op_base and level1 == PIPELINE and plain and across_inline(call):
        return "ReduceScatterVMeshOpbasePipelineExecutor", level1
    aiv = call.op_base and call.aiv and call.single_mesh and call.bytes <= 256 * MB
    if aiv and call.aiv_reduces and plain:
        if call.bytes > 2 * MB:
            return "ReduceScatterVAIVBigCountExecutor", level1
        return "ReduceScatterVMeshAivSmallCountExecutor", level1
    if not call.inline:
        return None, level1
    if call.graph:
        return "ReduceScatterVMeshExecutor", level1
    return "ReduceScatterVMeshOpbaseExecutor", level1 if level1 in (RING, NB, NHR) else NHR
