"""Logs of HCCL's checker: the tasks that its tests print, as programs, beside what it said.

from hccl_interop.checker_logs import import_test, read_log

log = read_log("st.log")
for test in log.tests:
    imported = import_test(log, test)
    print(test.name, imported.report().ok, test.verdict)
"""

from hccl_interop.checker_logs.export import to_log
from hccl_interop.checker_logs.imported import import_test
from hccl_interop.checker_logs.log import LOG, CheckerLog, LoggedTest, is_log, read_log

__all__ = [
    "LOG",
    "CheckerLog",
    "LoggedTest",
    "import_test",
    "is_log",
    "read_log",
    "to_log",
]
