"""HCCL's algorithm plugin, from Python source to chosen function, without CANN."""

import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import INCLUDE
from hccl_interop.cpp.export.plugin import check_plugin, plugin_files, plugin_name
from hccl_interop.cpp.export.same import first_difference
from hccl_interop.cpp.export.text import snake_case
from hccl_py.errors import NotSupportedError
from hccl_py.importers.exporter import PluginProgram
from tests.interop.cpp.exporting import BUFFER, Export, export
from tests.interop.cpp.kit import builder, compiler
from tests.interop.cpp.plugin_broker import Broker, Param, call

LIMIT = 10_000
"""Elements up to which the plugin takes the star, and the ring above."""


@pytest.fixture(scope="module")
def exports() -> dict[str, Export]:
    names = {"star": "AllReduceStar", "ring": "AllReduceRing", "gather": "AllGatherComm"}
    return {name: export(executor, devices=4, name=name) for name, executor in names.items()}


@pytest.fixture(scope="module")
def project(exports: dict[str, Export], tmp_path_factory: pytest.TempPathFactory) -> Path:
    bounds = {"star": (1, LIMIT), "ring": (LIMIT + 1, 1 << 24), "gather": (1, 1 << 20)}
    programs = [
        PluginProgram(name, made.project, made.request.topology, *bounds[name])
        for name, made in exports.items()
    ]
    folder = tmp_path_factory.mktemp("plugin")
    for path, text in plugin_files(programs).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(scope="module")
def root(project: Path) -> Path:
    """The plugin, built and installed by its CMakeLists.txt."""
    compiler()
    if shutil.which("cmake") is None:
        pytest.skip("no cmake to build the plugin with")
    place = project / "root"
    told = [f"-DCANN_INCLUDE={INCLUDE}", f"-DCMAKE_INSTALL_PREFIX={place}"]
    commands: tuple[list[str | Path], ...] = (
        ["cmake", "-S", project, "-B", project / "build", *told],
        ["cmake", "--build", project / "build"],
        ["cmake", "--install", project / "build"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return place


def wanted(op: str, count: int, ranks: int, servers: int, dtype: int, reduce: int) -> str | None:
    """The program that the limits give to a call."""
    if (ranks, servers, dtype) != (4, 1, 4):
        return None
    if op == "AllGather":
        return "gather" if 1 <= count <= 1 << 20 else None
    if op != "AllReduce" or reduce or not 1 <= count <= 1 << 24:
        return None
    return "star" if count <= LIMIT else "ring"


def test_the_broker_finds_programs_and_selectors_take_what_they_are_for(root: Path) -> None:
    broker = Broker(root)
    assert not broker.refused
    assert {op: [one.name for one in found] for op, found in broker.algorithms.items()} == {
        "allgather": ["gather"],
        "allreduce": ["star", "ring"],
    }
    counts = (0, 1, LIMIT, LIMIT + 1, 1 << 20, (1 << 20) + 1, 1 << 24, (1 << 24) + 1)
    ops = ("AllReduce", "AllGather", "Broadcast")
    for op, count, ranks, servers, dtype, reduce in product(
        ops, counts, (3, 4, 8), (1, 2), (3, 4), (0, 2)
    ):
        asked = call(op, count, ranks, servers=servers, dataType=dtype, reduceOp=reduce)
        found = broker.chosen(asked)
        said = wanted(op, count, ranks, servers, dtype, reduce)
        assert (found and found.name) == said, (op, count, ranks, servers, dtype, reduce)
        if found is not None:
            assert found.library.parent == root / op
            assert found.library.is_file()


@pytest.mark.parametrize("change", [{"magic": 1}, {"version": 2}, {"isAsymmetricTopo": True}])
def test_selectors_refuse_other_calls(root: Path, change: dict[str, int]) -> None:
    asked = call("AllReduce", 7, 4)
    assert Broker(root).chosen(asked) is not None
    for name, value in change.items():
        setattr(asked, name, value)
    assert Broker(root).chosen(asked) is None


def test_chosen_functions_do_what_the_executors_do(
    root: Path, project: Path, exports: dict[str, Export]
) -> None:
    for asked in (
        call("AllReduce", 500, 4),
        call("AllReduce", 77_777, 4),
        call("AllGather", 33, 4),
    ):
        found = Broker(root).chosen(asked)
        assert found is not None
        made = exports[found.name]
        shown = subprocess.run(["nm", "-D", found.library], capture_output=True, text=True)
        assert f" T {found.function}\n" in shown.stdout
        assert recorded_difference(made, project / "programs" / found.name, asked) is None


def recorded_difference(made: Export, folder: Path, asked: Param) -> str | None:
    program = made.program(asked.count)
    shop = CustomOp(find_project(str(folder)), builder())
    recorded = shop.record(CppCall(program.op, made.request.topology, ccl_bytes=BUFFER)).require()
    return first_difference(program, recorded, made.project.zones)


def test_what_the_broker_refuses(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    assert Broker(link).refused == "a link"
    other = tmp_path / "open"
    shutil.copytree(root, other)
    other.chmod(0o775)
    assert Broker(other).refused == "writable for others"
    assert not Broker(other).algorithms


def test_selectors_export_two_symbols_alone(root: Path) -> None:
    selector = root / "AllReduce" / "libhccl_plugin_allreduce_selector.so"
    shown = subprocess.run(["nm", "-D", "--defined-only", selector], capture_output=True, text=True)
    assert sorted(line.split()[-1] for line in shown.stdout.splitlines()) == [
        "HcclAlgoPluginQueryEntries",
        "Select",
    ]


def test_names() -> None:
    assert snake_case("AllReduceFastDoubleRingFor91093Executor") == (
        "all_reduce_fast_double_ring_for_91093_executor"
    )
    assert plugin_name("mine:TwoLanes", ["two_lanes"]) == "two_lanes_2"
    with pytest.raises(NotSupportedError, match="plugin cannot take send_recv"):
        check_plugin("send_recv")
