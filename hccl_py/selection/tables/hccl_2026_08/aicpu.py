"""Rows of AICPU_TS, the default engine of an Ascend 950, and the last one of the others."""

from __future__ import annotations

from hccl_py.selection.rules import Cell, DecisionTable, Rule
from hccl_py.selection.tables.hccl_2026_08.cells_950 import (
    BOTH,
    CLOS,
    COPRIME,
    DETOUR,
    EVEN,
    FOUR,
    GIB,
    LEVELS,
    LONE,
    MESH,
    MIB,
    NOT_UBOE,
    ONE_MESH,
    PAIR,
    PCIE,
    ROWS,
    SMALL,
    SPECIAL,
    STRICT,
    SYMMETRIC_MEMORY,
    THREE_LEVELS,
    TWO_LEVELS,
    UBOE,
    UNEVEN,
    above,
    at_least,
    at_most,
    below,
    selector,
    within,
)

_ENGINE = "AICPU_TS"
_AR = selector(_ENGINE, "all_reduce")
_AG = selector(_ENGINE, "all_gather")
_RS = selector(_ENGINE, "reduce_scatter")
_BC = selector(_ENGINE, "broadcast")
_RE = selector(_ENGINE, "reduce")
_SC = selector(_ENGINE, "scatter")
_A2A = selector(_ENGINE, "all_to_all_v", "alltoall")
_A2AV = selector(_ENGINE, "all_to_all_v", "alltoallv")
_A2AVC = selector(_ENGINE, "all_to_all_v", "alltoallvc")
_AGV = selector(_ENGINE, "all_gather_v")
_RSV = selector(_ENGINE, "reduce_scatter_v")

_NO_MATCH = "no branch is for this shape of layer 0"
_MANY: Cell = ("ranks", ">", 8)
"""MAX_RANK_NUM_FOR_ORDER_PRESERVED, order_preserved_common.h:22."""

_FULL_SERVERS: Cell = ("local0", "==", 8)
_POD_OF_ONE: Cell = ("local1", "==", 1)

# ---- all_reduce: constants in lines 18-39 ----


def _meshed(one: str, chunk: str, two: str, special: str) -> tuple[Rule, ...]:
    """Return the rows of meshes that take no detour; the arguments are their lines."""
    return (
        _AR.take("AicpuAllReduceSoleMeshOneShot", special, SPECIAL, at_most(8 * MIB)),
        _AR.take("AicpuAllReduceSoleMeshTwoShot", special, SPECIAL),
        _AR.take("AicpuAllReduceSoleMeshOneShot", one, at_most(8 * MIB)),
        _AR.take("AicpuAllReduceSoleMeshChunkTwoShot", chunk, ("pair_bytes", ">", 32 * MIB)),
        _AR.take("AicpuAllReduceSoleMeshTwoShot", two),
    )


_AR_LEVELS = within(
    (LEVELS,),
    _AR.take("AicpuAllReduceSoleNHRAicpuReduce", "434", SPECIAL),
    within(
        (THREE_LEVELS, UBOE),
        _AR.take("AicpuAllReducePipeLine", "438", EVEN, _FULL_SERVERS),
        _AR.take("AicpuAllReduceSoleNHR", "440", UNEVEN),
        _AR.take("AicpuAllReduceSoleNHR", "440", _POD_OF_ONE),
        _AR.take("InsAllReduceParallelRSAGUboe", "442"),
    ),
    _AR.take("AicpuAllReduceSoleNHR", "446", COPRIME),
    _AR.take("AicpuAllReduceSoleNHR", "449", LONE),
    within(
        (MESH,),
        _AR.take("AicpuAllReduceSequenceMeshConcurNHRNHR", "452", THREE_LEVELS),
        _AR.take("AicpuAllReduceSequenceMeshConcurNHR", "455", above(4 * GIB)),
        _AR.take("AicpuAllReduceParallelMeshNHR", "456", above(32 * MIB)),
        _AR.take("AicpuAllReduceSoleNHR", "458"),
    ),
    _AR.take("AicpuAllReduceSoleNHRTwoShotMultiLink", "464", CLOS),
    _AR.leave(_NO_MATCH, "466"),
)

