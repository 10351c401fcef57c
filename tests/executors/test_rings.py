"""Executors whose servers are rings: right on every layout, balanced, thrifty between servers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors import inference, stars
from hccl_executors.rings import concurrent, semi, servers, superpods
from hccl_executors.rings.orders import JOINED
from hccl_py.call.config import Config
from hccl_py.enums import LinkKind, Mode
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.executor import Executor, OpParam, Topology, Unsuitable, choices_of
from hccl_py.plugins.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.selection import select
from hccl_py.testing import strategies as hccl
from hccl_py.testing.calls import fitting, recorded
from hccl_py.topology import PRESETS, topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.sweeps.cases import SMALL_CCL, Case
from hccl_py.verifier.sweeps.rounds import elements_per_round
from tests.executors.calls import executors_of
from tests.executors.flat import SCHEDULES, in_turn
from tests.recording import BY_NAME, filled, op_of, same_tasks
from tests.recording import recorded as record_it

A2, A3, TRAINING = (PRESETS[n] for n in ("atlas-800t-a2", "atlas-900-a3", "atlas-800-9000"))


SERVERS, SUPERPODS, CONCURRENT, SEMI = map(executors_of, (servers, superpods, concurrent, semi))
FLAT = executors_of(inference, stars)
A3_ALL_REDUCE = BY_NAME["AllReduceRingFor91093Executor"]
ALL = (*SERVERS, *SUPERPODS, *CONCURRENT, *SEMI, *FLAT)
EXECUTOR_NUMBER = {executor: number for number, executor in enumerate(ALL)}

LAYOUTS = (
    Topology(A3, (1,)),
    Topology(A3, (2,)),
    Topology(A3, (6,)),
    Topology(A3, (1, 1, 1)),
    Topology(A3, (2, 2, 2)),
    Topology(A3, (1,) * 4, (2, 2)),
    Topology(A3, (2,) * 4, (2, 2)),
    Topology(A3, (4,) * 6, (2, 2, 2)),
    Topology(A3, (2,) * 3, (1, 1, 1)),
    Topology(A2, (3, 3)),
    Topology(A2, (1,) * 5),
    Topology(TRAINING, (8,)),
    Topology(TRAINING, (8, 8)),
    Topology(TRAINING, (4, 4, 4)),
    Topology(PRESETS["300i-duo"], (4,)),
)

WORDS = [
    (executor, level1, level2)
    for executor in (*SERVERS, *SUPERPODS, *CONCURRENT)
    for words in [choices_of(executor())]
    for number, level1 in enumerate(words["level1"])
    for level2 in [words.get("level2", ("",))[number % len(words.get("level2", ("",)))]]
] + [
    (executor, choices_of(executor())["level1"][0], level2)
    for executor in (*SUPERPODS, *CONCURRENT)
    for level2 in choices_of(executor())["level2"]
]

MANY = 10
"""Ranks that are not recorded one by one."""


@cache
def options_of(executor: type[Executor], topology: Topology) -> list[OpParam]:
    """Return the calls that suit; many tests look at the same layouts."""
    return fitting(executor, topology)


def check(executor: type[Executor], case: Case, schedules: Sequence[Schedule]) -> None:
    """Record, verify and run a call; recording its ranks one by one gives the same tasks."""
    program = recorded(executor, case)
    if program.ranks < MANY:
        assert same_tasks(program, recorded(executor, case, by_rank=True)), case.text
    report = verify(program, product=case.topology.product)
    found = [f.message for f in report if f.severity is not Severity.HINT]
    assert not found, (case.text, found)
    assert run_numeric(program, schedules).wrong is None, case.text


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("executor", "level1", "level2"), WORDS, ids=lambda x: getattr(x, "__name__", x)
)
def test_every_algorithm_between(executor: type[Executor], level1: str, level2: str) -> None:
    several = [t for t in LAYOUTS if not t.is_single_server and options_of(executor, t)]
    first = WORDS.index((executor, level1, level2))
    for number, topology in list(enumerate(several))[first % min(8, len(several)) :: 8]:
        options = options_of(executor, topology)
        op = options[(number * 37 + len(level1)) % len(options)]
        root = None if op.root is None else (5 * number + 3) % topology.size
        op = replace(op, level1=level1, level2=level2, count=37 * number, root=root)
        if not executor().suits(op, topology):  # a word of one superpod's servers
            assert level1 in ("NHR_V1", "H-D_R")
            assert len(topology.superpods) > 1
            continue
        check(executor, Case(topology, op, 1 << 20), in_turn(first + number // 8))


@pytest.mark.sweep
@pytest.mark.parametrize("executor", ALL, ids=lambda executor: executor.__name__)
def test_every_layout_and_mode(executor: type[Executor]) -> None:
    first = EXECUTOR_NUMBER[executor]
    suited = [topology for topology in LAYOUTS if options_of(executor, topology)]
    for number, topology in list(enumerate(suited))[first % 2 :: 2]:
        for mode in Mode if number < 2 else [tuple(Mode)[number // 2 % 2]]:
            options = [op for op in options_of(executor, topology) if op.mode is mode]
            op = options[(number * 31 + first * 7) % len(options)]
            case = Case(topology, replace(op, count=61), 1 << 20)
            check(executor, case, in_turn(first + number // 2))


def layouts() -> st.SearchStrategy[Topology]:
    """Servers alike, and superpods alike."""
    one = hccl.topologies(max_ranks=10, uneven=False)
    several = st.builds(
        lambda devices, servers, pods: Topology(A3, (devices,) * servers * pods, (servers,) * pods),
        st.integers(1, 4),
        st.integers(1, 3),
        st.integers(2, 3),
    )
    return st.one_of(one, several)


@given(data=st.data(), executor=st.sampled_from(ALL), schedule=hccl.schedules())
@settings(deadline=None)
def test_any_call(data: st.DataObject, executor: type[Executor], schedule: Schedule) -> None:
    suited = layouts().filter(lambda topology: bool(options_of(executor, topology)))
    case = data.draw(hccl.calls(executor, topology=suited))
    words = choices_of(executor())
    op = replace(case.op, level2=data.draw(st.sampled_from(words.get("level2", ("",)))))
    ops = [replace(op, level1=word) for word in words.get("level1", ("",))]
    op = data.draw(st.sampled_from([op for op in ops if executor().suits(op, case.topology)]))
    if data.draw(st.booleans()) and op.mode is Mode.OP_BASE:  # around the ends of rounds
        most = elements_per_round(executor(), op, case.topology, SMALL_CCL)
        count = max(most * data.draw(st.integers(1, 3)) + data.draw(st.integers(-1, 1)), 0)
        op, case = replace(op, count=count), replace(case, ccl_bytes=SMALL_CCL)
    check(executor, replace(case, op=op), [schedule])


@pytest.mark.parametrize(
    ("op", "word"), [("reduce_scatter", "H-D_R"), ("all_gather", "H-D_R"), ("broadcast", "ring")]
)
def test_a_word_that_an_executor_does_not_support_is_nhr(op: str, word: str) -> None:
    """As in CollExecutorBase::SetAlgType; the choice keeps HCCL's word."""
    topology = Topology(A3, (4,) * 4, (2, 2))
    call = filled(op_of(op, 1 << 20), topology.size)
    config = Config(algo=f"level0:NA;level1:ring;level2:{word}")
    selection, _ = select(call, topology, config, installed_executors())
    assert selection.executor == selection.hccl_executor
    assert (selection.hccl_algorithm["level2"], selection.algorithm["level2"]) == (word, "NHR")
    assert any(f"does not do {word} on level2" in reason for reason in selection.reasons)


