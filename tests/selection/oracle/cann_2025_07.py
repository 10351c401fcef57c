"""The selection of July 2025, read from `SelectAlgFor...` of the operators, one function each.

Not from hccl_py and not from its tables. Outside: a retry (`retryEnable_`), communicators of mixed
devices, fused ops whose input and output are the CCL buffers, standard cards, 310P.

`all_gather_operator.cc` of these sources has a `SelectAlgforNew` that always takes one executor;
what it stands in the place of, left as a comment, is what is read here.
"""

from __future__ import annotations

from tests.selection.oracle.facts import (
    AHC,
    AHC_BROKE,
    ALL_TO_ALL,
    COMMON,
    DOUBLE_RING,
    FFTS_CAPACITY,
    HD,
    JOINED,
    KB,
    MB,
    MESH,
    MESH_OF_4,
    NB,
    NHR,
    NHR_V1,
    NULL,
    PIPELINE,
    RING,
    RING_OF_8,
    SINGLE_RING,
    WHOLE,
    Call,
    cheapest,
    configured,
    groups,
    topology,
)

Taken = tuple[str | None, str]
"""An executor and the algorithm between servers; None where HCCL refuses."""


def taken(call: Call) -> Taken:
    """Return what HCCL takes."""
    level1, automatic = _of_op(call)
    return _OPS[call.op](call, level1, automatic)


def _of_op(call: Call) -> tuple[str, bool]:
    """SelectCurrOpAlgType."""
    if call.uneven_pods and not call.uneven_servers and call.op == "all_reduce":
        return AHC, False
    if (call.uneven_servers or call.uneven_pods) and call.level0 != NULL:
        return WHOLE, False
    return configured(call, ("910B",), ("all_reduce",))


def _contexts(call: Call) -> int:
    """CalcContextNumForPipeline."""
    each = 5 * (call.devices - 1) + 7 + 1
    if call.op in ALL_TO_ALL:
        return call.module_num * each + 4 + 1 + call.module_num
    return (call.module_num * each + 4 + 1) * (2 if call.op == "all_reduce" else 1)


def _automatic(call: Call, *, aiv: bool = False) -> str:
    """GetDefaultAlgoLevel1V2 for a communicator whose links are cheap to ask (RDMA lite)."""
    fits = _contexts(call) <= FFTS_CAPACITY
    reduces = call.inline and call.rdma_inline and call.deterministic == "false"
    if call.devices != 1 and topology(call) == MESH and fits:
        if call.op == "reduce_scatter" and reduces and call.bytes >= 32 * KB:
            return PIPELINE
        if call.op == "all_gather" and call.bytes >= 32 * KB:
            return PIPELINE
        part = call.bytes // (call.module_num * call.devices)
        if call.op == "all_reduce" and reduces and not aiv and part >= MB:
            return PIPELINE
    return cheapest(call)


def _limited(call: Call, level1: str) -> str:
    return HD if level1 == PIPELINE and _contexts(call) > FFTS_CAPACITY else level1


def classic(op: str, call: Call) -> str:
    """910A: by the topology alone."""
    found = topology(call)
    if found == MESH_OF_4:
        return f"{op}MeshExecutor"
    return f"{op}RingExecutor" if found in (SINGLE_RING, RING_OF_8) else f"{op}Comm"


def _all_reduce(call: Call, level1: str, automatic: bool) -> Taken:
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
        level1 = _automatic(call, aiv=aiv)
    joined = _joined(call, level1)
    if joined is None:
        return None, level1
    level1 = _limited(call, joined)
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
        return "AllReduceComm", level1
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
    level1 = _joined(call, level1) or level1
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


def _joined(call: Call, level1: str) -> str | None:
    """SelectAlgforAHC and PrepareAHCSubGroups; None for HCCL_E_PARA."""
    if level1 not in JOINED:
        return level1
    if call.device == "910B" and call.level0 != NULL:
        return None
    sizes = groups(call)
    least, most = min(sizes), max(sizes)
    whole = all(size % least == 0 for size in sizes)
    return AHC_BROKE if level1 == AHC_BROKE or whole or (most - least) / least < 0.05 else AHC


def _all_gather(call: Call, level1: str, automatic: bool) -> Taken:
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
        level1 = _automatic(call)
    level1 = _limited(call, level1)
    if (
        call.aiv
        and call.aiv_copies
        and topology(call) == MESH
        and call.op_base
        and call.ccl >= 16 * MB
        and _suits_rdma(call)
    ):
        return "AllGatherAivRdmaExecutor", level1
    if topology(call) != MESH:
        return "AllGatherComm", level1
    if call.op_base:
        if call.single_mesh:
            return "AllGatherMeshOpbaseExecutor", level1
        if level1 == PIPELINE:
            return "AllGatherMeshOpbasePipelineExecutor", level1
        return "AllGatherMeshExecutor", level1
    return ("AllGatherMeshExecutor" if call.bytes > MB else "AllGatherMeshGraphExecutor"), level1


def _suits_rdma(call: Call) -> bool:
    return (
        not call.single_mesh
        and not call.uneven_servers
        and (call.power_of_servers or call.bytes <= 128 * KB)
        and call.bytes * call.ranks <= 16 * MB
        and call.bytes <= 256 * KB
    )


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
    if _is_unified(call):
        return "AllGatherSemiRingExecutor", level1
    if topology(call) == DOUBLE_RING:
        return "AlignedAllGatherDoubleRingFor91093Executor", level1
    if topology(call) == SINGLE_RING:
        return "AllGatherRingFor91093Executor", level1
    return "AllGatherComm", level1


