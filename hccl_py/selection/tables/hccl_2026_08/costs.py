"""Data of the cost table of HCCL_USE_NEW_SELECTOR: templates, executors, bandwidths, rules.

The cost of an executor is a sum, over its templates, of (A / utilisation + B) x bytes + C. Source:
hicann/hccl @09300b7, `op_common/selector/cost_model.cc`, `cost_table.cc`, and `CalcCostCoeff` of
the templates and executors. Names are in the order in which they are registered: of equal costs the
first one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hccl_py.selection.tables.hccl_2026_08.text_tables import read_executors

LINK = 56e9
"""Bytes a second of a link: crossChipBw_, cost_model.cc:78."""

COPY = {"aicpu": 750e9, "ccu": 200e9, "ring": 47.6 * (1 << 30)}
REDUCE = {"aicpu": 483e9, "ccu": 160e9, "ring": 47.6 * (1 << 30)}
TASK = {"aicpu": 2e-6, "ccu": 2e-6, "aiv": 1e-6, "gather": 5e-6}
"""Bytes a second, and seconds for a task; cost_model.cc:76-83 and 237-248."""

FLOOR = 0.0005
"""Seconds of an AICPU_TS executor at least, but for all_gather; cost_table.cc:671-673."""

CLOS_SIZES = tuple(1 << k for k in range(17, 29))
CLOS_USE = (
    *(0.02755, 0.05357, 0.10388, 0.1855, 0.3, 0.4288, 0.5302, 0.568, 0.6549, 0.7184, 0.7408),
    0.7644,
)
MESH_SIZES = tuple(1 << k for k in range(20, 29))
MESH_USE = (0.7135, 0.7758, 0.8112, 0.8301, 0.84, 0.8449, 0.8475, 0.8487, 0.8494)
"""The use of links up to a size, from cost_table.cc:708-718; beyond the last one it stays."""

Factor = float | str

FACTORS: Mapping[str, Callable[[int], float]] = {
    "r": lambda r: r,
    "2r": lambda r: 2 * r,
    "5r": lambda r: 5 * r,
    "r-1": lambda r: r - 1,
    "r(r-1)": lambda r: r * (r - 1),
    "r/2+1": lambda r: r // 2 + 1,
    "2r+2": lambda r: 2 * r + 2,
    "4log+1": lambda r: 4 * _log(r) + 1,
    "2/r": lambda r: 2 / r,
    "r/2": lambda r: r // 2,
    "log": lambda r: _log(r),
    "8log-7": lambda r: max(8 * _log(r) - 7, 1),
    "23log/2+8": lambda r: 23 * _log(r) // 2 + 8,
    "9(5log/3-1)": lambda r: 9 * (max(5 * _log(r) // 3, 2) - 1),
    "r+2log+1": lambda r: r + 2 * _log(r) + 1,
    "7(r-1)": lambda r: 7 * (r - 1),
    "7r(r-1)": lambda r: 7 * r * (r - 1),
    "8(r-1)": lambda r: 8 * (r - 1),
    "8(r-1)+2": lambda r: 8 * (r - 1) + 2,
    "9(r-1)": lambda r: 9 * (r - 1),
    "9(r-1)+1": lambda r: 9 * (r - 1) + 1,
    "9(r-1)+2(r-2)": lambda r: 9 * (r - 1) + 2 * max(r - 2, 0),
    "10(r-1)": lambda r: 10 * (r - 1),
    "16(r-1)+10": lambda r: 16 * (r - 1) + 10,
    "18(r-1)": lambda r: 18 * (r - 1),
}
"""Factors of templates that depend on their ranks; `log` is that of 2, rounded down."""


def _log(ranks: int) -> int:
    return ranks.bit_length() - 1


def factor(of: Factor, ranks: int) -> float:
    """Return the factor of a template of so many ranks."""
    return FACTORS[of](ranks) if isinstance(of, str) else of


@dataclass(frozen=True)
class TemplateCost:
    """Costs of a template of r ranks, as factors of the share of the data that it gets.

    `sends` is that of its transfers: a mesh needs one transfer's time, where `nhr`, or on a Clos
    network, r - 1 over `ports` (`lone_ports`: of the executor AicpuXSoleNHR). `net` is the
    network of all its uses; `wide`: a mesh up to 8 ranks, a Clos network beyond.
    `copies` and `reduces` are those of its copies, made `always` or where the executor asks, and of
    its reductions. Templates with `fixed` costs A and C are never the cheapest; those `few` are for
    8 ranks at most.
    """

    sends: Factor = 1
    nhr: bool = False
    ports: int = 8
    lone_ports: int = 0
    net: Literal["", "clos", "wide"] = ""
    copies: Factor = 0
    reduces: Factor = 0
    always: bool = False
    cores: Literal["aicpu", "ccu"] = "aicpu"
    tasks: Factor = 1
    clock: Literal["aicpu", "ccu", "aiv", "gather"] = "aicpu"
    scale: float = 1.0
    few: bool = False
    fixed: tuple[float, float] | None = None
    detour: int = 0


TEMPLATES: Mapping[str, TemplateCost] = {
    "AG": TemplateCost(copies=1, tasks=10, clock="gather"),
    "AG detour": TemplateCost(copies=1, tasks=15, clock="gather", detour=2),
    "AG NHR": TemplateCost(nhr=True, lone_ports=6, copies=1, tasks="4log+1", clock="gather"),
    "AG AIV": TemplateCost(ports=6, copies=1, clock="aiv"),
    "AG 2Die": TemplateCost(copies=1, cores="ccu", clock="ccu"),
    "AG MS": TemplateCost(clock="ccu", scale=0.95),
    "AG Mem": TemplateCost(ports=6, tasks=10, clock="ccu"),
    "AG NHR Mem": TemplateCost(nhr=True, tasks="4log+1", clock="ccu"),
    "AG NHR Jetty": TemplateCost(nhr=True, copies=1, cores="ccu", clock="ccu"),
    "AG half": TemplateCost(sends=0.5, copies=0.5, cores="ccu", clock="ccu"),
    "AR one": TemplateCost(sends="r", copies="r", reduces="r(r-1)", few=True),
    "AR two": TemplateCost(sends=2, copies=1, reduces="r-1", tasks=20, few=True),
    "AR chunk": TemplateCost(sends=2, copies=1, tasks="5r", few=True),
    "AR NHR": TemplateCost(sends=2, nhr=True, net="clos", copies="2r", tasks=10),
    "AR AIV one": TemplateCost(sends="r", copies="r", reduces="r(r-1)", tasks=5, clock="aiv"),
    "AR AIV two": TemplateCost(sends=2, copies=1, reduces="r-1", tasks=15, clock="aiv"),
    "AR MS": TemplateCost(sends=2, tasks=20, clock="ccu", few=True),
    "AR MS one": TemplateCost(sends="r", clock="ccu", few=True),
    "AR 2Die": TemplateCost(sends="r", copies="r", cores="ccu", clock="ccu"),
    "AR Mem": TemplateCost(
        sends=2, ports=6, net="wide", reduces="r-1", cores="ccu", tasks="r", clock="ccu"
    ),
    "AR NHR Mem": TemplateCost(
        sends=2,
        nhr=True,
        net="clos",
        copies="2r",
        always=True,
        cores="ccu",
        tasks="2r",
        clock="ccu",
    ),
    "AR AI CPU": TemplateCost(fixed=(10.0, 0.0)),
    "AR 2Die one": TemplateCost(fixed=(10.0, 1000.0)),
    "AR Jetty": TemplateCost(fixed=(1000.0, 1000.0)),
    "RS": TemplateCost(copies=1, reduces="r-1", few=True),
    "RS detour": TemplateCost(copies=1, reduces="r-1", few=True, detour=8),
    "RS chunk": TemplateCost(copies=2, few=True),
    "RS NHR": TemplateCost(nhr=True, lone_ports=6, net="clos", copies="r/2+1"),
    "RS AIV": TemplateCost(copies=1, reduces="r-1", clock="aiv"),
    "RS ordered": TemplateCost(reduces=1),
    "RS 2Die": TemplateCost(reduces=1, cores="ccu", clock="ccu"),
    "RS MS": TemplateCost(clock="ccu", few=True),
    "RS Mem": TemplateCost(ports=6, net="wide", reduces="r-1", cores="ccu", tasks=10, clock="ccu"),
    "RS NHR Mem": TemplateCost(
        nhr=True, net="clos", copies="r", always=True, cores="ccu", tasks="2r+2", clock="ccu"
    ),
}
"""By op and template; `Mem` are the mem2mem templates of CCU_SCHED, `MS` those of CCU_MS."""

EXECUTORS = read_executors(
    {
        "all_gather": """
