"""Time from left to right, a line per stream: what every rank does, waits for, and when."""

from hccl_py.trace.gantt.chart import draw_gantt
from hccl_py.trace.gantt.findings import list_findings
from hccl_py.trace.gantt.window import Window

__all__ = ["Window", "draw_gantt", "list_findings"]
