"""Rows of CCU_MS and CCU_SCHED. What they leave goes to CCU_SCHED, then to AICPU_TS."""

from __future__ import annotations

from hccl_py.selection.rules import Cell, DecisionTable, OperatorFile, Rule
from hccl_py.selection.tables.hccl_2026_08.cells_950 import (
    ANY_TWO_DIES,
    BOTH,
    CLOS,
    COPRIME,
    DETOUR,
    FOUR,
    FRAMES,
    IN_PLACE,
    INT8,
    KIB,
    LEVELS,
    LONE,
    MESH,
    MIB,
    NOT_CLOS,
    ONE_LEVEL,
    ONE_MESH,
    PAIR,
    PCIE,
    PROD,
    ROWS,
    SKEWED_DIES,
    SMALL,
    STRICT,
    THREE_LEVELS,
    TWO_DIES,
    UB_RTP,
    WIDE,
    above,
    at_least,
    at_most,
    below,
    selector,
    within,
)

_MS, _SCHED = "CCU_MS", "CCU_SCHED"
_BY_ENGINE: dict[str, tuple[OperatorFile, OperatorFile]] = {
    op: (selector(_MS, folder, name), selector(_SCHED, folder, name))
    for op, folder, name in (
        ("all_reduce", "all_reduce", ""),
        ("all_gather", "all_gather", ""),
        ("reduce_scatter", "reduce_scatter", ""),
        ("broadcast", "broadcast", ""),
        ("reduce", "reduce", ""),
        ("scatter", "scatter", ""),
        ("all_to_all", "all_to_all_v", "alltoall"),
        ("all_to_all_v", "all_to_all_v", "alltoallv"),
        ("all_to_all_vc", "all_to_all_v", "alltoallvc"),
        ("all_gather_v", "all_gather_v", ""),
        ("reduce_scatter_v", "reduce_scatter_v", ""),
    )
}

_LEFT_LEVELS = "CCU_MS is for one level"
_LEFT_SHAPE = "no branch is for this shape of layer 0"
_LEFT_SIZE = "AICPU_TS is faster at this size"
_LEFT_PAIR = "two ranks with a detour are faster on AICPU_TS"
_LEFT_TYPE = "the CCU does not reduce this data type"
_LEFT_PROD = "the CCU does not multiply"
_LEFT_IN_PLACE = "input and output overlap"
_LEFT_DIES = "links are spread unevenly over two dies"
_LEFT_TWO_DIES = "links are on two dies"
_LEFT_PCIE = "some links are PCIe"
_LEFT_RANKS = "more ranks than the CCU takes"

_MANY_FRAMES: Cell = ("frames", ">", FRAMES)
_FEW_FRAMES: Cell = ("frames", "<=", FRAMES)
_UP_TO_64: Cell = ("ranks", "<=", 64)
_FEWER: Cell = ("ranks", "<", 64)
_FROM_64: Cell = ("ranks", ">=", 64)
_OVER_64: Cell = ("ranks", ">", 64)
_AT_64: Cell = ("ranks", "==", 64)
_UP_TO_8: Cell = ("ranks", "<=", 8)
_CLOS_PCIE = (CLOS, PCIE)


def _unreducible(file: OperatorFile, int8: str, prod: str, wide: str) -> tuple[Rule, ...]:
    """Return the rows for reductions that the CCU does not do; the arguments are their lines."""
    rows = (
        file.leave(_LEFT_TYPE, int8, INT8) if int8 else (),
        file.leave(_LEFT_PROD, prod, PROD),
        file.leave(_LEFT_TYPE, wide, WIDE),
    )
    return tuple(row for row in rows if isinstance(row, Rule))


def _beyond(file: OperatorFile, rtp: str, levels: str) -> tuple[Rule, ...]:
    """Return the rows for networks that CCU_SCHED does not take."""
    return (
        file.leave("the top links are UB_RTP", rtp, UB_RTP),
        file.leave("CCU_SCHED is for one and two levels", levels, THREE_LEVELS),
    )


# ---- CCU_MS ----