AicpuAllGatherConcurMeshNHR concurrent: AG+AG NHR
CcuSchedAllGatherConcurMeshNHRMultiLink concurrent: AG Mem+AG NHR Jetty
CcuMSAllGatherConcurMeshNHRMultiLink concurrent: AG MS+AG NHR Jetty
AicpuAllGatherParallelMeshNHR parallel: AG+AG NHR
InsAllGatherParallelMesh1DNHRMultiJetty parallel: AG+AG NHR
InsAllGatherParallelMesh1DNHRPcie parallel: AG+AG NHR
AicpuAllGatherParallelNHRNHR parallel: AG NHR+AG NHR
CcuSchedAllGatherParallelMeshNHR parallel: AG Mem+AG NHR Mem
CcuSchedAllGatherParallelMeshNHRMultiLink parallel: AG Mem+AG NHR Jetty
AicpuAllGatherSequenceMeshConcurNHRNHR sequence3: AG detour+AG NHR+AG NHR
AicpuAllGatherSequenceMeshConcurNHR sequence: AG detour+AG NHR
CcuSchedAllGatherSequenceMeshMesh sequence: AG Mem+AG Mem
AicpuAllGatherSoleMesh sole: AG
AicpuAllGatherSoleMeshConcur sole: AG detour
AicpuAllGatherSoleNHR sole: AG NHR
AicpuAllGatherSoleNHRMultiLink sole: AG NHR
CcuSchedAllGatherSoleMesh sole: AG Mem
CcuMSAllGatherSoleMesh sole: AG MS
CcuSchedAllGatherSoleNHR sole: AG NHR Mem
AivAllGatherSoleMesh sole: AG AIV
CcuMSAllGatherSoleMesh2Die sole: AG 2Die
CcuSchedAllGatherSoleMesh2Die sole: AG 2Die
CcuSchedAllGatherSoleNHRMultiLink sole: AG NHR Jetty
CcuAllGatherSoleMeshScheConcur sole: AG half
""",
        "all_reduce": """