_AR_MESH = within(
    (MESH,),
    within(
        (("special", "==", False), DETOUR),
        _AR.take("AicpuAllReduceSoleMeshConcur", "543", PAIR, at_least(8 * MIB)),
        _AR.take(
            "AicpuAllReduceSoleMeshConcur", "547", ("pair_bytes", ">", 32 * MIB), above(4 * GIB)
        ),
    ),
    _meshed("545", "548", "550", "539-540"),
)

_AR_BOTH = within(
    (BOTH,),
    within((PCIE, ONE_MESH), _meshed("565", "567", "569", "562-563")),
    within(
        (PCIE,),
        _AR.take("AicpuAllReduceSoleNHRAicpuReduce", "573", SPECIAL),
        _AR.take("InsAllReduceParallelMesh1DNHRPcie", "575", below(32 * MIB)),
        _AR.take("AicpuAllReducePipeLinePcie", "576"),
    ),
    within(
        FOUR,
        _AR.take("AicpuAllReduceSoleMeshOneShot", "491", SPECIAL, at_most(8 * MIB)),
        _AR.take("AicpuAllReduceSoleMeshTwoShot", "492", SPECIAL),
        _AR.take("AicpuAllReduceSoleMeshOneShot", "494", at_most(8 * MIB)),
        _AR.take("AicpuAllReduceConcurMeshTwoShotNHR", "497"),
    ),
    _AR.take("AicpuAllReduceSoleNHRAicpuReduce", "500", SPECIAL),
    within(
        ROWS,
        _AR.take("AicpuAllReducePipeLineUBX", "503", SYMMETRIC_MEMORY),
        _AR.take("InsAllReduceParallelRSAGUBX", "506"),
    ),
    _AR.take("AicpuAllReduceSoleNHR", "510"),
)

_ALL_REDUCE = (
    _AR.take("AllReduceOrderPreservedGroup", "415", STRICT, _MANY),
    _AR.take("AicpuAllReduceStrictOrderedMesh", "418", STRICT),
    *_AR_LEVELS,
    *_AR_MESH,
    _AR.take("AicpuAllReduceSoleNHRAicpuReduce", "554", CLOS, SPECIAL),
    _AR.take("AicpuAllReduceSoleNHRTwoShotMultiLink", "556", CLOS),
    *_AR_BOTH,
)

# ---- reduce_scatter: constants in lines 18-39, 441-442 ----

_CHUNKED: Cell = ("scaled_pairs", ">", 16 * MIB)

_RS_MESH = (
    _RS.take("AicpuReduceScatterSoleMesh", "478", SPECIAL),
    _RS.take("AicpuReduceScatterSoleMeshConcur", "482", DETOUR, PAIR, at_least(4 * MIB)),
    _RS.take("AicpuReduceScatterSoleMeshChunk", "484", DETOUR, ("total_bytes", ">", 1536 * MIB)),
    _RS.take("AicpuReduceScatterSoleMeshChunk", "486, 492", _CHUNKED),
    _RS.take("AicpuReduceScatterSoleMesh", "488, 494"),
)

_RS_LEVELS = within(
    (LEVELS,),
    _RS.take("AicpuReduceScatterSoleNHRAicpuReduce", "423", SPECIAL),
    within(
        (THREE_LEVELS, UBOE),
        _RS.take("AicpuReduceScatterPipeLine", "427", EVEN, _FULL_SERVERS),
        _RS.take("AicpuReduceScatterSoleNHR", "429", UNEVEN),
        _RS.take("AicpuReduceScatterSoleNHR", "429", _POD_OF_ONE),
        _RS.take("InsReduceScatterParallelNHRNHRUboe", "431"),
    ),
    _RS.take("AicpuReduceScatterSoleNHR", "434", COPRIME),
    within(
        (("local0", ">", 1), MESH),
        _RS.take("AicpuReduceScatterSequenceMeshConcurNHRNHR", "444", THREE_LEVELS),
        _RS.take(
            "AicpuReduceScatterParallelMeshNHR",
            "448",
            ("total_bytes", ">=", GIB),
            ("ranks", ">=", 256),
        ),
        _RS.take(
            "AicpuReduceScatterSequenceMeshConcurNHR",
            "451",
            above(4 * MIB),
            ("total_bytes", ">", 4 * GIB),
        ),
        _RS.take("AicpuReduceScatterParallelMeshNHR", "452", above(4 * MIB)),
        _RS.take("AicpuReduceScatterSoleNHR", "454"),
    ),
    _RS.take("AicpuReduceScatterSoleNHR", "457", LONE),
    _RS.take("AicpuReduceScatterSoleNHRMultiLink", "459", CLOS),
    _RS.leave(_NO_MATCH, "464"),
)

