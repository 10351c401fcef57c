"""Executors that nobody wrote: random code records the same in batches and alone."""

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.topology import Topology
from hccl_py.topology.presets import PRESETS
from tests.recording import op_of, recorded, same_tasks

Expression = Callable[[Any], Any]
Statement = Callable[[Any, Any], None]


def arithmetic(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Combine expressions of a rank."""
    operators = st.sampled_from([operator.add, operator.sub, operator.mul, operator.xor, min, max])
    positive = st.integers(1, 5)
    return st.one_of(
        st.builds(lambda f, a, b: lambda r: f(a(r), b(r)), operators, children, children),
        st.builds(lambda a, k: lambda r: a(r) % k, children, positive),
        st.builds(lambda a, k: lambda r: a(r) // k, children, positive),
        st.builds(lambda a, k: lambda r: (a(r) + k) % r.size, children, st.integers(-9, 9)),
    )


LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.just(lambda r: r.id),
    st.just(lambda r: r.level0.id),
    st.just(lambda r: r.level0.size),
    st.just(lambda r: r.level1.id),
    st.integers(-3, 6).map(lambda k: lambda r: k),
)
EXPRESSIONS = st.recursive(LEAVES, arithmetic, max_leaves=5)
COMPARISONS = st.sampled_from([operator.lt, operator.eq, operator.ge, operator.ne])


def copy(a: Expression, b: Expression) -> Statement:
    """Copy between chunks that the rank computes."""

    def run(rank: Any, chunks: Any) -> None:
        rank.main.copy(chunks[a(rank) % len(chunks)], chunks[b(rank) % len(chunks)])

    return run


def shift(distance: int, a: Expression) -> Statement:
    """Exchange with the ranks at a distance; both ends agree on it, the chunks may differ."""

    def run(rank: Any, chunks: Any) -> None:
        to, frm = (rank.id + distance) % rank.size, (rank.id - distance) % rank.size
        if distance % rank.size:
            place = chunks[a(rank) % len(chunks)].head(64)
            exchange(rank.main, rank.flat[to], rank.flat[frm], place, place)

    return run


def branch(
    compare: Any, a: Expression, b: Expression, then: Statement, other: Statement
) -> Statement:
    """Branch on a comparison of expressions."""
    return lambda rank, chunks: (then if compare(a(rank), b(rank)) else other)(rank, chunks)


def repeat(a: Expression, body: Statement) -> Statement:
    """Repeat as often as an expression says."""

    def run(rank: Any, chunks: Any) -> None:
        for _ in range(a(rank) % 3):
            body(rank, chunks)

    return run


def compound(children: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    """Nest statements."""
    return st.one_of(
        st.builds(branch, COMPARISONS, EXPRESSIONS, EXPRESSIONS, children, children),
        st.builds(repeat, EXPRESSIONS, children),
    )


SIMPLE = st.builds(copy, EXPRESSIONS, EXPRESSIONS)
BODIES = st.lists(
    st.one_of(
        st.recursive(SIMPLE, compound, max_leaves=4),
        st.builds(shift, st.integers(1, 5), EXPRESSIONS),
    ),
    max_size=6,
)


@given(body=BODIES, servers=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
def test_batches_record_what_single_ranks_record(
    body: list[Statement], servers: tuple[int, ...]
) -> None:
    class Random:
        op = "all_gather"
        algorithm = "level0:mesh"

        def suits(self, op: Any, topology: Any) -> bool:
            return True

        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest((PlaneRequest("flat", "mesh"),))

        def orchestrate(self, op: Any, rank: Any) -> None:
            chunks = rank.ccl_in.head(128 * 5).split(5)
            for statement in body:
                statement(rank, chunks)

    topology = Topology(PRESETS["mesh"], servers)
    together = recorded(Random, op_of("all_gather", 8), topology)
    alone = recorded(Random, op_of("all_gather", 8), topology, by_rank=True)
    assert together.digest == alone.digest
    assert same_tasks(together, alone)
    assert len(together.batches) <= topology.size
    together.linked.check(together)
