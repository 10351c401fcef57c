"""The selection of August 2026, read from `SelectAlgFor...` of the operators, one function each.

Not from hccl_py and not from its tables. Outside: a retry (`retryEnable_`), communicators of mixed
devices, fused ops whose input and output are the CCL buffers, captured streams, symmetric memory,
RoCE from vector cores, standard cards, AIV_ONLY, 310P.
"""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07 import classic, exceeds
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
FLOATS = ("fp16", "fp32", "bf16")
GATHERING = ("all_reduce", "all_gather", "reduce_scatter")


def taken(call: Call) -> Taken:
    """Return the executor that HCCL takes, None where it refuses, and level1."""
    call = call if call.asks_ahc else call.with_even_pods()
    level1, automatic = _of_op(call)
    return _OPS[call.op](call, level1, automatic)


def _of_op(call: Call) -> tuple[str, bool]:
    """SelectCurrOpAlgType."""
    found = configured(call, ("910B", "910_93"), GATHERING)
    pods_differ = call.uneven_pods and not call.uneven_servers
    if pods_differ and call.op in GATHERING:
        return AHC, False
    if pods_differ and call.op in ALL_TO_ALL and call.device == "910_93":
        return found if call.level0 or call.level1 else (WHOLE, False)
    rings = call.op in GATHERING and call.device == "910_93" and not call.uneven_pod_devices
    if (pods_differ or (call.uneven_servers and not rings)) and call.level0 != NULL:
        return WHOLE, False
    return found


def _joined(call: Call, level1: str) -> str | None:
    """SelectAlgforAHC and AHCAlgSelect; None for HCCL_E_PARA. Groups come cut to the smallest one,
    the rest of each in its last part (AHCSubGroupInit).
    """
    if level1 not in JOINED or call.uneven_servers:
        return level1
    if call.device == "910B" and call.level0 != NULL:
        return None
    sizes = groups(call)
    alike = all(size % min(sizes) == 0 for size in sizes)
    planes = call.host_devices[0] != 1 and call.op != "all_reduce"
    return AHC_BROKE if level1 == AHC_BROKE or alike or planes else AHC


def _contexts(call: Call) -> int:
    """CalcContextNumForPipeline."""
    ordered = call.deterministic == "true" and call.op in ("all_reduce", "reduce_scatter")
    each = 5 * (call.devices - 1) + 7 + 1 + (call.devices - 1 if ordered else 0)
    if call.op in ALL_TO_ALL:
        return call.module_num * each + 4 + 1 + call.module_num
    found = call.module_num * each + 4 + 1
    found += found if call.op == "all_reduce" else 0
    return found + (call.module_num - 1 if ordered else 0)


def _automatic(call: Call, *, aiv: bool = False) -> str:
    """GetDefaultAlgoLevel1V2, with RDMA lite."""
    if call.devices == 1 or topology(call) != MESH or _contexts(call) > FFTS_CAPACITY:
        return cheapest(call)
    reduces = call.inline and call.rdma_inline
    if call.op in ("all_gather", "all_gather_v") and call.bytes >= 32 * KB:
        return PIPELINE
    if call.op == "reduce_scatter" and reduces:
        least = {"false": 32 * KB, "true": 256 * KB}.get(call.deterministic)
        if least is not None and call.bytes >= least:
            return PIPELINE
    part = call.bytes // (call.module_num * call.devices)
    orders = call.deterministic != "strict"
    if call.op == "all_reduce" and reduces and not aiv and orders and part >= MB:
        return PIPELINE
    return cheapest(call)


def _limited(call: Call, level1: str, instead: str = HD) -> str:
    return instead if level1 == PIPELINE and _contexts(call) > FFTS_CAPACITY else level1


def _mesh_inline(call: Call) -> bool:
    """SingleMeshInlineReduce."""
    return topology(call) == MESH and call.ranks != 1 and call.inline and call.single_mesh