_RS_BOTH = within(
    (BOTH,),
    within((PCIE, ONE_MESH), _RS_MESH),
    within(
        (PCIE,),
        _RS.take("AicpuReduceScatterSoleNHRAicpuReduce", "666", SPECIAL),
        _RS.take("InsReduceScatterParallelMesh1DNHRPcie", "668", below(4 * MIB)),
        _RS.take("AicpuReduceScatterPipeLinePcie", "670"),
    ),
    within(
        (ONE_MESH,),
        _RS.take("AicpuReduceScatterSoleMesh", "675", SPECIAL),
        _RS.take("AicpuReduceScatterConcurMeshNHR", "677", at_least(SMALL)),
        _RS.take("AicpuReduceScatterSoleMeshChunk", "679", _CHUNKED),
        _RS.take("AicpuReduceScatterSoleMesh", "681"),
    ),
    _RS.take("AicpuReduceScatterSoleNHRAicpuReduce", "684", SPECIAL),
    within(
        ROWS,
        _RS.take("AicpuReduceScatterPipeLineUBX", "687", SYMMETRIC_MEMORY),
        _RS.take("InsReduceScatterParallelMesh1DNHRUBX", "689"),
    ),
    _RS.take("AicpuReduceScatterSoleNHR", "692"),
)

_REDUCE_SCATTER = (
    _RS.take("ReduceScatterOrderPreservedGroup", "409", STRICT, _MANY),
    _RS.take("AicpuReduceScatterStrictOrderedMesh", "412", STRICT),
    *_RS_LEVELS,
    *within((MESH,), _RS_MESH),
    _RS.take("AicpuReduceScatterSoleNHRAicpuReduce", "518", CLOS, SPECIAL),
    _RS.take("AicpuReduceScatterSoleNHRMultiLink", "520", CLOS),
    *_RS_BOTH,
)

# ---- all_gather: constants in lines 16-33, 332-333 ----

_AG_LEVELS = within(
    (LEVELS,),
    within(
        (THREE_LEVELS, UBOE),
        _AG.take("AicpuAllGatherPipeLine", "318", EVEN, _FULL_SERVERS),
        _AG.take("AicpuAllGatherSoleNHR", "320", UNEVEN),
        _AG.take("AicpuAllGatherSoleNHR", "320", _POD_OF_ONE),
        _AG.take("AicpuAllGatherParallelNHRNHR", "322"),
    ),
    _AG.take("AicpuAllGatherSoleNHR", "325", COPRIME),
    _AG.take("AicpuAllGatherSoleNHR", "330", LONE),
    within(
        (MESH,),
        _AG.take("AicpuAllGatherSequenceMeshConcurNHRNHR", "335", THREE_LEVELS),
        _AG.take(
            "AicpuAllGatherParallelMeshNHR",
            "339",
            ("total_bytes", ">=", GIB),
            ("ranks", ">=", 1024),
        ),
        _AG.take(
            "AicpuAllGatherSequenceMeshConcurNHR",
            "342",
            above(MIB),
            ("total_bytes", ">", 4 * GIB),
        ),
        _AG.take("AicpuAllGatherParallelMeshNHR", "343", above(MIB)),
        _AG.take("AicpuAllGatherSoleNHR", "345"),
    ),
    _AG.take("AicpuAllGatherSoleNHRMultiLink", "348", CLOS),
    _AG.leave(_NO_MATCH, "351"),
)

