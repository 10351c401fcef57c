"""`hccl-py export`: an executor as a custom op in C++, or several as a plugin of HCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hccl_py.cli.errors import WRONG
from hccl_py.cli.exported_calls import exported, recorded_at, requested
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
    from hccl_py.call.op_param import OpParam
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.exporter import Project


_CALL = only(
    executor=typer.Argument(
        metavar="EXECUTOR",
        show_default=False,
        help="Its name, or module:Class; with --plugin also names with commas, or a tuning table.",
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


_SAME = {
    "aicpu": "Its recording is the same program, task by task.",
    "ccu": "Its recording has the same moves, in every order that the program has.",
}
"""The result of a comparison where nothing differs, by the engine of the kernels."""


@grouped
def command(
    *,
    to: Annotated[str | None, option("--to", "DIR", "The project's folder, new or empty.")] = None,
    plugin: Annotated[
        str | None,
        option("--plugin", "DIR", "Instead: the folder of a project for HCCL's algorithm plugin."),
    ] = None,
    engine: Annotated[
        str, option("--engine", "E", "With --to: whose kernels it has, aicpu or ccu.")
    ] = "aicpu",
    call: Annotated[ProgramOptions, _CALL],
    check: Annotated[
        bool, flag("--check", "Build and record it, and compare it with the executor.")
    ] = False,
    output: Output,
) -> None:
    """Write an executor as a custom op in C++.

    The project has the layout of HCCL's examples, and does for this number of ranks what the
    executor does: with loops and formulas where there are some, with tables where there are none.
    With --engine ccu its kernels are the CCU's, where the executor fits a CCU's registers.
    With --plugin it is a program of HCCL's algorithm plugin, and a selector takes the calls that it
    is for. Nothing is ever overwritten.
    """
    from hccl_py.cli.options import one_of
    from hccl_py.importers.installed import installed_exporter
    from hccl_py.scaffold import write_project
    from hccl_py.scaffold.project import check_target, target_of

    one_of("--engine", engine, _SAME)
    exporter = installed_exporter("cpp")
    if plugin is not None:
        from hccl_py.cli.export_plugin import write_plugin

        if engine != "aicpu":
            _refuse_plugin_of_ccu()
        write_plugin(call, exporter, plugin, to, check, output)
        return
    if to is None:
        from hccl_py.errors import ParameterError

        raise ParameterError(
            "The project has no place.", "Name its folder: --to DIR, --plugin DIR."
        )
    target = target_of(to, "--to")
    check_target(target, "--to")
    request, op = requested(call, exporter)
    project = exported(call, exporter, request, op, engine=engine)
    write_project(project.files, target, "--to")
    difference = None
    if check:
        recorded = recorded_at(target, request, op, call)
        difference = exporter.difference(project, recorded)
    same = _SAME[engine] if check and not difference else ""
    _show(str(call.executor), project, to, request, op, difference, same, output)
    if difference:
        raise typer.Exit(WRONG)


def _refuse_plugin_of_ccu() -> NoReturn:
    from hccl_py.errors import NotSupportedError

    raise NotSupportedError(
        "HCCL's algorithm plugin takes kernels of the AI CPU alone.",
        "Leave out --engine, or export one executor: --to DIR.",
    )


def _show(
    executor: str,
    project: Project,
    to: str,
    request: CallRequest,
    op: OpParam,
    difference: str | None,
    same: str,
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
        found |= {"missing": project.missing or None, "tables": [*project.tables]}
        if same or difference:
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
        screen.show(f"It is for this size alone: {project.missing}.")
    else:
        screen.show(f"It is for {project.least} to {project.most} elements.")
    if project.tables:
        ranks = f"these {project.program.ranks} ranks"
        screen.show(
            f"No formula of the rank gives {', '.join(project.tables)}: tables for {ranks}."
        )
    if difference:
        screen.show(f"Its recording is another program: {difference}")
    elif same:
        screen.show(same)
