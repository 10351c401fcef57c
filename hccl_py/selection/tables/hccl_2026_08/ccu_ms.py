"""Rows of CCU_MS. What it leaves goes to CCU_SCHED."""

from hccl_py.selection.tables.hccl_2026_08.text_tables import read_table

TABLE = read_table(
    "CCU_MS",
    {
        "all_reduce": """
51 leave sums in rank order are for AICPU_TS if strict_order
55 leave CCU_MS is for one level if net_levels > 1
63 leave the CCU does not reduce this data type if dtype == int8
69 leave the CCU does not multiply if reduce == prod
73 leave the CCU does not reduce this data type if wide
130 leave two ranks with a detour are faster on AICPU_TS if two_level_net, ranks == 2, bytes >= 8M
162 leave no branch is for this shape of layer 0 if shape0 == clos
134, 157 leave input and output overlap if in_place
if shape0 == mesh:
    if mesh_dies == regular:
        138 CcuMSAllReduceSoleMesh2Die if bytes < 512K
        140 CcuMSAllReduceSequenceMesh2Die
    144 leave links are spread unevenly over two dies if mesh_dies == irregular
    146 CcuMSAllReduceSoleMeshOneShot if bytes < 512K
    151 CcuMSAllReduceSoleMesh
if mesh_is_clos, ranks <= 4:
    95 CcuMSAllReduceSoleMeshOneShot if bytes < 512K
    98 CcuMSAllReduceConcurMeshNHRMultiLink
if mesh_in_clos, bytes >= 512K:
    103 leave AICPU_TS is faster at this size if bytes < 32M
    105 CcuMSAllReducePipeLineMeshNHR
109 CcuMSAllReduceSoleMesh if ranks <= 8
112 leave more ranks than the CCU takes
""",
        "reduce_scatter": """
53 leave sums in rank order are for AICPU_TS if strict_order
57 leave CCU_MS is for one level if net_levels > 1
68 leave two ranks with a detour are faster on AICPU_TS if two_level_net, ranks == 2, bytes >= 4M
76 leave the CCU does not reduce this data type if dtype == int8
83 leave the CCU does not multiply if reduce == prod
87 leave the CCU does not reduce this data type if wide
if shape0 == mesh:
    104 leave input and output overlap if in_place
    107 CcuMSReduceScatterSoleMesh2Die if mesh_dies == regular
    110 leave links are spread unevenly over two dies if mesh_dies == irregular
    116 CcuMSReduceScatterSoleMesh
157 leave no branch is for this shape of layer 0 if shape0 == clos
124 leave some links are PCIe if pcie0, not one_mesh
if mesh_is_clos, ranks <= 4:
    137 CcuMSReduceScatterSoleMesh if bytes < 512K
    139 CcuMSReduceScatterConcurMeshNHRMultiLink
if mesh_in_clos, bytes >= 512K:
    144 leave AICPU_TS is faster at this size if bytes < 2M
    146 CcuMSReduceScatterPipeLineMeshNHR
149 CcuMSReduceScatterSoleMesh if ranks <= 8
152 leave more ranks than the CCU takes
""",
        "all_gather": """
44 leave CCU_MS is for one level if net_levels > 1
55 leave two ranks with a detour are faster on AICPU_TS if two_level_net, ranks == 2, bytes >= 4M
if shape0 == mesh:
    71 leave input and output overlap if in_place
    73 CcuMSAllGatherSoleMesh2Die if mesh_dies == regular
    77 leave links are spread unevenly over two dies if mesh_dies == irregular
    79 CcuMSAllGatherSoleMesh
110 leave no branch is for this shape of layer 0 if shape0 == clos
86 leave some links are PCIe if pcie0, not one_mesh
101 leave AICPU_TS is faster at this size if bytes > 512K
103 CcuMSAllGatherSoleMesh
""",
        "broadcast": """
32 leave CCU_MS is for one level if net_levels > 1
if shape0 == mesh:
    45 leave links are on two dies if mesh_dies != one
    47 CcuMSBroadcastSoleMesh
51 CcuMSBroadcastSoleMesh if shape0 == mesh+clos, one_mesh
56, 62 leave no branch is for this shape of layer 0
""",
        "reduce": """
33 leave CCU_MS is for one level if net_levels > 1
41 leave the CCU does not reduce this data type if dtype == int8
47 leave the CCU does not multiply if reduce == prod
51 leave the CCU does not reduce this data type if wide
if shape0 == mesh:
    72 leave links are on two dies if mesh_dies != one
    75 leave AICPU_TS is faster at this size if bytes >= 8M
    77 CcuMSReduceSoleMesh
if shape0 == mesh+clos:
    if one_mesh:
        84 leave AICPU_TS is faster at this size if bytes >= 8M
        86 CcuMSReduceSoleMesh
    92 leave AICPU_TS is faster at this size if bytes < 64M
    94 CcuReduceOmniPipe2DMs
100 leave no branch is for this shape of layer 0
""",
    },
)
