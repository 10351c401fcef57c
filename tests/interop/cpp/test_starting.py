"""Projects to start from: each builds without a warning, and is right as it is, twice in a row."""

import subprocess
from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import INCLUDE
from hccl_interop.cpp.export import CAN_EXPORT
from hccl_interop.cpp.export.starting import starting_project
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
    for calls in (1, 2):
        report = check(shop.record(CppCall(param, topology, calls=calls)))
        assert not list(report.every()), format_verdict(report)
        assert report.cases == 1


def test_nothing_warns(tmp_path: Path) -> None:
    for op in CAN_EXPORT:
        write_project(starting_project("mine", op), tmp_path / op)
    sources = [str(path) for path in sorted(tmp_path.rglob("*.cc"))]
    paths = ["-I", str(tmp_path / "reduce" / "include"), "-I", str(INCLUDE)]
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run([compiler(), *flags, *paths, *sources], capture_output=True, text=True)
    assert done.stderr == ""
    assert len(sources) == 2 * len(CAN_EXPORT)


@pytest.mark.parametrize("name", ["", "My", "a b", "1a", "x/y", 'x";system("', "a\n", "a" * 61])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ParameterError, match="is no name for a project in C"):
        starting_project(name, "all_gather")
