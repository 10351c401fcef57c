"""`hccl-py new`: write a project to start from, a plugin package or a custom op in C++."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Annotated

import typer
from typer.core import TyperGroup

from hccl_py.cli.grouping import CallCommand, grouped
from hccl_py.cli.help import SpokenHelp
from hccl_py.cli.options import DEBUG, JSON, Output, here, option
from hccl_py.cli.streams import say


class _NewGroup(SpokenHelp, TyperGroup):
    """The two kinds of projects."""


app = typer.Typer(
    cls=_NewGroup,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"max_content_width": 10_000},
)


@app.callback(invoke_without_command=True)
def command(
    context: typer.Context,
    cpp: Annotated[
        str | None, option("--cpp", "NAME", "A custom op in C++ of this name: my_gather.")
    ] = None,
    op: Annotated[
        str, option("--op", "OP", "With --cpp: the op that it stands for.")
    ] = "all_gather",
    engine: Annotated[
        str, option("--engine", "E", "With --cpp: whose kernels it has: aicpu or ccu.")
    ] = "aicpu",
    contest: Annotated[
        bool, typer.Option("--contest", help="With --cpp: in the form of HCCL's contests.")
    ] = False,
    path: Annotated[
        str | None, option("--path", "DIR", "With --cpp: its folder, new or empty; else ./NAME.")
    ] = None,
    json: Annotated[bool, here(JSON, help="With --cpp: one JSON document on stdout.")] = False,
    debug: Annotated[bool, DEBUG] = False,
) -> None:
    """Write a project to start from.

    A plugin package with an executor (`hccl-py new executor`), or, with --cpp, a custom op in C++
    that verifies as it is, for you to change. Nothing is ever overwritten.
    """
    if context.invoked_subcommand is not None:
        _refuse_cpp(cpp)
    elif cpp is None:
        from hccl_py.errors import ParameterError

        hint = "Name `executor`, or --cpp NAME; `hccl-py new --help` shows both."
        raise ParameterError("Missing command: what kind of project?", hint)
    else:
        _custom_op(cpp, op, engine, path, contest=contest, json=json)


def _refuse_cpp(cpp: str | None) -> None:
    from hccl_py.errors import ParameterError

    if cpp is not None:
        raise ParameterError(
            "--cpp writes a custom op in C++, and `executor` a plugin package.", "Name one of them."
        )


_KERNELS = {
    "aicpu": ("--ranks 8", "op_kernel_aicpu/exec_op.cc"),
    "ccu": ("--topology ascend950-2x8", "op_kernel_ccu/ccu_kernel.cc"),
}
"""The ranks to begin with and the file to change, by the engine of the kernels."""

_CONTEST = ("--topology ascend950-2x8 --buffsize 400", "op_kernel_aicpu/exec_op.cc")
"""The cluster of HCCL's contests, and the file to change."""


def _custom_op(
    name: str, op: str, engine: str, path: str | None, *, contest: bool, json: bool
) -> None:
    from hccl_py.cli.options import one_of
    from hccl_py.cli.streams import aside
    from hccl_py.importers.installed import installed_exporter
    from hccl_py.scaffold import write_project
    from hccl_py.scaffold.project import target_of

    with aside():
        one_of("--engine", engine, _KERNELS)
        ranks, kernel = _CONTEST if contest else _KERNELS[engine]
        texts = installed_exporter("cpp").starting_project(name, op, engine, contest=contest)
        target = target_of(name if path is None else path)
        write_project(texts, target)
        if json:
            from hccl_py.cli.output import print_json

            head = {"schema": "hccl-py.new/1", "cpp": name, "op": op, "path": str(target)}
            print_json(head, files=({"path": file} for file in texts))
            return
        say(f"{target}: a custom op in C++ for {op}")
        for file in texts:
            say(f"  {file}")
        say()
        say("Go on with:")
        for command in ("check", "run", "simulate"):
            say(f"  hccl-py {command} {shlex.quote(str(target))} {ranks} -b 1M")
        say(f"and change {shlex.quote(str(target / kernel))}.")


@grouped
def executor(
    *,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", show_default=False, help="Its class name: MyAllGather."),
    ],
    op: Annotated[str, option("--op", "OP", "The op, as all_gather.", show_default=False)],
    path: Annotated[
        str | None,
        option("--path", "DIR", "The project's folder, new or empty; else ./my_all_gather."),
    ] = None,
    output: Output,
) -> None:
    """Write a plugin project with an executor that works as it is, for you to change.

    A package to install, its test and how to go on. Nothing is ever overwritten.
    """
    from hccl_py.scaffold import executor_project, names_of, write_project
    from hccl_py.scaffold.project import target_of

    names = names_of(name)
    texts = executor_project(names, op)
    target = target_of(names.package if path is None else path)
    write_project(texts, target)
    if output.json:
        from hccl_py.cli.output import print_json

        head = {"schema": "hccl-py.new/1", "executor": name, "op": op, "path": str(target)}
        print_json(head, files=({"path": file} for file in texts))
        return
    _show(name, str(target), texts)


def _show(name: str, folder: str, files: Iterable[str]) -> None:
    say(f"{folder}: a project with the executor {name}")
    for file in files:
        say(f"  {file}")
    say()
    say("Go on with:")
    say(f"  cd {shlex.quote(folder)}")
    say('  pip install -e ".[test]"')
    say(f"  hccl-py check {name}")
    say("  pytest")


app.command("executor", cls=CallCommand)(executor)
