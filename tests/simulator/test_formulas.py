"""Uncontended times are the closed formulas of the algorithms, as docs/algorithms/ states them.

A formula counts α for every step of the longest chain. An exchange pays it once, on the way of the
data: over RDMA on the DataSignal behind it, so that every chain takes the formula's time. Over SDMA
it is paid on the Ack that lets the data go: so a chain takes the formula's time where the Ack is
posted last, as where all ranks do the same, or where what the Ack waits for is the chain itself.
Elsewhere the Ack may come while the chain is busy, so that a part of α is hidden. Such chains are
never above their formula.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hccl_executors.levels import LEVELS
from hccl_executors.templates.nb import SMALL_SLICE, nb_tree_limit
from hccl_executors.templates.nhr import ONE_SHOT_ALL_REDUCE, ONE_SHOT_BROADCAST
from hccl_py.enums import Mode
from hccl_py.plugins.executor import Executor, ops_of, with_levels
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_batches, simulate_tasks
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier.sweeps.rounds import elements_per_round
from tests.recording import BY_NAME, filled, op_of, recorded

COST = CostModel.of("study").formula()
ALPHA, GAMMA = COST.hccs.alpha_us, COST.gamma_us
CCL_BYTES = 200 << 20
ALIGN = 128
EXACT = 1e-9
RANKS, FILLS = st.integers(2, 64), st.floats(0, 1)
FEW_TASKS = 3000
"""Tasks up to which a program is expanded, too."""

_COMM = {
    "all_gather": "AllGatherComm",
    "reduce_scatter": "ReduceScatterComm",
    "all_reduce": "AllReduceComm",
    "broadcast": "BroadCastComm",
    "reduce": "ReduceComm",
    "scatter": "ScatterCommExecutor",
    "gather": "GatherComm",
}
FLAT = {op: type(name, (BY_NAME[name],), {"ringed": ()}) for op, name in _COMM.items()}
"""Over all ranks, with every word as it is between servers."""
SLOTTED = ("all_gather", "reduce_scatter", "scatter", "gather", "all_to_all")
"""Ops whose bytes are those of all ranks' slots."""


class Size(NamedTuple):
    """p ranks, n bytes, β, and the α of a step: with γ, what formulas are made of."""

    p: int
    n: int
    beta: float
    alpha: float = ALPHA

    @property
    def steps(self) -> int:
        return (self.p - 1).bit_length()

    @property
    def slot(self) -> float:
        return self.n / self.p

    @property
    def moved(self) -> float:
        return (self.n - self.slot) * self.beta

    @property
    def reduced(self) -> float:
        return (self.n - self.slot) * GAMMA


Formula = Callable[[Size], float]


def in_steps(count: Callable[[Size], int]) -> dict[str, Formula]:
    """Return the formulas of algorithms that move (p - 1)/p·n in so many steps."""

    def once(s: Size) -> float:
        return count(s) * s.alpha + s.moved

    return {
        "all_gather": once,
        "scatter": once,
        "gather": once,
        "reduce_scatter": lambda s: once(s) + s.reduced,
        "all_reduce": lambda s: 2 * once(s) + s.reduced,
        "reduce": lambda s: 2 * once(s) + s.reduced,
        "broadcast": lambda s: 2 * once(s),
    }


def over_tree(s: Size) -> float:
    """Return the time of whole buffers in ⌈log2 p⌉ steps."""
    return s.steps * (s.alpha + s.n * s.beta)


def rhd_reduce_scatter(s: Size, gamma: float = GAMMA) -> float:
    """Return the time where p is no power of two; without γ that of all-gather.

    The pairs are numbered first, as HCCL does it, so the first half of the block has more slices:
    m + min(p - b, m) of them move at distance m. HCCL's documents count ⌈p/2^i⌉, as if pairs were
    spread evenly, which is up to 15 % less.
    """
    halvings = s.steps - 1
    pairs = s.p - (1 << halvings)
    moved = s.n + s.slot * sum(m + min(pairs, m) for m in (1 << i for i in range(halvings)))
    return (halvings + 2) * s.alpha + moved * (s.beta + gamma) + s.slot * s.beta