_AR, _AR_SCHED = _BY_ENGINE["all_reduce"]
_AG, _AG_SCHED = _BY_ENGINE["all_gather"]
_RS, _RS_SCHED = _BY_ENGINE["reduce_scatter"]
_BC, _BC_SCHED = _BY_ENGINE["broadcast"]
_RE, _RE_SCHED = _BY_ENGINE["reduce"]
_, _SC_SCHED = _BY_ENGINE["scatter"]
_, _A2A_SCHED = _BY_ENGINE["all_to_all"]
_, _A2AV_SCHED = _BY_ENGINE["all_to_all_v"]
_, _A2AVC_SCHED = _BY_ENGINE["all_to_all_vc"]
_, _AGV_SCHED = _BY_ENGINE["all_gather_v"]
_, _RSV_SCHED = _BY_ENGINE["reduce_scatter_v"]

_MS_ALL_REDUCE = (
    _AR.leave("sums in rank order are for AICPU_TS", "51", STRICT),
    _AR.leave(_LEFT_LEVELS, "55", LEVELS),
    *_unreducible(_AR, "63", "69", "73"),
    _AR.leave(_LEFT_PAIR, "130", DETOUR, PAIR, at_least(8 * MIB)),
    _AR.leave(_LEFT_SHAPE, "162", CLOS),
    _AR.leave(_LEFT_IN_PLACE, "134, 157", IN_PLACE),
    *within(
        (MESH,),
        _AR.take("CcuMSAllReduceSoleMesh2Die", "138", TWO_DIES, below(SMALL)),
        _AR.take("CcuMSAllReduceSequenceMesh2Die", "140", TWO_DIES),
        _AR.leave(_LEFT_DIES, "144", SKEWED_DIES),
        _AR.take("CcuMSAllReduceSoleMeshOneShot", "146", below(SMALL)),
        _AR.take("CcuMSAllReduceSoleMesh", "151"),
    ),
    _AR.take("CcuMSAllReduceSoleMeshOneShot", "95", *FOUR, below(SMALL)),
    _AR.take("CcuMSAllReduceConcurMeshNHRMultiLink", "98", *FOUR),
    _AR.leave(_LEFT_SIZE, "103", *ROWS, below(32 * MIB)),
    _AR.take("CcuMSAllReducePipeLineMeshNHR", "105", *ROWS),
    _AR.take("CcuMSAllReduceSoleMesh", "109", _UP_TO_8),
    _AR.leave(_LEFT_RANKS, "112"),
)

_MS_REDUCE_SCATTER = (
    _RS.leave("sums in rank order are for AICPU_TS", "53", STRICT),
    _RS.leave(_LEFT_LEVELS, "57", LEVELS),
    _RS.leave(_LEFT_PAIR, "68", DETOUR, PAIR, at_least(4 * MIB)),
    *_unreducible(_RS, "76", "83", "87"),
    *within(
        (MESH,),
        _RS.leave(_LEFT_IN_PLACE, "104", IN_PLACE),
        _RS.take("CcuMSReduceScatterSoleMesh2Die", "107", TWO_DIES),
        _RS.leave(_LEFT_DIES, "110", SKEWED_DIES),
        _RS.take("CcuMSReduceScatterSoleMesh", "116"),
    ),
    _RS.leave(_LEFT_SHAPE, "157", CLOS),
    _RS.leave(_LEFT_PCIE, "124", PCIE, ("one_mesh", "==", False)),
    _RS.take("CcuMSReduceScatterSoleMesh", "137", *FOUR, below(SMALL)),
    _RS.take("CcuMSReduceScatterConcurMeshNHRMultiLink", "139", *FOUR),
    _RS.leave(_LEFT_SIZE, "144", *ROWS, below(2 * MIB)),
    _RS.take("CcuMSReduceScatterPipeLineMeshNHR", "146", *ROWS),
    _RS.take("CcuMSReduceScatterSoleMesh", "149", _UP_TO_8),
    _RS.leave(_LEFT_RANKS, "152"),
)

