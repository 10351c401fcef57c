"""HCCL's own CCU kernels, recorded through its own host code, where a folder of its source is."""

import os

import pytest

from hccl_interop.cpp import CustomOp, find_project
from hccl_interop.cpp.build import Builder
from scripts.oracle.ccu_kernels import Case, verdict

FOLDER = os.environ.get("ORACLE_CCU_FOLDER", "")
MIB = 1 << 20


@pytest.mark.skipif(not FOLDER, reason="ORACLE_CCU_FOLDER names no folder of `oracle build ccu`")
@pytest.mark.parametrize(
    ("case", "kernels", "errors"),
    [
        (Case("all_gather", "CCU_MS", "one server of 8", MIB), ["all_gather_mesh1d"], []),
        (
            Case("all_gather", "CCU_SCHED", "8 servers of one", MIB),
            ["all_gather_nhr1d_mem2mem"],
            [],
        ),
        (
            Case("all_gather", "CCU_SCHED", "ascend950-two-dies", MIB),
            ["all_gather_2dies_mesh1d_mem2mem"],
            [],
        ),
        (
            Case("all_reduce", "CCU_SCHED", "ascend950-ubx-board", MIB),
            ["all_reduce_mesh1d_mem2mem", "all_reduce_nhr_mem2mem_1D_multi_jetty"],
            [],
        ),
        (
            Case("all_to_all", "CCU_SCHED", "one server of 8", MIB),
            ["all_to_all_mesh1d"],
            ["WRONG_TOKEN"],
        ),
    ],
)
def test_a_kernel_of_hccl(case: Case, kernels: list[str], errors: list[str]) -> None:
    shop = CustomOp(find_project(FOLDER), Builder.from_environment())
    row = verdict(shop, case)
    assert (row["kernels"], row["errors"]) == ([f"ccu_kernel_{name}" for name in kernels], errors)
