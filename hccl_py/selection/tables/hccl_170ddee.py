"""Data of the cost table after August 2026: hccl 170ddeec, as far as it is known here.

Read, and never run: zstar1003/hccl-hcomm-annotated @efbe1cd, a copy of that release,
`hccl/src/ops/`: CalcCostCoeff and GetAlgNetMeta of each op's executors and templates, and the
attributes of `REGISTER_ALG_ATTRS`. Executors of AICPU_TS that may run on meshes of up to 8 ranks,
joined on one level or two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from hccl_py.selection.tables.hccl_2026_08.costs import CLOS_USE as _CLOS_USE
from hccl_py.selection.tables.hccl_2026_08.costs import Factor
from hccl_py.selection.tables.hccl_2026_08.text_tables import read_cost_rules, read_executors

SOURCE = "zstar1003/hccl-hcomm-annotated@efbe1cd:hccl/src/ops/op_common/selector/cost_table.cc"

CLOS_USE = (*(_CLOS_USE[2],) * 3, *_CLOS_USE[3:])
"""The use of a Clos network's links: as in August, but for less than 512 KB that of 512 KB."""

STEP, LAUNCH, NHR_LAUNCH = 2e-6, 0.5e-6, 1e-6
"""Seconds of a step, of a task's launch, and of one of NHR: `CalcLatencyParams`,
`CalcLaunchParams`, and D in most templates of NHR.
"""


@dataclass(frozen=True)
class LaunchTemplate:
    """Costs of a template of r ranks, as factors of its share of the data.

    It `sends` so much: a mesh on all links at once, NHR r - 1 times over `ports` of its network; a
    detour half through the mesh, half r - 1 times over ports, of a `far` one those to the network.
    Copies into the CCL buffer where the data comes from the user's memory (`enters`), and out of it
    (`leaves`), with launches of their own (`entering`, `leaving`); where copies in are made in
    `either` case, those out are besides. Then reductions, steps, launches, and seconds of `each`.
    Templates with `never`, A and C, do not take part: they cost too much.
    """

    way: Literal["mesh", "nhr", "detour"] = "mesh"
    sends: Factor = 1
    ports: Literal["one", "two", "all", "all but two", "eight"] = "one"
    enters: Factor = 0
    leaves: Factor = 0
    reduces: Factor = 0
    steps: Factor = 0
    launches: Factor = 0
    entering: Factor = 0
    leaving: Factor = 0
    each: float = LAUNCH
    either: bool = False
    far: bool = False
    never: tuple[float, float] | None = None


_Template = LaunchTemplate
_Nhr = partial(LaunchTemplate, way="nhr", each=NHR_LAUNCH)
_Detour = partial(LaunchTemplate, way="detour")

TEMPLATES: Mapping[str, LaunchTemplate] = {
    "AG": _Template(enters=1, leaves=1, steps=8, launches="9(r-1)"),
    "AG detour": _Detour(ports="eight", enters=1, leaves=1, steps=16, launches="18(r-1)"),
    "AG NHR": _Nhr(enters=1, steps="8log-7", launches="9(5log/3-1)"),
    "AG V": _Template(enters=1, steps=1, launches="9(r-1)"),
    "AR one": _Template(sends="r", enters="r", reduces="r(r-1)", steps=1, launches="10(r-1)"),
    "AR two": _Template(sends=2, enters=1, reduces="r-1", steps=20, launches="16(r-1)+10"),
    "AR chunk": _Template(sends=2, enters=1, steps="5r", launches="7r(r-1)"),
    "AR NHR": _Nhr(sends=2, enters="2r", steps=10, launches="8(r-1)"),
    "AI CPU": _Template(never=(10, 0)),
    "RS": _Template(enters=1, leaves=1, reduces="r-1", steps=11, launches="9(r-1)+1"),
    "RS detour": _Detour(ports="two", enters=1, reduces="r-1", steps=15, launches="18(r-1)"),
    "RS chunk": _Template(enters=2, steps="5r", launches="7r(r-1)"),
    "RS NHR": _Nhr(enters="r/2", leaves=1, steps=15, launches="23log/2+8"),
    "RS V": _Template(enters=1, leaves=1, reduces="r-1", steps=14, launches="9(r-1)"),
    "RS ordered": _Template(never=(1000, 1000)),
    "RD two": _Template(
        sends=2, enters=1, leaves=1, reduces="r-1", steps=11, launches="16(r-1)+10"
    ),
    "A2A": _Template(ports="all", enters=1, steps=10, launches="18(r-1)"),
    "A2A single": _Template(ports="all", enters=1, steps=10, launches="9(r-1)"),
    "A2A levels": _Template(never=(1000, 1000)),
    "BC two": _Template(sends="2/r", enters=1, steps=10, launches="9(r-1)"),
    "BC NHR": _Nhr(sends="2/r", ports="all but two", enters=1, steps=10, launches="8(r-1)"),
    "BC NHR links": _Nhr(sends="2/r", ports="all", enters=1, steps=12, launches="8(r-1)+2"),
    "SC": _Template(enters=1, leaves=1, steps=4, launches="7(r-1)", entering=1, either=True),
    "SC detour": _Detour(
        far=True, enters=1, leaves=1, steps=4, launches="9(r-1)+2(r-2)", entering=1, leaving=1
    ),
    "SC NHR": _Nhr(
        enters="r", leaves=1, steps="log", launches="r+2log+1", entering="r", leaving=1, each=LAUNCH
    ),
}
"""By op and template, as in August; reductions to a root have two of all_reduce."""

