"""What tests of C++ ops share: the ops beside this file, a cache of builds, recording in one line.

    recording = record("all_gather_mesh", ranks=16)

Builds lie in the user's cache folder beside those of other tests, so a second run compiles nothing.
"""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import Builder
from hccl_interop.cpp.run import RankLimits
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.importers import Imported
from hccl_py.verifier import Options, Report

OPS = Path(__file__).parent / "ops"
DEMANDED = "HCCL_PY_DEMAND_CXX"  # a missing compiler fails tests


def folder_of_builds() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "hccl-py-tests" / "cpp"


def compiler() -> str:
    """The path of g++; without it the test is skipped, or fails where that is demanded."""
    found = shutil.which("g++")
    if found is None:
        why = "no g++ to build C++ ops with"
        if os.environ.get(DEMANDED):
            pytest.fail(why)
        pytest.skip(why)
    return found


def builder(folder: Path | None = None) -> Builder:
    return Builder((compiler(),), folder or folder_of_builds())


@cache
def custom_op(name: str, limits: RankLimits | None = None) -> CustomOp:
    return CustomOp(find_project(str(OPS / name)), builder(), limits or RankLimits())


def record(
    name: str | CustomOp,
    *,
    op: str | None = None,
    ranks: int | None = None,
    servers: int | None = None,
    devices: int | None = None,
    size: int = 1 << 16,
    calls: int = 1,
    topology: str = "ascend950",
    root: int | None = None,
    dtype: str = "fp32",
    limits: RankLimits | None = None,
) -> Imported:
    """Record one of the ops, or one that is given, at hccl_test's data size."""
    shop = name if isinstance(name, CustomOp) else custom_op(name, limits)
    cluster = ClusterSpec(topology, ranks=ranks, servers=servers, devices=devices)
    spec = CallSpec(op or shop.op_name(), bytes=size, root=root, dtype=dtype, cluster=cluster)
    where = spec.topology()
    return shop.record(CppCall(spec.param(where.size), where, calls=calls))


def check(recording: Imported, repeat: int = 2) -> Report:
    return recording.report(Options(repeat=repeat))


def copy_of(name: str, place: Path, **settings: object) -> Path:
    """Copy an op, and what the ops share, with other settings."""
    for folder in ("common", name):
        shutil.copytree(OPS / folder, place / folder, dirs_exist_ok=True)
    said = {"include": ["../common/include"], **settings}
    lines = [f"{key} = {value!r}\n".replace("'", '"') for key, value in said.items()]
    (place / name / "hccl-py.toml").write_text("".join(lines))
    return place / name


def line_of(name: str, file: str, mark: str) -> str:
    """The line of an op's file that ends in a comment with the mark, as findings name it."""
    lines = (OPS / name / file).read_text().splitlines()
    (number,) = [k for k, line in enumerate(lines, 1) if line.endswith(f"// {mark}")]
    return f"{OPS / name / file}:{number}"
