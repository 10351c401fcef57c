"""Verification: everything that is wrong with a program or an executor, found without running it.

    report = hccl_py.verify(MyExecutor)
    for finding in report: ...

The package can be called, like its function `verify`.
"""

import sys
from types import ModuleType
from typing import Any

from hccl_py.program.program import Call
from hccl_py.verify.classes import CLASSES, FindingClass, Severity
from hccl_py.verify.entry import verify
from hccl_py.verify.finding import Finding, MemoryRange, Report, TaskAt
from hccl_py.verify.subject import Options
from hccl_py.verify.sweeps.cases import Case, Cases
from hccl_py.verify.sweeps.sweep import verify_executor
from hccl_py.verify.verifier import verify_program

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


class _Callable(ModuleType):
    """`hccl_py.verify` is this package, and for users the function of the same name."""

    def __call__(self, *args: Any, **options: Any) -> Report:
        return verify(*args, **options)


sys.modules[__name__].__class__ = _Callable
