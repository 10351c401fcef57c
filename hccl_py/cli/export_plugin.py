"""`hccl-py export --plugin`: programs of HCCL's algorithm plugin, from executors or a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from hccl_py.cli.errors import WRONG
from hccl_py.cli.exported_calls import exported, recorded_at, requested
from hccl_py.cli.options import Output, ProgramOptions
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.importers.exporter import PluginProgram

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_py.call.op_param import OpParam
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.exporter import Exporter
    from hccl_py.tuning.table import SizeRange, TuningEntry


@dataclass(frozen=True)
class _PluginWish:
    """A program that a plugin shall have: its call, and the data sizes that it shall take."""

    call: ProgramOptions
    least: int = 0
    most: int | None = None


def write_plugin(
    call: ProgramOptions,
    exporter: Exporter,
    place: str,
    to: str | None,
    check: bool,
    output: Output,
) -> None:
    """Write the project of a plugin, and say which calls it takes."""
    from hccl_py.scaffold.project import check_target, target_of, write_project

    if to is not None:
        raise ParameterError("--to and --plugin are two kinds of projects.", "Name one of them.")
    target = target_of(place, "--plugin")
    check_target(target, "--plugin")
    programs: list[PluginProgram] = []
    left: list[str] = []
    calls: list[tuple[ProgramOptions, CallRequest, OpParam]] = []
    for wanted in _wanted(call, left):
        request, op = requested(wanted.call, exporter)
        name = exporter.plugin_name(str(wanted.call.executor), op.name, [p.name for p in programs])
        project = exported(wanted.call, exporter, request, op, name)
        least, most = _counts(wanted, request, op)
        bounds = max(least, project.least), min(most, project.most)
        programs.append(PluginProgram(name, project, request.topology, *bounds))
        calls.append((wanted.call, request, op))
    if not programs:
        raise NotSupportedError("The table has no program for the plugin.", "; ".join(left))
    write_project(exporter.plugin(programs), target, "--plugin")
    differences = _differences(exporter, target, programs, calls) if check else []
    _show(place, programs, left, differences if check else None, output)
    if differences:
        raise typer.Exit(WRONG)


def _wanted(call: ProgramOptions, left: list[str]) -> Iterator[_PluginWish]:
    """Yield the programs that the command line names; add sentences about others to `left`."""
    named = str(call.executor)
    if not os.path.isfile(named):
        for name in named.split(","):
            yield _PluginWish(replace(call, executor=name.strip()))
        return
    from hccl_py.tuning.table import TuningTable
    from hccl_py.tuning.tuner_rules import titled

    for entry in TuningTable.read(named).entries:
        if entry.mode != "op_base" or isinstance(entry.topology.devices, tuple):
            left.append(f"{titled(entry)}: only op_base and servers of one size")
            continue
        ends = [*(found.from_bytes - 1 for found in entry.ranges[1:]), None]
        for found, last in zip(entry.ranges, ends, strict=True):
            yield _PluginWish(_call_of(entry, found, call), found.from_bytes, last)


def _call_of(entry: TuningEntry, found: SizeRange, call: ProgramOptions) -> ProgramOptions:
    """Return the call of the first sample in a range of a tuning table."""
    shape = entry.topology
    pods, servers, devices = shape.superpods, shape.servers, shape.devices
    assert isinstance(devices, int), "others are left out"
    return replace(
        call,
        executor=found.executor,
        minbytes=str(found.samples[0].bytes),
        topology=shape.network or shape.product,
        superpods=pods if pods > 1 else None,
        servers=servers,
        devices=devices,
        dtype=entry.dtype,
        reduce_op=entry.reduce_op,
        buffsize=2 * entry.buffsize_mb,
        algo=";".join(f"{level}:{word}" for level, word in found.levels.items()) or None,
    )


def _counts(wanted: _PluginWish, request: CallRequest, op: OpParam) -> tuple[int, int]:
    """Return the least and the most elements of the sizes that a program shall take."""
    unit = request.data_size(replace(op, count=1))
    most = 1 << 62 if wanted.most is None else wanted.most // unit
    return -(-wanted.least // unit), most


def _differences(
    exporter: Exporter,
    target: Path,
    programs: list[PluginProgram],
    calls: list[tuple[ProgramOptions, CallRequest, OpParam]],
) -> list[str]:
    found = []
    for program, (call, request, op) in zip(programs, calls, strict=True):
        recorded = recorded_at(target / "programs" / program.name, request, op, call)
        difference = exporter.difference(program.project, recorded)
        found += [f"{program.name}: {difference}"] if difference else []
    return found


def _show(
    place: str,
    programs: list[PluginProgram],
    left: list[str],
    differences: list[str] | None,
    output: Output,
) -> None:
    from hccl_py.cli.output import Screen, counted, print_json

    rows = [
        {
            "name": one.name,
            "op": one.project.program.op.name,
            "ranks": one.topology.size,
            "least_count": one.least,
            "most_count": one.most,
        }
        for one in programs
    ]
    if output.json:
        head = {"schema": "hccl-py.export-plugin/1", "ok": not differences, "path": place}
        print_json({**head, "left_out": left, "differences": differences}, programs=iter(rows))
        return
    screen = Screen()
    screen.show(f"{place}: {counted(len(programs), 'program')} for HCCL's algorithm plugin")
    for row in rows:
        bounds = f"{row['least_count']} to {row['most_count']} elements"
        screen.show(f"  {row['name']}  {row['op']}, {row['ranks']} ranks, {bounds}")
    for line in left:
        screen.show(f"  left out: {line}")
    for line in differences or ():
        screen.show(f"Another program: {line}")
    if differences == []:
        screen.show("The recordings are the same programs, task by task.")
