"""Rounds of executors that run two templates at a time, and the split between these."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hccl_executors.aicpu import parallel
from hccl_executors.aicpu.chunk_steps import PAGE
from hccl_executors.aicpu.two_axes import CallShape, TwoAxes, eighths

EXECUTORS: tuple[type[TwoAxes], ...] = (
    parallel.AicpuAllGatherParallelMeshNHR,
    parallel.AicpuAllReduceParallelMeshNHR,
    parallel.AicpuBroadcastParallelMeshNHR,
    parallel.AicpuReduceParallelMeshNHR,
    parallel.AicpuReduceScatterParallelMeshNHR,
    parallel.AicpuScatterParallelMeshNHR,
)

shapes = st.builds(
    CallShape,
    n0=st.integers(2, 8),
    n1=st.integers(2, 8),
    unit=st.sampled_from((1, 2, 4, 8)),
    buffer=st.integers(1, 400).map(lambda mb: mb << 20),
    elements=st.integers(0, 1 << 30),
)


@pytest.mark.parametrize("executor", EXECUTORS)
@given(shape=shapes)
def test_rounds_take_all_elements_and_fit(executor: type[TwoAxes], shape: CallShape) -> None:
    rounds, most = executor().schedule(shape), executor().most(shape)
    assert sum(map(sum, rounds)) == shape.elements
    assert all(0 < sum(parts) <= most for parts in rounds)
    assert all(min(parts) >= 0 for parts in rounds)


@given(shape=shapes)
@example(shape=CallShape(2, 6, unit=1, buffer=1 << 20, elements=131073))
def test_rounds_are_of_whole_pages_before_the_last_that_full_ones_would_take(
    shape: CallShape,
) -> None:
    """What pages leave over takes another round, as in the example: 1 byte behind three rounds."""
    executor = parallel.AicpuReduceScatterParallelMeshNHR()
    full = -(-shape.elements // executor.most(shape))
    for parts in executor.schedule(shape)[: max(full - 1, 0)]:
        assert not any(part * shape.unit % PAGE for part in parts) or sum(parts) * shape.unit < PAGE


@pytest.mark.parametrize(
    ("n0", "n1", "share"),
    [(2, 2, 4 / 8), (4, 2, 5 / 8), (8, 2, 6 / 8), (8, 4, 7 / 8), (2, 4, 5 / 8)],
)
def test_the_mesh_takes_more_the_larger_servers_are(n0: int, n1: int, share: float) -> None:
    """By hand from HCCL's template_utils.cc: clos / (clos + mesh) to the nearest eighth."""
    shape = CallShape(n0, n1, 4, 200 << 20, 1000)
    assert parallel.AicpuReduceScatterParallelMeshNHR().ratio(shape) == share
    assert parallel.AicpuScatterParallelMeshNHR().ratio(shape) == 0.5


def test_shares_stay_between_one_and_seven_eighths() -> None:
    assert [eighths(ratio) for ratio in (0.0, 0.1, 0.5, 0.99)] == [1 / 8, 1 / 8, 4 / 8, 7 / 8]
