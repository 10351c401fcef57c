"""Verification: the defects of a program or an executor, found without running it.

report = hccl_py.verify(MyExecutor)
for finding in report: ...
"""

from hccl_py.program.program import Call
from hccl_py.verifier.classes import CLASSES, FindingClass, Severity
from hccl_py.verifier.entry import verify
from hccl_py.verifier.finding import Finding, MemoryRange, Report, TaskAt
from hccl_py.verifier.subject import Options
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.sweep import verify_executor
from hccl_py.verifier.verifier import verify_program

__all__ = [
    "CLASSES",
    "Call",
    "Case",
    "Cases",
    "Finding",
    "FindingClass",
    "MemoryRange",
    "Options",
    "Report",
    "Severity",
    "TaskAt",
    "verify",
    "verify_executor",
    "verify_program",
]
