"""The headers against a checkout of hcomm, made up or real; and each header alone."""

import os
import subprocess
import sys
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


@pytest.mark.skipif("HCCL_PY_DEMAND_HCOMM" not in os.environ, reason="needs a checkout of hcomm")
def test_nothing_is_missing_that_hccl_calls() -> None:
    hcomm, hccl = (os.environ[f"HCCL_PY_DEMAND_{name}"] for name in ("HCOMM", "HCCL"))
    done = compared("--against", hcomm, "--used-by", f"{hccl}/src", f"{hccl}/examples")
    assert done.returncode == 0, done.stdout