_MS_ALL_GATHER = (
    _AG.leave(_LEFT_LEVELS, "44", LEVELS),
    _AG.leave(_LEFT_PAIR, "55", DETOUR, PAIR, at_least(4 * MIB)),
    *within(
        (MESH,),
        _AG.leave(_LEFT_IN_PLACE, "71", IN_PLACE),
        _AG.take("CcuMSAllGatherSoleMesh2Die", "73", TWO_DIES),
        _AG.leave(_LEFT_DIES, "77", SKEWED_DIES),
        _AG.take("CcuMSAllGatherSoleMesh", "79"),
    ),
    _AG.leave(_LEFT_SHAPE, "110", CLOS),
    _AG.leave(_LEFT_PCIE, "86", PCIE, ("one_mesh", "==", False)),
    _AG.leave(_LEFT_SIZE, "101", above(SMALL)),
    _AG.take("CcuMSAllGatherSoleMesh", "103"),
)

_MS_BROADCAST = (
    _BC.leave(_LEFT_LEVELS, "32", LEVELS),
    _BC.leave(_LEFT_TWO_DIES, "45", MESH, ANY_TWO_DIES),
    _BC.take("CcuMSBroadcastSoleMesh", "47", MESH),
    _BC.take("CcuMSBroadcastSoleMesh", "51", BOTH, ONE_MESH),
    _BC.leave(_LEFT_SHAPE, "56, 62"),
)

_MS_REDUCE = (
    _RE.leave(_LEFT_LEVELS, "33", LEVELS),
    *_unreducible(_RE, "41", "47", "51"),
    _RE.leave(_LEFT_TWO_DIES, "72", MESH, ANY_TWO_DIES),
    _RE.leave(_LEFT_SIZE, "75", MESH, at_least(8 * MIB)),
    _RE.take("CcuMSReduceSoleMesh", "77", MESH),
    _RE.leave(_LEFT_SIZE, "84", BOTH, ONE_MESH, at_least(8 * MIB)),
    _RE.take("CcuMSReduceSoleMesh", "86", BOTH, ONE_MESH),
    _RE.leave(_LEFT_SIZE, "92", BOTH, below(64 * MIB)),
    _RE.take("CcuReduceOmniPipe2DMs", "94", BOTH),
    _RE.leave(_LEFT_SHAPE, "100"),
)

# ---- CCU_SCHED ----

_AR_MESH_SCHED = (
    _AR_SCHED.leave(_LEFT_TYPE, "325", INT8),
    _AR_SCHED.leave(_LEFT_SIZE, "334", ("pair_bytes", ">", 8 * MIB)),
    _AR_SCHED.take("CcuSchedAllReduceSoleMesh2Die", "338", TWO_DIES, below(SMALL)),
    _AR_SCHED.take("CcuSchedAllReduceSequenceMesh2Die", "340", TWO_DIES),
    _AR_SCHED.leave(_LEFT_DIES, "344", SKEWED_DIES),
    _AR_SCHED.take("CcuSchedAllReduceSoleMesh", "346"),
)
_NOT_INT8: Cell = ("dtype", "!=", "int8")

_SCHED_ALL_REDUCE = (
    *_beyond(_AR_SCHED, "179", "187"),
    _AR_SCHED.leave("sums in rank order are for AICPU_TS", "194", STRICT),
    *_unreducible(_AR_SCHED, "", "201", "205"),
    _AR_SCHED.leave(_LEFT_SHAPE, "268", LEVELS, BOTH),
    _AR_SCHED.leave(_LEFT_IN_PLACE, "215, 268, 360", IN_PLACE),
    *within(
        (LEVELS, MESH),
        _AR_SCHED.take("CcuSchedAllReduceSoleNHR", "218", COPRIME),
        _AR_SCHED.take("CcuSchedAllReduceSoleNHR", "222", LONE),
        _AR_SCHED.leave(_LEFT_TWO_DIES, "225", ANY_TWO_DIES),
        _AR_SCHED.take("CcuSchedAllReduceSequenceMeshMesh", "227", at_most(32 * MIB), _OVER_64),
        within(
            (_NOT_INT8,),
            _AR_SCHED.take("CcuSchedAllReduceSequenceMeshMesh", "231", at_most(16 * MIB), _FROM_64),
            _AR_SCHED.take("CcuSchedAllReduceSoleMesh", "236", at_most(SMALL), _UP_TO_64),
            _AR_SCHED.take("CcuSchedAllReduceSequenceMeshMesh", "241", at_most(64 * MIB), _FEWER),
        ),
        _AR_SCHED.leave(_LEFT_SIZE, "255", above(64 * MIB)),
        _AR_SCHED.leave(_LEFT_TYPE, "251", INT8),
        _AR_SCHED.take("CcuSchedAllReduceParallelMeshNHR", "252"),
    ),
    _AR_SCHED.take("CcuSchedAllReduceSoleNHR", "259", LEVELS, below(8 * MIB)),
    _AR_SCHED.leave(_LEFT_SIZE, "262", LEVELS),
    *within((MESH,), _AR_MESH_SCHED),
    *within((BOTH, PCIE, ONE_MESH), _AR_MESH_SCHED),
    _AR_SCHED.leave(_LEFT_PCIE, "370, 386", PCIE),
    *within(
        (BOTH,),
        _AR_SCHED.leave(_LEFT_TYPE, "379", INT8),
        _AR_SCHED.take("CcuSchedAllReduceSoleMesh", "293", *FOUR, below(SMALL)),
        _AR_SCHED.take("CcuSchedAllReduceConcurMeshNHRMultiLink", "296", *FOUR),
        _AR_SCHED.take("CcuAllReduceParallelNHR1DMutiJetty", "301", *ROWS, below(64 * MIB)),
        _AR_SCHED.take("CcuSchedAllReducePipeLineMeshNHR", "303", *ROWS),
        _AR_SCHED.take("CcuSchedAllReduceSoleNHRMultiLink", "307"),
    ),
    _AR_SCHED.take("CcuSchedAllReduceSoleNHR", "389", below(8 * MIB)),
    _AR_SCHED.leave(_LEFT_SIZE, "392"),
)

