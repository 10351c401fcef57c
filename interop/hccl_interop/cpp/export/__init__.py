"""Executors as custom ops in C++: the files of a project with the tasks of a recorded program.

sampling.py  the same call at other sizes
sizes.py     offsets and sizes as places in slots and parts of the data
data_cuts.py     parts of the data
memory_slots.py  slots of a memory
alike_rounds.py  rounds of data that does not fit the buffer
plugin.py    programs and selectors for HCCL's algorithm plugin
steps.py     a program as steps
folding.py   repeated steps as loops
fitting.py   numbers by rank and turn as formulas
formulas.py  formulas, and their text
calls.py     one task as a call
kernel.py    functions, loops, variables
forks.py     forks and joins
channels.py  the channels of every rank
memory.py    buffers as parts of the HCCL buffer
entries.py   the functions of ops in HCCL's API
host.py      host code
text.py      templates and lines
project.py   all files
starting.py  a project to start from
same.py      comparison of a recording with the program
"""

from hccl_interop.cpp.export.entries import CAN_EXPORT
from hccl_interop.cpp.export.project import Exported, export_project

__all__ = ["CAN_EXPORT", "Exported", "export_project"]