_ALL_GATHER = (
    *_AG_LEVELS,
    *within(
        (MESH,),
        _AG.take("AicpuAllGatherSoleMeshConcur", "358", DETOUR, ("total_bytes", ">", GIB)),
        _AG.take("AicpuAllGatherSoleMeshConcur", "358", DETOUR, PAIR, at_least(4 * MIB)),
        _AG.take("AicpuAllGatherSoleMesh", "360"),
    ),
    *within(
        (BOTH, PCIE),
        _AG.take("AicpuAllGatherSoleMesh", "366", ONE_MESH),
        _AG.take("InsAllGatherParallelMesh1DNHRPcie", "368", below(4 * MIB)),
        _AG.take("AicpuAllGatherPipeLinePcie", "369"),
    ),
    *within(
        (BOTH, *FOUR),
        _AG.take("AicpuAllGatherConcurMeshNHR", "385", above(SMALL)),
        _AG.take("AicpuAllGatherSoleMesh", "387"),
    ),
    *within(
        (BOTH, ("mesh_in_clos", "==", True), above(SMALL)),
        _AG.take("InsAllGatherParallelMesh1DNHRMultiJetty", "390", below(4 * MIB)),
        _AG.take("AicpuAllGatherPipeLineUBX", "391"),
    ),
    _AG.take("AicpuAllGatherSoleNHR", "394", BOTH),
    _AG.take("AicpuAllGatherSoleNHRMultiLink", "397"),
)

# ---- ops with a root ----

_BROADCAST = (
    *within(
        (THREE_LEVELS,),
        _BC.take("AicpuBroadcastSoleNHR", "206", UNEVEN),
        _BC.take("AicpuBroadcastSoleNHR", "206", LONE),
        _BC.take("AicpuBroadcastSequenceMesh1dNHRNHR", "208", MESH, NOT_UBOE),
        _BC.take("InsBroadcastParallelNHRNHRUboe", "210"),
    ),
    *within(
        (TWO_LEVELS,),
        _BC.take("AicpuBroadcastSoleNHR", "213", COPRIME),
        _BC.take("AicpuBroadcastSoleNHR", "215", LONE),
        _BC.take("AicpuBroadcastParallelMeshNHR", "217", MESH),
        _BC.take("AicpuBroadcastSoleNHRTwoShotMultiLink", "219", CLOS),
        _BC.leave(_NO_MATCH, "222"),
    ),
    _BC.take("AicpuBroadcastSoleMeshTwoShot", "236", MESH),
    _BC.take("AicpuBroadcastSoleMeshTwoShot", "239", BOTH, ONE_MESH),
    _BC.take("InsBroadcastParallelMesh1DNHRPcie", "241", BOTH, PCIE),
    _BC.take("InsBroadcastParallelMesh1DNHRUBX", "243", BOTH),
    _BC.take("AicpuBroadcastSoleNHRTwoShotMultiLink", "246"),
)

_SCATTER = (
    *within(
        (THREE_LEVELS,),
        _SC.take("AicpuScatterSoleNHR", "167", UNEVEN),
        _SC.take("AicpuScatterSoleNHR", "167", LONE),
        _SC.take("AicpuScatterSequenceMeshConcurNHRNHR", "169", MESH, NOT_UBOE),
        _SC.take("AicpuScatterSoleNHR", "171"),
    ),
    *within(
        (TWO_LEVELS,),
        _SC.take("AicpuScatterSoleNHR", "174", COPRIME),
        _SC.take("AicpuScatterSoleNHR", "176", LONE),
        _SC.take("AicpuScatterParallelMeshNHR", "178", MESH),
        _SC.take("AicpuScatterSoleNHR", "180", CLOS),
        _SC.leave(_NO_MATCH, "183"),
    ),
    _SC.take("AicpuScatterSoleMesh", "192", MESH),
    _SC.take("AicpuScatterSoleMesh", "195", BOTH, ONE_MESH),
    _SC.take("InsScatterParallelMesh1DNHRPcie", "197", BOTH, PCIE),
    _SC.take("InsScatterParallelMesh1DNHRUBX", "199", BOTH),
    _SC.take("AicpuScatterSoleNHR", "203", PCIE),
    _SC.take("AicpuScatterSoleMesh", "205"),
)

_TWO_SHOT = at_least(8 * MIB)
"""REDUCE_AICPU_1D_MAX_DATA_SIZE, reduce_auto_selector.cc:16."""