_RS_MESH_SCHED = (
    _RS_SCHED.leave(_LEFT_SIZE, "307", ("scaled_bytes", ">=", 8 * MIB)),
    _RS_SCHED.take("CcuSchedReduceScatterSoleMesh2Die", "314", TWO_DIES),
    _RS_SCHED.leave(_LEFT_DIES, "317", SKEWED_DIES),
    _RS_SCHED.take("CcuSchedReduceScatterSoleMesh", "319"),
)

_SCHED_REDUCE_SCATTER = (
    *_beyond(_RS_SCHED, "172", "179"),
    _RS_SCHED.leave("sums in rank order are for AICPU_TS", "189", STRICT),
    _RS_SCHED.leave(_LEFT_PROD, "196", PROD),
    _RS_SCHED.leave(_LEFT_IN_PLACE, "201", IN_PLACE),
    _RS_SCHED.leave(_LEFT_TYPE, "207", WIDE),
    *within(
        (LEVELS, MESH),
        _RS_SCHED.leave(_LEFT_SIZE, "221", at_least(32 * MIB)),
        _RS_SCHED.take("CcuSchedReduceScatterSoleNHR", "225", COPRIME),
        _RS_SCHED.take("CcuSchedReduceScatterSoleNHR", "272", LONE),
        _RS_SCHED.leave(_LEFT_TYPE, "234", INT8),
        _RS_SCHED.take(
            "CcuSchedReduceScatterSoleMesh2Die",
            "239",
            ("ranks", "==", 16),
            ("frames", "==", 2),
            ("total_bytes", ">=", 4 * MIB),
            ("total_bytes", "<=", 16 * MIB),
        ),
        _RS_SCHED.take("CcuSchedReduceScatterSoleMesh", "244", ("total_bytes", "<", SMALL), _FEWER),
        within(
            (_FEW_FRAMES,),
            _RS_SCHED.take(
                "CcuSchedReduceScatterSequenceMeshMesh",
                "249",
                ("total_bytes", "<", 16 * MIB),
                _FEWER,
            ),
            _RS_SCHED.take(
                "CcuSchedReduceScatterSequenceMeshMesh",
                "254",
                ("total_bytes", "<=", 16 * MIB),
                _AT_64,
            ),
            _RS_SCHED.take(
                "CcuSchedReduceScatterParallelMeshNHR",
                "259",
                ("total_bytes", "<=", 128 * MIB),
                _AT_64,
            ),
        ),
        _RS_SCHED.take("CcuSchedReduceScatterSoleNHR", "266", _MANY_FRAMES),
        _RS_SCHED.leave(_LEFT_SIZE, "269"),
    ),
    _RS_SCHED.take("CcuSchedReduceScatterSoleNHR", "276", LEVELS, CLOS),
    _RS_SCHED.leave(_LEFT_SHAPE, "282", LEVELS),
    _RS_SCHED.leave(_LEFT_TYPE, "340", INT8),
    *within((MESH,), _RS_MESH_SCHED),
    *within((BOTH, PCIE, ONE_MESH), _RS_MESH_SCHED),
    _RS_SCHED.leave(_LEFT_PCIE, "350, 386", PCIE),
    *within(
        (BOTH,),
        _RS_SCHED.take("CcuSchedReduceScatterSoleMesh", "366", *FOUR, below(SMALL)),
        _RS_SCHED.take("CcuSchedReduceScatterConcurMeshNHRMultiLink", "369", *FOUR),
        _RS_SCHED.take(
            "CcuSchedReduceScatterParallelMeshNHRMultiLink", "374", *ROWS, below(4 * MIB)
        ),
        _RS_SCHED.take("CcuSchedReduceScatterPipeLineMeshNHR", "376", *ROWS),
        _RS_SCHED.take("CcuSchedReduceScatterSoleNHRMultiLink", "380"),
    ),
    _RS_SCHED.take("CcuSchedReduceScatterSoleNHR", "388"),
)