CcuSchedAllReduceConcurMeshNHRMultiLink concurrent: AR Mem+AR Jetty
CcuMSAllReduceConcurMeshNHRMultiLink concurrent: AR MS+AR Jetty
AicpuAllReduceConcurMeshTwoShotNHR concurrent: AR two+AR NHR
AicpuAllReduceStrictOrderedMesh pair: RS ordered+AG
AllReduceOrderPreservedGroup pair: RS ordered+AG NHR
AicpuAllReduceParallelMeshNHR parallel: RS+RS NHR+AG+AG NHR
InsAllReduceParallelMesh1DNHRPcie parallel: RS+RS NHR+AG+AG NHR
InsAllReduceParallelRSAGUBX parallel: RS+RS NHR+AG+AG NHR
InsAllReduceParallelRSAGDpu parallel: RS+RS NHR+AG+AG NHR
InsAllReduceParallelRSAGUboe parallel: RS+RS NHR+AG+AG NHR
CcuSchedAllReduceParallelMeshNHR parallel: RS Mem+RS NHR Mem+AG Mem+AG NHR Mem
CcuAllReduceParallelNHR1DMutiJetty parallel: RS Mem+RS NHR Mem+AG Mem+AG NHR Mem
AicpuAllReduceSequenceMeshConcurNHR sequence: RS detour+RS NHR+AG NHR+AG detour
CcuSchedAllReduceSequenceMeshMesh sequence: RS Mem+RS Mem+AG Mem+AG Mem
AicpuAllReduceSequenceMeshConcurNHRNHR sequence3: RS detour+RS NHR+RS NHR+AG NHR+AG NHR+AG detour
AicpuAllReduceSoleMeshOneShot sole: AR one
AicpuAllReduceSoleMeshTwoShot sole: AR two
AicpuAllReduceSoleNHR sole: AR NHR
AicpuAllReduceSoleNHRTwoShotMultiLink sole: AR NHR
AicpuAllReduceSoleMeshChunkTwoShot sole: AR chunk
AicpuAllReduceSoleNHRAicpuReduce sole: AR AI CPU
AivAllReduceSoleMeshOneShot sole: AR AIV one
AivAllReduceSoleMeshTwoShot sole: AR AIV two
CcuSchedAllReduceSoleNHR sole: AR NHR Mem
CcuSchedAllReduceSoleMesh sole: AR Mem
CcuMSAllReduceSoleMesh sole: AR MS
CcuMSAllReduceSoleMesh2Die sole: AR 2Die one
CcuMSAllReduceSoleMeshOneShot sole: AR MS one
CcuSchedAllReduceSoleMesh2Die sole: AR 2Die
CcuSchedAllReduceSoleNHRMultiLink sole: AR Jetty
AicpuAllReduceSoleMeshConcur pair: RS detour+AG detour
""",
        "reduce_scatter": """