def even(op: str, s: Size) -> float:
    """Return the formula of HCCL's documents: pairs spread evenly."""
    gamma = GAMMA if op == "reduce_scatter" else 0.0
    moved = s.n + s.slot * sum(-(-s.p >> i) for i in range(1, s.steps))
    return (s.steps + 1) * s.alpha + moved * (s.beta + gamma) + s.slot * s.beta


def rhd_reduce(s: Size) -> float:
    halvings = s.steps - 1
    share = 1 - 1 / (1 << halvings)
    moved, reduced = (2 * share + 1) * s.n * s.beta, (share + 1) * s.n * GAMMA
    return (2 * halvings + 1) * s.alpha + moved + reduced


def nhr_broadcast(s: Size) -> float:
    return over_tree(s) if s.n <= ONE_SHOT_BROADCAST else 2 * (s.steps * s.alpha + s.moved)


def nb_broadcast(s: Size) -> float:
    is_tree = s.p == 2 or s.n < nb_tree_limit(s.p, 20.0)
    return over_tree(s) if is_tree else 3 * s.steps * s.alpha + 2 * s.moved


def nb_broadcast_over_sdma(s: Size) -> float:
    is_tree = s.p == 2 or s.n < nb_tree_limit(s.p, 20.0)
    return nb_broadcast(s) + (0 if is_tree else 1 - s.steps) * s.alpha


def nb_all_reduce(s: Size) -> float:
    """Of one slice, or of p."""
    if s.n <= SMALL_SLICE:
        return s.steps * (2 * s.alpha + s.n * (2 * s.beta + GAMMA))
    return 2 * (s.steps * s.alpha + s.moved) + s.reduced


LOGARITHMIC = in_steps(lambda s: s.steps)
RING = in_steps(lambda s: s.p) | {
    "all_reduce": lambda s: (2 * s.p - 1) * s.alpha + 2 * s.moved + s.reduced,
    "broadcast": lambda s: (s.p + 1) * s.alpha + (3 * s.p - 3 if s.p > 2 else 2) * s.slot * s.beta,
    "reduce": lambda s: 2 * s.alpha + (s.p - 1) * s.n * (s.beta + GAMMA),
}
"""One α is the barrier's. Over SDMA a root's data waits for few Acks."""

RDMA_RING = RING | {
    "broadcast": lambda s: (2 * s.p - 2) * (s.alpha + s.slot * s.beta) + s.alpha,
    "reduce": lambda s: s.p * s.alpha + (s.p - 1) * s.n * (s.beta + GAMMA),
}
NHR = LOGARITHMIC | {"broadcast": nhr_broadcast}
NB = LOGARITHMIC | {
    "all_reduce": nb_all_reduce,
    "broadcast": nb_broadcast,
    "scatter": lambda s: (2 * s.steps + 1) * s.alpha + s.moved,
}
"""Scatter's receivers answer, and neighbours meet at its end, but not in a broadcast."""

NB_OVER_SDMA = NB | {
    "broadcast": nb_broadcast_over_sdma,
    "scatter": lambda s: 2 * s.alpha + s.moved,
}
RHD_POWER = LOGARITHMIC | {"broadcast": over_tree}
RHD_OTHER: dict[str, Formula] = {
    "all_gather": lambda s: rhd_reduce_scatter(s, 0.0),
    "reduce_scatter": rhd_reduce_scatter,
    "all_reduce": lambda s: rhd_reduce(s) + s.alpha + s.n * s.beta,
    "reduce": rhd_reduce,
    "broadcast": over_tree,
}


def formula(word: str, op: str, size: Size, *, rdma: bool = False) -> float:
    """Return the time of an algorithm of HCCL_ALGO. In halving and doubling both ends meet before a
    transfer and after it, over SDMA with an Ack each time; NB's steps end with a barrier there.
    """
    if not rdma and (word == "H-D_R" or (word == "NB" and op in ALIKE)):
        size = size._replace(alpha=2 * ALPHA)
    rhd = RHD_OTHER if size.p.bit_count() > 1 else RHD_POWER
    ring, nb = (RDMA_RING, NB) if rdma else (RING, NB_OVER_SDMA)
    table: dict[str, dict[str, Formula]] = {"ring": ring, "NHR": NHR, "NB": nb, "H-D_R": rhd}
    return table[word][op](size)