_AG_MESH_SCHED = (
    _AG_SCHED.take("CcuSchedAllGatherSoleMesh2Die", "152", TWO_DIES),
    _AG_SCHED.leave(_LEFT_DIES, "155", SKEWED_DIES),
    _AG_SCHED.leave(_LEFT_PAIR, "166", DETOUR, PAIR, at_least(4 * MIB)),
    _AG_SCHED.take("CcuSchedAllGatherSoleMesh", "168"),
)

_SCHED_ALL_GATHER = (
    *_beyond(_AG_SCHED, "218", "225"),
    _AG_SCHED.leave(_LEFT_SHAPE, "290", LEVELS, BOTH),
    _AG_SCHED.leave(_LEFT_IN_PLACE, "239, 290, 296", IN_PLACE),
    *within(
        (LEVELS, MESH),
        _AG_SCHED.leave(_LEFT_RANKS, "242", _OVER_64),
        _AG_SCHED.take("CcuSchedAllGatherSoleNHR", "245", COPRIME),
        _AG_SCHED.leave(_LEFT_TWO_DIES, "250", ANY_TWO_DIES),
        _AG_SCHED.take("CcuSchedAllGatherSoleNHR", "252", LONE),
        within(
            (_UP_TO_8,),
            _AG_SCHED.take("CcuSchedAllGatherSoleMesh", "256", at_most(MIB)),
            _AG_SCHED.take("CcuSchedAllGatherParallelMeshNHR", "258", _FEW_FRAMES),
            _AG_SCHED.take("CcuSchedAllGatherSoleNHR", "264"),
        ),
        _AG_SCHED.take("CcuSchedAllGatherSoleMesh", "268", below(128 * KIB), ("ranks", "<=", 32)),
        _AG_SCHED.take("CcuSchedAllGatherSequenceMeshMesh", "271", below(4 * MIB), _FEW_FRAMES),
        _AG_SCHED.take("CcuSchedAllGatherParallelMeshNHR", "274", _FEW_FRAMES),
        _AG_SCHED.take("CcuSchedAllGatherSoleNHR", "281"),
    ),
    _AG_SCHED.take("CcuSchedAllGatherSoleNHR", "285", LEVELS),
    *within((MESH,), _AG_MESH_SCHED),
    *within((BOTH, PCIE, ONE_MESH), _AG_MESH_SCHED),
    _AG_SCHED.leave(_LEFT_PCIE, "188, 196", PCIE),
    *within(
        (BOTH, above(SMALL)),
        _AG_SCHED.take("CcuSchedAllGatherConcurMeshNHRMultiLink", "130", *FOUR),
        within(
            (("mesh_in_clos", "==", True),),
            _AG_SCHED.take("CcuSchedAllGatherParallelMeshNHRMultiLink", "133", below(16 * MIB)),
            _AG_SCHED.take("CcuSchedAllGatherPipeLineMeshNHR", "135"),
        ),
        _AG_SCHED.take("CcuSchedAllGatherSoleNHRMultiLink", "138"),
    ),
    _AG_SCHED.take("CcuSchedAllGatherSoleMesh", "141", BOTH),
    _AG_SCHED.take("CcuSchedAllGatherSoleNHR", "198"),
)


