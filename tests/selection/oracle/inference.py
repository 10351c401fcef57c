"""What HCCL takes on servers of Atlas 300I Duo (310P3) in both releases, for the oracle.

Written from the operators of `yzh1703456/cann-hccl` @ 9aeddc0 (cann-2025.07) and
`libochao-huawei/hcomm` @ 8958adb (cann-2026.08), SelectAlgfor310P3 and SelectAlgfor310P3DUO, not
from hccl_py: nothing here imports it.
"""

from __future__ import annotations

from tests.selection.oracle.facts import KB, Call

_REFUSED = ("reduce", "scatter", "all_to_all_vc")
"""reduce_operator.cc SelectAlg; hccl_communicator.cc, where the others begin."""

_FEW = 4
"""MAX_310P_RANK_SIZE, of 2026."""

_SLIM = {
    "all_gather": ("AllGatherSlimRingFor310PExecutor", "AllGatherFor310PExecutor"),
    "reduce_scatter": ("ReduceScatterSlimRing", "ReduceScatterRing"),
}
_SINGLE = {
    "all_gather": "AllGatherSingleExecutor",
    "reduce_scatter": "ReduceScatterSingleExecutor",
}
_ALWAYS = {
    "broadcast": "BroadCastCommFor310P",
    "all_gather_v": "AllGatherVFor310PExecutor",
    "reduce_scatter_v": "ReduceScatterVFor310PRing",
}


def taken(call: Call, count: int, *, newest: bool) -> str | None:
    """The executor of a call of so many elements; None where it is refused."""
    if call.op in _REFUSED:
        return None
    if newest and call.ranks > _FEW and (call.op.endswith("_v") or call.op == "all_to_all"):
        return None
    if call.op in _ALWAYS:
        return _ALWAYS[call.op]
    if call.op in _SLIM:
        if call.ranks == 1 and (newest or call.op_base or call.op == "reduce_scatter"):
            return _SINGLE[call.op]
        slim = newest and 1024 < count <= 320 * KB and call.ranks <= 8
        return _SLIM[call.op][0 if slim else 1]
    if call.op == "all_reduce":
        return _all_reduce(call, newest)
    return _exchange(call)


def _all_reduce(call: Call, newest: bool) -> str:
    if call.ranks == 1 and (newest or call.op_base):
        return "AllReduceSingleExecutor"
    power = call.ranks & (call.ranks - 1) == 0
    if not _is_duo(call):
        small = call.bytes <= 256 * KB and power
        return "AllReduceDoubling" if call.inline and small else "AllReduceRing"
    small = call.bytes <= (256 if newest else 128) * KB and power
    if newest:
        small = small and call.ranks <= 8
    if call.inline and (small or call.ranks == 2):
        return "AllReduceDoubling" if call.graph else "AllReduceDoublingDirect"
    return "AllReduceRing"


def _exchange(call: Call) -> str:
    if call.ranks == 1 and call.op_base:
        return "RunAlltoAllSingleExecutor"
    # hccl_communicator_attrs.cc IsCommon310P3DUO: two cards of two dies each, or eight devices.
    pairs = _is_duo(call) and call.ranks in (4, 8)
    return "RunAlltoAllVFor310PExecutor" if pairs else "RunAlltoAllDirectFullmesh"


def _is_duo(call: Call) -> bool:
    """is310PDuoCard: HCCS reaches all ranks; links of the rank's own server are counted only."""
    return call.server_num == 1
