"""Execution plans of Microsoft's mscclpp as programs.

from hccl_interop.mscclpp import import_plan, meaning_of, read_plan

plan = read_plan("plan.json")
imported = import_plan(plan, meaning_of(plan), size=1 << 20)
imported.report().ok
"""

from hccl_interop.common.meaning import Meaning, meaning_of
from hccl_interop.mscclpp.call import call_of, usual_size_of
from hccl_interop.mscclpp.imported import import_plan
from hccl_interop.mscclpp.json_text import MSCCLPP, is_plan, is_plan_file, plan_from, read_plan
from hccl_interop.mscclpp.plan import ExecutionPlan

__all__ = [
    "MSCCLPP",
    "ExecutionPlan",
    "Meaning",
    "call_of",
    "import_plan",
    "is_plan",
    "is_plan_file",
    "meaning_of",
    "plan_from",
    "read_plan",
    "usual_size_of",
]