def _too_large(file: OperatorFile, few: str, many: str) -> tuple[Rule, ...]:
    """Return the rows for sizes over two levels that broadcast and reduce leave."""
    return (
        file.leave(_LEFT_SIZE, few, _FEWER, above(64 * MIB)),
        file.leave(_LEFT_SIZE, many, _FROM_64, ("rank_share", ">", MIB)),
    )


_SCHED_BROADCAST = (
    *_beyond(_BC_SCHED, "83", "91"),
    *within(
        (LEVELS, MESH),
        _too_large(_BC_SCHED, "103", "112"),
        _BC_SCHED.take("CcuSchedBroadcastSoleNHR", "115", COPRIME),
        _BC_SCHED.take("CcuSchedBroadcastSoleNHR", "118", LONE),
        _BC_SCHED.leave(_LEFT_TWO_DIES, "121", ANY_TWO_DIES),
        _BC_SCHED.take(
            "CcuSchedBroadcastSoleMesh", "128", ("rank_share", "<=", 16 * KIB), _UP_TO_64
        ),
        _BC_SCHED.take("CcuSchedBroadcastSoleNHR", "132", ("rank_share", "<=", 4 * MIB), _FEWER),
        _BC_SCHED.take("CcuSchedBroadcastSoleNHR", "132", ("rank_share", "<=", MIB), _FROM_64),
        _BC_SCHED.take("CcuSchedBroadcastParallelMeshNHR", "134"),
    ),
    _BC_SCHED.leave(_LEFT_PCIE, "143, 184", *_CLOS_PCIE),
    _BC_SCHED.take("CcuSchedBroadcastSoleNHR", "138", LEVELS, CLOS),
    _BC_SCHED.leave(_LEFT_SHAPE, "143", LEVELS),
    _BC_SCHED.leave(_LEFT_TWO_DIES, "164", MESH, ANY_TWO_DIES),
    _BC_SCHED.take("CcuSchedBroadcastSoleMesh", "166", MESH),
    _BC_SCHED.take("CcuSchedBroadcastSoleMesh", "170", BOTH, ONE_MESH),
    _BC_SCHED.leave(_LEFT_PCIE, "173", BOTH, PCIE),
    _BC_SCHED.take("CcuBroadcastParallelMesh1DNHRUBX", "176", BOTH, below(16 * MIB)),
    _BC_SCHED.take("CcuSchedBroadcastPipeLineMeshNHR", "178", BOTH),
    _BC_SCHED.take("CcuSchedBroadcastSoleNHR", "186"),
)

_SCHED_SCATTER = (
    *_beyond(_SC_SCHED, "41", "49"),
    *within(
        (LEVELS, MESH),
        _SC_SCHED.leave(_LEFT_SIZE, "64", above(MIB)),
        _SC_SCHED.leave(_LEFT_RANKS, "64", _OVER_64),
        _SC_SCHED.take("CcuSchedScatterSoleNHR", "67", COPRIME),
        _SC_SCHED.take("CcuSchedScatterSoleNHR", "70", LONE),
        _SC_SCHED.leave(_LEFT_TWO_DIES, "73", ANY_TWO_DIES),
        _SC_SCHED.take("CcuSchedScatterParallelMeshNHR", "75"),
    ),
    _SC_SCHED.leave(_LEFT_PCIE, "80, 133", *_CLOS_PCIE),
    _SC_SCHED.take("CcuSchedScatterSoleNHR", "82", LEVELS, CLOS),
    _SC_SCHED.leave(_LEFT_SHAPE, "87", LEVELS),
    _SC_SCHED.leave(_LEFT_IN_PLACE, "110", MESH, IN_PLACE),
    _SC_SCHED.leave(_LEFT_TWO_DIES, "113", MESH, ANY_TWO_DIES),
    _SC_SCHED.take("CcuSchedScatterSoleMesh", "115", MESH),
    _SC_SCHED.take("CcuSchedScatterSoleMesh", "119", BOTH, ONE_MESH),
    _SC_SCHED.leave(_LEFT_PCIE, "122", BOTH, PCIE),
    _SC_SCHED.take("CcuScatterParallelMesh1DNHRUBX", "125", BOTH, ("total_bytes", "<", 16 * MIB)),
    _SC_SCHED.take("CcuSchedScatterPipeLineMeshNHR", "127", BOTH),
    _SC_SCHED.take("CcuSchedScatterSoleNHR", "135"),
)

