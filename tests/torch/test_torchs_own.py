"""torch's own tests of backends: what gloo passes, our backend passes. And the script that runs
torch-npu's edition of torch's suites, on a suite of two ranks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOLD_APART = {
    "test_all_reduce_sum",
    "test_barrier_timeout_full_group",
    "test_ddp_create_graph",
    "test_send_recv_any_source",
    "test_sparse_all_reduce_sum",
}
"""What a backend easily gets wrong; the long run has them all."""

RESERVED = {
    "test_monitored_barrier_allreduce_hang",
    "test_monitored_barrier_allreduce_hang_wait_all_ranks",
    "test_monitored_barrier_failure_order",
    "test_monitored_barrier_gloo",
    "test_monitored_barrier_gloo_rank_0_timeout",
    "test_monitored_barrier_gloo_subgroup",
    "test_monitored_barrier_wait_all_ranks",
}
"""torch has monitored_barrier for gloo only."""

MORE_THAN_GLOO = {
    "test_all_gather_into_stack_tensor_cuda",
    "test_all_gather_v_cuda",
    "test_all_to_all",
    "test_all_to_all_complex",
    "test_all_to_all_cuda",
    "test_all_to_all_cuda_complex",
    "test_all_to_all_full_group",
    "test_all_to_all_full_group_cuda",
    "test_all_to_all_group",
    "test_all_to_all_group_cuda",
    "test_reduce_scatter_tensor_cuda",
}
"""What gloo fails: sizes that differ by rank, and stacked tensors."""


SUITE = """
import unittest
import torch
import torch.distributed as dist
import torch_npu
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch_npu.testing.common_distributed import skipIfUnsupportMultiNPU, with_comms
from torch_npu.testing._internal.common_dtensor import NPUDTensorTestBase


class Case(NPUDTensorTestBase):
    world_size = 2

    @with_comms
    def test_a_right_sum(self):
        mesh = init_device_mesh("npu", (2,))
        rows = distribute_tensor(torch.ones(4, 2).npu(), mesh, [Shard(0)])
        self.assertEqual(rows.redistribute(placements=[Replicate()]).to_local(), torch.ones(4, 2))
        self.assertEqual(dist.get_backend(), "BACKEND")

    @with_comms
    def test_a_wrong_sum(self):
        self.assertEqual(self.rank, 0)

    @skipIfUnsupportMultiNPU(8)
    @with_comms
    def test_on_eight(self):
        raise NotImplementedError


class InOneProcess(unittest.TestCase):
    def test_nothing(self):
        raise NotImplementedError
"""


def outcomes(backend: str, *names: str) -> dict[str, str]:
    """Run torch's tests; return each one's outcome, and why it failed."""
    return run("torchs_own", backend, *sorted(names))


def run(script: str, *arguments: str) -> dict[str, str]:
    command = [sys.executable, "-m", f"tests.torch.{script}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    lines = (line.split(" ", 2) for line in done.stdout.splitlines())
    return {
        line[1]: f"{line[0]} {line[2]}".strip()
        for line in lines
        if len(line) == 3 and line[0] in ("ok", "skip", "FAIL")
    }


def test_what_a_backend_easily_gets_wrong() -> None:
    assert outcomes("hccl_py", *TOLD_APART) == dict.fromkeys(TOLD_APART, "ok")


@pytest.mark.long
def test_what_gloo_passes() -> None:
    passed = {name for name, outcome in outcomes("gloo").items() if outcome == "ok"}
    assert len(passed) > 150
    ours = outcomes("hccl_py", *(passed - RESERVED | MORE_THAN_GLOO))
    assert {name: outcome for name, outcome in ours.items() if outcome != "ok"} == {}


def test_suites_of_npus_on_cpu_tensors(tmp_path: Path) -> None:
    suite = tmp_path / "test/distributed/_tensor/test_of_two.py"
    suite.parent.mkdir(parents=True)
    suite.write_text(SUITE.replace("BACKEND", "hccl_py"))
    right, wrong, eight = (
        f"_tensor/test_of_two.py::Case.test_{name}"
        for name in ("a_right_sum", "a_wrong_sum", "on_eight")
    )
    found = run("npus_own", str(tmp_path), "hccl_py")
    assert found.keys() == {right, wrong, eight}
    assert found[right] == "ok"
    assert found[wrong].startswith("FAIL AssertionError")
    assert found[eight] == "skip needs 8 devices"
