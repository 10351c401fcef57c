"""Logs of HCCL's checker: the tasks that its tests print, as programs, beside what it said.

from hccl_py.checker_logs import import_test, read_log

log = read_log("st.log")
for test in log.tests:
    checked = import_test(log, test)
    print(test.name, checked.report().ok, test.verdict)
"""

from hccl_py.checker_logs.export import to_log
from hccl_py.checker_logs.imported import CheckedTest, import_test
from hccl_py.checker_logs.log import LOG, CheckerLog, LoggedTest, is_log, read_log
from hccl_py.checker_logs.operation import Stated

__all__ = [
    "LOG",
    "CheckedTest",
    "CheckerLog",
    "LoggedTest",
    "Stated",
    "import_test",
    "is_log",
    "read_log",
    "to_log",
]
