"""AHC and AHC_BROKE over superpods of different sizes, held against a model of HCCL's templates."""

from dataclasses import replace
from itertools import accumulate

import pytest

from hccl_executors.levels import LEVELS
from hccl_executors.templates.ahc import cut_groups
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity.ahc import TEMPLATES, split
from tests.executors.fidelity.recorded import events_of
from tests.recording import op_of, recorded

A3 = PRESETS["atlas-900-a3"]
PODS = [(2,), (5,), (1, 1), (2, 3), (4, 4), (1, 3), (2, 5), (3, 4, 5), (2, 2, 2, 2), (3, 4, 5, 4)]
"""Servers of every superpod, of one device each: alike, uneven, and such as HCCL cuts."""

MORE_PODS = [
    *((n,) for n in range(3, 21, 4)),
    *((2, 4), (4, 2), (3, 5), (5, 3, 4), (8, 12), (7, 8), (7, 13), (9, 11), (3, 7, 4)),
    *((4, 5, 6, 7), (2, 3, 3, 2, 3), (3, 3, 4, 5, 5), (1, 1, 1, 1, 1, 1, 1), (5, 4, 4, 4, 3)),
]

COUNTS = [1, 37, 70_001, 3_000_017]
"""Elements of 4 bytes: one, some of one slice, of a few slices, and of slices of no small data."""


def check(pods: tuple[int, ...], word: str, count: int, *, disabled: bool = False) -> None:
    """Compare all that every rank does."""
    size = sum(pods)
    call = replace(op_of("all_reduce", count), level1=word)
    topology = Topology(A3, (1,) * size, pods, inter_hccs=not disabled)
    program = recorded("AllReduceRingFor91093Executor", call, topology, 1 << 30)
    pod_of = [pod for pod, servers in enumerate(pods) for _ in range(servers)]
    starts = [0, *accumulate(pods)]
    groups = split([[*range(a, a + n)] for a, n in zip(starts, pods, strict=False)])
    for rank in range(size):
        model = TEMPLATES[word](rank, groups, count, 4)
        hccl = model.run(lambda ranks: disabled or len({pod_of[r] for r in ranks}) > 1)
        assert events_of(program, rank).get(0, []) == hccl, f"rank {rank} of {pods}, {count}"


@pytest.mark.parametrize("word", TEMPLATES)
@pytest.mark.parametrize("pods", PODS, ids=str)
def test_superpods(pods: tuple[int, ...], word: str) -> None:
    assert LEVELS["all_reduce"][word].fidelity.is_same
    for count in COUNTS:
        check(pods, word, count)


@pytest.mark.sweep
@pytest.mark.parametrize("word", TEMPLATES)
@pytest.mark.parametrize("pods", MORE_PODS, ids=str)
def test_more_superpods(pods: tuple[int, ...], word: str) -> None:
    for count in (*COUNTS, 33_000, 1_000_000):
        check(pods, word, count)


@pytest.mark.parametrize("word", TEMPLATES)
def test_servers_that_only_rdma_joins(word: str) -> None:
    for pods in ((2, 3), (3, 4, 5, 4)):
        for count in COUNTS[1:]:
            check(pods, word, count, disabled=True)


def test_superpods_are_cut_as_hccl_cuts_them() -> None:
    assert [len(group) for group in split([[0, 1], [2, 3, 4, 5, 6]])] == [2, 2, 3]
    for pods in (*PODS, *MORE_PODS):
        groups = split([[0] * servers for servers in pods])
        assert cut_groups(pods) == tuple(map(len, groups))
