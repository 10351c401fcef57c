"""Executors exported with kernels of the CCU, recorded again and compared: their moves and the
order of these, the verifier's verdict, and the limits that some programs exceed.
"""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import INCLUDE
from hccl_interop.cpp.export.ccu import engine_project, kernel_phases
from hccl_interop.cpp.export.ccu.engine_project import export_engine_project
from hccl_interop.cpp.export.ccu.instruction_order import InstructionOrder
from hccl_interop.cpp.export.ccu.same_moves import first_lost
from hccl_interop.cpp.export.project import Exported
from hccl_interop.importers.cpp_folders import as_called
from hccl_py.call.op_param import OpParam
from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import CallRequest
from hccl_py.enums import DataType
from hccl_py.errors import NotSupportedError
from hccl_py.importers import Imported
from hccl_py.program.program import Program
from hccl_py.scaffold import write_project
from hccl_py.verifier.verdict import format_verdict
from tests.interop.cpp.exporting import BUFFER, op_of
from tests.interop.cpp.kit import builder, check

KERNEL = "op_kernel_ccu/ccu_kernel.cc"


class EngineExport:
    """A project of an executor for the CCU, and the call that it is for."""

    def __init__(
        self,
        executor: str,
        servers: int = 1,
        devices: int = 4,
        size: str = "64K",
        dtype: str = "fp32",
    ) -> None:
        options = CallOptions(
            op_of(executor),
            servers=servers,
            devices=devices,
            topology="ascend950",
            executor=executor,
            minbytes=size,
            dtype=dtype,
        )
        self.request = CallRequest(options)
        ranks = self.request.topology.size
        self.op: OpParam = as_called(self.request.op(self.request.minbytes), ranks)
        self.project: Exported = export_engine_project(
            self.program, self.op.count, self.request.topology, BUFFER, "--ranks 4"
        )

    def program(self, count: int) -> Program:
        return self.request.plan(replace(self.op, count=count)).program

    def recorder(self, place: Path) -> Callable[[int, int], Imported]:
        for path, text in self.project.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        shop = CustomOp(find_project(str(place)), builder())

        def record(count: int, calls: int = 1) -> Imported:
            op = replace(self.op, count=count)
            return shop.record(CppCall(op, self.request.topology, ccl_bytes=BUFFER, calls=calls))

        return record


@pytest.mark.parametrize(
    ("executor", "servers", "devices"),
    [
        ("AicpuAllGatherSoleMesh", 1, 4),
        ("AicpuReduceScatterSoleMesh", 1, 3),
        ("AicpuAllGatherSequenceMeshConcurNHR", 2, 2),
        pytest.param("AicpuAllReduceParallelMeshNHR", 2, 4, marks=pytest.mark.long),
        pytest.param("AicpuBroadcastSoleNHR", 1, 5, marks=pytest.mark.long),
        pytest.param("AicpuReduceScatterSoleNHR", 1, 8, marks=pytest.mark.long),
    ],
)
def test_kernels_have_the_moves_of_the_program_in_its_order(
    executor: str, servers: int, devices: int, tmp_path: Path
) -> None:
    exported = EngineExport(executor, servers, devices)
    record = exported.recorder(tmp_path)
    project = exported.project
    for count in {exported.op.count, project.least, min(3 * exported.op.count + 1, project.most)}:
        recorded = record(count, 1).require()
        assert recorded.engine == "ccu"
        assert first_lost(exported.program(count), recorded, project.zones) is None
        report = check(record(count, 2))
        assert report.ok, format_verdict(report)


@pytest.mark.parametrize(
    ("executor", "servers", "devices"),
    [
        ("AicpuAllGatherSoleMesh", 1, 4),
        ("AicpuReduceScatterSoleMesh", 1, 3),  # places and sizes that depend on the rank
        pytest.param("AicpuAllReduceParallelMeshNHR", 2, 4, marks=pytest.mark.long),
    ],
)
def test_a_project_compiles_without_a_warning(
    executor: str, servers: int, devices: int, tmp_path: Path
) -> None:
    """Its CMakeLists.txt makes an error of every warning."""
    exported = EngineExport(executor, servers, devices)
    write_project(exported.project.files, tmp_path / "project")
    folders = (INCLUDE, *(INCLUDE / part for part in ("hccl", "hcomm", "ccu")))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Iinclude"]
    command += [word for folder in folders for word in ("-isystem", str(folder))]
    sources = [path for path in exported.project.files if path.endswith(".cc")]
    done = subprocess.run([*command, *sources], cwd=tmp_path / "project", check=False)
    assert done.returncode == 0


