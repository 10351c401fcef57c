"""What the times of a program say: who is busy, who waits for whom, which links are full, and what
makes it take as long as it does.

`Timeline` has a method for each; arrays are columns, so that millions of tasks are no matter.
"""

from hccl_py.simulator.analysis.critical import CriticalPath, Parts, critical_path, slack
from hccl_py.simulator.analysis.link_use import LinkUse, link_use
from hccl_py.simulator.analysis.usage import Usage, usage
from hccl_py.simulator.analysis.waits import Waits, waits

__all__ = [
    "CriticalPath",
    "LinkUse",
    "Parts",
    "Usage",
    "Waits",
    "critical_path",
    "link_use",
    "slack",
    "usage",
    "waits",
]