@pytest.mark.sweep
@pytest.mark.parametrize("devices", [2, 4, pytest.param(16, marks=pytest.mark.long)])
@pytest.mark.parametrize("executor", [*SUPERPODS, *CONCURRENT], ids=lambda e: e.__name__)
def test_two_superpods_of_two_servers(executor: type[Executor], devices: int) -> None:
    topology = Topology(A3, (devices,) * 4, (2, 2))
    op = replace(filled(op_of(executor.op, 300), topology.size), level1="ring", level2="ring")  # type: ignore[arg-type]
    if op.root is not None:
        op = replace(op, root=topology.size - 2)
    if "DoubleRing" in executor.__name__ and devices == 2:
        assert not executor().suits(op, topology)  # two dies are one ring
        return
    check(executor, Case(topology, op, 1 << 20), SCHEDULES[:1])


def test_superpods_of_different_servers_with_ahc() -> None:
    topology = Topology(A3, (2,) * 5, (2, 3))
    for word in JOINED:
        op = replace(op_of("all_reduce", 1000), level1=word)
        check(A3_ALL_REDUCE, Case(topology, op, 1 << 20), SCHEDULES[:1])


def test_what_ahc_asks_of_rdma_is_ub_on_an_ascend_950() -> None:
    """Its links reduce fp16, so that nothing lands in scratch, which the executor then lacks."""
    op = replace(op_of("all_reduce", 32768, "fp16", mode=Mode.GRAPH), level1="AHC_BROKE")
    topology = topology_of(servers=2, devices=2, superpods=2, preset="ascend950")
    program = record_it(A3_ALL_REDUCE, op, topology)
    assert set(program.transports.kind.tolist()) == {int(LinkKind.SDMA)}
    check(A3_ALL_REDUCE, Case(topology, op, 1 << 20), SCHEDULES[:1])


