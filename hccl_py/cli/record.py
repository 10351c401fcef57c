"""`hccl-py record`: a custom op in C++, or an algorithm of another tool, as a program, in a file
that all commands take.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.declared import CALLS, IMPLEMENTED_OP, here
from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CustomOpCall, Output, ProgramOptions

if TYPE_CHECKING:
    from hccl_py.cli.algorithms import AlgorithmRequest
    from hccl_py.cli.folders import FolderRequest
    from hccl_py.cpp import Recording
    from hccl_py.msccl import Imported
    from hccl_py.mscclpp import ImportedPlan
    from hccl_py.op_param import OpParam

__all__ = ["command"]


@grouped
def command(
    *,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR|XML|PLAN",
            show_default=False,
            help="The folder of the custom op, an MSCCL algorithm (.xml), mscclpp's plan (.json).",
        ),
    ],
    cpp_op: Annotated[
        str | None,
        here(
            IMPLEMENTED_OP,
            help="The op that the folder implements; what its functions say by default.",
        ),
    ] = None,
    call: CustomOpCall,
    calls: Annotated[int, here(CALLS, help="Calls in a row, on one set of resources.")] = 1,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="FILE", help="Keep the program, as .json or .npz."),
    ] = None,
    output: Output,
) -> None:
    """Record a custom op in C++, or import an algorithm of MSCCL or mscclpp.

    Builds the folder with $CXX or g++, runs its host code and its kernel once per rank, in
    processes of their own with the rights of the user, and puts together what they enqueue. Nothing
    is verified: `hccl-py check` takes the folder or the file. Exit status 1 where the code crashes,
    does not end, or makes a call that cannot be, and where its runtime refuses the algorithm.
    """
    from hccl_py.cli.algorithms import AlgorithmRequest
    from hccl_py.cli.folders import FolderRequest
    from hccl_py.cli.sources import CHECKER_LOG, check_save, is_algorithm, save_program
    from hccl_py.documents.disk import format_path
    from hccl_py.errors import ParameterError

    if CHECKER_LOG.is_one(folder):
        raise ParameterError(
            "record takes a folder, an MSCCL algorithm or an execution plan, and "
            f"{format_path(folder)} is a log.",
            "`hccl-py convert LOG#TEST OUT.json` keeps a test of it.",
        )
    if out is not None:
        check_save(out, "-o")
    made = AlgorithmRequest if is_algorithm(folder) else FolderRequest
    request = made(ProgramOptions(op=folder, cpp_op=cpp_op, calls=calls, **asdict(call)))
    op = request.op(request.minbytes)
    recording = request.recording(op)
    if recording.program is not None and not recording.findings:
        save_program(recording.program, out)
    _show(request, op, recording, out, output)
    if recording.findings or recording.program is None:
        raise typer.Exit(WRONG)


def _show(
    request: FolderRequest | AlgorithmRequest,
    op: OpParam,
    recording: Recording | Imported | ImportedPlan,
    out: str | None,
    output: Output,
) -> None:
    from hccl_py.cli.call import describe_topology, document_of_call
    from hccl_py.cli.output import Screen, counted, print_json
    from hccl_py.verifier.terminal import Pen, draw_report

    program = recording.program
    report = recording.recorded()
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
