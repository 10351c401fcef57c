"""all_reduce of July 2025: `all_reduce_operator.cc`."""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.conditions import (
    classic,
    default_by_call,
    limited,
    with_ahc,
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


def all_reduce(call: Call, level1: str, automatic: bool) -> Taken:
    if call.ranks == 1 and (call.op_base or call.unfolded):
        return "AllReduceSingleExecutor", level1
    if call.device == "910A":
        return classic("AllReduce", call), level1
    if call.device == "910_93":
        return _all_reduce_a3(call, level1)
    return _all_reduce_a2(call, level1, automatic)


def _all_reduce_a2(call: Call, level1: str, automatic: bool) -> Taken:
    several = not call.single_mesh and not call.uneven_servers
    per_device = call.bytes // call.devices
    small = several and call.power_of_servers and per_device <= 190 * KB
    middle = several and call.bytes <= 16 * MB
    is_mesh = topology(call) == MESH
    aiv = (
        call.aiv
        and call.aiv_reduces
        and call.deterministic == "false"
        and is_mesh
        and (call.graph or call.ccl >= 16 * MB)
        and (call.single_mesh or small or middle)
    )
    if call.op_base and not call.single_mesh and automatic:
        level1 = default_by_call(call, aiv=aiv)
    joined = with_ahc(call, level1)
    if joined is None:
        return None, level1
    level1 = limited(call, joined)
    mesh_inline = topology(call) == MESH and call.ranks != 1 and call.inline and call.single_mesh
    across = topology(call) == MESH and call.inline and call.rdma_inline and not call.single_mesh
    pipes = call.deterministic == "false" and level1 == PIPELINE and call.op_base and across
    if aiv:
        if small:
            return "AllReduceSmallCountAivRdmaExecutor", level1
        if middle:
            return "AllReduceMidCountAivRdmaExecutor", level1
        if call.op_base and call.bytes >= 16 * MB:
            return "AllReduceMeshOpbaseBigCountAivExecutor", level1
        return "AllReduceMeshAivExecutor", level1
    if call.devices <= 2:
        if mesh_inline:
            small_bytes = 256 * KB if call.op_base else 64 * KB
            large = "AllReduceMeshOpbaseLoopExecutor" if call.op_base else "AllReduceMeshExecutor"
            fits = call.bytes <= small_bytes
            return ("AllReduceMeshSmallCountExecutor" if fits else large), level1
        if pipes:
            return "AllReduceMeshOpbasePipelineExecutor", level1
        if topology(call) == MESH:
            return "AllReduceMeshExecutor", level1
        return ring_or_comm("AllReduce", call), level1
    if topology(call) != MESH:
        return "AllReduceComm", level1
    if call.deterministic == "false":
        if pipes:
            return "AllReduceMeshOpbasePipelineExecutor", level1
        if call.op_base and mesh_inline:
            fits = call.bytes <= 256 * KB
            large = "AllReduceMeshOpbaseLoopExecutor"
            return ("AllReduceMeshSmallCountExecutor" if fits else large), level1
    elif mesh_inline:
        return _deterministic(call), level1
    return "AllReduceMeshExecutor", level1


def _deterministic(call: Call) -> str:
    """GetCountTypeForDeterAllReduce and DeterministicSelector."""
    if call.bytes <= (64 * KB if call.graph else 128 * KB):
        return "AllReduceMeshSmallCountExecutor"
    if call.devices == 8 and (call.op_base or call.bytes <= 4 * MB):
        return "AllReduceMeshMidCountLoopExecutor"
    return "AllReduceMeshOneshotLoopExecutor"


def _all_reduce_a3(call: Call, level1: str) -> Taken:
    if call.aiv and call.aiv_reduces and call.server_num == 1 and call.bytes // call.devices <= MB:
        big = call.op_base and call.bytes >= 16 * MB
        name = "AllReduceMeshOpbaseBigCountAivExecutor" if big else "AllReduceMeshAivExecutor"
        return name, level1
    level1 = with_ahc(call, level1) or level1
    limit = call.op_base and call.bytes > call.ccl // 4
    single = (
        call.server_num == 1
        and (call.op_base or not call.unfolded)
        and call.inline
        and call.devices > 2
        and call.bytes <= MB * call.ranks
        and not limit
    )
    several = (
        call.devices > 2
        and call.server_num != 1
        and call.pod_num == 1
        and call.bytes <= 256 * KB * call.ranks
    )
    if call.uneven_servers:
        return "AllReduceComm", level1
    if several:
        return "AllReduceComm", NHR
    if single:
        return "AllReduceMeshSmallCountExecutor", level1
    level1 = NHR if level1 == HD else level1
    if topology(call) == DOUBLE_RING:
        if call.ports == 7:
            return "AllReduceFastDoubleRingFor91093Executor", level1
        return "AlignedAllReduceDoubleRingFor91093Executor", level1
    if topology(call) == SINGLE_RING:
        return "AllReduceRingFor91093Executor", level1
    return "AllReduceComm", level1
