"""torch's own tests of backends: what gloo passes, our backend passes."""

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
    "test_all_to_all_full_group",
    "test_all_to_all_group",
    "test_reduce_scatter_tensor_cuda",
}
"""What gloo fails: sizes that differ by rank, and stacked tensors."""


def outcomes(backend: str, *names: str) -> dict[str, str]:
    """Run torch's tests; return each one's outcome, and why it failed."""
    command = [sys.executable, "-m", "tests.torch.torchs_own", backend, *sorted(names)]
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
