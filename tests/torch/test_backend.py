"""torch.distributed over the backend `hccl_py`, in four processes."""

from __future__ import annotations

import pytest
import torch

from tests.torch import programs
from tests.torch.conftest import Ranks

TAKES_EVENTS = pytest.mark.skipif(
    not hasattr(torch.cpu.Stream, "record_event"),
    reason="FSDP2 records events on streams, which this torch has for GPUs only",
)
REDUCE_OPS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


@pytest.mark.parametrize("op", REDUCE_OPS)
def test_reduce_ops_in_all_types(ranks: Ranks, op: str) -> None:
    ranks.run(programs.reduces, op)


@pytest.mark.parametrize(
    "program",
    [
        programs.moves,
        programs.views,
        programs.uneven,
        programs.into_tensors,
        programs.sparse,
        programs.coalesced,
        programs.objects,
        programs.traced,
        programs.groups,
        programs.in_order,
        programs.refused,
        programs.messages,
        programs.tags,
        programs.any_source,
        programs.functional,
        programs.compiled,
        programs.data_parallel,
        pytest.param(programs.fully_sharded, marks=TAKES_EVENTS),
        programs.tensor_parallel,
        programs.pipelined,
        programs.meshes,
        programs.checkpoints,
    ],
    ids=lambda program: program.__name__,
)
def test_program(ranks: Ranks, program: object) -> None:
    ranks.run(program)  # type: ignore[arg-type]
