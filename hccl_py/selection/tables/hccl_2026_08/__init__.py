"""The tables of the Ascend 950: HCCL's selectors in hicann/hccl @09300b7 (August 2026), by engine.

Left out: rows of the host's DPU, which works where only NICs of hosts join servers, and of the
device 960.
"""

from hccl_py.selection.rules import DecisionTable
from hccl_py.selection.tables.hccl_2026_08 import aicpu, aiv, ccu_ms, ccu_sched

__all__ = ["TABLE_950"]

_ENGINES = (ccu_ms.TABLE, ccu_sched.TABLE, aiv.TABLE, aicpu.TABLE)

TABLE_950: DecisionTable = {
    op: tuple(row for table in _ENGINES for row in table.get(op, ())) for op in aicpu.TABLE
}
"""The rows of all engines by op. Which engines are asked, and in which order, the settings say."""
