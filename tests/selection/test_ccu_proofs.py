"""Explanations of calls that HCCL runs on the CCU: the kernels, and what is proved of them."""

import json
from importlib.resources import files

import pytest

from hccl_py.cli import main
from hccl_py.selection.ccu_proofs import proof_of_ccu


@pytest.mark.parametrize(
    ("op", "mode", "ranks", "wanted"),
    [
        ("all_gather", "CCU_SCHED", "8", "ccu_kernel_all_gather_mesh1d_mem2mem"),
        ("all_gather", "CCU_MS", "8", "ccu_kernel_all_gather_mesh1d"),
        ("all_reduce", "CCU_SCHED", "8", "ccu_kernel_all_reduce_mesh1d_mem2mem"),
        ("all_to_all", "CCU_SCHED", "8", "ccu_kernel_all_to_all_mesh1d"),
    ],
)
def test_the_kernels_that_hccl_takes(
    op: str,
    mode: str,
    ranks: str,
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HCCL_OP_EXPANSION_MODE", mode)
    assert main(["explain", op, "--topology", "ascend950", "--ranks", ranks]) == 0
    lines = capsys.readouterr().out.partition("its kernels")[2].splitlines()
    assert wanted in lines[0]
    assert ("WRONG_TOKEN" in " ".join(lines[:4])) == (op == "all_to_all")


def test_other_engines_have_no_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "all_gather", "--topology", "ascend950", "--ranks", "8"]) == 0
    assert "its kernels" not in capsys.readouterr().out


def test_a_proof_states_ranks_size_and_source() -> None:
    kernels, what = proof_of_ccu("CcuSchedAllGatherSoleNHR")
    assert kernels == "same (source): ccu_kernel_all_gather_nhr1d_mem2mem"
    assert "8 ranks (8 servers of one) and 1024 KiB, verified; hicann/hccl@09300b7" in what


def test_what_hccls_host_code_refuses_is_told_in_its_words() -> None:
    (refused,) = proof_of_ccu("CcuReduceNHR1DMem2Mem")
    assert refused.endswith("Fail to find executor for algName[CcuReduceNHR1DMem2Mem]")


def test_no_row_and_no_kernel_is_without_a_verdict() -> None:
    file = files("hccl_py.selection") / "tables" / "hccl_2026_08" / "ccu_kernels.json"
    found = json.loads(file.read_text("utf-8"))
    rows = found["algorithms"].values()
    assert all(row["kernels"] or row["refused"] for row in rows)
    recorded = {kernel for row in rows for kernel in row["kernels"]}
    assert len(recorded | found["others"].keys()) == 46
    assert not recorded & found["others"].keys()