def _across_inline(call: Call) -> bool:
    """IsMultiMeshInlineReduce."""
    return (
        call.device == "910B"
        and topology(call) == MESH
        and call.inline
        and call.rdma_inline
        and not call.single_mesh
    )


def _needs_strict(call: Call) -> bool:
    """IsNeedStrictMode."""
    types = call.dtype in (*FLOATS, "fp64") and call.reduce in ("sum", "prod")
    return call.deterministic == "strict" and types and call.ranks >= 3


def _can_strict(call: Call) -> bool:
    """CheckStrictCondition."""
    uneven = call.uneven_servers or call.uneven_pod_devices or call.uneven_pods
    return not (uneven or call.reduce == "prod" or call.dtype == "fp64" or call.no_inter_hccs)


def _all_reduce(call: Call, level1: str, automatic: bool) -> Taken:
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
        level1 = _automatic(call, aiv=aiv)
    joined = _joined(call, level1)
    if joined is None:
        return None, level1
    level1 = _limited(call, joined) if call.op_base else joined
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
        return "AllReduceComm", level1
    return _all_reduce_mesh(call, level1), level1


def _all_reduce_mesh(call: Call, level1: str) -> str:
    pipes = level1 == PIPELINE and _across_inline(call)
    pipeline = f"AllReduceMesh{'Opbase' if call.op_base else 'Graph'}PipelineExecutor"
    if call.devices <= 2:
        if _mesh_inline(call):
            if call.bytes <= (256 * KB if call.op_base else 64 * KB):
                return "AllReduceMeshSmallCountExecutor"
            return "AllReduceMeshOpbaseLoopExecutor" if call.op_base else "AllReduceMeshExecutor"
        return pipeline if call.deterministic == "false" and pipes else "AllReduceMeshExecutor"
    across = not call.single_mesh and call.inline and call.op_base
    if call.deterministic == "false":
        if pipes:
            return pipeline
        if call.op_base and _mesh_inline(call):
            few = call.bytes <= 256 * KB
            return "AllReduceMeshSmallCountExecutor" if few else "AllReduceMeshOpbaseLoopExecutor"
        if across and call.bytes < 512 * KB:
            return "AllReduceMeshOpbaseSmallCountDeterministicExecutor"
        return "AllReduceMeshExecutor"
    if call.op_base and level1 == PIPELINE and call.bytes >= call.devices * 128:
        return "AllReduceDeterPipelineExecutor"
    if _mesh_inline(call):
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
    if _needs_strict(call):
        return ("AllReduceOrderPreservedFor91093Executor" if _can_strict(call) else None), level1
    if aiv:
        few = call.bytes < 16 * MB if call.op_base else call.bytes <= 190 * KB
        name = "AllReduceMeshAivSmallCountExecutor" if few else "AllReduceMeshAivExecutor"
        return name, level1
    level1 = _with_adapted_rings(call, level1)
    level1 = _joined(call, level1) or level1
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


def _with_adapted_rings(call: Call, level1: str) -> str:
    """The words of ARS, where servers differ and superpods do not."""
    if call.uneven_servers and not call.uneven_pod_devices and level1 not in (NB, RING):
        return NHR
    return level1


def _all_reduce_flat(call: Call) -> bool:
    """useHostComm, smallCountOptimMultiServer and smallCountOptimMultiPod."""
    joined = call.server_num != 1 and call.pod_num == 1
    apart = call.pod_num > 1 or call.no_inter_hccs
    by_host = not call.inline and (
        (joined and not call.no_inter_hccs) or (apart and call.bytes <= 4 * MB * call.devices)
    )
    servers = call.devices > 2 and joined and call.bytes <= MB * call.devices
    return by_host or servers or _is_tiny_across(call, 16 * KB * call.devices)


def _is_tiny_across(call: Call, most: int) -> bool:
    apart = call.pod_num > 1 or (call.no_inter_hccs and call.server_num > 1)
    return apart and (call.pod_num, call.server_num) != (2, 2) and call.bytes <= most


