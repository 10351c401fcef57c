"""Rows of AICPU_TS, the default engine of an Ascend 950, and the last one of the others."""

from hccl_py.selection.tables.hccl_2026_08.text_tables import read_table

TABLE = read_table(
    "AICPU_TS",
    {
        "all_reduce": """
if strict_order:
    415 AllReduceOrderPreservedGroup if ranks > 8
    418 AicpuAllReduceStrictOrderedMesh
if net_levels > 1:
    434 AicpuAllReduceSoleNHRAicpuReduce if special
    if net_levels == 3, uboe:
        438 AicpuAllReducePipeLine if even_layers, local0 == 8
        440 AicpuAllReduceSoleNHR if not even_layers
        440 AicpuAllReduceSoleNHR if local1 == 1
        442 InsAllReduceParallelRSAGUboe
    446 AicpuAllReduceSoleNHR if gcd0 == 1
    449 AicpuAllReduceSoleNHR if local0 == 1
    if shape0 == mesh:
        452 AicpuAllReduceSequenceMeshConcurNHRNHR if net_levels == 3
        455 AicpuAllReduceSequenceMeshConcurNHR if bytes > 4G
        456 AicpuAllReduceParallelMeshNHR if bytes > 32M
        458 AicpuAllReduceSoleNHR
    464 AicpuAllReduceSoleNHRTwoShotMultiLink if shape0 == clos
    466 leave no branch is for this shape of layer 0
if shape0 == mesh:
    if not special, two_level_net:
        543 AicpuAllReduceSoleMeshConcur if ranks == 2, bytes >= 8M
        547 AicpuAllReduceSoleMeshConcur if pair_bytes > 32M, bytes > 4G
    if special:
        539-540 AicpuAllReduceSoleMeshOneShot if bytes <= 8M
        539-540 AicpuAllReduceSoleMeshTwoShot
    545 AicpuAllReduceSoleMeshOneShot if bytes <= 8M
    548 AicpuAllReduceSoleMeshChunkTwoShot if pair_bytes > 32M
    550 AicpuAllReduceSoleMeshTwoShot
if shape0 == clos:
    554 AicpuAllReduceSoleNHRAicpuReduce if special
    556 AicpuAllReduceSoleNHRTwoShotMultiLink
if shape0 == mesh+clos:
    if pcie0:
        if one_mesh:
            if special:
                562-563 AicpuAllReduceSoleMeshOneShot if bytes <= 8M
                562-563 AicpuAllReduceSoleMeshTwoShot
            565 AicpuAllReduceSoleMeshOneShot if bytes <= 8M
            567 AicpuAllReduceSoleMeshChunkTwoShot if pair_bytes > 32M
            569 AicpuAllReduceSoleMeshTwoShot
        573 AicpuAllReduceSoleNHRAicpuReduce if special
        575 InsAllReduceParallelMesh1DNHRPcie if bytes < 32M
        576 AicpuAllReducePipeLinePcie
    if mesh_is_clos, ranks <= 4:
        if special:
            491 AicpuAllReduceSoleMeshOneShot if bytes <= 8M
            492 AicpuAllReduceSoleMeshTwoShot
        494 AicpuAllReduceSoleMeshOneShot if bytes <= 8M
        497 AicpuAllReduceConcurMeshTwoShotNHR
    500 AicpuAllReduceSoleNHRAicpuReduce if special
    if mesh_in_clos, bytes >= 512K:
        503 AicpuAllReducePipeLineUBX if zero_copy_asked
        506 InsAllReduceParallelRSAGUBX
    510 AicpuAllReduceSoleNHR
""",
        "reduce_scatter": """
if strict_order:
    409 ReduceScatterOrderPreservedGroup if ranks > 8
    412 AicpuReduceScatterStrictOrderedMesh
if net_levels > 1:
    423 AicpuReduceScatterSoleNHRAicpuReduce if special
    if net_levels == 3, uboe:
        427 AicpuReduceScatterPipeLine if even_layers, local0 == 8
        429 AicpuReduceScatterSoleNHR if not even_layers
        429 AicpuReduceScatterSoleNHR if local1 == 1
        431 InsReduceScatterParallelNHRNHRUboe
    434 AicpuReduceScatterSoleNHR if gcd0 == 1
    if local0 > 1, shape0 == mesh:
        444 AicpuReduceScatterSequenceMeshConcurNHRNHR if net_levels == 3
        448 AicpuReduceScatterParallelMeshNHR if total_bytes >= 1G, ranks >= 256
        if bytes > 4M:
            451 AicpuReduceScatterSequenceMeshConcurNHR if total_bytes > 4G
            452 AicpuReduceScatterParallelMeshNHR
        454 AicpuReduceScatterSoleNHR
    457 AicpuReduceScatterSoleNHR if local0 == 1
    459 AicpuReduceScatterSoleNHRMultiLink if shape0 == clos
    464 leave no branch is for this shape of layer 0
if shape0 == mesh:
    478 AicpuReduceScatterSoleMesh if special
    if two_level_net:
        482 AicpuReduceScatterSoleMeshConcur if ranks == 2, bytes >= 4M
        484 AicpuReduceScatterSoleMeshChunk if total_bytes > 1536M
    486, 492 AicpuReduceScatterSoleMeshChunk if scaled_pairs > 16M
    488, 494 AicpuReduceScatterSoleMesh
if shape0 == clos:
    518 AicpuReduceScatterSoleNHRAicpuReduce if special
    520 AicpuReduceScatterSoleNHRMultiLink
if shape0 == mesh+clos:
    if pcie0:
        if one_mesh:
            478 AicpuReduceScatterSoleMesh if special
            if two_level_net:
                482 AicpuReduceScatterSoleMeshConcur if ranks == 2, bytes >= 4M
                484 AicpuReduceScatterSoleMeshChunk if total_bytes > 1536M
            486, 492 AicpuReduceScatterSoleMeshChunk if scaled_pairs > 16M
            488, 494 AicpuReduceScatterSoleMesh
        666 AicpuReduceScatterSoleNHRAicpuReduce if special
        668 InsReduceScatterParallelMesh1DNHRPcie if bytes < 4M
        670 AicpuReduceScatterPipeLinePcie
    if one_mesh:
        675 AicpuReduceScatterSoleMesh if special
        677 AicpuReduceScatterConcurMeshNHR if bytes >= 512K
        679 AicpuReduceScatterSoleMeshChunk if scaled_pairs > 16M
        681 AicpuReduceScatterSoleMesh
    684 AicpuReduceScatterSoleNHRAicpuReduce if special
    if mesh_in_clos, bytes >= 512K:
        687 AicpuReduceScatterPipeLineUBX if zero_copy_asked
        689 InsReduceScatterParallelMesh1DNHRUBX
    692 AicpuReduceScatterSoleNHR
""",
        "all_gather": """
if net_levels > 1:
    if net_levels == 3, uboe:
        318 AicpuAllGatherPipeLine if even_layers, local0 == 8
        320 AicpuAllGatherSoleNHR if not even_layers
        320 AicpuAllGatherSoleNHR if local1 == 1
        322 AicpuAllGatherParallelNHRNHR
    325 AicpuAllGatherSoleNHR if gcd0 == 1
    330 AicpuAllGatherSoleNHR if local0 == 1
    if shape0 == mesh:
        335 AicpuAllGatherSequenceMeshConcurNHRNHR if net_levels == 3
        339 AicpuAllGatherParallelMeshNHR if total_bytes >= 1G, ranks >= 1024
        if bytes > 1M:
            342 AicpuAllGatherSequenceMeshConcurNHR if total_bytes > 4G
            343 AicpuAllGatherParallelMeshNHR
        345 AicpuAllGatherSoleNHR
    348 AicpuAllGatherSoleNHRMultiLink if shape0 == clos
    351 leave no branch is for this shape of layer 0
if shape0 == mesh:
    if two_level_net:
        358 AicpuAllGatherSoleMeshConcur if total_bytes > 1G
        358 AicpuAllGatherSoleMeshConcur if ranks == 2, bytes >= 4M
    360 AicpuAllGatherSoleMesh
if shape0 == mesh+clos:
    if pcie0:
        366 AicpuAllGatherSoleMesh if one_mesh
        368 InsAllGatherParallelMesh1DNHRPcie if bytes < 4M
        369 AicpuAllGatherPipeLinePcie
    if mesh_is_clos, ranks <= 4:
        385 AicpuAllGatherConcurMeshNHR if bytes > 512K
        387 AicpuAllGatherSoleMesh
    if mesh_in_clos, bytes > 512K:
        390 InsAllGatherParallelMesh1DNHRMultiJetty if bytes < 4M
        391 AicpuAllGatherPipeLineUBX
    394 AicpuAllGatherSoleNHR
397 AicpuAllGatherSoleNHRMultiLink
""",
        "broadcast": """
if net_levels == 3:
    206 AicpuBroadcastSoleNHR if not even_layers
    206 AicpuBroadcastSoleNHR if local0 == 1
    208 AicpuBroadcastSequenceMesh1dNHRNHR if shape0 == mesh, not uboe
    210 InsBroadcastParallelNHRNHRUboe
if net_levels == 2:
    213 AicpuBroadcastSoleNHR if gcd0 == 1
    215 AicpuBroadcastSoleNHR if local0 == 1
    217 AicpuBroadcastParallelMeshNHR if shape0 == mesh
    219 AicpuBroadcastSoleNHRTwoShotMultiLink if shape0 == clos
    222 leave no branch is for this shape of layer 0
236 AicpuBroadcastSoleMeshTwoShot if shape0 == mesh
if shape0 == mesh+clos:
    239 AicpuBroadcastSoleMeshTwoShot if one_mesh
    241 InsBroadcastParallelMesh1DNHRPcie if pcie0
    243 InsBroadcastParallelMesh1DNHRUBX
246 AicpuBroadcastSoleNHRTwoShotMultiLink
""",
        "scatter": """
if net_levels == 3:
    167 AicpuScatterSoleNHR if not even_layers
    167 AicpuScatterSoleNHR if local0 == 1
    169 AicpuScatterSequenceMeshConcurNHRNHR if shape0 == mesh, not uboe
    171 AicpuScatterSoleNHR
if net_levels == 2:
    174 AicpuScatterSoleNHR if gcd0 == 1
    176 AicpuScatterSoleNHR if local0 == 1
    178 AicpuScatterParallelMeshNHR if shape0 == mesh
    180 AicpuScatterSoleNHR if shape0 == clos
    183 leave no branch is for this shape of layer 0
192 AicpuScatterSoleMesh if shape0 == mesh
if shape0 == mesh+clos:
    195 AicpuScatterSoleMesh if one_mesh
    197 InsScatterParallelMesh1DNHRPcie if pcie0
    199 InsScatterParallelMesh1DNHRUBX
203 AicpuScatterSoleNHR if pcie0
205 AicpuScatterSoleMesh
""",
        "reduce": """
if net_levels > 1:
    280 AicpuReduceSoleNHRAicpuReduce if special
    283 AicpuReduceSoleNHR if local0 == 1
    283 AicpuReduceSoleNHR if shape0 == clos
    if net_levels == 3:
        if uboe:
            287 AicpuReduceSoleNHRAicpuReduce if not even_layers
            287 AicpuReduceSoleNHRAicpuReduce if local1 == 1
            289 ReduceParallelNHRNHRUboe
        if shape0 == mesh:
            294 AicpuReduceSequenceMesh1DNHRNHR if even_layers
            296 AicpuReduceSoleNHR
    299 AicpuReduceSoleNHR if gcd0 == 1
    301 AicpuReduceParallelMeshNHR if shape0 == mesh
    303 leave no branch is for this shape of layer 0
if shape0 == mesh:
    322 AicpuReduceSoleMeshTwoShot if bytes >= 8M
    324 AicpuReduceSoleMesh
if shape0 == mesh+clos, one_mesh:
    if pcie0:
        330 AicpuReduceSoleMeshTwoShot if bytes >= 8M
        332 AicpuReduceSoleMesh
    343 AicpuReduceSoleMesh if special
    345 AicpuReduceSoleMeshTwoShot if bytes >= 8M
    347 AicpuReduceSoleMesh
336, 351, 358 AicpuReduceSoleNHRAicpuReduce if special
if shape0 == mesh+clos:
    338 ReduceParallelMesh1DNHRPcie if pcie0
    353 ReduceParallelMesh1DNHRUBX
360 AicpuReduceSoleNHR
""",
        "all_to_all": """
if shape0 == mesh+clos:
    166 AicpuAllToAllSoleMesh if pcie0
    183 AicpuAllToAllSoleMeshConcurrent if mesh_is_clos, ranks <= 4, count > 512
    185 AicpuAllToAllSoleMeshUBX
159 AicpuAllToAllSoleMesh if total_bytes > 150M
161 AicpuAllToAllSoleMeshSingleChannel
""",
        "all_to_all_v": """
if shape0 == mesh+clos:
    124 AicpuAllToAllVSoleMesh if pcie0
    133 AicpuAllToAllVSoleMeshConcurrent if mesh_is_clos, ranks <= 4
    135 AicpuAllToAllVSoleMeshUBX
120 AicpuAllToAllVSoleMesh
""",
        "all_to_all_vc": """
63 AicpuAllToAllVCSoleMesh
""",
        "all_gather_v": """
88 AicpuAllGatherVSoleMesh
""",
        "reduce_scatter_v": """
189 leave uint64 and fp64 are not supported if dtype in uint64|fp64
193 AicpuReduceScatterVSoleMesh
""",
        "send_recv": """
24 AicpuSendSole
""",
        "batch_send_recv": """
24 AicpuBatchSendRecvSoleMesh
""",
        "barrier": """
41 AicpuBarrierSoleNHR
""",
    },
)
"""Rows by op; those of sends are for receives, too, whose name is AicpuRecvSole."""