_SCHED_REDUCE = (
    *_beyond(_RE_SCHED, "118", "125"),
    *_unreducible(_RE_SCHED, "", "133", "136"),
    *within(
        (LEVELS, MESH),
        _too_large(_RE_SCHED, "149", "157"),
        _RE_SCHED.take("CcuReduceNHR1DMem2Mem", "160", COPRIME),
        _RE_SCHED.take("CcuSchedReduceSoleNHR", "164", LONE),
        _RE_SCHED.leave(_LEFT_TWO_DIES, "167", ANY_TWO_DIES),
        _RE_SCHED.leave(_LEFT_TYPE, "175", INT8),
        _RE_SCHED.take("CcuSchedReduceSoleNHR", "178", ("rank_share", "<=", 256 * KIB)),
        _RE_SCHED.take("CcuSchedReduceParallelMeshNHR", "180"),
    ),
    _RE_SCHED.leave(_LEFT_PCIE, "186, 258", *_CLOS_PCIE),
    _RE_SCHED.take("CcuSchedReduceSoleNHR", "188", LEVELS, CLOS),
    _RE_SCHED.leave(_LEFT_SHAPE, "193", LEVELS),
    *within(
        (MESH,),
        _RE_SCHED.leave(_LEFT_TWO_DIES, "213", ANY_TWO_DIES),
        _RE_SCHED.leave(_LEFT_SIZE, "216", ("ranks", "<", 8), at_least(8 * MIB)),
        _RE_SCHED.leave(_LEFT_SIZE, "219", above(16 * MIB)),
        _RE_SCHED.leave(_LEFT_TYPE, "226", INT8),
        _RE_SCHED.take("CcuSchedReduceSoleMeshTwoShot", "227"),
    ),
    *within(
        (BOTH, ONE_MESH),
        _RE_SCHED.leave(_LEFT_SIZE, "234", at_least(8 * MIB)),
        _RE_SCHED.take("CcuSchedReduceSoleMesh", "236"),
    ),
    *within(
        (BOTH,),
        _RE_SCHED.leave(_LEFT_PCIE, "240", PCIE),
        _RE_SCHED.leave(_LEFT_TYPE, "248", INT8),
        _RE_SCHED.take("CcuReduceParallelMesh1DNHRUBX", "250", below(128 * MIB)),
        _RE_SCHED.take("CcuReduceOmniPipe2D", "252"),
    ),
    _RE_SCHED.take("CcuSchedReduceSoleNHR", "260"),
)

_SCHED_ALL_TO_ALL = (
    *_beyond(_A2A_SCHED, "47", "54"),
    _A2A_SCHED.leave(_LEFT_IN_PLACE, "60", IN_PLACE),
    _A2A_SCHED.take("CcuSchedAllToAllSoleMeshMultiLink", "71", LEVELS, MESH, _UP_TO_64),
    _A2A_SCHED.leave(_LEFT_SHAPE, "74, 77", LEVELS),
    _A2A_SCHED.take("CcuSchedAllToAllSoleMesh2Die", "82", MESH, TWO_DIES),
    _A2A_SCHED.leave(_LEFT_DIES, "85", MESH, SKEWED_DIES),
    _A2A_SCHED.take("CcuSchedAllToAllSoleMesh", "90", MESH),
    _A2A_SCHED.take("CcuSchedAllToAllSoleMesh", "97", BOTH, PCIE, ONE_MESH),
    _A2A_SCHED.leave(_LEFT_PCIE, "100", BOTH, PCIE),
    _A2A_SCHED.take("CcuSchedAllToAllSoleMeshConcurrent", "115", BOTH, *FOUR, above(512)),
    _A2A_SCHED.take("CcuSchedAllToAllSoleMeshUBX", "117", BOTH),
    _A2A_SCHED.leave(_LEFT_SHAPE, "123"),
)

