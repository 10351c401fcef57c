"""`hccl-py convert`: a program in another format, by the suffixes of the two files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from hccl_py.cli.declared import (
    DTYPE,
    IMPLEMENTED_OP,
    MAX_SIZE,
    MINBYTES,
    REDUCE_OP,
    ROOT,
    here,
)
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions


@dataclass(frozen=True)
class _Call:
    """The call for which an algorithm is imported."""

    cpp_op: Annotated[
        str | None, here(IMPLEMENTED_OP, help="XML, PLAN, LOG in: the op, or a JSON file of one.")
    ] = None
    minbytes: Annotated[
        str | None, here(MINBYTES, help="XML, PLAN in: data size, 1M by default.")
    ] = None
    dtype: Annotated[str, here(DTYPE, help="XML, PLAN in: data type, fp32 by default.")] = "fp32"
    reduce_op: Annotated[
        str | None, here(REDUCE_OP, help="XML, PLAN in: sum (the default), prod, max or min.")
    ] = None
    root: Annotated[int | None, here(ROOT, help="XML, PLAN in: root of rooted ops.")] = None


@grouped
def command(
    *,
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            show_default=False,
            help="A program file (.json, .npz), MSCCL's .xml, mscclpp's plan, a test of a log of "
            "HCCL's checker (LOG#TEST), or a Chakra trace.",
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="OUT", show_default=False, help="Another one, to be written.")
    ],
    call: _Call,
    proto: Annotated[
        str | None,
        typer.Option("--proto", metavar="NAME", help="XML out: Simple (the default), LL or LL128."),
    ] = None,
    max_size: Annotated[str | None, MAX_SIZE] = None,
    output: Output,
) -> None:
    """Write a program in another format.

    An algorithm of MSCCL or mscclpp becomes the program of one call, that of -b, -d, -o and -r. A
    program becomes one of MSCCL where its threadblocks can run it, and a log (.log) as HCCL's
    checker prints it where it has HCCL's notifies and buffers; else the first task that does not
    fit is named. A Chakra trace becomes the program of its job, on as few servers as hold its
    ranks, or, where OUT is a folder, a trace again, with its streams and groups stated and its
    dependencies reduced.
    """
    from hccl_py.cli.output import Screen, counted, print_json
    from hccl_py.cli.request import communicator, importer_for, open_source, placed, shown
    from hccl_py.cli.sizes import parse_size
    from hccl_py.errors import ParameterError
    from hccl_py.importers.installed import writer_of

    limit = None if max_size is None else parse_size(max_size, "--max-size")
    options = ProgramOptions(op=source, **asdict(call))
    found = open_source(importer_for(source, "convert"), options, limit)
    is_job = not found.has_addresses
    writer = writer_of(target, is_job=is_job)
    if proto is not None and "proto" not in writer.writer_takes:
        raise ParameterError("--proto is about MSCCL XML.", "Leave it out, or let OUT end in .xml.")
    writer.check_target(target)
    comm = communicator(options, placed(found, options), None) if found.needs_comm else None
    imported = shown(found.imported(found.usual_size, comm))
    program = imported.require_op()
    writer.write(program, target, proto=proto)
    defects = len(imported.findings)
    if output.json:
        print_json(
            {
                "schema": "hccl-py.convert/1",
                "file": target,
                "ranks": program.ranks,
                "op": program.op.name,
                "tasks": program.task_count,
                "defects": defects,
            }
        )
        return
    screen = Screen()
    tasks = counted(program.task_count, "task")
    subject = "job" if is_job else program.op.name
    screen.show(f"{target}: {subject}, {counted(program.ranks, 'rank')}, {tasks}")
    if defects:
        screen.show(
            f"{counted(defects, 'finding')} about the algorithm itself: `hccl-py check` shows them"
        )
