"""HCCL's own CCU kernels, recorded through its own host code, where a folder of its source is."""

import os

import pytest

from hccl_interop.cpp import CustomOp, find_project
from hccl_interop.cpp.build import Builder
from scripts.oracle.ccu_kernels import Case, verdict

FOLDER = os.environ.get("HCCL_PY_CCU_FOLDER", "")


@pytest.mark.skipif(not FOLDER, reason="HCCL_PY_CCU_FOLDER names no folder of `oracle build ccu`")
@pytest.mark.parametrize(
    ("case", "algorithm", "kernel"),
    [
        (Case("all_gather", "CCU_MS", 1, 8, 1 << 20), "CcuMSAllGatherSoleMesh", "mesh1d"),
        (
            Case("all_gather", "CCU_SCHED", 8, 1, 1 << 20),
            "CcuSchedAllGatherSoleNHR",
            "nhr1d_mem2mem",
        ),
    ],
)
def test_a_kernel_of_hccl_is_right(case: Case, algorithm: str, kernel: str) -> None:
    shop = CustomOp(find_project(FOLDER), Builder.from_environment())
    name, row = verdict(shop, case)
    assert (name, row["kernels"], row["errors"]) == (
        algorithm,
        [f"ccu_kernel_all_gather_{kernel}"],
        [],
    )
