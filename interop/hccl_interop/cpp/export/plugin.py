"""A project for HCCL's algorithm plugin: selectors, and exported programs that they choose among.

HCCL asks `Select` of an op's selector, and calls the function of the chosen program as it calls
its own op: the exported host code is that function. A selector's rows are the limits of its
programs; the first row that fits a call takes it.

Source: HCCL's RFC 0002, `hccl_algo_plugin_common.h`, `hccl_algo_plugin_mgr.cc`,
`plugin_broker.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_interop.cpp.export.entries import functions_of
from hccl_interop.cpp.export.text import filled, snake_case
from hccl_py.errors import NotSupportedError
from hccl_py.importers.exporter import PluginProgram

_OPS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_to_all": "AllToAll",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "scatter": "Scatter",
}
"""The plugin's names of ops. Send and Recv are none: a pair's two calls select by themselves."""


def plugin_name(executor: str, taken: Sequence[str]) -> str:
    """Return a name for the program of an executor that is none of those taken."""
    wish = snake_case(executor.rpartition(":")[2])
    names = (wish if k == 1 else f"{wish}_{k}" for k in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def check_plugin(op: str) -> None:
    """Raise NotSupportedError for an op that the plugin does not have."""
    if op not in _OPS:
        raise NotSupportedError(
            f"HCCL's algorithm plugin cannot take {op} from a program.",
            f"It takes {', '.join(_OPS)}.",
        )


def plugin_files(programs: Sequence[PluginProgram]) -> dict[str, str]:
    """Return the files of a plugin by path."""
    by_op: dict[str, list[PluginProgram]] = {}
    for program in programs:
        by_op.setdefault(_op(program), []).append(program)
    adding = [f"add_selector({op})" for op in by_op]
    adding += [f"add_program({program.name} {_op(program)})" for program in programs]
    found = {
        "CMakeLists.txt": filled("plugin/CMakeLists.txt", adding="\n".join(adding)),
        "README.md": filled("plugin/README.md", limits=_limits(programs)),
        "exports.map": filled("plugin/exports.map"),
        "include/plugin_interface.h": filled("plugin/plugin_interface.h"),
    }
    for op, members in by_op.items():
        rows = "".join(f"    {_row(member)},\n" for member in members)
        found[f"{op}/selector.cc"] = filled("plugin/selector.cc", op=op, rows=rows)
    for program in programs:
        for path, text in program.project.files.items():
            if path != "CMakeLists.txt":
                found[f"programs/{program.name}/{path}"] = text
    return found


def _op(program: PluginProgram) -> str:
    """Return the plugin's name of a program's op."""
    return _OPS[program.project.program.op.name]


def _servers(program: PluginProgram) -> int:
    return len(program.topology.servers)


def _row(program: PluginProgram) -> str:
    op = program.project.program.op
    (function,) = functions_of(op.name)
    reduce = -1 if op.reduce is None else int(op.reduce)
    root = -1 if op.root is None else op.root
    names = f'"{program.name}", "lib{program.name}.so", "{function}Custom"'
    where = f"{program.topology.size}, {_servers(program)}"
    return (
        f"{{{names}, {where}, {op.dtype.number}, {reduce}, {root}, "
        f"{program.least}ULL, {program.most}ULL}}"
    )


def _limits(programs: Sequence[PluginProgram]) -> str:
    head = "| Program | Op | Ranks | Servers | Type | Reduction | Root | Elements |\n"
    lines = [head, "| --- " * 8 + "|\n"]
    for one in programs:
        op = one.project.program.op
        reduce = "" if op.reduce is None else op.reduce.spelling
        root = "" if op.root is None else op.root
        cells = [f"`{one.name}`", _op(one), one.topology.size, _servers(one), op.dtype.value]
        cells += [reduce, root, f"{one.least} to {one.most}"]
        lines.append(f"| {' | '.join(map(str, cells))} |\n")
    return "".join(lines)
