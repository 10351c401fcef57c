"""hypothesis strategies: topologies, legal calls, interleavings.

    from hypothesis import given
    from hccl_py.testing import strategies as hccl

    @given(call=hccl.calls(MyExecutor))
    def test_it_records(call): ...

Everything shrinks towards small: one server with few ranks, few elements, and an interleaving in
which the first stream that can go on does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import DrawFn, SearchStrategy

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.numerics.bit_witness import tricky
from hccl_py.operators import make_operator
from hccl_py.plugins.executor import Executor, declarations_of
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.testing.calls import fitting, suits
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.topology.presets import SWEPT
from hccl_py.verifier.sweeps.cases import SMALL_CCL, Case

ALIGN = 128
"""Bytes to whose multiples HCCL cuts slices."""


@st.composite
def topologies(
    draw: DrawFn,
    *,
    presets: Sequence[str] = SWEPT,
    max_ranks: int = 12,
    max_servers: int = 4,
    uneven: bool = True,
) -> Topology:
    """Draw a preset and its servers: one, several alike, or (`uneven`) of different sizes."""
    product = PRESETS[draw(st.sampled_from(presets))]
    most = min(max_ranks, product.devices_per_server)
    shapes: list[SearchStrategy[tuple[int, ...]]] = [
        st.integers(1, most).map(lambda devices: (devices,))
    ]
    if min(max_ranks, max_servers) > 1:
        servers = draw(st.integers(2, min(max_ranks, max_servers)))
        each = st.integers(1, max(1, min(max_ranks // servers, most)))
        shapes.append(each.map(lambda devices: (devices,) * servers))
        if uneven:
            shapes.append(st.tuples(*[each] * servers))
    return Topology(product, draw(st.one_of(shapes)))


def counts(limit: int = 4000) -> SearchStrategy[int]:
    """Draw counts from 0 to `limit`: any, and those around the slices' alignment."""
    blocks = st.builds(
        lambda blocks, beside: min(max(blocks * ALIGN // 4 + beside, 0), limit),
        st.integers(0, limit * 4 // ALIGN),
        st.integers(-1, 1),
    )
    return st.one_of(st.integers(0, limit), blocks)


def v_counts(ranks: int, limit: int = 1000) -> SearchStrategy[tuple[int, ...]]:
    """Draw counts per rank for the v-ops: zeros among them, and all elements at one rank."""
    any_ = st.lists(st.integers(0, limit), min_size=ranks, max_size=ranks).map(tuple)
    lone = st.builds(
        lambda rank, count: tuple(count if r == rank else 0 for r in range(ranks)),
        st.integers(0, ranks - 1),
        st.integers(1, limit),
    )
    sparse = st.lists(
        st.one_of(st.just(0), st.integers(1, limit)), min_size=ranks, max_size=ranks
    ).map(tuple)
    return st.one_of(any_, lone, sparse)


def reduce_ops() -> SearchStrategy[ReduceOp]:
    """Draw a reduce op."""
    return st.sampled_from(ReduceOp)


def dtypes(op: str, topology: Topology | None = None) -> SearchStrategy[DataType]:
    """Draw a data type that the op takes, with every reduce op that it knows, on a topology's
    product.
    """
    topology = topology_of(1) if topology is None else topology
    legal = {(found.dtype, found.reduce) for found in fitting(op, topology)}
    reduces = {reduce for _, reduce in legal}
    return st.sampled_from(
        [dtype for dtype in DataType if all((dtype, reduce) in legal for reduce in reduces)]
    )


@st.composite
def ops(
    draw: DrawFn,
    what: str | Executor | type[Executor],
    topology: Topology | None = None,
    *,
    count: SearchStrategy[int] | None = None,
) -> OpParam:
    """Draw legal parameters of an op, or those that suit an executor, on a topology of 4 ranks."""
    topology = topology_of(4) if topology is None else topology
    options = fitting(what, topology)
    if not options:
        raise InvalidArgument(f"{what} takes no call on {topology!r}")
    op = draw(st.sampled_from(options))
    fill = draw(st.sampled_from(make_operator(op.name).variants()))
    drawn = (counts() if count is None else count).map(
        lambda number: fill(replace(op, count=number), topology.size)
    )
    if op.root is not None:
        root = draw(st.integers(0, topology.size - 1))
        drawn = drawn.map(lambda op: replace(op, root=root))
    return draw(drawn.filter(lambda op: isinstance(what, str) or suits(what, op, topology)))


@st.composite
def calls(
    draw: DrawFn,
    executor: Executor | type[Executor],
    *,
    topology: SearchStrategy[Topology] | None = None,
    count: SearchStrategy[int] | None = None,
    ccl_bytes: Sequence[int] = (1 << 20, SMALL_CCL),
) -> Case:
    """Draw a call that suits an executor: `topology`, `op` and `ccl_bytes`.

    The smaller CCL buffers make it take several rounds.
    """
    if topology is None:
        place = draw(topologies())
        if not fitting(executor, place):
            place = draw(st.sampled_from(_places(executor)))
    else:
        place = draw(topology.filter(lambda drawn: bool(fitting(executor, drawn))))
    op = draw(ops(executor, place, count=count))
    return Case(place, op, draw(st.sampled_from(ccl_bytes)))


def _places(executor: Executor | type[Executor]) -> list[Topology]:
    """Return small topologies that suit an executor, for one that refuses most topologies."""
    cluster = declarations_of(executor).cluster
    small = [topology_of(preset=cluster)] if cluster else _small()
    found = [place for place in small if fitting(executor, place)]
    if not found:
        raise InvalidArgument(f"{executor} takes no call on {len(small)} small topologies")
    return found


def _small() -> list[Topology]:
    """Return small topologies of the products that sweeps take."""
    products = [PRESETS[name] for name in SWEPT]
    small = [
        Topology(product, servers)
        for servers in ((1,), (2,), (4,), (8,), (1, 1), (2, 2), (3, 3))
        for product in products
        if max(servers) <= product.devices_per_server
    ]
    pods = [product for product in products if product.superpod_servers]
    return small + [Topology(product, (2, 2), (1, 1)) for product in pods]


def sum_inputs(dtype: DataType, reduce: ReduceOp = ReduceOp.SUM) -> SearchStrategy[float]:
    """Values that tell orders of a reduction apart, in a data type of floats: large ones that
    cancel, small ones that vanish beside them, halves of the last place, denormals, zeros of both
    signs, infinities and NaN.
    """
    special = [*tricky(dtype, reduce), 0.0, -0.0, math.inf, -math.inf, math.nan]
    return st.one_of(st.sampled_from(special), st.floats(-4.0, 4.0, width=16))


@st.composite
def schedules(
    draw: DrawFn,
    *,
    length: int = 200,
    adversaries: Sequence[Adversary] = tuple(Adversary),
) -> Schedule:
    """Draw an interleaving by its first choices; a failing one shrinks to the few that matter.

    Replay it by the printed schedule: `Schedule(choices=(0, 3))`.
    """
    adversary = draw(st.sampled_from(adversaries))
    made = [draw(st.integers(0, 15)) for _ in range(draw(st.integers(0, length)))]
    while made and made[-1] == 0:  # what comes after the list is 0 anyway
        made.pop()
    return Schedule(adversary=adversary, choices=tuple(made))