_SCHED_ALL_TO_ALL_V = (
    *_beyond(_A2AV_SCHED, "31", "38"),
    *within(
        (LEVELS, NOT_CLOS),
        _A2AV_SCHED.leave("the CCU does not take int8", "47", INT8),
        _A2AV_SCHED.leave(_LEFT_RANKS, "51", _OVER_64),
        _A2AV_SCHED.take("CcuSchedAllToAllVSoleMesh", "54", ("ranks", "<=", 4)),
        _A2AV_SCHED.take("CcuSchedAllToAllVSoleMeshMultiLink", "56"),
    ),
    _A2AV_SCHED.leave(_LEFT_SHAPE, "60, 95", CLOS),
    _A2AV_SCHED.take("CcuSchedAllToAllVSoleMesh2Die", "65", MESH, TWO_DIES),
    _A2AV_SCHED.leave(_LEFT_DIES, "68", MESH, SKEWED_DIES),
    _A2AV_SCHED.take("CcuSchedAllToAllVSoleMesh", "70", MESH),
    _A2AV_SCHED.take("CcuSchedAllToAllVSoleMesh", "76", PCIE, ONE_MESH),
    _A2AV_SCHED.leave(_LEFT_PCIE, "79", PCIE),
    _A2AV_SCHED.take("CcuSchedAllToAllVSoleMeshConcurrent", "88", *FOUR),
    _A2AV_SCHED.take("CcuSchedAllToAllVSoleMeshUBX", "90"),
)

_RSV_FITS: Cell = ("parts_bytes", "<", 32 * MIB)
"""RSV_CCU_8P_MIN_DATA_SIZE, reduce_scatter_v_auto_selector.cc:18."""

_SCHED_REDUCE_SCATTER_V = (
    *_beyond(_RSV_SCHED, "81", "88"),
    _RSV_SCHED.leave(_LEFT_IN_PLACE, "95", IN_PLACE),
    *_unreducible(_RSV_SCHED, "115", "102", "106"),
    _RSV_SCHED.leave(_LEFT_SHAPE, "120, 125", LEVELS),
    _RSV_SCHED.leave(_LEFT_TWO_DIES, "151", MESH, ANY_TWO_DIES),
    _RSV_SCHED.take("CcuSchedReduceScatterVSoleMesh", "153", MESH, _RSV_FITS),
    _RSV_SCHED.take("CcuSchedReduceScatterVSoleMesh", "161", BOTH, ONE_MESH, _RSV_FITS),
    _RSV_SCHED.leave("the size or the shape of layer 0 is for AICPU_TS", "155, 163, 169, 175"),
)

MS_TABLE: DecisionTable = {
    "all_reduce": _MS_ALL_REDUCE,
    "reduce_scatter": _MS_REDUCE_SCATTER,
    "all_gather": _MS_ALL_GATHER,
    "broadcast": _MS_BROADCAST,
    "reduce": _MS_REDUCE,
}

SCHED_TABLE: DecisionTable = {
    "all_reduce": _SCHED_ALL_REDUCE,
    "reduce_scatter": _SCHED_REDUCE_SCATTER,
    "all_gather": _SCHED_ALL_GATHER,
    "broadcast": _SCHED_BROADCAST,
    "reduce": _SCHED_REDUCE,
    "scatter": _SCHED_SCATTER,
    "all_to_all": _SCHED_ALL_TO_ALL,
    "all_to_all_v": _SCHED_ALL_TO_ALL_V,
    "all_to_all_vc": (
        *_beyond(_A2AVC_SCHED, "29", "36"),
        _A2AVC_SCHED.take("CcuSchedAllToAllVCSoleMesh", "46", ONE_LEVEL, MESH),
        _A2AVC_SCHED.leave("CCU_SCHED is for one mesh", "42, 49"),
    ),
    "all_gather_v": (
        *_beyond(_AGV_SCHED, "46", "54"),
        _AGV_SCHED.leave(_LEFT_IN_PLACE, "60", IN_PLACE),
        _AGV_SCHED.take("CcuSchedAllGatherVSoleMesh", "62", ONE_LEVEL, MESH),
        _AGV_SCHED.leave("CCU_SCHED is for one mesh", "65, 68"),
    ),
    "reduce_scatter_v": _SCHED_REDUCE_SCATTER_V,
}
"""An op that a table lacks has no rows for the engine: it leaves every call."""
