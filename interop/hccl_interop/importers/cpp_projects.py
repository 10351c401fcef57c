"""The exporter of custom ops in C++: executors as projects, and projects to start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hccl_py.importers import Exporter
from hccl_py.importers.exporter import PluginProgram

if TYPE_CHECKING:
    from hccl_interop.cpp.export.project import Exported
    from hccl_py.call.op_param import OpParam
    from hccl_py.program.program import Program
    from hccl_py.topology import Topology


class CppExporter(Exporter):
    """Writes folders that the importer of custom ops in C++ reads."""

    name = "cpp"
    topology = "ascend950"

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops that a custom op can stand for."""
        from hccl_interop.cpp.export.entries import CAN_EXPORT

        return CAN_EXPORT

    def called(self, op: OpParam, ranks: int) -> OpParam:
        """Return the parameters of a call through HCCL's functions."""
        from hccl_interop.importers.cpp_folders import as_called

        return as_called(op, ranks)

    def export(
        self,
        record: Callable[[int], Program],
        count: int,
        topology: Topology,
        buffer_bytes: int,
        options: str,
        name: str = "",
        engine: str = "aicpu",
    ) -> Exported:
        """Return the project of the program that `record` records."""
        if engine == "ccu":
            from hccl_interop.cpp.export.ccu.engine_project import export_engine_project

            return export_engine_project(record, count, topology, buffer_bytes, options, name)
        from hccl_interop.cpp.export.project import export_project

        return export_project(record, count, topology, buffer_bytes, options, name)

    def difference(self, project: Exported, recorded: Program) -> str | None:
        """Compare the program of a project with its recording."""
        if project.engine == "ccu":
            from hccl_interop.cpp.export.ccu.same_moves import first_lost

            return first_lost(project.program, recorded, project.zones)
        from hccl_interop.cpp.export.same import first_difference

        return first_difference(project.program, recorded, project.zones)

    def plugin_name(self, executor: str, op: str, taken: Sequence[str]) -> str:
        """Return a name in HCCL's algorithm plugin."""
        from hccl_interop.cpp.export.plugin import check_plugin, plugin_name

        check_plugin(op)
        return plugin_name(executor, taken)

    def plugin(self, programs: Sequence[PluginProgram]) -> Mapping[str, str]:
        """Return the files of a project for HCCL's algorithm plugin."""
        from hccl_interop.cpp.export.plugin import plugin_files

        return plugin_files(programs)

    def starting_project(
        self, name: str, op: str, engine: str = "aicpu", *, contest: bool = False
    ) -> dict[str, str]:
        """Return the files of a project to start from."""
        from hccl_interop.cpp.export.starting import starting_project

        return starting_project(name, op, engine, contest=contest)