_REDUCE = (
    *within(
        (LEVELS,),
        _RE.take("AicpuReduceSoleNHRAicpuReduce", "280", SPECIAL),
        _RE.take("AicpuReduceSoleNHR", "283", LONE),
        _RE.take("AicpuReduceSoleNHR", "283", CLOS),
        within(
            (THREE_LEVELS, UBOE),
            _RE.take("AicpuReduceSoleNHRAicpuReduce", "287", UNEVEN),
            _RE.take("AicpuReduceSoleNHRAicpuReduce", "287", _POD_OF_ONE),
            _RE.take("ReduceParallelNHRNHRUboe", "289"),
        ),
        within(
            (THREE_LEVELS, MESH),
            _RE.take("AicpuReduceSequenceMesh1DNHRNHR", "294", EVEN),
            _RE.take("AicpuReduceSoleNHR", "296"),
        ),
        _RE.take("AicpuReduceSoleNHR", "299", COPRIME),
        _RE.take("AicpuReduceParallelMeshNHR", "301", MESH),
        _RE.leave(_NO_MATCH, "303"),
    ),
    _RE.take("AicpuReduceSoleMeshTwoShot", "322", MESH, _TWO_SHOT),
    _RE.take("AicpuReduceSoleMesh", "324", MESH),
    *within(
        (BOTH, ONE_MESH, PCIE),
        _RE.take("AicpuReduceSoleMeshTwoShot", "330", _TWO_SHOT),
        _RE.take("AicpuReduceSoleMesh", "332"),
    ),
    *within(
        (BOTH, ONE_MESH),
        _RE.take("AicpuReduceSoleMesh", "343", SPECIAL),
        _RE.take("AicpuReduceSoleMeshTwoShot", "345", _TWO_SHOT),
        _RE.take("AicpuReduceSoleMesh", "347"),
    ),
    _RE.take("AicpuReduceSoleNHRAicpuReduce", "336, 351, 358", SPECIAL),
    _RE.take("ReduceParallelMesh1DNHRPcie", "338", BOTH, PCIE),
    _RE.take("ReduceParallelMesh1DNHRUBX", "353", BOTH),
    _RE.take("AicpuReduceSoleNHR", "360"),
)

# ---- all-to-all, ops with counts, point to point ----

_SEVERAL_CHANNELS: Cell = ("total_bytes", ">", 150 * MIB)
"""ALLTOALL_ENABLE_MULTI_CHANNEL_DATA_SIZE_LIMIT, alltoall_auto_selector.cc:22."""

_SEND = selector(_ENGINE, "send").take("AicpuSendSole", "24")
_BATCH = selector(_ENGINE, "batch_send_recv").take("AicpuBatchSendRecvSoleMesh", "24")
_BARRIER = selector(_ENGINE, "barrier").take("AicpuBarrierSoleNHR", "41")

TABLE: DecisionTable = {
    "all_reduce": _ALL_REDUCE,
    "reduce_scatter": _REDUCE_SCATTER,
    "all_gather": _ALL_GATHER,
    "broadcast": _BROADCAST,
    "scatter": _SCATTER,
    "reduce": _REDUCE,
    "all_to_all": (
        _A2A.take("AicpuAllToAllSoleMesh", "166", BOTH, PCIE),
        _A2A.take("AicpuAllToAllSoleMeshConcurrent", "183", BOTH, *FOUR, ("count", ">", 512)),
        _A2A.take("AicpuAllToAllSoleMeshUBX", "185", BOTH),
        _A2A.take("AicpuAllToAllSoleMesh", "159", _SEVERAL_CHANNELS),
        _A2A.take("AicpuAllToAllSoleMeshSingleChannel", "161"),
    ),
    "all_to_all_v": (
        _A2AV.take("AicpuAllToAllVSoleMesh", "124", BOTH, PCIE),
        _A2AV.take("AicpuAllToAllVSoleMeshConcurrent", "133", BOTH, *FOUR),
        _A2AV.take("AicpuAllToAllVSoleMeshUBX", "135", BOTH),
        _A2AV.take("AicpuAllToAllVSoleMesh", "120"),
    ),
    "all_to_all_vc": (_A2AVC.take("AicpuAllToAllVCSoleMesh", "63"),),
    "all_gather_v": (_AGV.take("AicpuAllGatherVSoleMesh", "88"),),
    "reduce_scatter_v": (
        _RSV.leave("uint64 and fp64 are not supported", "189", ("dtype", "in", ("uint64", "fp64"))),
        _RSV.take("AicpuReduceScatterVSoleMesh", "193"),
    ),
    "send_recv": (_SEND,),
    "batch_send_recv": (_BATCH,),
    "barrier": (_BARRIER,),
}
"""Rows by op; those of sends are for receives, too, whose name is AicpuRecvSole."""
