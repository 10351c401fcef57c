"""all_reduce of August 2026: `all_reduce_operator.cc`."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.conditions import classic
from tests.selection.oracle.cann_2026_08.conditions import (
    across_inline,
    can_strict,
    default_by_call,
    is_tiny_across,
    limited,
    mesh_inline,
    needs_strict,
    with_adapted_rings,
    with_ahc,
)
from tests.selection.oracle.facts import (
    DOUBLE_RING,
    FLOATS,
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


def all_reduce(call: Call, level1: str, automatic: bool) -> Taken:
    if call.ranks == 1:
        return "AllReduceSingleExecutor", level1
    if call.device == "910B":
        return _all_reduce_a2(call, level1, automatic)
    if call.device == "910_93":
        return _all_reduce_a3(call, level1)
    few = call.op_base and call.server_num == 1 and call.bytes <= MB and call.ranks in (4, 8)
    if not few:
        return classic("AllReduce", call), level1
    if not call.inline:
        return "AllReduceSmallCountFor910", HD
    return ("AllReduceDoublingDirect" if call.ranks == 4 else "AllReduceDoubling"), HD


def _all_reduce_a2(call: Call, level1: str, automatic: bool) -> Taken:
    several = not call.single_mesh and not call.uneven_servers
    small = several and call.power_of_servers and call.bytes // call.devices <= 190 * KB
    middle = several and call.bytes <= 16 * MB
    ordered = call.single_mesh and call.deterministic == "true" and call.bytes <= 8 * MB
    aiv = (
        call.aiv
        and call.aiv_reduces
        and topology(call) == MESH
        and (call.graph or call.ccl >= 16 * MB)
        and (call.single_mesh or small or middle)
        and (call.deterministic == "false" or ordered)
    )
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call, aiv=aiv)
    joined = with_ahc(call, level1)
    if joined is None:
        return None, level1
    level1 = limited(call, joined) if call.op_base else joined
    if call.deterministic == "strict":
        if call.uneven_servers:
            return None, level1
        if call.ranks > 2 and call.dtype in FLOATS:
            return "AllReduceOrderPreservedExecutor", level1
    if aiv:
        if ordered:
            return "AllReduceAivDeterSmallExecutor", level1
        if small:
            return "AllReduceSmallCountAivRdmaExecutor", level1
        if middle:
            return "AllReduceMidCountAivRdmaExecutor", level1
        large = call.graph or call.bytes >= 16 * MB
        name = "AllReduceMeshAivExecutor" if large else "AllReduceMeshAivSmallCountExecutor"
        return name, level1
    if topology(call) != MESH:
        return ring_or_comm("AllReduce", call), level1
    return _all_reduce_mesh(call, level1), level1


def _all_reduce_mesh(call: Call, level1: str) -> str:
    pipes = level1 == PIPELINE and across_inline(call)
    pipeline = f"AllReduceMesh{'Opbase' if call.op_base else 'Graph'}PipelineExecutor"
    if call.devices <= 2:
        if mesh_inline(call):
            if call.bytes <= (256 * KB if call.op_base else 64 * KB):
                return "AllReduceMeshSmallCountExecutor"
            return "AllReduceMeshOpbaseLoopExecutor" if call.op_base else "AllReduceMeshExecutor"
        return pipeline if call.deterministic == "false" and pipes else "AllReduceMeshExecutor"
    across = not call.single_mesh and call.inline and call.op_base
    if call.deterministic == "false":
        if pipes:
            return pipeline
        if call.op_base and mesh_inline(call):
            few = call.bytes <= 256 * KB
            return "AllReduceMeshSmallCountExecutor" if few else "AllReduceMeshOpbaseLoopExecutor"
        if across and call.bytes < 512 * KB:
            return "AllReduceMeshOpbaseSmallCountDeterministicExecutor"
        return "AllReduceMeshExecutor"
    if call.op_base and level1 == PIPELINE and call.bytes >= call.devices * 128:
        return "AllReduceDeterPipelineExecutor"
    if mesh_inline(call):
        return _deterministic(call)
    if across:
        kind = "Small" if call.bytes <= 512 * KB else "Mid"
        return f"AllReduceMeshOpbase{kind}CountDeterministicExecutor"
    return "AllReduceMeshExecutor"


def _deterministic(call: Call) -> str:
    """GetCountTypeForDeterAllReduce and DeterministicSelector."""
    if call.bytes <= (64 * KB if call.graph else 128 * KB):
        return "AllReduceMeshSmallCountExecutor"
    if call.devices == 8 and (call.op_base or call.bytes <= 4 * MB):
        return "AllReduceMeshMidCountLoopExecutor"
    return "AllReduceMeshOneshotLoopExecutor"


def _all_reduce_a3(call: Call, level1: str) -> Taken:
    many = call.ranks > 8
    ordered = (
        call.pod_num == 1
        and call.aiv
        and call.aiv_reduces
        and (call.deterministic != "false" or call.server_num > 1)
        and (call.bytes < 8 * MB if many else call.bytes <= 512 * KB)
        and not call.uneven_servers
        and (not call.no_inter_hccs or call.server_num == 1)
    )
    aiv = (
        call.aiv
        and call.aiv_reduces
        and call.server_num == 1
        and call.bytes // call.devices <= (MB if call.op_base else 4 * MB)
        and call.deterministic == "false"
    )
    if ordered:
        return "AllReduceMeshAivFor91093Executor", level1
    if needs_strict(call):
        return ("AllReduceOrderPreservedFor91093Executor" if can_strict(call) else None), level1
    if aiv:
        few = call.bytes < 16 * MB if call.op_base else call.bytes <= 190 * KB
        name = "AllReduceMeshAivSmallCountExecutor" if few else "AllReduceMeshAivExecutor"
        return name, level1
    level1 = with_adapted_rings(call, level1)
    level1 = with_ahc(call, level1) or level1
    if call.uneven_servers:
        uneven = call.uneven_pod_devices
        return ("AllReduceComm" if uneven else "AllReduceARSFor91093Executor"), level1
    apart = call.pod_num > 1 and not call.uneven_pod_devices
    if apart and call.op_base and call.bytes <= 256 * KB:
        return "AllReduceMidCountFor91093Executor", level1
    if _all_reduce_flat(call):
        return "AllReduceComm", NHR
    if (
        call.server_num == 1
        and (call.op_base or not call.unfolded)
        and call.inline
        and call.devices > 2
        and call.bytes <= 512 * KB * call.ranks
        and not (call.op_base and call.bytes > call.ccl // 4)
    ):
        return "AllReduceMeshSmallCountExecutor", level1
    found = topology(call)
    if call.zero_copy and (found == DOUBLE_RING or call.bytes > 16 * MB * call.server_num):
        return "AllReduceRingZerocopyExecutor", level1
    level1 = NHR if level1 == HD else level1
    by_links = {
        DOUBLE_RING: "AllReduceFastDoubleRingFor91093Executor",
        SINGLE_RING: "AllReduceRingFor91093Executor",
    }
    return by_links.get(found, "AllReduceComm"), level1


def _all_reduce_flat(call: Call) -> bool:
    """useHostComm, smallCountOptimMultiServer and smallCountOptimMultiPod."""
    joined = call.server_num != 1 and call.pod_num == 1
    apart = call.pod_num > 1 or call.no_inter_hccs
    by_host = not call.inline and (
        (joined and not call.no_inter_hccs) or (apart and call.bytes <= 4 * MB * call.devices)
    )
    servers = call.devices > 2 and joined and call.bytes <= MB * call.devices
    return by_host or servers or is_tiny_across(call, 16 * KB * call.devices)
