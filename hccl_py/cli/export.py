"""`hccl-py export`: an executor as a custom op in C++."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped, only
from hccl_py.cli.options import (
    ALGO,
    CALL_OF_CPP,
    DETERMINISTIC,
    HCCL_BUFFER,
    MODE,
    Output,
    ProgramOptions,
    executor_names,
    flag,
    here,
    option,
)

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_py.call.op_param import OpParam
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.exporter import Exporter, Project
    from hccl_py.program.program import Program


_HCCL_BUFFER = 400 << 20
"""Bytes of the HCCL buffer by default."""


_CALL = only(
    executor=typer.Argument(
        metavar="EXECUTOR",
        show_default=False,
        help="Its name, or module:Class.",
        autocompletion=executor_names,
    ),
    **CALL_OF_CPP
    | {
        "buffsize": here(
            HCCL_BUFFER,
            min=2,
            help="The HCCL buffer, one half of it CCL_In, one CCL_Out; 400 by default.",
        )
    },
    algo=ALGO,
    mode=MODE,
    deterministic=DETERMINISTIC,
)


@grouped
def command(
    *,
    to: Annotated[
        str,
        option("--to", "DIR", "The project's folder, new or empty.", show_default=False),
    ],
    call: Annotated[ProgramOptions, _CALL],
    check: Annotated[
        bool, flag("--check", "Build and record it, and compare it with the executor.")
    ] = False,
    output: Output,
) -> None:
    """Write an executor as a custom op in C++.

    The project has the layout of HCCL's examples, and does for this number of ranks what the
    executor does: with loops and formulas where there are some, with tables where there are none.
    Nothing is ever overwritten.
    """
    from hccl_py.importers.installed import installed_exporter
    from hccl_py.scaffold import write_project
    from hccl_py.scaffold.project import check_target, target_of

    exporter = installed_exporter("cpp")
    target = target_of(to, "--to")
    check_target(target, "--to")
    request, op = _request(call, exporter)
    project = exporter.export(
        lambda count: request.plan(replace(op, count=count)).program,
        op.count,
        request.topology,
        _HCCL_BUFFER if call.buffsize is None else call.buffsize << 20,
        _options(call),
    )
    write_project(project.files, target, "--to")
    difference = None
    if check:
        recorded = _recorded(target, request, op, call)
        difference = exporter.difference(project, recorded)
    _show(str(call.executor), project, to, request, op, difference, check, output)
    if difference:
        raise typer.Exit(WRONG)


def _request(call: ProgramOptions, exporter: Exporter) -> tuple[CallRequest, OpParam]:
    """Return the call of the executor, as the API of C++ makes it."""
    from hccl_py.cli.request import CallRequest
    from hccl_py.plugins.authors import author_class
    from hccl_py.plugins.discovery import Registry, installed_executors

    registry, executor = installed_executors(), str(call.executor)
    if executor in registry.executors:
        found = registry.executors[executor].executor
    elif ":" in executor:
        candidate = author_class(executor, "executor")
        found = Registry().add(candidate, executor.partition(":")[0]).executor
    else:
        raise registry.unknown("Executor", executor, registry.executors)
    topology = exporter.topology if call.topology is None else call.topology
    ops = (found.op,) if isinstance(found.op, str) else found.op
    op = next((op for op in ops if op in exporter.ops), ops[0])
    half = (call.buffsize or _HCCL_BUFFER >> 20) // 2
    request = CallRequest(replace(call, op=op, topology=topology, buffsize=half))
    return request, exporter.called(request.op(request.minbytes), request.topology.size)


def _options(call: ProgramOptions) -> str:
    """Return the options with which `check` and `run` make the call, for a shell."""
    from shlex import quote

    named = ("minbytes", "ranks", "servers", "devices", "topology", "dtype", "reduce_op", "root")
    found = []
    for name in (*named, "buffsize"):
        value = getattr(call, name)
        if value is not None:
            found.append(f"--{name.replace('_', '-')} {quote(str(value))}")
    return " ".join(found)


def _recorded(target: Path, request: CallRequest, op: OpParam, call: ProgramOptions) -> Program:
    from hccl_py.cli.sources import importer_for, open_source, shown

    options = ProgramOptions(
        op=str(target),
        cpp_op=op.name,
        minbytes=str(request.data_size(op)),
        dtype=op.dtype.value,
        reduce_op=None if op.reduce is None else op.reduce.spelling,
        root=call.root,
        buffsize=call.buffsize,
    )
    source = open_source(importer_for(str(target), "export"), options)
    return shown(source.imported(source.usual_size, request.comm)).require()


def _show(
    executor: str,
    project: Project,
    to: str,
    request: CallRequest,
    op: OpParam,
    difference: str | None,
    is_checked: bool,
    output: Output,
) -> None:
    from hccl_py.cli.call import describe_topology
    from hccl_py.cli.output import Screen, counted, print_json

    if output.json:
        head = {
            "schema": "hccl-py.export/1",
            "ok": not difference,
            "executor": executor,
            "path": to,
        }
        found = {
            "op": op.name,
            "ranks": project.program.ranks,
            "tasks": project.program.task_count,
        }
        found |= {"least_count": project.least, "most_count": project.most}
        if is_checked:
            found["difference"] = difference
        print_json({**head, **found}, files=({"path": path} for path in project.files))
        return
    screen = Screen()
    screen.show(f"{to}: {executor} as a custom op in C++")
    screen.show(f"{request.describe(op)}; {counted(project.program.task_count, 'task')}")
    screen.show(describe_topology(request.topology))
    for path in project.files:
        screen.show(f"  {path}")
    if project.least == project.most:
        screen.show("It is for this size: offsets and sizes are numbers.")
    else:
        screen.show(f"It is for {project.least} to {project.most} elements.")
    if difference:
        screen.show(f"Its recording is another program: {difference}")
    elif is_checked:
        screen.show("Its recording is the same program, task by task.")
