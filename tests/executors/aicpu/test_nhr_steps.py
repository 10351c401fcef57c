"""NHR among any number of ranks: what steps reduce, gather and need channels for."""

from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.aicpu import nhr_steps

ranks = st.integers(1, 40)


@given(ranks)
def test_reduce_steps_bring_every_input_to_the_owner_once(n: int) -> None:
    held = [[{rank} for _ in range(n)] for rank in range(n)]  # by rank and slice: whose inputs
    for steps in zip(*(list(nhr_steps.reduce_steps(me, n)) for me in range(n)), strict=True):
        sent = [(s.to, i, held[me][i]) for me, s in enumerate(steps) for i in s.sent]
        for to, i, inputs in [(to, i, set(inputs)) for to, i, inputs in sent]:
            assert not held[to][i] & inputs
            held[to][i] |= inputs
    assert all(held[rank][rank] == set(range(n)) for rank in range(n))


@given(ranks)
def test_gather_steps_bring_every_slice_to_all(n: int) -> None:
    held = [{rank} for rank in range(n)]
    for steps in zip(*(list(nhr_steps.gather_steps(me, n)) for me in range(n)), strict=True):
        for me, step in enumerate(steps):
            assert set(step.sent) <= held[me]
        for me, step in enumerate(steps):
            assert set(step.sent) == set(steps[step.to].received)
            assert steps[step.to].source == me
        for me, step in enumerate(steps):
            held[me] |= set(step.received)
    assert all(slices == set(range(n)) for slices in held)


@given(ranks)
def test_distances_reach_all_partners(n: int) -> None:
    found = set(nhr_steps.NhrTemplate().distances(n))
    for steps in (nhr_steps.reduce_steps, nhr_steps.gather_steps):
        assert {peer for s in steps(0, n) for peer in (s.to, s.source)} <= found
