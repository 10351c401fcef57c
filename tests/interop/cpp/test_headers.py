"""The headers against a checkout of hcomm, made up or real; and each header alone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hccl_interop.cpp.build import INCLUDE
from tests.interop.cpp.kit import compiler

SCRIPT = Path(__file__).parents[3] / "scripts" / "headers.py"

HEADER = """
extern "C" {
/* HcclInAComment(int); */
extern HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) HCOMM_WEAK_SYMBOL;
extern HcclResult HcclGetRankSize(HcclComm comm, uint64_t* rankSize);
extern HcclResult HcclFly(
    HcclComm comm, const char* where, void** wings = nullptr) __attribute__((weak));
int32_t HcommLand(ThreadHandle thread);
}
"""


def compared(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def hcomm(tmp_path: Path) -> Path:
    (tmp_path / "include" / "hccl").mkdir(parents=True)
    (tmp_path / "include" / "hccl" / "made_up.h").write_text(HEADER)
    return tmp_path


def test_missing_and_differing_functions_are_printed(hcomm: Path) -> None:
    done = compared("--against", hcomm)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "missing    hccl/made_up.h: HcclFly(HcclComm, char*, void**)",
        "missing    hccl/made_up.h: HcommLand(ThreadHandle)",
        "differs    hccl/made_up.h: HcclGetRankSize(HcclComm, uint64_t*), "
        "ours has (HcclComm, uint32_t*)",
        "4 functions, 2 missing, 1 that differ",
    ]


def test_only_functions_that_sources_call_count(hcomm: Path, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.mkdir()
    (users / "op.cc").write_text("// HcommLand(t);\nHcclFly(c, a, b); HcclFly(c, a, b);\n")
    done = compared("--against", hcomm, "--used-by", users)
    assert done.stdout.splitlines() == [
        "missing    hccl/made_up.h: HcclFly(HcclComm, char*, void**), called 2 times",
        "1 functions, 1 missing, 0 that differ",
    ]
    (users / "op.cc").write_text("HcclGetRankId(comm, &rank);\n")
    assert compared("--against", hcomm, "--used-by", users).returncode == 0


def test_a_folder_without_headers(tmp_path: Path) -> None:
    done = compared("--against", tmp_path)
    assert (done.returncode, done.stdout) == (
        2,
        f"{tmp_path} has no functions below include and pkg_inc.\n",
    )


@pytest.mark.parametrize(
    "header", sorted(str(p.relative_to(INCLUDE)) for p in INCLUDE.rglob("*.h"))
)
def test_every_header_compiles_alone(header: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.cc"
    source.write_text(f'#include "{header}"\n')
    flags = ["-std=c++14", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(INCLUDE)]
    command = [compiler(), *flags, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.sweep
@pytest.mark.skipif("HCCL_PY_DEMAND_HCCL" not in os.environ, reason="needs a checkout of hccl")
def test_templates_of_hccl_compile() -> None:
    """All AICPU templates of HCCL's source, with its own headers and ours, and none of hcomm's."""
    source = Path(os.environ["HCCL_PY_DEMAND_HCCL"]) / "src"
    templates = sorted(source.rglob("template/aicpu/*.cc"))
    assert templates, f"{source} has no template/aicpu"
    own = {place for path in source.rglob("*.h*") for place in (path.parent, path.parent.parent)}
    folders = [INCLUDE, INCLUDE / "hccl", INCLUDE / "hcomm", INCLUDE / "acl", *sorted(own)]
    release = "-DCANN_VERSION_NUM=90200000"  # 9.2.0: HCCL's build counts releases so
    flags = ["-std=c++17", "-fsyntax-only", "-w", release, *(f"-I{path}" for path in folders)]

    def said(template: Path) -> str:
        command = [compiler(), *flags, str(template)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(templates, pool.map(said, templates), strict=True))
    wrong = {str(path.relative_to(source)): text[:500] for path, text in found.items() if text}
    assert not wrong


@pytest.mark.skipif("HCCL_PY_DEMAND_HCOMM" not in os.environ, reason="needs a checkout of hcomm")
def test_nothing_is_missing_that_hccl_calls() -> None:
    hcomm, hccl = (os.environ[f"HCCL_PY_DEMAND_{name}"] for name in ("HCOMM", "HCCL"))
    done = compared("--against", hcomm, "--used-by", f"{hccl}/src", f"{hccl}/examples")
    assert done.returncode == 0, done.stdout