def _all_gather(call: Call, level1: str, automatic: bool) -> Taken:
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
        level1 = _automatic(call)
    joined = _joined(call, level1)
    if joined is None:
        return None, level1
    level1 = _limited(call, joined)
    is_mesh, large = topology(call) == MESH, call.op_base and call.ccl >= 16 * MB
    if call.aiv and call.aiv_copies and is_mesh and large and _suits_rdma(call):
        return "AllGatherAivRdmaExecutor", level1
    if not is_mesh:
        return "AllGatherComm", level1
    if call.op_base:
        if call.single_mesh:
            return "AllGatherMeshOpbaseExecutor", level1
        pipeline = "AllGatherMeshOpbasePipelineExecutor"
        return (pipeline if level1 == PIPELINE else "AllGatherMeshExecutor"), level1
    if call.module_num > 1 and call.devices > 1 and (call.bytes > MB or call.module_num <= 4):
        return "AllGatherMeshGraphPipelineExecutor", level1
    return ("AllGatherMeshExecutor" if call.bytes > MB else "AllGatherMeshGraphExecutor"), level1


def _suits_rdma(call: Call) -> bool:
    return (
        not call.single_mesh
        and not call.uneven_servers
        and (call.power_of_servers or call.bytes <= 128 * KB)
        and call.bytes * call.ranks <= 16 * MB
        and call.bytes <= 256 * KB
    )


def _crosses_by_aiv(call: Call, most: int) -> bool:
    """isAivCrossNode: sizes by the number of ranks."""
    fits = (
        (call.ranks <= 6 and call.bytes <= MB)
        or (call.ranks <= 16 and call.bytes <= 512 * KB)
        or call.bytes <= most
    )
    return call.pod_num == 1 and call.server_num > 1 and not call.no_inter_hccs and fits


def _all_gather_a3(call: Call, level1: str) -> Taken:
    cross = _crosses_by_aiv(call, 32 * KB)
    inside = call.server_num == 1 and call.bytes <= (512 * KB if call.op_base else 4 * MB)
    if call.aiv and call.aiv_copies and (inside or cross) and not call.uneven_servers:
        if cross:
            return "AllGatherMeshAivFor91093Executor", level1
        few = call.bytes <= (700 * KB if call.op_base else 760 * KB)
        return f"AllGatherMeshAiv{'SmallCount' if few else ''}Executor", level1
    level1 = _with_adapted_rings(call, level1)
    level1 = _joined(call, level1) or level1
    if call.uneven_servers:
        uneven = call.uneven_pod_devices
        return ("AllGatherComm" if uneven else "AllGatherARSFor91093Executor"), level1
    if _is_tiny_across(call, 16 * KB):
        return "AllGatherComm", HD
    if _is_small_gather(call):
        return "AllGatherSmallCount", level1
    if call.pod_num > 1 and call.op_base and call.bytes <= 256 * KB:
        return "AllGatherMidCountFor91093Executor", level1
    found = topology(call)
    if call.zero_copy and (found == DOUBLE_RING or call.bytes * call.devices > 16 * MB):
        return f"AllGatherRingZerocopy{_zero_copy_form(call, level1, '')}Executor", level1
    rounds = call.ccl // 2 // call.ranks // 128 * 128
    large = rounds >= 4 * MB and call.bytes * call.ranks > 608 * MB
    pipes = large and found in (DOUBLE_RING, SINGLE_RING) and level1 not in JOINED
    if call.pod_num > 1 and call.op_base and pipes:
        return "AllGatherPipelineFor91093Executor", level1
    level1 = level1 if level1 in (RING, NB, WHOLE, *JOINED) else NHR
    if _is_unified(call):
        return "AllGatherSemiRingExecutor", level1
    by_links = {
        DOUBLE_RING: "AlignedAllGatherDoubleRingFor91093Executor",
        SINGLE_RING: "AllGatherRingFor91093Executor",
    }
    return by_links.get(found, "AllGatherComm"), level1


