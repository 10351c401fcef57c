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

    from hccl_py.cli.request import CallRequest
    from hccl_py.cpp.export import Exported
    from hccl_py.op_param import OpParam

__all__ = ["command"]


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
    from hccl_py.scaffold import write_project
    from hccl_py.scaffold.project import check_target, target_of

    target = target_of(to, "--to")
    check_target(target, "--to")
    request, op = _request(executor, call)
    exported = _export(request, op, call)
    write_project(exported.files, target, "--to")
    difference = _difference(exported, target, request, op, call) if check else None
    _show(executor, exported, to, request, op, difference, check, output)
    if difference:
        raise typer.Exit(WRONG)


def _request(executor: str, call: _Call) -> tuple[CallRequest, OpParam]:
    """Return the call of the executor, as the API of C++ makes it."""
    from hccl_py.authors import author_class
    from hccl_py.cli.folders import as_called
    from hccl_py.cli.request import CallRequest
    from hccl_py.cpp.export import CAN_EXPORT
    from hccl_py.discovery import Registry, installed_executors
    from hccl_py.errors import ParameterError, did_you_mean

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
    topology = "ascend950" if call.topology is None else call.topology
    given |= {"topology": topology, "buffsize": (call.buffsize or 400) // 2}
    ops = (found.op,) if isinstance(found.op, str) else found.op
    op = next((op for op in ops if op in CAN_EXPORT), ops[0])
    request = CallRequest(CallOptions(op=op, executor=executor, **given))
    return request, as_called(request.op(request.minbytes), request.topology.size)


def _export(request: CallRequest, op: OpParam, call: _Call) -> Exported:
    from hccl_py.cpp.export import export_project

    return export_project(
        lambda count: request.plan(replace(op, count=count)).program,
        op.count,
        request.topology,
        _hccl_bytes(call),
        _options(call),
    )


def _hccl_bytes(call: _Call) -> int:
    return (call.buffsize or 400) << 20


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


def _difference(
    exported: Exported, target: Path, request: CallRequest, op: OpParam, call: _Call
) -> str | None:
    """Return where the recording of the project is another program; None where it is the same."""
    from hccl_py.cli.folders import open_workshop, record_call
    from hccl_py.cpp import CppCall
    from hccl_py.cpp.export.same import first_difference

    cpp = CppCall(op, request.topology, ccl_bytes=_hccl_bytes(call))
    recorded = record_call(open_workshop(str(target)), cpp).require()
    return first_difference(exported.program, recorded, exported.zones)


def _show(
    executor: str,
    exported: Exported,
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
            "ranks": exported.program.ranks,
            "tasks": exported.program.task_count,
        }
        found |= {"least_count": exported.least, "most_count": exported.most}
        if is_checked:
            found["difference"] = difference
        print_json({**head, **found}, files=({"path": path} for path in exported.files))
        return
    screen = Screen()
    screen.show(f"{to}: {executor} as a custom op in C++")
    screen.show(f"{request.describe(op)}; {counted(exported.program.task_count, 'task')}")
    screen.show(describe_topology(request.topology))
    for path in exported.files:
        screen.show(f"  {path}")
    if exported.least == exported.most:
        screen.show("It is for this size: offsets and sizes are numbers.")
    else:
        screen.show(f"It is for {exported.least} to {exported.most} elements.")
    if difference:
        screen.show(f"Its recording is another program: {difference}")
    elif is_checked:
        screen.show("Its recording is the same program, task by task.")
