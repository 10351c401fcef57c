"""The selection of August 2026, read from `SelectAlgFor...` of the operators, one function each.

Not from hccl_py and not from its tables. Outside: a retry (`retryEnable_`), communicators of mixed
devices, fused ops whose input and output are the CCL buffers, captured streams, symmetric memory,
RoCE from vector cores, standard cards, AIV_ONLY, 310P.
"""

from __future__ import annotations

from tests.selection.oracle.cann_2026_08.all_gather import all_gather, all_gather_v
from tests.selection.oracle.cann_2026_08.all_reduce import all_reduce
from tests.selection.oracle.cann_2026_08.exchanges import all_to_all
from tests.selection.oracle.cann_2026_08.reduce_scatter import reduce_scatter, reduce_scatter_v
from tests.selection.oracle.cann_2026_08.rooted import broadcast, reduce, scatter
from tests.selection.oracle.facts import AHC, ALL_TO_ALL, NULL, WHOLE, Call, Taken, configured

GATHERING = ("all_reduce", "all_gather", "reduce_scatter")


def taken(call: Call) -> Taken:
    """Return the executor that HCCL takes, None where it refuses, and level1."""
    call = call if call.asks_ahc else call.with_even_pods()
    level1, automatic = _of_op(call)
    return _OPS[call.op](call, level1, automatic)


def _of_op(call: Call) -> tuple[str, bool]:
    """SelectCurrOpAlgType."""
    found = configured(call, ("910B", "910_93"), GATHERING)
    pods_differ = call.uneven_pods and not call.uneven_servers
    if pods_differ and call.op in GATHERING:
        return AHC, False
    if pods_differ and call.op in ALL_TO_ALL and call.device == "910_93":
        return found if call.level0 or call.level1 else (WHOLE, False)
    rings = call.op in GATHERING and call.device == "910_93" and not call.uneven_pod_devices
    if (pods_differ or (call.uneven_servers and not rings)) and call.level0 != NULL:
        return WHOLE, False
    return found


_OPS = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "broadcast": broadcast,
    "reduce": reduce,
    "scatter": scatter,
    "all_gather_v": all_gather_v,
    "reduce_scatter_v": reduce_scatter_v,
    "all_to_all": all_to_all,
    "all_to_all_v": all_to_all,
    "all_to_all_vc": all_to_all,
}