AicpuReduceScatterParallelMeshNHR parallel: RS+RS NHR
InsReduceScatterParallelMesh1DNHRUBX parallel: RS+RS NHR
InsReduceScatterParallelMesh1DNHRPcie parallel: RS+RS NHR
InsReduceScatterParallelNHRNHRUboe parallel: RS+RS NHR
CcuSchedReduceScatterParallelMeshNHR parallel: RS Mem+RS NHR Mem
AicpuReduceScatterSequenceMeshConcurNHRNHR sequence3: RS detour+RS NHR+RS NHR
AicpuReduceScatterSequenceMeshConcurNHR sequence: RS detour+RS NHR
CcuSchedReduceScatterSequenceMeshMesh sequence: RS Mem+RS Mem
AicpuReduceScatterSoleMesh sole: RS
AicpuReduceScatterSoleMeshChunk sole: RS chunk
AicpuReduceScatterSoleNHR sole: RS NHR
AicpuReduceScatterSoleNHRMultiLink sole: RS NHR
AicpuReduceScatterSoleMeshConcur sole: RS detour
AivReduceScatterSoleMesh sole: RS AIV
CcuSchedReduceScatterSoleMesh sole: RS Mem
CcuMSReduceScatterSoleMesh sole: RS MS
CcuSchedReduceScatterSoleNHR sole: RS NHR Mem
CcuSchedReduceScatterSoleMesh2Die sole: RS 2Die
CcuMSReduceScatterSoleMesh2Die sole: RS 2Die
""",
    }
)
"""Of each op: the name, the composition and the templates of executors whose costs are known to
HCCL; others are never candidates.
"""

MESH_SPLIT = {"Aicpu": 37 / 62, "Ccu": 11 / 21}
"""The share of the mesh in a concurrent all_gather: ins_v2_all_gather_concurrent_executor.cc:34."""

AIV_SHARE = 0.65 / 0.85
"""The use that vector cores make of links, of that of others; cost_table.cc:743."""

LONE = ("AicpuAllGatherSoleNHR", "AicpuReduceScatterSoleNHR")
"""Executors whose template has `lone_ports` ports."""