def test_data_that_does_not_fit_the_buffer_goes_in_rounds(tmp_path: Path) -> None:
    exported = EngineExport("AicpuAllGatherSoleMesh")
    count = 1 << 25
    recorded = exported.recorder(tmp_path)(count, 1)
    program = exported.program(count)
    assert program.rounds > 1
    assert first_lost(program, recorded.require(), exported.project.zones) is None
    report = check(recorded)
    assert report.ok, format_verdict(report)


def test_a_kernel_is_for_one_die_and_phases_follow_each_other(tmp_path: Path) -> None:
    exported = EngineExport("AicpuAllGatherSequenceMeshConcurNHR", 2, 2)
    kernels = exported.project.files[KERNEL].split("CcuResult ")[1:]
    assert len(kernels) > 1
    for text in kernels:
        dies = {name for name in ("Mesh[", "Clos[") if name in text}
        assert len(dies) <= 1
        assert all(text.startswith(("Phase", name[:-1])) and name[:-1] in text for name in dies)


def test_peers_are_told_of_the_end_where_nothing_else_says_it(tmp_path: Path) -> None:
    """The last post of a channel follows the last move on it in a mesh of writes."""
    exported = EngineExport("AicpuAllGatherSoleMesh")
    text = exported.project.files[KERNEL]
    count = exported.op.count
    without = text.replace("engine.Record(param.peers[peer], kEnd - kFirstNotify);", "")
    without = without.replace("engine.Await(param.peers[peer], kEnd - kFirstNotify);", "")
    exported.project.files[KERNEL] = without
    report = check(exported.recorder(tmp_path)(count, 2))
    assert (without == text) == report.ok


def test_kernels_without_waits_for_moves_have_lost_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(order: InstructionOrder) -> list[frozenset[int]]:
        return [frozenset()] * len(order.previous)

    monkeypatch.setattr(kernel_phases, "_needs", none)
    exported = EngineExport("AicpuReduceScatterSoleMesh", devices=3)
    count = exported.op.count
    recorded = exported.recorder(tmp_path)(count, 1).require()
    found = first_lost(exported.program(count), recorded, exported.project.zones)
    assert found is not None
    assert "and need not in the recording" in found


def test_another_offset_is_another_move(tmp_path: Path) -> None:
    exported = EngineExport("AicpuAllGatherSoleMesh")
    host = "op_host/all_gather.cc"
    text = exported.project.files[host]
    assert "lengths.push_back(" in text
    first = text.index("lengths.push_back(")
    place = text.index(");", first)
    exported.project.files[host] = f"{text[:place]} + 4{text[place:]}"
    recorded = exported.recorder(tmp_path)(exported.op.count, 1)
    found = first_lost(
        exported.program(exported.op.count), recorded.require(), exported.project.zones
    )
    assert found is not None
    assert "recorded" in found


def test_a_data_type_that_the_ccu_does_not_reduce_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="int8 by sum; the CCU reduces uint8"):
        EngineExport("AicpuReduceScatterSoleMesh", dtype=DataType.INT8.value)


def test_too_large_a_move_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_project, "MOST_MOVED", 1000)
    with pytest.raises(NotSupportedError, match=r"moves 16384 bytes .* and the CCU at most 1000"):
        EngineExport("AicpuAllGatherSoleMesh")


def test_sizes_end_where_a_move_is_as_large_as_the_ccu_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_project, "MOST_MOVED", 20000)
    exported = EngineExport("AicpuAllGatherSoleMesh")
    assert exported.project.most == 20000 // 4


def test_too_many_registers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine_project.BUDGETS, "addresses", 3)
    with pytest.raises(NotSupportedError, match=r"needs \d+ addresses of die 0.*has 3") as error:
        EngineExport("AicpuAllGatherSoleMesh")
    assert "fewer ranks" in str(error.value.hint)
