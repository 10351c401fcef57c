"""The constructor of programs: task by task with ProgramBuilder, in bulk with `program_from`."""

from hccl_py.program.builder.builder import ProgramBuilder
from hccl_py.program.builder.columns import BuildError, LinkColumns, RequestColumns, TaskColumns
from hccl_py.program.builder.layout import program_from
from hccl_py.program.builder.streams import BufferSlice, TaskNote, TaskStream

__all__ = [
    "BufferSlice",
    "BuildError",
    "LinkColumns",
    "ProgramBuilder",
    "RequestColumns",
    "TaskColumns",
    "TaskNote",
    "TaskStream",
    "program_from",
]
