"""Data of the cost table after August 2026: hccl 170ddeec, as far as it is known here.

Read, and never run: zstar1003/hccl-hcomm-annotated @efbe1cd, a copy of that release,
`hccl/src/ops/`: CalcCostCoeff and GetAlgNetMeta of each op's executors and templates, and the
attributes of `REGISTER_ALG_ATTRS`. Executors of AICPU_TS that may run on meshes of up to 8 ranks,
joined on one level or two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hccl_py.selection.tables.hccl_2026_08.costs import CLOS_USE as _CLOS_USE
from hccl_py.selection.tables.hccl_2026_08.text_tables import read_cost_rules, read_executors

SOURCE = "zstar1003/hccl-hcomm-annotated@efbe1cd:hccl/src/ops/op_common/selector/cost_table.cc"

CLOS_USE = (*(_CLOS_USE[2],) * 3, *_CLOS_USE[3:])
"""The use of a Clos network's links: as in August, but for less than 512 KB that of 512 KB."""

STEP, LAUNCH, NHR_LAUNCH = 2e-6, 0.5e-6, 1e-6
"""Seconds of a step, of a task's launch, and of one of NHR: `CalcLatencyParams`,
`CalcLaunchParams`, and D in most templates of NHR.
"""

Amount = Callable[[int], float]
"""A number that depends on the ranks of a template."""


def _fixed(number: float) -> Amount:
    return lambda ranks: number


def _log(ranks: int) -> int:
    return ranks.bit_length() - 1


_NONE, _ONE = _fixed(0), _fixed(1)


@dataclass(frozen=True)
class LaunchTemplate:
    """Costs of a template of r ranks, as multiples of its share of the data.

    It `sends` so much: a mesh on all links at once, NHR r - 1 times over its ports, which `ports`
    takes from those of the links; a detour half through the mesh, half r - 1 times over its ports.
    Copies into the CCL buffer where the data comes from the user's memory (`enters`), and out of it
    (`leaves`); `entering` and `leaving`: launches of these; where copies in are made in `either`
    case, those out are besides. Then reductions, steps, launches and the seconds of `each`.
    Templates with `never`, A and C, do not take part: they cost too much. The ports of a `far`
    detour are those to the network on either side.
    """

    way: Literal["mesh", "nhr", "detour"] = "mesh"
    sends: Amount = _ONE
    ports: Callable[[Sequence[int]], int] = lambda ports: ports[0]
    enters: Amount = _NONE
    leaves: Amount = _NONE
    reduces: Amount = _NONE
    steps: Amount = _NONE
    launches: Amount = _NONE
    entering: Amount = _NONE
    leaving: Amount = _NONE
    each: float = LAUNCH
    either: bool = False
    far: bool = False
    never: tuple[float, float] | None = None


def _chunk_launches(ranks: int) -> int:
    return 5 * (ranks - 1) * ranks + 2 * (ranks - 1) * ranks


TEMPLATES: Mapping[str, LaunchTemplate] = {
    "AG": LaunchTemplate(enters=_ONE, leaves=_ONE, steps=_fixed(8), launches=lambda r: 9 * (r - 1)),
    "AG detour": LaunchTemplate(
        way="detour",
        ports=lambda ports: 8,
        enters=_ONE,
        leaves=_ONE,
        steps=_fixed(16),
        launches=lambda r: 18 * (r - 1),
    ),
    "AG NHR": LaunchTemplate(
        way="nhr",
        enters=_ONE,
        steps=lambda r: max(8 * _log(r) - 7, 1),
        launches=lambda r: 9 * (max(5 * _log(r) // 3, 2) - 1),
        each=NHR_LAUNCH,
    ),
    "AR one": LaunchTemplate(
        sends=lambda r: r,
        enters=lambda r: r,
        reduces=lambda r: r * (r - 1),
        steps=_ONE,
        launches=lambda r: 10 * (r - 1),
    ),
    "AR two": LaunchTemplate(
        sends=_fixed(2),
        enters=_ONE,
        reduces=lambda r: r - 1,
        steps=_fixed(20),
        launches=lambda r: 16 * (r - 1) + 10,
    ),
    "AR chunk": LaunchTemplate(
        sends=_fixed(2), enters=_ONE, steps=lambda r: 5 * r, launches=_chunk_launches
    ),
    "AR NHR": LaunchTemplate(
        way="nhr",
        sends=_fixed(2),
        enters=lambda r: 2 * r,
        steps=_fixed(10),
        launches=lambda r: 8 * (r - 1),
        each=NHR_LAUNCH,
    ),
    "AI CPU": LaunchTemplate(never=(10, 0)),
    "RS": LaunchTemplate(
        enters=_ONE,
        leaves=_ONE,
        reduces=lambda r: r - 1,
        steps=_fixed(11),
        launches=lambda r: 9 * (r - 1) + 1,
    ),
    "RS detour": LaunchTemplate(
        way="detour",
        ports=lambda ports: sum(ports[:2]),
        enters=_ONE,
        reduces=lambda r: r - 1,
        steps=_fixed(15),
        launches=lambda r: 18 * (r - 1),
    ),
    "RS chunk": LaunchTemplate(enters=_fixed(2), steps=lambda r: 5 * r, launches=_chunk_launches),
    "RS NHR": LaunchTemplate(
        way="nhr",
        enters=lambda r: r // 2,
        leaves=_ONE,
        steps=_fixed(15),
        launches=lambda r: 23 * _log(r) // 2 + 8,
        each=NHR_LAUNCH,
    ),
    "RS ordered": LaunchTemplate(never=(1000, 1000)),
    "RD two": LaunchTemplate(
        sends=_fixed(2),
        enters=_ONE,
        leaves=_ONE,
        reduces=lambda r: r - 1,
        steps=_fixed(11),
        launches=lambda r: 16 * (r - 1) + 10,
    ),
    "BC two": LaunchTemplate(
        sends=lambda r: 2 / r, enters=_ONE, steps=_fixed(10), launches=lambda r: 9 * (r - 1)
    ),
    "BC NHR": LaunchTemplate(
        way="nhr",
        sends=lambda r: 2 / r,
        ports=lambda ports: max(sum(ports) - 2, 1),
        enters=_ONE,
        steps=_fixed(10),
        launches=lambda r: 8 * (r - 1),
        each=NHR_LAUNCH,
    ),
    "BC NHR links": LaunchTemplate(
        way="nhr",
        sends=lambda r: 2 / r,
        ports=sum,
        enters=_ONE,
        steps=_fixed(12),
        launches=lambda r: 8 * (r - 1) + 2,
        each=NHR_LAUNCH,
    ),
    "SC": LaunchTemplate(
        enters=_ONE,
        leaves=_ONE,
        steps=_fixed(4),
        launches=lambda r: 7 * (r - 1),
        entering=_ONE,
        either=True,
    ),
    "SC detour": LaunchTemplate(
        way="detour",
        far=True,
        enters=_ONE,
        leaves=_ONE,
        steps=_fixed(4),
        launches=lambda r: 9 * (r - 1) + 2 * max(r - 2, 0),
        entering=_ONE,
        leaving=_ONE,
    ),
    "SC NHR": LaunchTemplate(
        way="nhr",
        enters=lambda r: r,
        leaves=_ONE,
        steps=_log,
        launches=lambda r: r - 1 + 2 * (_log(r) + 1),
        entering=lambda r: r,
        leaving=_ONE,
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
        "scatter": """
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
strike not *SoleNHR if net_levels > 1, gcd0 == 1
""",
    }
)
"""`REGISTER_ALG_ATTRS` of these executors, and what TopoMatchTwoLevel takes."""