MORE: Mapping[tuple[str, str], float] = {
    ("all_gather", "parallel"): 40e-6,
    ("all_gather", "sequence"): 6e-6,
    ("all_reduce", "parallel"): 25e-6,
    ("all_reduce", "sequence"): 5e-6,
    ("reduce", "parallel"): 25e-6,
    ("reduce_scatter", "parallel"): 20e-6,
    ("reduce_scatter", "sequence"): 20e-6,
}
"""Seconds of each part of a composed executor besides: bConst."""

EXECUTORS = read_executors(
    {
        "all_gather": """
AicpuAllGatherParallelMeshNHR parallel: AG+AG NHR
AicpuAllGatherSequenceMeshConcurNHR sequence: AG detour+AG NHR
AicpuAllGatherSoleMesh sole: AG
AicpuAllGatherSoleMeshConcur sole: AG detour
AicpuAllGatherSoleNHR sole: AG NHR
""",
        "all_gather_v": """
AicpuAllGatherVSoleMesh sole: AG V
""",
        "all_reduce": """
AicpuAllReduceStrictOrderedMesh pair: RS ordered+AG
AicpuAllReduceStrictOrderedGroupMesh pair: RS ordered+AG NHR
AicpuAllReduceParallelMeshNHR parallel: RS+RS NHR+AG+AG NHR
AicpuAllReduceSequenceMeshConcurNHR sequence: RS detour+RS NHR+AG detour+AG NHR
AicpuAllReduceSoleMeshOneShot sole: AR one
AicpuAllReduceSoleMeshTwoShot sole: AR two
AicpuAllReduceSoleNHR sole: AR NHR
AicpuAllReduceSoleMeshChunkTwoShot sole: AR chunk
AicpuAllReduceSoleNHRAicpuReduce sole: AI CPU
AicpuAllReduceSoleMeshConcur pair: RS detour+AG detour
""",
        "all_to_all": """
AicpuAllToAllSequenceMeshMesh blind: A2A levels
AicpuAllToAllSoleMesh sole: A2A
AicpuAllToAllSoleMeshSingleChannel sole: A2A single
""",
        "broadcast": """
AicpuBroadcastParallelMeshNHR parallel: SC+SC NHR+AG+AG NHR
AicpuBroadcastSoleMeshTwoShot sole: BC two
AicpuBroadcastSoleNHR sole: BC NHR
AicpuBroadcastSoleNHRMultiLink sole: BC NHR links
""",
        "reduce": """
AicpuReduceParallelMeshNHR parallel: RS+RS NHR+AG+AG NHR
AicpuReduceSequenceMeshConcurNHR sequence: RS detour+RS NHR+AG detour+AG NHR
AicpuReduceSoleMesh sole: AR one
AicpuReduceSoleMeshTwoShot sole: RD two
AicpuReduceSoleNHR sole: AR NHR
AicpuReduceSoleNHRAicpuReduce sole: AI CPU
""",
        "reduce_scatter": """
AicpuReduceScatterParallelMeshNHR parallel: RS+RS NHR
AicpuReduceScatterStrictOrderedMesh sole: RS ordered
AicpuReduceScatterStrictOrderedGroupMesh sole: RS ordered
AicpuReduceScatterSequenceMeshConcurNHR sequence: RS detour+RS NHR
AicpuReduceScatterSoleMesh sole: RS
AicpuReduceScatterSoleMeshChunk sole: RS chunk
AicpuReduceScatterSoleNHR sole: RS NHR
AicpuReduceScatterSoleNHRAicpuReduce sole: AI CPU
AicpuReduceScatterSoleMeshConcur sole: RS detour
""",
        "reduce_scatter_v": """
AicpuReduceScatterVSoleMesh sole: RS V
""",
        "scatter": """
AicpuScatterParallelMeshNHR parallel: SC+SC NHR
AicpuScatterSoleMesh sole: SC
AicpuScatterSoleNHR sole: SC NHR
AicpuScatterSequenceMeshConcurNHR sequence: SC detour+SC NHR
""",
    }
)
"""Of each op: the name, the composition and the templates, in the order of registration; those of
composed executors are for the inside of meshes and between them by turns.
"""

