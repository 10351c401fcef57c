"""Tables with one number per rank: read in one batch, the same as each rank by itself reads."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.errors import OrchestrationError
from hccl_py.plugins.executor import ResourceRequest
from tests.orchestration.authors import MeshAuthor
from tests.recording import op_of, recorded


def reading(table: Any, *, by_own: bool) -> type[MeshAuthor]:
    """Return an executor whose ranks copy the chunk that a table names."""

    class Reads(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest()

        def orchestrate(self, op: Any, rank: Any) -> None:
            chosen = rank.own(table) if by_own else table[int(rank.id)]
            rank.main.copy(rank.user_out[chosen], rank.user_in)

    return Reads


@settings(max_examples=30)
@given(st.permutations(range(6)))
def test_a_table_is_read_in_one_batch(table: list[int]) -> None:
    whole = recorded(reading(table, by_own=True), op_of("all_gather", 100), 6)
    apart = recorded(reading(table, by_own=False), op_of("all_gather", 100), 6)
    assert len(whole.batches) == 1
    assert len(apart.batches) == 6
    assert whole.digest == apart.digest


@pytest.mark.parametrize("table", [[0, 1], np.arange(7), []])
def test_a_table_of_another_length_is_refused(table: Any) -> None:
    with pytest.raises(OrchestrationError, match=f"{len(table)} numbers for 6 ranks"):
        recorded(reading(table, by_own=True), op_of("all_gather", 100), 6)