def bytes_by_plane(program: Program, kind: LinkKind | None = None) -> dict[str, list[int]]:
    """Return what moves over the links of each plane, by rank that moves it."""
    tasks, transports = program.tasks, program.transports
    moved = tasks.table.moves_data[tasks.instruction] & (tasks.end >= 0)
    if kind is not None:
        moved &= transports.kind[tasks.end] == kind
    plane, rank, size = transports.plane[tasks.end[moved]], tasks.rank[moved], tasks.size[moved]
    found = {}
    for number in np.unique(plane).tolist():
        here = plane == number
        sums = np.bincount(rank[here], size[here], program.ranks)
        found[transports.planes[number]] = sums.astype(np.int64).tolist()
    return found


@pytest.mark.parametrize(
    ("executor", "shares"),
    [
        (servers.AllReduceRingExecutor, 14),
        (servers.AllGatherRingExecutor, 7 * 8),
        (servers.ReduceScatterRingExecutor, 7 * 8),
    ],
)
def test_four_rings_carry_the_same(executor: type[Executor], shares: int) -> None:
    """All links of an Atlas 800 (model 9000): a slot's quarter goes round each ring, step by step.

    All-reduce moves 14 slots of an eighth, the others 7 slots of everything that a rank has.
    """
    count = 1 << 14
    program = record_it(executor, op_of(str(executor.op), count), Topology(TRAINING, (8,)), 4 << 20)
    each = shares * count * 4 // 8 // 4
    rings = ("ring0", "ring1", "ring2", "ring3")
    assert bytes_by_plane(program) == dict.fromkeys(rings, [each] * 8)


def rdma_bytes(executor: type[Executor], topology: Topology, count: int) -> npt.NDArray[np.int64]:
    op = replace(op_of(str(executor.op), count), level1="ring", level2="ring")
    program = record_it(executor, op, topology, 8 << 20)
    planes = bytes_by_plane(program, LinkKind.RDMA)
    moved: npt.NDArray[np.int64] = np.array(list(planes.values()), np.int64).sum(axis=0)
    return moved


