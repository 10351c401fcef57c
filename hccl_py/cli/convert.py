"""`hccl-py convert`: a program in another format, by the suffixes of the two files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.grouping import grouped, only
from hccl_py.cli.options import (
    DTYPE,
    IMPLEMENTED_OP,
    MAX_SIZE,
    MINBYTES,
    REDUCE_OP,
    ROOT,
    Output,
    ProgramOptions,
    here,
    option,
)

if TYPE_CHECKING:
    from hccl_py.importers import Imported, Source


@grouped
def command(
    *,
    call: Annotated[
        ProgramOptions,
        only(
            op=typer.Argument(
                metavar="IN",
                show_default=False,
                help="A program file (.json, .npz), MSCCL's .xml, mscclpp's plan, a test of a log "
                "of HCCL's checker (LOG#TEST), or a Chakra trace.",
            ),
            cpp_op=here(IMPLEMENTED_OP, help="XML, PLAN, LOG in: the op, or a JSON file of one."),
            minbytes=here(MINBYTES, help="XML, PLAN in: data size, 1M by default."),
            dtype=here(DTYPE, help="XML, PLAN in: data type, fp32 by default."),
            reduce_op=here(REDUCE_OP, help="XML, PLAN in: sum (the default), prod, max or min."),
            root=here(ROOT, help="XML, PLAN in: root of rooted ops."),
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="OUT", show_default=False, help="Another one, to be written.")
    ],
    proto: Annotated[
        str | None, option("--proto", "NAME", "XML out: Simple (the default), LL or LL128.")
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
    from hccl_py.cli.sizes import parse_size
    from hccl_py.cli.sources import importer_for, open_source
    from hccl_py.errors import ParameterError
    from hccl_py.importers import WriterOptions
    from hccl_py.importers.installed import writer_of

    limit = None if max_size is None else parse_size(max_size, "--max-size")
    source = open_source(importer_for(call.op, "convert"), call, limit)
    writer = writer_of(target, is_job=not source.has_addresses)
    if proto is not None and "proto" not in writer.writer_takes:
        raise ParameterError("--proto is about MSCCL XML.", "Leave it out, or let OUT end in .xml.")
    writer.check_target(target)
    imported = _imported(source, call)
    writer.write(imported.require_op(), target, WriterOptions(proto=proto))
    _show(imported, target, output, is_job=not source.has_addresses)


def _imported(source: Source, call: ProgramOptions) -> Imported:
    from hccl_py.cli.request import communicator
    from hccl_py.cli.sources import placed, shown
    from hccl_py.importers import SourceCall

    comm = communicator(call, placed(source, call), None) if source.needs_comm else None
    return shown(source.imported(SourceCall(source.usual_size, comm)))


def _show(imported: Imported, target: str, output: Output, *, is_job: bool) -> None:
    from hccl_py.cli.output import Screen, counted, print_json

    program, defects = imported.require_op(), len(imported.findings)
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
