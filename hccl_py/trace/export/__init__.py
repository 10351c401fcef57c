"""Scenes in the formats of other viewers.

events.py    the model behind all of them: tracks of slices, flows between slices, counters
perfetto.py  TrackEvent protobuf, for ui.perfetto.dev
chrome.py    Chrome's trace events as JSON, for MindStudio Insight and chrome://tracing
files.py     the files, and the sentences about them
"""

from hccl_py.trace.export.files import CHROME, PERFETTO, check_trace_file, write_trace_file

__all__ = ["CHROME", "PERFETTO", "check_trace_file", "write_trace_file"]
