"""Data of the cost table after August 2026: hccl 170ddeec, as far as it is known here.

Source: zstar1003/hccl-hcomm-annotated @efbe1cd, a copy of that release, `hccl/src/ops/`.
"""

from hccl_py.selection.tables.hccl_2026_08.costs import CLOS_USE as _CLOS_USE
from hccl_py.selection.tables.hccl_2026_08.text_tables import read_cost_rules, read_executors

SOURCE = "zstar1003/hccl-hcomm-annotated@efbe1cd:hccl/src/ops/op_common/selector/cost_table.cc"

CLOS_USE = (*(_CLOS_USE[2],) * 3, *_CLOS_USE[3:])
"""The use of a Clos network's links: as in August, but for less than 512 KB that of 512 KB."""

STEP, LAUNCH, NHR_LAUNCH = 2e-6, 0.5e-6, 1e-6
"""Seconds of a step, of a task's launch, and of one of NHR: `CalcLatencyParams`,
`CalcLaunchParams`, ins_temp_all_gather_nhr.cc.
"""

PARALLEL, SEQUENCE = 40e-6, 6e-6
"""Seconds of each part of a composed executor besides."""

DETOUR_PORTS = 8

EXECUTORS = read_executors(
    {
        "all_gather": """
AicpuAllGatherParallelMeshNHR parallel: mesh+nhr
AicpuAllGatherSequenceMeshConcurNHR sequence: detour+nhr
AicpuAllGatherSoleMesh sole: mesh
AicpuAllGatherSoleMeshConcur sole: detour
AicpuAllGatherSoleNHR sole: nhr
""",
    }
)
"""Of each op: the name, the composition and the templates, in the order of registration; those for
layers of meshes on one level or two.
"""

COST_RULES = read_cost_rules(
    {
        "all_gather": """
stay AicpuAllGatherSoleNHR if local0 == 1
strike AicpuAllGatherSoleMesh AicpuAllGatherSoleMeshConcur if net_levels > 1
strike *ParallelMeshNHR *SequenceMeshConcurNHR if net_levels == 1
""",
    }
)
"""`REGISTER_ALG_ATTRS` of these executors, and what TopoMatchTwoLevel takes."""
