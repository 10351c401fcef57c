"""The calls of `hccl-py export`: an executor's call, its project, the recording of its folder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hccl_py.cli.options import ProgramOptions

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_py.call.op_param import OpParam
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.exporter import Exporter, Project
    from hccl_py.program.program import Program

_HCCL_BUFFER = 400 << 20
"""Bytes of the HCCL buffer by default."""


def exported(
    call: ProgramOptions,
    exporter: Exporter,
    request: CallRequest,
    op: OpParam,
    name: str = "",
    engine: str = "aicpu",
) -> Project:
    """Return the project of a call, with a name where it is one of several."""
    return exporter.export(
        lambda count: request.plan(replace(op, count=count)).program,
        op.count,
        request.topology,
        _HCCL_BUFFER if call.buffsize is None else call.buffsize << 20,
        _options(call),
        name,
        engine,
    )


def requested(call: ProgramOptions, exporter: Exporter) -> tuple[CallRequest, OpParam]:
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


def recorded_at(target: Path, request: CallRequest, op: OpParam, call: ProgramOptions) -> Program:
    """Return the recording of a project's folder."""
    from hccl_py.cli.sources import importer_for, open_source, shown
    from hccl_py.importers import SourceCall

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
    return shown(source.imported(SourceCall(source.usual_size, request.comm))).require()
