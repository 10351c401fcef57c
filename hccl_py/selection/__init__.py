"""Algorithm selection: HCCL's decision tables as data, and explanations of what they chose."""

from hccl_py.selection.answer import Rejected, Selection
from hccl_py.selection.select import select

__all__ = ["Rejected", "Selection", "select"]
