"""Projects to start from: each builds without a warning, and is right as it is, twice in a row."""

import subprocess
from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import INCLUDE
from hccl_interop.cpp.export import CAN_EXPORT
from hccl_interop.cpp.export.starting import starting_project
from hccl_interop.cpp.recording import DEFAULT_BUFFER
from hccl_interop.importers.cpp_folders import as_called
from hccl_py.call.call_spec import CallSpec
from hccl_py.errors import ParameterError
from hccl_py.scaffold import write_project
from hccl_py.topology import topology_of
from hccl_py.verifier.verdict import format_verdict
from tests.interop.cpp.kit import builder, check, compiler


@pytest.mark.parametrize("op", CAN_EXPORT)
def test_a_project_verifies_as_it_is(op: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_project(starting_project("mine", op), folder)
    shop = CustomOp(find_project(str(folder)), builder())
    root = 1 if op in ("broadcast", "scatter", "reduce") else None
    topology = topology_of(ranks=4, preset="ascend950")
    param = as_called(CallSpec(op, bytes=1 << 16, root=root).param(4), 4)
    rounds = 10_240  # bytes of an HCCL buffer that holds a part of the data
    for calls, buffer in ((1, DEFAULT_BUFFER), (2, DEFAULT_BUFFER), (1, rounds), (2, rounds)):
        report = check(shop.record(CppCall(param, topology, buffer, calls)))
        assert not list(report.every()), format_verdict(report)
        assert report.cases == 1


CONTEST_SIZES = (64, 512 << 10, 512 << 20, (400 << 20) + 64)


@pytest.mark.parametrize("op", CAN_EXPORT)
def test_a_project_of_a_contest_verifies_at_its_sizes(op: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_project(starting_project("mine", op, contest=True), folder)
    shop = CustomOp(find_project(str(folder)), builder())
    topology = topology_of(servers=2, devices=8, preset="ascend950")
    sizes = (4, *CONTEST_SIZES) if op in ("all_reduce", "broadcast", "reduce") else CONTEST_SIZES
    root = 7 if op in ("broadcast", "scatter", "reduce") else None
    for size in sizes:
        param = as_called(CallSpec(op, bytes=size, root=root).param(16), 16)
        report = check(shop.record(CppCall(param, topology, ccl_bytes=400 << 20)))
        assert not list(report.every()), (size, format_verdict(report))
    assert (folder / "op_kernel_aicpu" / "aicpu_kernel.cc").is_file()


def test_a_contest_is_no_form_of_the_ccu() -> None:
    with pytest.raises(ParameterError, match="--contest writes the form"):
        starting_project("mine", "all_gather", "ccu", contest=True)


@pytest.mark.parametrize("contest", [False, True])
def test_nothing_warns(contest: bool, tmp_path: Path) -> None:
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    for op in CAN_EXPORT:
        write_project(starting_project("mine", op, contest=contest), tmp_path / op)
    folder = tmp_path / "reduce"
    names = ("include", "op_host", "op_kernel_aicpu")
    paths = [*(f"-I{folder / name}" for name in names), f"-I{INCLUDE}"]
    sources = [str(path) for path in sorted(tmp_path.rglob("*.cc"))]
    done = subprocess.run([compiler(), *flags, *paths, *sources], capture_output=True, text=True)
    assert done.stderr == ""
    assert len(sources) == (4 if contest else 2) * len(CAN_EXPORT)


@pytest.mark.parametrize("name", ["", "My", "a b", "1a", "x/y", 'x";system("', "a\n", "a" * 61])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ParameterError, match="is no name for a project in C"):
        starting_project(name, "all_gather")
