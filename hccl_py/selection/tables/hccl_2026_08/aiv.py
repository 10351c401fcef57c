"""Rows of AIV, kernels of the vector cores; AIV_ONLY is without the limit of bytes per rank."""

from hccl_py.selection.tables.hccl_2026_08.text_tables import read_table

TABLE = read_table(
    "AIV",
    {
        "all_reduce": """
619 leave sums in rank order are for AICPU_TS if strict_order
627 leave vector cores do not multiply if reduce == prod
632 leave vector cores do not reduce uint64 and fp64 if dtype in uint64|fp64
639 leave more ranks than the kernels take if ranks > 512
602 leave the top links are UB_RTP if ub_rtp
610 leave kernels are for one and two levels if net_levels == 3
655 leave AICPU_TS is faster at this size if not aiv_only, bytes >= 8M x ranks
661 leave the HCCL buffer is too small for this size if bytes > 16 x ccl_bytes
if shape0 == mesh:
    669 AivAllReduceSoleMeshOneShot if ranks <= 8, bytes < 128K
    675 AivAllReduceSoleMeshOneShot if ranks > 8, bytes < 512K
665, 671, 677 AivAllReduceSoleMeshTwoShot
""",
        "reduce_scatter": """
566 leave sums in rank order are for AICPU_TS if strict_order
574 leave vector cores do not multiply if reduce == prod
579 leave vector cores do not reduce uint64 and fp64 if dtype in uint64|fp64
586 leave more ranks than the kernels take if ranks > 512
548 leave the top links are UB_RTP if ub_rtp
557 leave kernels are for one and two levels if net_levels == 3
603 leave AICPU_TS is faster at this size if not aiv_only, total_bytes >= 8M x ranks
609 leave the HCCL buffer is too small for this size if total_bytes > 16 x ccl_bytes
612 AivReduceScatterSoleMesh
""",
        "all_gather": """
418 leave more ranks than the kernels take if ranks > 512
425 leave the top links are UB_RTP if ub_rtp
433 leave kernels are for one and two levels if net_levels == 3
if not aiv_only, total_bytes >= 8M x ranks:
    454 leave AICPU_TS is faster at this size if shape0 != mesh+clos
    454 leave AICPU_TS is faster at this size if pcie0
    if shape0 == mesh+clos, not pcie0:
        454 leave AICPU_TS is faster at this size if ranks > 8
        454 leave AICPU_TS is faster at this size if ranks <= 4
460 leave the HCCL buffer is too small for this size if total_bytes > 16 x ccl_bytes
463 AivAllGatherSoleMesh
""",
        "broadcast": """
268 leave more ranks than the kernels take if ranks > 512
275 leave the top links are UB_RTP if ub_rtp
283 leave kernels are for one and two levels if net_levels == 3
if not aiv_only, bytes >= 8M x ranks:
    301 leave AICPU_TS is faster at this size if shape0 != mesh+clos
    301 leave AICPU_TS is faster at this size if pcie0
    301 leave AICPU_TS is faster at this size if shape0 == mesh+clos, not pcie0, ranks > 8
307 leave the HCCL buffer is too small for this size if bytes > 16 x ccl_bytes
309 AivBroadcastSoleMesh
""",
        "reduce": """
400 leave vector cores do not multiply if reduce == prod
405 leave vector cores do not reduce uint64 and fp64 if dtype in uint64|fp64
412 leave more ranks than the kernels take if ranks > 512
383 leave the top links are UB_RTP if ub_rtp
391 leave kernels are for one and two levels if net_levels == 3
428 leave AICPU_TS is faster at this size if not aiv_only, bytes >= 8M x ranks
434 leave the HCCL buffer is too small for this size if bytes > 16 x ccl_bytes
437 AivReduceSoleMesh
""",
        "scatter": """
225 leave more ranks than the kernels take if ranks > 512
232 leave the top links are UB_RTP if ub_rtp
240 leave kernels are for one and two levels if net_levels == 3
256 leave AICPU_TS is faster at this size if not aiv_only, total_bytes >= 8M x ranks
262 leave the HCCL buffer is too small for this size if total_bytes > 16 x ccl_bytes
265 AivScatterSoleMesh
""",
        "all_to_all": """
207 leave more ranks than the kernels take if ranks > 512
214 leave the top links are UB_RTP if ub_rtp
222 leave kernels are for one and two levels if net_levels == 3
242 leave AICPU_TS is faster at this size if not aiv_only, total_bytes >= 8M x ranks
248 leave the HCCL buffer is too small for this size if total_bytes > 16 x ccl_bytes
250 AivAllToAllSoleMesh
""",
        "all_to_all_v": """
156 leave more ranks than the kernels take if ranks > 256
163 leave the top links are UB_RTP if ub_rtp
171 leave kernels are for one and two levels if net_levels == 3
174 AivAllToAllVSoleMesh
""",
        "all_to_all_vc": """
79 leave more ranks than the kernels take if ranks > 256
86 leave the top links are UB_RTP if ub_rtp
95 leave kernels are for one and two levels if net_levels == 3
98 AivAllToAllVSoleMesh
""",
        "send_recv": """
37 leave the top links are UB_RTP if ub_rtp
45 leave kernels are for one and two levels if net_levels == 3
49 AivSendSole
""",
    },
)
"""An op that the table lacks has no kernel."""
