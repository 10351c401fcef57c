"""Rows of CCU_SCHED. What it leaves goes to AICPU_TS."""

from hccl_py.selection.tables.hccl_2026_08.text_tables import read_table

TABLE = read_table(
    "CCU_SCHED",
    {
        "all_reduce": """
179 leave the top links are UB_RTP if ub_rtp
187 leave CCU_SCHED is for one and two levels if net_levels == 3
194 leave sums in rank order are for AICPU_TS if strict_order
201 leave the CCU does not multiply if reduce == prod
205 leave the CCU does not reduce this data type if wide
268 leave no branch is for this shape of layer 0 if net_levels > 1, shape0 == mesh+clos
215, 268, 360 leave input and output overlap if in_place
if net_levels > 1:
    if shape0 == mesh:
        218 CcuSchedAllReduceSoleNHR if gcd0 == 1
        222 CcuSchedAllReduceSoleNHR if local0 == 1
        225 leave links are on two dies if mesh_dies != one
        227 CcuSchedAllReduceSequenceMeshMesh if bytes <= 32M, ranks > 64
        if dtype != int8:
            231 CcuSchedAllReduceSequenceMeshMesh if bytes <= 16M, ranks >= 64
            236 CcuSchedAllReduceSoleMesh if bytes <= 512K, ranks <= 64
            241 CcuSchedAllReduceSequenceMeshMesh if bytes <= 64M, ranks < 64
        255 leave AICPU_TS is faster at this size if bytes > 64M
        251 leave the CCU does not reduce this data type if dtype == int8
        252 CcuSchedAllReduceParallelMeshNHR
    259 CcuSchedAllReduceSoleNHR if bytes < 8M
    262 leave AICPU_TS is faster at this size
if shape0 == mesh:
    325 leave the CCU does not reduce this data type if dtype == int8
    334 leave AICPU_TS is faster at this size if pair_bytes > 8M
    if mesh_dies == regular:
        338 CcuSchedAllReduceSoleMesh2Die if bytes < 512K
        340 CcuSchedAllReduceSequenceMesh2Die
    344 leave links are spread unevenly over two dies if mesh_dies == irregular
    346 CcuSchedAllReduceSoleMesh
if shape0 == mesh+clos, pcie0, one_mesh:
    325 leave the CCU does not reduce this data type if dtype == int8
    334 leave AICPU_TS is faster at this size if pair_bytes > 8M
    if mesh_dies == regular:
        338 CcuSchedAllReduceSoleMesh2Die if bytes < 512K
        340 CcuSchedAllReduceSequenceMesh2Die
    344 leave links are spread unevenly over two dies if mesh_dies == irregular
    346 CcuSchedAllReduceSoleMesh
370, 386 leave some links are PCIe if pcie0
if shape0 == mesh+clos:
    379 leave the CCU does not reduce this data type if dtype == int8
    if mesh_is_clos, ranks <= 4:
        293 CcuSchedAllReduceSoleMesh if bytes < 512K
        296 CcuSchedAllReduceConcurMeshNHRMultiLink
    if mesh_in_clos, bytes >= 512K:
        301 CcuAllReduceParallelNHR1DMutiJetty if bytes < 64M
        303 CcuSchedAllReducePipeLineMeshNHR
    307 CcuSchedAllReduceSoleNHRMultiLink
389 CcuSchedAllReduceSoleNHR if bytes < 8M
392 leave AICPU_TS is faster at this size
""",
        "reduce_scatter": """
172 leave the top links are UB_RTP if ub_rtp
179 leave CCU_SCHED is for one and two levels if net_levels == 3
189 leave sums in rank order are for AICPU_TS if strict_order
196 leave the CCU does not multiply if reduce == prod
201 leave input and output overlap if in_place
207 leave the CCU does not reduce this data type if wide
if net_levels > 1:
    if shape0 == mesh:
        221 leave AICPU_TS is faster at this size if bytes >= 32M
        225 CcuSchedReduceScatterSoleNHR if gcd0 == 1
        272 CcuSchedReduceScatterSoleNHR if local0 == 1
        234 leave the CCU does not reduce this data type if dtype == int8
        if ranks == 16, frames == 2, total_bytes >= 4M, total_bytes <= 16M:
            239 CcuSchedReduceScatterSoleMesh2Die
        244 CcuSchedReduceScatterSoleMesh if total_bytes < 512K, ranks < 64
        if frames <= 16:
            249 CcuSchedReduceScatterSequenceMeshMesh if total_bytes < 16M, ranks < 64
            254 CcuSchedReduceScatterSequenceMeshMesh if total_bytes <= 16M, ranks == 64
            259 CcuSchedReduceScatterParallelMeshNHR if total_bytes <= 128M, ranks == 64
        266 CcuSchedReduceScatterSoleNHR if frames > 16
        269 leave AICPU_TS is faster at this size
    276 CcuSchedReduceScatterSoleNHR if shape0 == clos
    282 leave no branch is for this shape of layer 0
340 leave the CCU does not reduce this data type if dtype == int8
if shape0 == mesh:
    307 leave AICPU_TS is faster at this size if scaled_bytes >= 8M
    314 CcuSchedReduceScatterSoleMesh2Die if mesh_dies == regular
    317 leave links are spread unevenly over two dies if mesh_dies == irregular
    319 CcuSchedReduceScatterSoleMesh
if shape0 == mesh+clos, pcie0, one_mesh:
    307 leave AICPU_TS is faster at this size if scaled_bytes >= 8M
    314 CcuSchedReduceScatterSoleMesh2Die if mesh_dies == regular
    317 leave links are spread unevenly over two dies if mesh_dies == irregular
    319 CcuSchedReduceScatterSoleMesh
350, 386 leave some links are PCIe if pcie0
if shape0 == mesh+clos:
    if mesh_is_clos, ranks <= 4:
        366 CcuSchedReduceScatterSoleMesh if bytes < 512K
        369 CcuSchedReduceScatterConcurMeshNHRMultiLink
    if mesh_in_clos, bytes >= 512K:
        374 CcuSchedReduceScatterParallelMeshNHRMultiLink if bytes < 4M
        376 CcuSchedReduceScatterPipeLineMeshNHR
    380 CcuSchedReduceScatterSoleNHRMultiLink
388 CcuSchedReduceScatterSoleNHR
""",
        "all_gather": """
218 leave the top links are UB_RTP if ub_rtp
225 leave CCU_SCHED is for one and two levels if net_levels == 3
290 leave no branch is for this shape of layer 0 if net_levels > 1, shape0 == mesh+clos
239, 290, 296 leave input and output overlap if in_place
if net_levels > 1:
    if shape0 == mesh:
        242 leave more ranks than the CCU takes if ranks > 64
        245 CcuSchedAllGatherSoleNHR if gcd0 == 1
        250 leave links are on two dies if mesh_dies != one
        252 CcuSchedAllGatherSoleNHR if local0 == 1
        if ranks <= 8:
            256 CcuSchedAllGatherSoleMesh if bytes <= 1M
            258 CcuSchedAllGatherParallelMeshNHR if frames <= 16
            264 CcuSchedAllGatherSoleNHR
        268 CcuSchedAllGatherSoleMesh if bytes < 128K, ranks <= 32
        271 CcuSchedAllGatherSequenceMeshMesh if bytes < 4M, frames <= 16
        274 CcuSchedAllGatherParallelMeshNHR if frames <= 16
        281 CcuSchedAllGatherSoleNHR
    285 CcuSchedAllGatherSoleNHR
if shape0 == mesh:
    152 CcuSchedAllGatherSoleMesh2Die if mesh_dies == regular
    155 leave links are spread unevenly over two dies if mesh_dies == irregular
    if two_level_net, ranks == 2, bytes >= 4M:
        166 leave two ranks with a detour are faster on AICPU_TS
    168 CcuSchedAllGatherSoleMesh
if shape0 == mesh+clos, pcie0, one_mesh:
    152 CcuSchedAllGatherSoleMesh2Die if mesh_dies == regular
    155 leave links are spread unevenly over two dies if mesh_dies == irregular
    if two_level_net, ranks == 2, bytes >= 4M:
        166 leave two ranks with a detour are faster on AICPU_TS
    168 CcuSchedAllGatherSoleMesh
188, 196 leave some links are PCIe if pcie0
if shape0 == mesh+clos:
    if bytes > 512K:
        130 CcuSchedAllGatherConcurMeshNHRMultiLink if mesh_is_clos, ranks <= 4
        if mesh_in_clos:
            133 CcuSchedAllGatherParallelMeshNHRMultiLink if bytes < 16M
            135 CcuSchedAllGatherPipeLineMeshNHR
        138 CcuSchedAllGatherSoleNHRMultiLink
    141 CcuSchedAllGatherSoleMesh
198 CcuSchedAllGatherSoleNHR
""",
        "broadcast": """
83 leave the top links are UB_RTP if ub_rtp
91 leave CCU_SCHED is for one and two levels if net_levels == 3
if net_levels > 1, shape0 == mesh:
    103 leave AICPU_TS is faster at this size if ranks < 64, bytes > 64M
    112 leave AICPU_TS is faster at this size if ranks >= 64, rank_share > 1M
    115 CcuSchedBroadcastSoleNHR if gcd0 == 1
    118 CcuSchedBroadcastSoleNHR if local0 == 1
    121 leave links are on two dies if mesh_dies != one
    128 CcuSchedBroadcastSoleMesh if rank_share <= 16K, ranks <= 64
    132 CcuSchedBroadcastSoleNHR if rank_share <= 4M, ranks < 64
    132 CcuSchedBroadcastSoleNHR if rank_share <= 1M, ranks >= 64
    134 CcuSchedBroadcastParallelMeshNHR
143, 184 leave some links are PCIe if shape0 == clos, pcie0
if net_levels > 1:
    138 CcuSchedBroadcastSoleNHR if shape0 == clos
    143 leave no branch is for this shape of layer 0
if shape0 == mesh:
    164 leave links are on two dies if mesh_dies != one
    166 CcuSchedBroadcastSoleMesh
if shape0 == mesh+clos:
    170 CcuSchedBroadcastSoleMesh if one_mesh
    173 leave some links are PCIe if pcie0
    176 CcuBroadcastParallelMesh1DNHRUBX if bytes < 16M
    178 CcuSchedBroadcastPipeLineMeshNHR
186 CcuSchedBroadcastSoleNHR
""",
        "reduce": """
118 leave the top links are UB_RTP if ub_rtp
125 leave CCU_SCHED is for one and two levels if net_levels == 3
133 leave the CCU does not multiply if reduce == prod
136 leave the CCU does not reduce this data type if wide
if net_levels > 1, shape0 == mesh:
    149 leave AICPU_TS is faster at this size if ranks < 64, bytes > 64M
    157 leave AICPU_TS is faster at this size if ranks >= 64, rank_share > 1M
    160 CcuReduceNHR1DMem2Mem if gcd0 == 1
    164 CcuSchedReduceSoleNHR if local0 == 1
    167 leave links are on two dies if mesh_dies != one
    175 leave the CCU does not reduce this data type if dtype == int8
    178 CcuSchedReduceSoleNHR if rank_share <= 256K
    180 CcuSchedReduceParallelMeshNHR
186, 258 leave some links are PCIe if shape0 == clos, pcie0
if net_levels > 1:
    188 CcuSchedReduceSoleNHR if shape0 == clos
    193 leave no branch is for this shape of layer 0
if shape0 == mesh:
    213 leave links are on two dies if mesh_dies != one
    216 leave AICPU_TS is faster at this size if ranks < 8, bytes >= 8M
    219 leave AICPU_TS is faster at this size if bytes > 16M
    226 leave the CCU does not reduce this data type if dtype == int8
    227 CcuSchedReduceSoleMeshTwoShot
if shape0 == mesh+clos:
    if one_mesh:
        234 leave AICPU_TS is faster at this size if bytes >= 8M
        236 CcuSchedReduceSoleMesh
    240 leave some links are PCIe if pcie0
    248 leave the CCU does not reduce this data type if dtype == int8
    250 CcuReduceParallelMesh1DNHRUBX if bytes < 128M
    252 CcuReduceOmniPipe2D
260 CcuSchedReduceSoleNHR
""",
        "scatter": """
41 leave the top links are UB_RTP if ub_rtp
49 leave CCU_SCHED is for one and two levels if net_levels == 3
if net_levels > 1, shape0 == mesh:
    64 leave AICPU_TS is faster at this size if bytes > 1M
    64 leave more ranks than the CCU takes if ranks > 64
    67 CcuSchedScatterSoleNHR if gcd0 == 1
    70 CcuSchedScatterSoleNHR if local0 == 1
    73 leave links are on two dies if mesh_dies != one
    75 CcuSchedScatterParallelMeshNHR
80, 133 leave some links are PCIe if shape0 == clos, pcie0
if net_levels > 1:
    82 CcuSchedScatterSoleNHR if shape0 == clos
    87 leave no branch is for this shape of layer 0
if shape0 == mesh:
    110 leave input and output overlap if in_place
    113 leave links are on two dies if mesh_dies != one
    115 CcuSchedScatterSoleMesh
if shape0 == mesh+clos:
    119 CcuSchedScatterSoleMesh if one_mesh
    122 leave some links are PCIe if pcie0
    125 CcuScatterParallelMesh1DNHRUBX if total_bytes < 16M
    127 CcuSchedScatterPipeLineMeshNHR
135 CcuSchedScatterSoleNHR
""",
        "all_to_all": """
47 leave the top links are UB_RTP if ub_rtp
54 leave CCU_SCHED is for one and two levels if net_levels == 3
60 leave input and output overlap if in_place
if net_levels > 1:
    71 CcuSchedAllToAllSoleMeshMultiLink if shape0 == mesh, ranks <= 64
    74, 77 leave no branch is for this shape of layer 0
if shape0 == mesh:
    82 CcuSchedAllToAllSoleMesh2Die if mesh_dies == regular
    85 leave links are spread unevenly over two dies if mesh_dies == irregular
    90 CcuSchedAllToAllSoleMesh
if shape0 == mesh+clos:
    if pcie0:
        97 CcuSchedAllToAllSoleMesh if one_mesh
        100 leave some links are PCIe
    115 CcuSchedAllToAllSoleMeshConcurrent if mesh_is_clos, ranks <= 4, bytes > 512
    117 CcuSchedAllToAllSoleMeshUBX
123 leave no branch is for this shape of layer 0
""",
        "all_to_all_v": """
31 leave the top links are UB_RTP if ub_rtp
38 leave CCU_SCHED is for one and two levels if net_levels == 3
if net_levels > 1, shape0 != clos:
    47 leave the CCU does not take int8 if dtype == int8
    51 leave more ranks than the CCU takes if ranks > 64
    54 CcuSchedAllToAllVSoleMesh if ranks <= 4
    56 CcuSchedAllToAllVSoleMeshMultiLink
60, 95 leave no branch is for this shape of layer 0 if shape0 == clos
if shape0 == mesh:
    65 CcuSchedAllToAllVSoleMesh2Die if mesh_dies == regular
    68 leave links are spread unevenly over two dies if mesh_dies == irregular
    70 CcuSchedAllToAllVSoleMesh
if pcie0:
    76 CcuSchedAllToAllVSoleMesh if one_mesh
    79 leave some links are PCIe
88 CcuSchedAllToAllVSoleMeshConcurrent if mesh_is_clos, ranks <= 4
90 CcuSchedAllToAllVSoleMeshUBX
""",
        "all_to_all_vc": """
29 leave the top links are UB_RTP if ub_rtp
36 leave CCU_SCHED is for one and two levels if net_levels == 3
46 CcuSchedAllToAllVCSoleMesh if net_levels == 1, shape0 == mesh
42, 49 leave CCU_SCHED is for one mesh
""",
        "all_gather_v": """
46 leave the top links are UB_RTP if ub_rtp
54 leave CCU_SCHED is for one and two levels if net_levels == 3
60 leave input and output overlap if in_place
62 CcuSchedAllGatherVSoleMesh if net_levels == 1, shape0 == mesh
65, 68 leave CCU_SCHED is for one mesh
""",
        "reduce_scatter_v": """
81 leave the top links are UB_RTP if ub_rtp
88 leave CCU_SCHED is for one and two levels if net_levels == 3
95 leave input and output overlap if in_place
115 leave the CCU does not reduce this data type if dtype == int8
102 leave the CCU does not multiply if reduce == prod
106 leave the CCU does not reduce this data type if wide
120, 125 leave no branch is for this shape of layer 0 if net_levels > 1
if shape0 == mesh:
    151 leave links are on two dies if mesh_dies != one
    153 CcuSchedReduceScatterVSoleMesh if parts_bytes < 32M
161 CcuSchedReduceScatterVSoleMesh if shape0 == mesh+clos, one_mesh, parts_bytes < 32M
155, 163, 169, 175 leave the size or the shape of layer 0 is for AICPU_TS
""",
    },
)