def _is_unified(call: Call) -> bool:
    """IsSupportUnifiedMarch."""
    return (
        call.unfolded
        and topology(call) == DOUBLE_RING
        and call.graph
        and (call.server_num, call.pod_num) == (1, 1)
    )


def _reduce_scatter(call: Call, level1: str, automatic: bool) -> Taken:
    if call.ranks == 1:
        return "ReduceScatterSingleExecutor", level1
    if call.device == "910A":
        return classic("ReduceScatter", call), level1
    if call.device == "910_93":
        return _reduce_scatter_a3(call, level1)
    is_mesh = topology(call) == MESH
    large = call.op_base and call.ccl >= 16 * MB
    rdma = is_mesh and large and _suits_rdma(call)
    inside = call.single_mesh and call.bytes <= 256 * MB
    if call.aiv and call.aiv_reduces and call.deterministic == "false" and (inside or rdma):
        if rdma:
            return "ReduceScatterAivRdmaExecutor", level1
        if call.op_base and call.bytes <= 2 * MB:
            return "ReduceScatterMeshAivSmallCountExecutor", level1
        return "ReduceScatterMeshAivExecutor", level1
    if call.op_base and not call.single_mesh and automatic:
        level1 = _automatic(call)
    level1 = _limited(call, level1)
    return _reduce_scatter_a2(call, level1), level1


def _reduce_scatter_a2(call: Call, level1: str) -> str:
    if topology(call) != MESH:
        return "ReduceScatterComm"
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
        if _is_unified(call):
            return "ReduceScatterSemiRingExecutor", level1
        if call.ports == 7:
            return "ReduceScatterFastDoubleRingFor91093Executor", level1
        return "AlignedReduceScatterDoubleRingFor91093Executor", level1
    return "ReduceScatterComm", level1


def _broadcast(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = level1 if level1 in (NHR, NHR_V1, NB) else HD
    found = topology(call)
    if call.device != "910_93":
        if found in (MESH, MESH_OF_4):
            return "BroadCastMeshExecutor", level1
        if found in (SINGLE_RING, RING_OF_8):
            return "BroadCastRingExecutor", level1
        return "BroadCastComm", level1
    level1 = level1 if level1 in (NHR, NB) else NHR
    single = (
        call.server_num == 1
        and (call.op_base or not call.unfolded)
        and call.devices > 2
        and call.bytes <= 2 * MB * call.ranks
    )
    several = (
        call.devices > 2
        and call.server_num != 1
        and call.pod_num == 1
        and call.bytes <= 256 * KB * call.ranks
    )
    if call.uneven_servers or call.uneven_pods:
        return "BroadCastComm", level1
    if several:
        return "BroadCastComm", NHR
    if single:
        return "BroadCastSmallCountExecutor", level1
    return ("BroadCastComm" if found == COMMON else "BroadCastRingFor91093Executor"), level1


def _reduce(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = HD if level1 in (NHR, NHR_V1, NB, PIPELINE) else level1
    if call.ranks == 1 and (call.op_base or call.unfolded):
        return "ReduceSingleExecutor", level1
    found = topology(call)
    if call.device == "910_93":
        whole = call.uneven_servers or call.uneven_pods or found == COMMON
        return ("ReduceComm" if whole else "ReduceRingFor91093Executor"), RING
    if found in (MESH, MESH_OF_4):
        return "ReduceMeshExecutor", level1
    if found in (SINGLE_RING, RING_OF_8):
        return "ReduceRingPlusHd", level1
    return "ReduceComm", level1


def _scatter(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = level1 if level1 in (NHR, NB, RING) else RING
    if call.ranks == 1 and call.op_base:
        return "ScatterSingleExecutor", level1
    found = topology(call)
    if call.uneven_servers or call.uneven_pods or found == COMMON:
        return "ScatterCommExecutor", level1
    if found in (MESH, MESH_OF_4):
        return "ScatterMeshExecutor", level1
    a3 = call.device == "910_93"
    return ("ScatterRingFor91093Executor" if a3 else "ScatterRingExecutor"), level1


def _all_gather_v(call: Call, level1: str, automatic: bool) -> Taken:
    if call.device != "910B" or not call.single_mesh:
        return None, level1
    if call.graph:
        return "AllGatherVMeshExecutor", level1
    if call.aiv and call.aiv_copies and call.bytes <= 256 * MB:
        big = call.bytes > 700 * KB
        name = "AllGatherVMeshAivExecutor" if big else "AllGatherVMeshAivSmallCountExecutor"
        return name, level1
    return "AllGatherVMeshOpbaseExecutor", level1


def _reduce_scatter_v(call: Call, level1: str, automatic: bool) -> Taken:
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


def _all_to_all(call: Call, level1: str, automatic: bool) -> Taken:
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
        and _contexts(call) <= FFTS_CAPACITY
        and call.devices > 1
        and call.op_base
        and call.ranks > call.devices
        and call.ranks % call.devices == 0
        and not call.uneven_servers
        and call.ccl >= 80 * MB
    )


_OPS = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "scatter": _scatter,
    "all_gather_v": _all_gather_v,
    "reduce_scatter_v": _reduce_scatter_v,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all,
    "all_to_all_vc": _all_to_all,
}
