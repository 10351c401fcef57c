"""HCCL's decision tables of August 2026. Lines are those of the operators in `algorithm/impl`.

What is left out, because no call here has it: mixed device types, re-execution, vector cores alone
(whose failures are refusals), calls that a graph captures, RoCE driven by vector cores, and links
of HCCS and SIO at once, which HCCL has switched off. The table of the 950 is that of hccl, another
repository, in the same month.
"""

from hccl_py.selection.levels import LevelRules
from hccl_py.selection.rules import DecisionTable, Tables
from hccl_py.selection.tables.cann_2026_08.a2 import TABLE_910B
from hccl_py.selection.tables.cann_2026_08.a3 import TABLE_910_93
from hccl_py.selection.tables.cann_2026_08.inference import TABLE_310P, TABLE_310P3
from hccl_py.selection.tables.cann_2026_08.train import TABLE_910A

__all__ = ["LEVELS", "TABLES"]

_SUMMING = ("all_reduce", "all_gather", "reduce_scatter")

LEVELS = LevelRules(
    ahc_ops=_SUMMING,
    automatic=(*_SUMMING, "all_gather_v"),
    pipelined=("910B", "910_93"),
    rings_uneven=_SUMMING,
    level2="NHR",
    cuts_pods=True,
    fixed_pipelines=True,
    joins_exchange=True,
    keeps_ring=True,
)


def _table_950() -> DecisionTable:
    from hccl_py.selection.tables.hccl_2026_08 import TABLE_950  # read for this device alone

    return TABLE_950


TABLES = Tables(
    {
        "910A": lambda: TABLE_910A,
        "910B": lambda: TABLE_910B,
        "910_93": lambda: TABLE_910_93,
        "310P3": lambda: TABLE_310P3,
        "310P": lambda: TABLE_310P,
        "950": _table_950,
    }
)
