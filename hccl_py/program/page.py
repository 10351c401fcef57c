"""A program for notebooks: its steps as a film strip, its kind and size as a table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_py.program.program import Program


def program_html(program: Program) -> str:
    """Return the steps of a program as a picture, and a table; sizes of buffers are those of the
    rank with most.
    """
    from hccl_py.trace.notebook import program_film

    op = program.op
    sizes = program.buffer_sizes.max(axis=0, initial=0).tolist()
    buffers = [f"{name} {size}" for name, size in zip(program.buffers, sizes, strict=True)]
    rows = {
        "op": program.op_name,
        "data type": op.dtype.value,
        "executor": program.executor or "not recorded here",
        "ranks": str(program.ranks),
        "streams of a rank": str(program.streams),
        "tasks": str(program.task_count),
        "rounds": str(program.rounds),
        "bytes of a rank": ", ".join(buffers),
    }
    cells = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows.items())
    return f"{program_film(program)}<table>{''.join(cells)}</table>"
