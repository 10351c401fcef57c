"""`hccl-py convert`: a program in another format, by the suffixes of the two files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from hccl_py.cli.options import Output

if TYPE_CHECKING:
    from hccl_py.msccl import Imported
    from hccl_py.mscclpp import ImportedPlan
    from hccl_py.program.program import Program

__all__ = ["command"]


@dataclass(frozen=True)
class _Call:
    """The call for which an algorithm is imported."""

    cpp_op: Annotated[
        str | None, here(IMPLEMENTED_OP, help="XML, PLAN, LOG in: the op, or a JSON file of one.")
    ] = None
    minbytes: Annotated[
        str | None, here(MINBYTES, help="XML, PLAN in: data size, 1M by default.")
    ] = None
    dtype: Annotated[str | None, here(DTYPE, help="XML, PLAN in: data type, fp32 by default.")] = (
        None
    )
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
    checker prints it where it has HCCL's notifies and buffers; else the task that does not fit is
    named. A Chakra trace becomes the program of its job, on as few servers as hold its ranks, or,
    where OUT is a folder, a trace again, with streams, groups and reduced dependencies stated.
    """
    from hccl_py.cli.output import Screen, counted, print_json
    from hccl_py.cli.sources import TRACE
    from hccl_py.cli.traces import is_job

    if TRACE.is_one(source):
        program, defects = _of_trace(source, target, call, proto), 0
    else:
        program, defects = _of_program(source, target, call, proto, max_size)
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
    what = "job" if is_job(program) else program.op.name
    screen.show(f"{target}: {what}, {counted(program.ranks, 'rank')}, {tasks}")
    if defects:
        found = counted(defects, "finding")
        screen.show(f"{found} about the algorithm itself: `hccl-py check` shows them")


def _of_program(
    source: str, target: str, call: _Call, proto: str | None, max_size: str | None
) -> tuple[Program, int]:
    """Convert a program or an algorithm; return the program and how many findings there are."""
    from hccl_py.cli.checker_logs import stated_of, test_named
    from hccl_py.cli.sources import CHECKER_LOG, is_algorithm

    write = _writer(target, proto)
    if CHECKER_LOG.is_one(source):
        stated = stated_of(call.cpp_op, call.minbytes, call.dtype, call.reduce_op, call.root)
        program, defects = test_named(source, stated).require_op(), 0
    elif is_algorithm(source):
        imported = _imported(source, call, max_size)
        program, defects = imported.require(), len(imported.defects)
    else:
        program, defects = _loaded(source, call, max_size), 0
    write(program)
    return program, defects


def _of_trace(source: str, target: str, call: _Call, proto: str | None) -> Program:
    """Convert a Chakra trace to a program or, in a folder, to a trace; return the program."""
    from hccl_py.chakra import check_folder, write_trace
    from hccl_py.cli.options import ProgramOptions
    from hccl_py.cli.traces import TraceRequest
    from hccl_py.errors import ParameterError

    is_folder = not Path(target).suffix or Path(target).is_dir()
    if is_folder:
        check_folder(target)
    elif Path(target).suffix.lower() in (".xml", ".log"):
        what = "MSCCL algorithm" if target.lower().endswith(".xml") else "log of HCCL's checker"
        raise ParameterError(f"A job is no {what}.", "Let OUT end in .json or .npz.")
    else:
        _writer(target, proto)
    options = ProgramOptions(
        op=source,
        cpp_op=call.cpp_op,
        minbytes=call.minbytes,
        dtype="fp32" if call.dtype is None else call.dtype,
        reduce_op=call.reduce_op,
        root=call.root,
    )
    request = TraceRequest(options)
    with request.comm:
        if is_folder:
            write_trace(request.job, target)
        else:
            request.program.save(target)
        return request.program


def _writer(target: str, proto: str | None) -> Callable[[Program], None]:
    """Return what writes the target; ParameterError for what cannot be written."""
    from hccl_py.checker_logs import LOG
    from hccl_py.cli.sources import check_save
    from hccl_py.documents.disk import check_place
    from hccl_py.errors import ParameterError
    from hccl_py.msccl import MSCCL

    suffix = Path(target).suffix.lower()
    if suffix == ".xml":
        check_place(target, MSCCL)
        return lambda program: _write_algorithm(program, target, proto)
    if proto is not None:
        raise ParameterError("--proto is about MSCCL XML.", "Leave it out, or let OUT end in .xml.")
    if suffix == ".log":
        check_place(target, LOG)
        return lambda program: _write_log(program, target)
    check_save(target, "OUT")
    return lambda program: program.save(target)


def _imported(source: str, call: _Call, max_size: str | None) -> Imported | ImportedPlan:
    from hccl_py.cli.algorithms import AlgorithmCalls
    from hccl_py.cli.notations import NotedCall
    from hccl_py.cli.sizes import first_size
    from hccl_py.enums import DataType, ReduceOp

    noted = NotedCall(
        op=call.cpp_op,
        dtype=DataType.parse("fp32" if call.dtype is None else call.dtype),
        reduce=None if call.reduce_op is None else ReduceOp.parse(call.reduce_op),
        root=call.root,
    )
    calls = AlgorithmCalls(noted, None if call.minbytes is None else first_size(call.minbytes))
    return calls.only(source, _limit(max_size))


def _loaded(source: str, call: _Call, max_size: str | None) -> Program:
    from hccl_py.errors import ParameterError
    from hccl_py.formats import load

    program = load(source, max_bytes=_limit(max_size))  # a file that is missing is said first
    if any(value is not None for value in astuple(call)):
        raise ParameterError(
            "--op, -b, -d, -o and -r are about algorithms of other tools and logs that are read.",
            "Leave them out: a program file says that itself.",
        )
    return program


def _limit(max_size: str | None) -> int | None:
    from hccl_py.cli.sizes import parse_size

    return None if max_size is None else parse_size(max_size, "--max-size")


def _write_algorithm(program: Program, target: str, proto: str | None) -> None:
    from hccl_py.documents.disk import write_file
    from hccl_py.msccl import MSCCL, to_xml

    text = to_xml(program, protocol=proto)
    write_file(target, text.encode("utf-8", "backslashreplace"), MSCCL)


def _write_log(program: Program, target: str) -> None:
    from hccl_py.checker_logs import LOG, to_log
    from hccl_py.documents.disk import write_file

    write_file(target, to_log(program).encode("ascii"), LOG)
