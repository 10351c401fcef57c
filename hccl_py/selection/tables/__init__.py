"""HCCL's decision tables, one module per device.

A ruleset's name is its version: "classic" are the tables of the open repositories of 2025 and 2026,
before selection by registered costs. Rows come from [C], the classic repository of July 2025, and
[H], that of April 2026, which has order-preserving executors; thresholds changed between them, so
they are data here. Where they differ, [C] counts.
"""

from hccl_py.selection.tables.atlas_300i import TABLE_310P, TABLE_310P3
from hccl_py.selection.tables.atlas_a2 import TABLE_910B
from hccl_py.selection.tables.atlas_a3 import TABLE_910_93
from hccl_py.selection.tables.atlas_train import TABLE_910A

__all__ = ["TABLES"]

TABLES = {
    "910A": TABLE_910A,
    "910B": TABLE_910B,
    "910_93": TABLE_910_93,
    "310P3": TABLE_310P3,
    "310P": TABLE_310P,
}
