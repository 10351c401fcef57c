"""`hccl-py export`: an executor as a custom op in C++."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli import complete
from hccl_py.cli.declared import ALGO, DETERMINISTIC, HCCL_BUFFER, MODE, here
from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CallOptions, CustomOpCall, Output

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_py.call.op_param import OpParam
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.exporter import Exporter, Project
    from hccl_py.program.program import Program


_HCCL_BUFFER = 400 << 20
"""Bytes of the HCCL buffer by default."""


@dataclass(frozen=True)
class _Call(CustomOpCall):
    """The call that the project is for."""

    buffsize: Annotated[
        int | None,
        here(
            HCCL_BUFFER,
            min=2,
            help="The HCCL buffer, one half of it CCL_In, one CCL_Out; 400 by default.",
        ),
    ] = None
    algo: Annotated[str | None, ALGO] = None
    mode: Annotated[str | None, MODE] = None
    deterministic: Annotated[str | None, DETERMINISTIC] = None


@grouped
def command(
    *,
    executor: Annotated[
        str,
        typer.Argument(
            metavar="EXECUTOR",
            show_default=False,
            help="Its name, or module:Class.",
            autocompletion=complete.executors,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="DIR", show_default=False, help="The project's folder, new or empty."
        ),
    ],
    call: _Call,
    check: Annotated[
        bool,
        typer.Option("--check", help="Build and record it, and compare it with the executor."),
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
    request, op = _request(executor, call, exporter)
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
    _show(executor, project, to, request, op, difference, check, output)
    if difference:
        raise typer.Exit(WRONG)


def _request(executor: str, call: _Call, exporter: Exporter) -> tuple[CallRequest, OpParam]:
    """Return the call of the executor, as the API of C++ makes it."""
    from hccl_py.cli.request import CallRequest
    from hccl_py.errors import ParameterError, did_you_mean
    from hccl_py.plugins.authors import author_class
    from hccl_py.plugins.discovery import Registry, installed_executors

    registry = installed_executors()
    if executor in registry.executors:
        found = registry.executors[executor].executor
    elif ":" in executor:
        candidate = author_class(executor, "executor")
        found = Registry().add(candidate, executor.partition(":")[0]).executor
    else:
        hint = did_you_mean(executor, registry.executors, listed_by="`hccl-py list`")
        raise ParameterError(f"Executor {executor!r} is unknown.", hint)
    given = asdict(call)
    topology = exporter.topology if call.topology is None else call.topology
    given |= {"topology": topology, "buffsize": (call.buffsize or 400) // 2}
    ops = (found.op,) if isinstance(found.op, str) else found.op
    op = next((op for op in ops if op in exporter.ops), ops[0])
    request = CallRequest(CallOptions(op=op, executor=executor, **given))
    return request, exporter.called(request.op(request.minbytes), request.topology.size)


def _options(call: _Call) -> str:
    """Return the options with which `check` and `run` make the call, for a shell."""
    from shlex import quote

    named = ("minbytes", "ranks", "servers", "devices", "topology", "dtype", "reduce_op", "root")
    found = []
    for name in (*named, "buffsize"):
        value = getattr(call, name)
        if value is not None:
            found.append(f"--{name.replace('_', '-')} {quote(str(value))}")
    return " ".join(found)


def _recorded(target: Path, request: CallRequest, op: OpParam, call: _Call) -> Program:
    """Build and record the project."""
    from hccl_py.cli.request import importer_for, opened, shown
    from hccl_py.importers import ImportOptions

    options = ImportOptions(
        op=op.name,
        size=request.data_size(op),
        dtype=op.dtype,
        reduce=op.reduce,
        root=call.root,
        buffsize=call.buffsize,
    )
    source = opened(importer_for(str(target), "export").open, str(target), options)
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