COST_RULES = read_cost_rules(
    {
        "all_gather": """
strike not *SoleNHR if local0 == 1
strike *SoleMesh *SoleMeshConcur if net_levels > 1
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
""",
        "all_gather_v": """
strike * if net_levels > 1, gcd0 == 1
""",
        "all_reduce": """
strike *SoleMesh* if net_levels > 1
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
strike not *SoleNHR *AicpuReduce *StrictOrdered* if net_levels > 1, gcd0 == 1
strike *ChunkTwoShot *MeshConcur *SoleNHR *MeshNHR *ConcurNHR if wide
strike *ChunkTwoShot *MeshConcur *SoleNHR *MeshNHR *ConcurNHR if reduce == prod
strike *OrderedMesh if ranks > 8
strike *GroupMesh if ranks <= 8
strike *Ordered* if dtype != fp16, dtype != fp32, dtype != bf16, dtype != fp64
strike not *Ordered* if strict_order
""",
        "all_to_all": """
strike * if net_levels > 1, gcd0 == 1
strike *SequenceMeshMesh if net_levels == 1
""",
        "broadcast": """
strike *SoleMeshTwoShot if net_levels > 1
strike *ParallelMeshNHR if net_levels == 1
strike not *SoleNHR* if net_levels > 1, gcd0 == 1
strike *SoleMeshTwoShot *SoleNHR if wide
""",
        "reduce": """
strike *SoleMesh* if net_levels > 1
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
strike not *SoleNHR *AicpuReduce if net_levels > 1, gcd0 == 1
strike *SoleNHR *MeshNHR *ConcurNHR if wide
strike *SoleNHR *MeshNHR if reduce == prod
strike *MeshNHR *ConcurNHR if in_place
strike * if strict_order
""",
        "reduce_scatter": """
strike not *SoleNHR if local0 == 1
strike *SoleMesh* if net_levels > 1
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
strike *SequenceMeshConcurNHR if total_bytes <= 4G
strike *MeshChunk *MeshConcur *SoleNHR *MeshNHR *ConcurNHR if wide
strike *MeshChunk *MeshConcur *SoleNHR *MeshNHR *ConcurNHR if reduce == prod
strike *OrderedMesh if ranks > 8
strike *GroupMesh if ranks <= 8
strike *Ordered* if dtype != fp16, dtype != fp32, dtype != bf16, dtype != fp64
strike not *Ordered* if strict_order
""",
        "reduce_scatter_v": """
strike * if net_levels > 1, gcd0 == 1
strike * if dtype in uint64|fp64
""",
        "scatter": """
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
strike not *SoleNHR if net_levels > 1, gcd0 == 1
""",
    }
)
"""`REGISTER_ALG_ATTRS` of these executors, and what TopoMatchTwoLevel takes."""