ALIKE = ("all_gather", "reduce_scatter", "all_reduce")
"""Ops in which all ranks do the same."""

ROOTED = [
    (word, op)
    for op in ("broadcast", "reduce", "scatter", "gather")
    for word in ("ring", "NHR", "NB", "H-D_R")
    if word in LEVELS[op]
]
EXACT_OVER_SDMA = [
    *(("ring", op) for op in ("broadcast", "reduce", "scatter", "gather")),
    *((word, op) for word in ("NHR", "NB") for op in ("broadcast", "scatter")),
    ("H-D_R", "broadcast"),
]
"""For every p; the others for powers of two. Over RDMA all are."""


def large(size: Size) -> int:
    """Return the largest chunk where chunks are multiples of 16 KiB."""
    return min(size.n, -(-size.n // size.p // 16384) * 16384)


MESH: dict[str, Formula] = {
    "AllGatherMeshOpbaseExecutor": lambda s: ALPHA + s.slot * s.beta,
    "AllGatherMeshExecutor": lambda s: ALPHA + s.slot * s.beta,
    "ReduceScatterMeshDmaEliminationExecutor": lambda s: ALPHA + s.slot * (s.beta + GAMMA),
    "ReduceScatterMeshExecutor": lambda s: ALPHA + s.slot * (s.beta + GAMMA),
    "AllReduceMeshOpbaseLoopExecutor": lambda s: 2 * ALPHA + large(s) * (2 * s.beta + GAMMA),
    "AllReduceMeshExecutor": lambda s: 2 * ALPHA + s.slot * (2 * s.beta + GAMMA),
    "BroadCastMeshExecutor": lambda s: 2 * ALPHA + s.slot * 2 * s.beta,
    "ReduceMeshExecutor": lambda s: 2 * ALPHA + s.slot * (2 * s.beta + GAMMA),
    "ScatterMeshExecutor": lambda s: 2 * (s.p - 1) * ALPHA + s.slot * s.beta,
    "GatherMeshExecutor": lambda s: ALPHA + s.slot * s.beta,
}
"""Links reduce on their way, side by side: n/p·γ. A scatter ends with a barrier of every pair."""

REDUCED_AFTERWARDS: dict[str, Formula] = {
    "ReduceScatterMeshDmaEliminationExecutor": lambda s: ALPHA + s.slot * s.beta + s.reduced,
}
"""Where links cannot, one part after the other: (p - 1)/p·nγ."""


def layout(p: int, rdma: bool) -> Topology:
    """Return p ranks that only SDMA joins, or only RDMA."""
    return topology_of(servers=p, devices=1) if rdma else topology_of(p, preset="mesh")


def run(
    executor: str | type[Executor],
    topology: Topology,
    fill: float,
    word: str = "",
    root: int = 0,
    dtype: str = "fp32",
    mode: Mode = Mode.OP_BASE,
) -> tuple[Size, float]:
    """Return the size of a call that fills so much of its one round, and its time.

    All walks agree upon it.
    """
    found = BY_NAME[executor] if isinstance(executor, str) else executor
    name, p = ops_of(found())[0], topology.size
    op = filled(op_of(name, 1, dtype, mode=mode), p)
    op = with_levels(found(), replace(op, level1=word))
    op = replace(op, root=None if op.root is None else root % p)
    slots = p if name in SLOTTED else 1
    most = elements_per_round(found(), op, topology, CCL_BYTES)
    chunks = max(1, round(fill * (most * op.unit * slots // (ALIGN * p))))
    n = chunks * ALIGN * p
    program = recorded(found, replace(op, count=n // slots // op.unit), topology, CCL_BYTES)
    beta = (COST.roce if topology.has_rdma else COST.hccs).beta_us
    return Size(p, n, beta), time_of(program)


def time_of(program: Program) -> float:
    assert program.rounds == 1
    found = simulate_batches(program, None, COST).total_us
    if program.task_count <= FEW_TASKS:
        assert simulate_tasks(program, None, COST).total_us == found
        assert simulate_batches(program, None, COST, lockstep=False).total_us == found
    return found


@given(
    p=RANKS,
    rdma=st.booleans(),
    fill=FILLS,
    word=st.sampled_from(["ring", "NHR", "NB", "H-D_R"]),
    op=st.sampled_from(ALIKE),
)
@example(p=64, rdma=True, fill=1.0, word="ring", op="all_reduce")
@example(p=63, rdma=False, fill=1.0, word="NHR", op="all_reduce")
@example(p=64, rdma=False, fill=0.0, word="H-D_R", op="all_reduce")
@example(p=61, rdma=True, fill=0.0, word="NB", op="reduce_scatter")
@example(p=12, rdma=True, fill=0.0, word="NB", op="all_reduce")
@example(p=13, rdma=False, fill=0.5, word="NB", op="all_reduce")
@settings(max_examples=12, deadline=None)
def test_ops_in_which_all_do_the_same(p: int, rdma: bool, fill: float, word: str, op: str) -> None:
    if word == "H-D_R":
        p = 1 << (p.bit_length() - 1)
    size, found = run(FLAT[op], layout(p, rdma), fill, word)
    assume((word, op) != ("NHR", "all_reduce") or size.n > ONE_SHOT_ALL_REDUCE)
    wanted = formula(word, op, size, rdma=rdma)
    if (word, op) == ("NB", "all_reduce") and size.slot != SMALL_SLICE:
        assume(size.n <= SMALL_SLICE or size.slot > SMALL_SLICE)  # between, slices differ
    is_between = (word, op) == ("NB", "all_reduce") and size.n <= SMALL_SLICE and not rdma
    if is_between and size.slot != SMALL_SLICE:
        assert ALPHA < found <= wanted * (1 + EXACT)
    else:
        assert found == pytest.approx(wanted, rel=EXACT)


@given(p=RANKS, rdma=st.booleans(), fill=FILLS, way=st.sampled_from(ROOTED), root=st.integers(0))
@example(p=64, rdma=False, fill=1.0, way=("ring", "broadcast"), root=9)
@example(p=48, rdma=True, fill=0.0, way=("NHR", "scatter"), root=47)
@example(p=16, rdma=True, fill=0.0, way=("H-D_R", "broadcast"), root=5)
@example(p=13, rdma=True, fill=0.1, way=("NHR", "broadcast"), root=3)
@example(p=31, rdma=True, fill=1.0, way=("NB", "scatter"), root=0)
@example(p=12, rdma=True, fill=0.0, way=("ring", "reduce"), root=11)
@example(p=7, rdma=True, fill=0.5, way=("ring", "broadcast"), root=2)
@example(p=3, rdma=True, fill=0.0, way=("NHR", "gather"), root=1)
@settings(max_examples=12, deadline=None)
def test_ops_with_a_root(p: int, rdma: bool, fill: float, way: tuple[str, str], root: int) -> None:
    word, op = way
    assume(word != "H-D_R" or p.bit_count() == 1)
    size, found = run(FLAT[op], layout(p, rdma), fill, word, root)
    wanted = formula(word, op, size, rdma=rdma)
    if rdma or way in EXACT_OVER_SDMA or p.bit_count() == 1:
        assert found == pytest.approx(wanted, rel=EXACT)
    else:
        assert ALPHA < found <= wanted * (1 + EXACT)


@given(p=RANKS, rdma=st.booleans(), fill=FILLS, op=st.sampled_from(sorted(RHD_OTHER)))
@example(p=48, rdma=False, fill=1.0, op="all_gather")
@example(p=63, rdma=False, fill=0.0, op="all_reduce")
@example(p=5, rdma=True, fill=0.05, op="reduce_scatter")
@example(p=24, rdma=True, fill=0.0, op="reduce_scatter")
@settings(max_examples=12, deadline=None)
def test_rhd_where_p_is_no_power_of_two(p: int, rdma: bool, fill: float, op: str) -> None:
    """The formula, but for two things. Data that is cut in b slices is cut at multiples of 128
    bytes. And in a reduce-scatter over SDMA ranks without a pair are ahead: where a rank that has
    more to read than its partner finds the Ack there, that step hides up to α.
    """
    assume(p.bit_count() > 1)
    size, found = run(FLAT[op], layout(p, rdma), fill, "H-D_R", root=3)
    wanted = formula("H-D_R", op, size, rdma=rdma)
    rounding = 2 * ALIGN * p * (size.beta + GAMMA) * (op in ("all_reduce", "reduce"))
    assert found <= min(wanted * (1 + EXACT) + rounding, 1.05 * wanted)
    assert found <= 1.18 * (
        wanted
        if op not in ("all_gather", "reduce_scatter")
        else even(op, size._replace(alpha=(1 if rdma else 2) * ALPHA))
    )
    hidden = (size.steps - 1) * ALPHA * (op == "reduce_scatter" and not rdma)
    assert found >= wanted * (1 - EXACT) - hidden - rounding


@pytest.mark.parametrize("executor", sorted(MESH))
@given(p=RANKS, fill=FILLS, root=st.integers(0))
@example(p=64, fill=1.0, root=0)
@settings(max_examples=2, deadline=None)
def test_meshes(executor: str, p: int, fill: float, root: int) -> None:
    size, found = run(executor, layout(p, False), fill, root=root)
    assert found == pytest.approx(MESH[executor](size), rel=EXACT)


@given(p=RANKS, fill=FILLS, executor=st.sampled_from(sorted(REDUCED_AFTERWARDS)))
@settings(max_examples=8, deadline=None)
def test_meshes_whose_links_cannot_reduce(p: int, fill: float, executor: str) -> None:
    size, found = run(executor, layout(p, False), fill, dtype="int64")
    assert found == pytest.approx(REDUCED_AFTERWARDS[executor](size), rel=EXACT)


@given(p=RANKS, rdma=st.booleans(), fill=FILLS)
@example(p=64, rdma=True, fill=1.0)
@settings(max_examples=8, deadline=None)
def test_pairwise(p: int, rdma: bool, fill: float) -> None:
    size, found = run("RunAlltoAllVFullMesh", layout(p, rdma), fill)
    assert found == pytest.approx(2 * (p - 1) * ALPHA + size.moved, rel=EXACT)


def pipeline(servers: int, devices: int, slot: float, gamma: float, *, barrier: bool) -> float:
    """Return the formula of one op: S - 1 steps on both levels, and one inside the servers; behind
    the last transfer between servers there may be a barrier.
    """
    inter = COST.roce.alpha_us + slot * (COST.roce.beta_us + gamma)
    intra = (devices > 1) * (ALPHA + slot * (COST.hccs.beta_us + gamma))
    last = max(inter + barrier * COST.roce.alpha_us, intra)
    return (servers > 1) * ((servers - 2) * max(inter, intra) + last) + intra


@given(
    shape=st.tuples(st.integers(1, 32), st.integers(1, 8)).filter(lambda s: 2 <= s[0] * s[1] <= 64),
    fill=FILLS,
    op=st.sampled_from(ALIKE),
    mode=st.sampled_from(Mode),
)
@example(shape=(2, 8), fill=0.0, op="reduce_scatter", mode=Mode.OP_BASE)
@example(shape=(2, 2), fill=1.0, op="reduce_scatter", mode=Mode.GRAPH)
@example(shape=(2, 2), fill=1.0, op="all_reduce", mode=Mode.OP_BASE)
@example(shape=(32, 2), fill=0.0, op="all_reduce", mode=Mode.GRAPH)
@settings(max_examples=8, deadline=None)
def test_pipelines(shape: tuple[int, int], fill: float, op: str, mode: Mode) -> None:
    """An all-reduce has one barrier, at the end."""
    servers, devices = shape
    name, kind = op.title().replace("_", ""), "Opbase" if mode is Mode.OP_BASE else "Graph"
    executor, where = (
        f"{name}Mesh{kind}PipelineExecutor",
        topology_of(servers=servers, devices=devices),
    )
    size, found = run(executor, where, fill, mode=mode)
    gathers = pipeline(servers, devices, size.slot, 0.0, barrier=True)
    reduces = pipeline(servers, devices, size.slot, GAMMA, barrier=op == "reduce_scatter")
    wanted = (op != "reduce_scatter") * gathers + (op != "all_gather") * reduces
    assert found == pytest.approx(wanted, rel=EXACT)