def _zero_copy_form(call: Call, level1: str, before: str) -> str:
    """Pipelines across superpods, where level2 is not set from 2 MB."""
    asked = call.level2 == PIPELINE or (not call.level2 and call.bytes >= 2 * MB)
    if call.pod_num > 1 and call.ranks // call.pod_num > 1 and asked:
        return f"{before}Pipeline"
    return "" if call.server_num < 4 or level1 in JOINED else "Exchange"


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


def _is_unified(call: Call) -> bool:
    """IsSupportUnifiedMarch."""
    alone = (call.server_num, call.pod_num) == (1, 1)
    return call.unfolded and topology(call) == DOUBLE_RING and call.graph and alone


def _reduce_scatter(call: Call, level1: str, automatic: bool) -> Taken:
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
    rdma = is_mesh and large and _suits_rdma(call)
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
        level1 = _automatic(call)
    joined = _joined(call, level1)
    if joined is None:
        return None, level1
    level1 = _limited(call, joined)
    if not is_mesh:
        return "ReduceScatterComm", level1
    eager = _reduce_scatter_mesh(call, level1) if call.op_base else _reduce_scatter_graph(call)
    return eager, level1


def _reduce_scatter_mesh(call: Call, level1: str) -> str:
    order, pipes = call.deterministic, level1 == PIPELINE
    if order == "true" and pipes and call.devices > 2:
        return "ReduceScatterDeterPipelineExecutor"
    if _mesh_inline(call):
        if order != "false":
            return "ReduceScatterDeterExecutor"
        return "ReduceScatterMeshDmaEliminationExecutor"
    if order == "false" and pipes and _across_inline(call):
        return "ReduceScatterMeshOpbasePipelineExecutor"
    few = (call.bytes <= 512 * KB and order == "true") or call.bytes * call.ranks < 512 * KB
    if not call.single_mesh and call.inline and few:
        return "ReduceScatterMeshOpbaseSmallCountDeterministicExecutor"
    return "ReduceScatterMeshExecutor"


def _reduce_scatter_graph(call: Call) -> str:
    if _mesh_inline(call) and call.deterministic != "false" and call.devices > 2:
        return "ReduceScatterDeterExecutor"
    if (
        call.module_num > 1
        and call.devices > 1
        and call.deterministic == "false"
        and _across_inline(call)
        and (call.bytes > MB or call.module_num <= 4)
    ):
        return "ReduceScatterMeshGraphPipelineExecutor"
    return "ReduceScatterMeshExecutor" if call.bytes > MB else "ReduceScatterMeshGraphExecutor"


