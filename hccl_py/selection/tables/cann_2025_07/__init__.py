"""HCCL's decision tables of July 2025. Lines are those of the operators in `algorithm/impl`.

`all_gather` is as the author of that copy found it: what the copy itself runs is a trial of one
executor, with HCCL's own choice beside it in a comment.
"""

from fractions import Fraction
from types import MappingProxyType

from hccl_py.selection.levels import LevelRules
from hccl_py.selection.tables.cann_2025_07.a2 import TABLE_910B
from hccl_py.selection.tables.cann_2025_07.a3 import TABLE_910_93
from hccl_py.selection.tables.cann_2025_07.inference import TABLE_310P, TABLE_310P3
from hccl_py.selection.tables.cann_2025_07.train import TABLE_910A

__all__ = ["LEVELS", "TABLES"]

LEVELS = LevelRules(
    ahc_ops=("all_reduce",),
    automatic=("all_reduce", "all_gather", "reduce_scatter"),
    pipelined=("910B",),
    ahc_tolerance=Fraction(1, 20),
)

TABLES = MappingProxyType(
    {
        "910A": TABLE_910A,
        "910B": TABLE_910B,
        "910_93": TABLE_910_93,
        "310P3": TABLE_310P3,
        "310P": TABLE_310P,
    }
)
