"""`hccl-py record`: a custom op in C++, or another source, as a program in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped, only
from hccl_py.cli.options import (
    CALL_OF_CPP,
    CALLS,
    IMPLEMENTED_OP,
    Output,
    ProgramOptions,
    here,
    option,
)

if TYPE_CHECKING:
    from hccl_py.call.op_param import OpParam
    from hccl_py.cli.sources import SourceRequest
    from hccl_py.importers import Imported


@grouped
def command(
    *,
    call: Annotated[
        ProgramOptions,
        only(
            op=typer.Argument(
                metavar="DIR|XML|PLAN",
                show_default=False,
                help="The folder of the custom op, an MSCCL algorithm (.xml), mscclpp's plan "
                "(.json).",
            ),
            cpp_op=here(
                IMPLEMENTED_OP,
                help="The op that the folder implements; the op of its functions by default.",
            ),
            **CALL_OF_CPP,
            calls=here(CALLS, help="Calls in a row, on one set of resources."),
        ),
    ],
    out: Annotated[
        str | None, option("--out", "FILE", "Keep the program, as .json or .npz.")
    ] = None,
    output: Output,
) -> None:
    """Record a custom op in C++, or import an algorithm of MSCCL or mscclpp.

    Builds the folder with $CXX or g++, runs its host code and its kernel once per rank, in
    processes of their own with the rights of the user, and joins the tasks that they enqueue.
    Nothing is verified: `hccl-py check` takes the folder or the file. Exit status 1 where the code
    crashes, does not end or makes an invalid call, and where its runtime refuses the algorithm.
    """
    from hccl_py.cli.call import check_save
    from hccl_py.cli.sources import SourceRequest, importer_for

    if out is not None:
        check_save(out, "--out")
    request = SourceRequest(importer_for(call.op, "record"), call)
    op = request.op(request.minbytes)
    imported = request.imported(op)
    is_fine = imported.program is not None and not imported.findings
    if imported.program is not None and is_fine and out is not None:
        imported.program.save(out)
    _show(request, op, imported, out, output)
    if not is_fine:
        raise typer.Exit(WRONG)


def _show(
    request: SourceRequest, op: OpParam, imported: Imported, out: str | None, output: Output
) -> None:
    from hccl_py.cli.call import describe_topology, document_of_call
    from hccl_py.cli.output import Screen, counted, print_json
    from hccl_py.verifier.terminal import Pen, draw_report

    program, report = imported.program, imported.recorded()
    if output.json:
        head = {"schema": "hccl-py.record/1", "ok": report.ok, "folder": request.name}
        found = {**document_of_call(request, op), "bytes": request.data_size(op), "count": op.count}
        found |= {
            "tasks": None if program is None else program.task_count,
            "file": out if report.ok else None,
            "findings": [finding.document() for finding in report.every()],
        }
        print_json({**head, **found})
        return
    screen = Screen()
    screen.show(f"{request.name}: {request.describe(op)}")
    screen.show(describe_topology(request.topology))
    if program is not None:
        ends = counted(len(program.transports) // 2, "channel")
        screen.show(f"{counted(program.task_count, 'task')}, {ends}")
    if report.ok and out is not None:
        screen.show(f"kept in {out}")
    if not report.ok:
        screen.show()
        for line in draw_report(report, Pen(screen.console.width, screen.unicode)):
            screen.show(line.text, style=line.style)