def _reduce_scatter_a3(call: Call, level1: str) -> Taken:
    cross = _crosses_by_aiv(call, 128 * KB)
    inside = call.server_num == 1 and call.bytes <= (MB if call.op_base else 4 * MB)
    vectors = call.aiv and call.aiv_reduces and not call.uneven_servers
    few = call.bytes * call.ranks < 8 * MB
    if vectors and call.pod_num == 1 and call.deterministic != "false" and few:
        return "ReduceScatterMeshAivFor91093Executor", level1
    if _needs_strict(call):
        name = "ReduceScatterOrderPreservedFor91093Executor"
        return (name if _can_strict(call) else None), level1
    if vectors and call.deterministic == "false" and (inside or cross):
        if cross:
            return "ReduceScatterMeshAivFor91093Executor", level1
        least = MB if call.op_base else min(48 // call.ranks, 4) * 190 * KB
        few = call.bytes <= least
        return f"ReduceScatterMeshAiv{'SmallCount' if few else ''}Executor", level1
    found, level1 = _reduce_scatter_rings(call, _with_adapted_rings(call, level1))
    return found, NHR if found != "ReduceScatterComm" and level1 == HD else level1


def _reduce_scatter_rings(call: Call, level1: str) -> Taken:
    level1 = _joined(call, level1) or level1
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
            f"ReduceScatterRingZerocopy{_zero_copy_form(call, level1, 'Exchange')}Executor",
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
        return (semi if _is_unified(call) else fast), level1
    return "ReduceScatterComm", level1


def _broadcast(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = level1 if level1 in (NHR, NHR_V1, NB, WHOLE) else HD
    found = topology(call)
    if call.device == "910_93":
        return _broadcast_a3(call, level1 if level1 in (NHR, NB) else NHR)
    aiv = call.device == "910B" and call.aiv and call.single_mesh and call.op_base
    if aiv and call.ccl >= 16 * MB and call.aiv_copies and call.bytes <= 4096 * MB:
        return "BroadcastMeshAivExecutor", level1
    if found in (MESH, MESH_OF_4):
        return "BroadCastMeshExecutor", level1
    if found in (SINGLE_RING, RING_OF_8):
        return "BroadCastRingExecutor", level1
    return "BroadCastComm", level1


def _broadcast_a3(call: Call, level1: str) -> Taken:
    large = call.op_base and call.ccl >= 16 * MB
    graph = call.graph and call.bytes <= 16 * MB
    fits = call.bytes <= (512 * KB if call.ranks <= 8 else MB)
    inside = call.server_num == 1 and (
        (call.single_mesh and large and call.bytes <= 4096 * MB) or graph
    )
    joined = call.pod_num == 1 and call.server_num > 1
    cross = joined and not call.no_inter_hccs and ((large and fits) or graph)
    if call.aiv and call.aiv_copies and (inside or cross):
        return f"BroadcastMeshAiv{'' if inside else 'For91093'}Executor", level1
    if call.uneven_servers or call.uneven_pods:
        return "BroadCastComm", level1
    tiny = 16 * KB * call.devices
    if call.devices > 2 and joined and call.bytes <= MB * call.devices:
        return "BroadCastComm", NHR
    if _is_tiny_across(call, tiny):
        return "BroadCastComm", NHR
    if (call.pod_num, call.server_num) == (2, 2) and call.op_base and call.bytes <= tiny:
        return "BroadcastMidCountFor91093Executor", level1
    single = call.server_num == 1 and (call.op_base or not call.unfolded) and call.devices > 2
    if single and call.bytes <= 512 * KB * call.ranks:
        return "BroadCastSmallCountExecutor", level1
    found = topology(call)
    if call.zero_copy and (found == DOUBLE_RING or call.bytes > 16 * MB * call.server_num):
        return "BroadCastRingZerocopyExecutor", level1
    return ("BroadCastComm" if found == COMMON else "BroadCastRingFor91093Executor"), level1


def _reduce(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = HD if level1 in (NHR, NHR_V1, NB, PIPELINE) else level1
    if call.ranks == 1:
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
    if call.ranks == 1:
        return "ScatterSingleExecutor", level1
    found = topology(call)
    if call.uneven_servers or call.uneven_pods or found == COMMON:
        return "ScatterCommExecutor", level1
    if found in (MESH, MESH_OF_4):
        return "ScatterMeshExecutor", level1
    a3 = call.device == "910_93"
    return ("ScatterRingFor91093Executor" if a3 else "ScatterRingExecutor"), level1


def _all_gather_v(call: Call, level1: str, automatic: bool) -> Taken:
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
        level1 = _automatic(call)
    level1 = _limited(call, level1, NHR)
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


def _reduce_scatter_v(call: Call, level1: str, automatic: bool) -> Taken:
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
    level1 = _limited(call, level1, NHR)
    plain = call.deterministic == "false"
    if call.op_base and level1 == PIPELINE and plain and _across_inline(call):
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


def _all_to_all(call: Call, level1: str, automatic: bool) -> Taken:
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
    if pipes and _contexts(call) <= FFTS_CAPACITY:
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
