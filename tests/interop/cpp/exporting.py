"""What tests of exported projects share: an executor exported, recorded again, and compared.

exported = export("AllReduceRing", servers=2, devices=4, size="64K")
assert exported.difference() is None
"""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import INCLUDE
from hccl_interop.cpp.export import CAN_EXPORT, Exported, export_project
from hccl_interop.cpp.export.same import first_difference
from hccl_interop.importers.cpp_folders import as_called
from hccl_py.call.op_param import OpParam
from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import CallRequest
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import installed_executors
from hccl_py.program.program import Program
from tests.interop.cpp.kit import builder, compiler

BUFFER = 400 << 20

FROZEN = Path(__file__).parent / "exported"
"""Files of exported projects that were looked at; `python -m tests.interop.cpp.exporting` writes
them anew.
"""

SHOWN: dict[str, tuple[str, dict[str, object], str]] = {
    "all_reduce_kernel.cc": (
        "AllReduceMeshSmallCountExecutor",
        {"devices": 4},
        "op_kernel_aicpu/exec_op.cc",
    ),
    "ring_kernel.cc": (
        "AllReduceRing",
        {"servers": 2, "devices": 4},
        "op_kernel_aicpu/exec_op.cc",
    ),
    "all_gather_host.cc": (
        "AllGatherMeshGraphExecutor",
        {"servers": 2, "devices": 2, "mode": "graph"},
        "op_host/all_gather.cc",
    ),
}
"""Of each frozen file the executor, its ranks, and its path in the project."""


@dataclass(frozen=True)
class Export:
    """A project of an executor, and the call that it is for."""

    request: CallRequest
    op: OpParam
    project: Exported

    @property
    def kernel(self) -> str:
        return self.project.files["op_kernel_aicpu/exec_op.cc"]

    def program(self, count: int) -> Program:
        return self.request.plan(replace(self.op, count=count)).program

    def difference(self, *counts: int) -> str | None:
        """Where the recording of the project differs first from the executor's program, for the
        exported number of elements and for others.
        """
        with TemporaryDirectory() as place:
            shop = CustomOp(find_project(str(self.written(Path(place)))), builder())
            for count in (self.op.count, *counts):
                op = replace(self.op, count=count)
                call = CppCall(op, self.request.topology, ccl_bytes=BUFFER)
                recorded = shop.record(call).require()
                found = first_difference(self.program(count), recorded, self.project.zones)
                if found is not None:
                    return f"{count} elements: {found}"
        return None

    def warnings(self) -> str:
        """What g++ says of the sources under -Wall -Wextra -Werror."""
        flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
        with TemporaryDirectory() as place:
            folder = self.written(Path(place))
            paths = ["-I", str(folder / "include"), "-I", str(INCLUDE)]
            sources = [str(path) for path in sorted(folder.rglob("*.cc"))]
            command = [compiler(), *flags, *paths, *sources]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr

    def written(self, place: Path) -> Path:
        for path, text in self.project.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        return place


def op_of(executor: str) -> str:
    """The first of an executor's ops that can be exported."""
    if ":" in executor:
        return str(author_class(executor, "executor").op)
    op = installed_executors().executors[executor].executor.op
    ops = (op,) if isinstance(op, str) else op
    return next((name for name in ops if name in CAN_EXPORT), ops[0])


def export(
    executor: str,
    *,
    servers: int | None = 1,
    devices: int | None = 4,
    superpods: int | None = None,
    size: str = "64K",
    topology: str = "ascend950",
    mode: str | None = None,
    root: int | None = None,
    name: str = "",
    buffsize: int | None = None,
) -> Export:
    options = CallOptions(
        op_of(executor),
        servers=servers,
        devices=devices,
        superpods=superpods,
        topology=topology,
        executor=executor,
        mode=mode,
        root=root,
        minbytes=size,
        buffsize=buffsize,
    )
    request = CallRequest(options)
    op = as_called(request.op(request.minbytes), request.topology.size)

    def record(count: int) -> Program:
        return request.plan(replace(op, count=count)).program

    project = export_project(record, op.count, request.topology, BUFFER, "--ranks 4", name)
    return Export(request, op, project)


def shown() -> dict[str, str]:
    """Return the texts of the frozen files as the exporter writes them now."""
    made: dict[str, str] = {}
    for name, (executor, ranks, path) in SHOWN.items():
        options: dict[str, Any] = ranks
        made[name] = export(executor, **options).project.files[path]
    return made


if __name__ == "__main__":
    FROZEN.mkdir(exist_ok=True)
    for name, text in shown().items():
        (FROZEN / name).write_text(text, "utf-8")