PODS, PER_POD, DEVICES = 2, 2, 4
SLOT = 4 * 1024


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        (servers.AllGatherRingExecutor, superpods.AllGatherRingFor91093Executor),
        (servers.ReduceScatterRingExecutor, superpods.ReduceScatterRingFor91093Executor),
    ],
)
def test_superpods_exchange_one_slot_a_rank(slow: type[Executor], fast: type[Executor]) -> None:
    """A3's order sends P - 1 slots over RDMA. In A2's order it would be whole servers: a device
    whose right neighbour between servers is in another superpod sends (M - 1)·n slots there.
    """
    topology = Topology(A3, (DEVICES,) * PODS * PER_POD, (PER_POD,) * PODS)
    assert (rdma_bytes(fast, topology, SLOT // 4) == (PODS - 1) * SLOT).all()
    others = (PODS * PER_POD - 1) * DEVICES * SLOT
    assert rdma_bytes(slow, topology, SLOT // 4).max() == others


def test_all_reduce_shares_the_way_between_superpods() -> None:
    """Every rank sends 2 (P - 1)/P of its part, 1/(n·S) of the data."""
    topology = Topology(A3, (DEVICES,) * PODS * PER_POD, (PER_POD,) * PODS)
    moved = rdma_bytes(A3_ALL_REDUCE, topology, 1 << 14)
    assert (moved == 2 * (PODS - 1) * 4 * (1 << 14) // (PODS * PER_POD * DEVICES)).all()


def test_halves_of_concurrent_rings_have_links_of_their_own() -> None:
    topology = Topology(A3, (4,) * 4, (2, 2))
    op = op_of("all_reduce", 1 << 14)
    program = record_it(concurrent.AllReduceDoubleRingConcurrentExecutor, op, topology, 8 << 20)
    stream = {"ring0": 1, "level1": 1, "level2": 1, "ring1": 0, "level12": 0}
    tasks = program.tasks
    on_links = tasks.end >= 0
    planes = program.transports.plane[tasks.end[on_links]]
    for name, wanted in stream.items():
        mine = tasks.stream[on_links][planes == program.transports.planes.index(name)]
        assert (mine == wanted).all()
        assert len(mine)


UNEVEN = Topology(A3, (2, 4))
IN_SERVERS_ONLY = Topology(A3, (2,) * 5, (2, 3))
MIXED = Topology(A3, (2, 2)).subset([0, 2, 1, 3])
ROCE = Topology(TRAINING, (8,), intra_roce=True)


@pytest.mark.parametrize(
    ("executor", "topology", "reason"),
    [
        (SERVERS[0], UNEVEN, "needs servers alike, and ranks numbered by server"),
        (SERVERS[0], MIXED, "needs servers alike, and ranks numbered by server"),
        (SUPERPODS[3], UNEVEN, "needs servers alike, and superpods alike"),
        (SUPERPODS[3], IN_SERVERS_ONLY, "needs servers alike, and superpods alike"),
        (SUPERPODS[3], ROCE, "needs SDMA between all devices of a server"),
        (SUPERPODS[0], Topology(A2, (8,)), "needs two rings in a server, not mesh"),
        (CONCURRENT[0], IN_SERVERS_ONLY, "needs servers alike, and superpods alike"),
        (CONCURRENT[0], Topology(A3, (3,)), "needs two rings in a server, not ring"),
        (SEMI[0], Topology(PRESETS["ring"], (4,)), "needs every device linked to every other one"),
        (SEMI[0], Topology(A3, (2, 2)), "needs one server, there are 2"),
        (SEMI[0], ROCE, "needs SDMA between all devices of a server"),
        (SEMI[0], Topology(A3, (5,)), "needs an even number of devices, not 5"),
    ],
)
def test_refusals_say_why(executor: type[Executor], topology: Topology, reason: str) -> None:
    verdict = executor().suits(op_of(str(executor.op)), topology)
    assert isinstance(verdict, Unsuitable)
    assert verdict.reason == reason


@pytest.mark.parametrize(
    ("name", "devices", "mode", "tasks"),
    [
        # Input, fork; a step: meet 4, line up 8, read 2; the end 4; join.
        ("AllGatherSemiRingExecutor", 8, Mode.GRAPH, 1 + 4 + 4 * 14 + 4 + 4),
        # Ack and DataSignal take turns; after an even number of steps they meet once more.
        ("AllGatherSemiRingExecutor", 8, Mode.OP_BASE, 1 + 4 + 4 * 14 + 12 + 4 + 4 + 8),
        ("AllGatherSemiRingExecutor", 6, Mode.OP_BASE, 1 + 4 + 3 * 14 + 4 + 4 + 6),
        # One march: meet 2, line up 4, read 1; the end 2.
        ("AllGatherSemiRingExecutor", 2, Mode.GRAPH, 1 + 2 + 7 + 2 + 2),
        # Slots to scratch, n/2 + 1 steps, the result from there.
        ("ReduceScatterSemiRingExecutor", 8, Mode.GRAPH, 8 + 4 + 5 * 14 + 4 + 4 + 1),
    ],
)
def test_semi_rings_have_the_tasks_of_the_source(
    name: str, devices: int, mode: Mode, tasks: int
) -> None:
    """Counted in RunSingleStep, RunHalfSliceRead and RunLastStep of HCCL's unified march."""
    executor = getattr(semi, name)
    program = record_it(executor, op_of(str(executor.op), mode=mode), Topology(A3, (devices,)))
    assert np.bincount(program.tasks.rank).tolist() == [tasks] * devices


def test_rings_go_over_roce_inside_a_server() -> None:
    for executor in SERVERS:
        op = filled(op_of(str(executor.op), 300), 8)
        check(executor, Case(ROCE, op, 1 << 20), SCHEDULES[1:2])
