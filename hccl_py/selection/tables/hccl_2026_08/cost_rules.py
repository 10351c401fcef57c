"""Rules that strike executors from the cost table, or say which stay: `cost_table.cc:45-478`."""

from hccl_py.selection.tables.hccl_2026_08.text_tables import read_cost_rules

COST_RULES = read_cost_rules(
    {
        "all_reduce": """
strike CcuSchedAllReduceSequenceMeshMesh CcuSchedAllReduceSoleMesh if dtype == int8
strike Ccu* Aiv* if reduce == prod
strike Ccu* Aiv* if wide
strike Ccu* Aiv* if strict_order
strike Aiv* if net_levels == 3, uboe
stay AllReduceOrderPreservedGroup if strict_order, ranks > 8
stay AicpuAllReduceStrictOrderedMesh if strict_order, ranks <= 8
stay AicpuAllReduceSequenceMeshConcurNHRNHR if net_levels == 3
stay CcuSchedAllReduceSoleNHR AicpuAllReduceSoleNHR AivAllReduceSole* if local0 == 1
strike CcuSched*2Die if mesh_dies != regular
strike *AllReduceConcur* *Parallel* *AllReduceSequence* if net_levels == 1
""",
        "all_gather": """
strike Ccu* if in_place
strike Aiv* CcuSchedAllGatherSoleMesh CcuSchedAllGatherSoleNHR CcuSchedAllGatherS*MeshMesh if ub_rtp
strike CcuSchedAllGatherParallel* *AllGatherConcurMeshNHRMultiLink if ub_rtp
strike Aiv* CcuSchedAllGatherSoleMesh CcuSchedAllGatherSoleNHR if net_levels == 3, uboe
strike CcuSchedAllGatherS*MeshMesh CcuSchedAllGatherParallel* if net_levels == 3, uboe
strike *AllGatherConcurMeshNHRMultiLink if net_levels == 3, uboe
strike CcuMSAllGatherSole* *2Die CcuSched*SoleNHRMultiLink *ScheConcur if net_levels > 1
strike *2Die if mesh_dies != regular
strike *AllGatherConcur* if shape0 != mesh+clos
strike Ins* *MultiLink if shape0 == mesh
strike *AllGatherSequence* *ParallelMeshNHR *ParallelNHRNHR if net_levels == 1
strike AicpuAllGatherSoleMesh AicpuAllGatherSoleMeshConcur if net_levels > 1
""",
        "reduce_scatter": """
stay ReduceScatterOrderPreservedGroup if strict_order, ranks > 8
stay AicpuReduceScatterStrictOrderedMesh if strict_order, ranks <= 8
stay CcuSchedReduceScatterSoleNHR if net_levels > 1, local0 == 1, not strict_order
stay AicpuReduceScatterSoleNHR if net_levels > 1, local0 == 1, not strict_order
stay AivReduceScatterSoleMesh if net_levels > 1, local0 == 1, not strict_order
stay CcuSchedReduceScatterSoleNHR if net_levels > 1, gcd0 == 1, not strict_order
stay AicpuReduceScatterSoleNHR if net_levels > 1, gcd0 == 1, not strict_order
stay AivReduceScatterSoleMesh if net_levels > 1, gcd0 == 1, not strict_order
stay AicpuReduceScatterSequenceMeshConcurNHRNHR if net_levels == 3, not strict_order, gcd0 > 1
strike Ccu* if in_place
strike Ccu* if dtype == int8
strike Ccu* Aiv* if reduce == prod
strike Ccu* Aiv* if wide
strike Ccu* Aiv* if strict_order
strike CcuSched* Aiv* if ub_rtp
strike CcuSched* Aiv* if net_levels == 3, uboe
strike CcuMS* if net_levels > 1
strike *2Die if mesh_dies != regular
strike *Parallel* *ReduceScatterSequence* if net_levels == 1
strike Ins* if shape0 != mesh+clos
strike Ccu*MeshMesh Ccu*ParallelMeshNHR Ccu*SoleMesh Ccu*2Die if frames > 16
strike Aiv* if not aiv_only, total_bytes >= 8M x ranks
strike Aiv* if total_bytes > 16 x ccl_bytes
strike Aiv* if ranks > 2048
""",
    }
)
