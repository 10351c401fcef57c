"""The selection of July 2025, read from `SelectAlgFor...` of the operators, one function each.

Not from hccl_py and not from its tables. Outside: a retry (`retryEnable_`), communicators of mixed
devices, fused ops whose input and output are the CCL buffers, standard cards, 310P.

`all_gather_operator.cc` of these sources has a `SelectAlgforNew` that always takes one executor;
what it stands in the place of, left as a comment, is what is read here.
"""

from __future__ import annotations

from tests.selection.oracle.cann_2025_07.all_gather import all_gather, all_gather_v
from tests.selection.oracle.cann_2025_07.all_reduce import all_reduce
from tests.selection.oracle.cann_2025_07.exchanges import all_to_all
from tests.selection.oracle.cann_2025_07.reduce_scatter import reduce_scatter, reduce_scatter_v
from tests.selection.oracle.cann_2025_07.rooted import broadcast, reduce, scatter
from tests.selection.oracle.facts import AHC, NULL, WHOLE, Call, Taken, configured


def taken(call: Call) -> Taken:
    """Return what HCCL takes."""
    level1, automatic = _of_op(call)
    return _OPS[call.op](call, level1, automatic)


def _of_op(call: Call) -> tuple[str, bool]:
    """SelectCurrOpAlgType."""
    if call.uneven_pods and not call.uneven_servers and call.op == "all_reduce":
        return AHC, False
    if (call.uneven_servers or call.uneven_pods) and call.level0 != NULL:
        return WHOLE, False
    return configured(call, ("910B",), ("all_reduce",))


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
