"""Executors with two levels: right on every layout, with every algorithm between servers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors import graph_meshes, hierarchical, mixed
from hccl_executors.hierarchical import (
    AllGatherMeshExecutor,
    AllReduceMeshExecutor,
    BroadCastMeshExecutor,
    Hierarchical,
    ReduceMeshExecutor,
    ReduceScatterMeshExecutor,
    ScatterMeshExecutor,
)
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Executor, Unsuitable, choices_of
from hccl_py.plugins.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.testing import strategies as hccl
from hccl_py.testing.calls import fitting, recorded
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.sweeps.cases import SMALL_CCL, Case
from hccl_py.verifier.sweeps.rounds import elements_per_round
from tests.executors.calls import executors_of
from tests.executors.flat import in_turn
from tests.recording import filled, op_of, same_tasks
from tests.recording import recorded as record_it

EXECUTORS = executors_of(hierarchical, mixed)
A2, A3 = PRESETS["atlas-800t-a2"], PRESETS["atlas-900-a3"]

LAYOUTS = (
    Topology(A2, (1,)),
    Topology(A2, (4,)),
    Topology(A2, (1, 1, 1)),
    Topology(A2, (2, 2)),
    Topology(A2, (3, 3, 3)),
    Topology(A2, (2,) * 6),
    Topology(A3, (2,) * 4, (2, 2)),
    Topology(A3, (2,) * 5, (2, 3)),
)

WORDS = [(executor, word) for executor in EXECUTORS for word in choices_of(executor())["level1"]]


def check(executor: type[Executor], case: Case, schedules: Sequence[Schedule]) -> None:
    """Record, verify and run a call; recording its ranks one by one gives the same tasks."""
    program = recorded(executor, case)
    assert same_tasks(program, recorded(executor, case, by_rank=True)), case.text
    assert not verify(program, product=case.topology.product).errors, case.text
    assert run_numeric(program, schedules).wrong is None, case.text


@pytest.mark.sweep
@pytest.mark.parametrize(("executor", "word"), WORDS, ids=lambda x: getattr(x, "__name__", x))
def test_every_algorithm_on_every_layout(executor: type[Executor], word: str) -> None:
    first = WORDS.index((executor, word))
    for number, topology in list(enumerate(LAYOUTS))[first % 2 :: 2]:
        options = fitting(executor, topology)
        op = options[(number * 37 + len(word)) % len(options)]
        root = None if op.root is None else (5 * number + 3) % topology.size
        op = replace(op, level1=word, count=37 * number, root=root)
        check(executor, Case(topology, op, 1 << 20), in_turn(first + number // 2))


def even_topologies() -> st.SearchStrategy[Topology]:
    """Servers alike, in one superpod or in several, alike or not."""
    presets = [name for name, product in PRESETS.items() if product.shape != "ring"]
    one_superpod = hccl.topologies(presets=presets, max_ranks=10, uneven=False)
    several = st.builds(
        lambda devices, pods: Topology(A3, (devices,) * sum(pods), tuple(pods)),
        st.integers(1, 2),
        st.lists(st.integers(1, 3), min_size=2, max_size=3),
    )
    return st.one_of(one_superpod, several)


@given(data=st.data(), executor=st.sampled_from(EXECUTORS), schedule=hccl.schedules())
@settings(deadline=None)
def test_any_call(data: st.DataObject, executor: type[Executor], schedule: Schedule) -> None:
    case = data.draw(hccl.calls(executor, topology=even_topologies()))
    words = choices_of(executor())["level1"]
    word, deterministic = data.draw(st.sampled_from(words)), data.draw(st.booleans())
    op = replace(case.op, level1=word, deterministic=deterministic)
    if data.draw(st.booleans()) and op.mode is Mode.OP_BASE:  # around the ends of rounds
        most = elements_per_round(executor(), op, case.topology, SMALL_CCL)
        count = max(most * data.draw(st.integers(1, 3)) + data.draw(st.integers(-1, 1)), 0)
        op, case = replace(op, count=count), replace(case, ccl_bytes=SMALL_CCL)
    check(executor, replace(case, op=op), [schedule])


@pytest.mark.parametrize(
    ("topology", "mode", "reason"),
    [
        (topology_of(4, preset="ring"), Mode.GRAPH, "needs every device linked to every other one"),
        (
            Topology(A2, (2, 4)),
            Mode.GRAPH,
            "needs as many devices in every server, there are [2, 4]",
        ),
        (
            Topology(A2, (2, 2)).subset([0, 2, 1, 3]),
            Mode.GRAPH,
            "needs ranks numbered server by server",
        ),
        (topology_of(4), Mode.OP_BASE, "runs in graph mode only"),
    ],
)
def test_refusals_say_why(topology: Topology, mode: Mode, reason: str) -> None:
    executor = graph_meshes.AllGatherMeshGraphExecutor()
    verdict = executor.suits(op_of("all_gather", mode=mode), topology)
    assert isinstance(verdict, Unsuitable)
    assert verdict.reason == reason


def large(executor: type[Hierarchical], servers: int, word: str, count: int) -> Program:
    """Record a call on servers of eight."""
    topology = topology_of(servers=servers, devices=8)
    op = replace(filled(op_of(executor.op, count), topology.size), level1=word)
    return record_it(executor, op, topology, 200 << 20)


def wire_bytes(program: Program) -> npt.NDArray[np.int64]:
    """Return what every rank writes to other servers."""
    tasks = program.tasks
    writes = np.isin(tasks.kind, (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE))
    sizes = np.bincount(tasks.rank[writes], tasks.size[writes], minlength=program.ranks)
    return sizes.astype(np.int64)


@pytest.mark.parametrize("word", ["ring", "NHR", "NB", "H-D_R"])
@pytest.mark.parametrize(
    ("executor", "count", "volume"),
    [
        (AllReduceMeshExecutor, 1 << 20, 2 * 3 * (4 << 20) // 4 // 8),
        (AllGatherMeshExecutor, 1 << 12, 3 * 8 * (4 << 12)),
        (ReduceScatterMeshExecutor, 1 << 12, 3 * 8 * (4 << 12)),
    ],
)
def test_volume_between_servers(
    executor: type[Hierarchical], count: int, volume: int, word: str
) -> None:
    """All-reduce moves an eighth of the data in parts, the others move all of it."""
    assert set(wire_bytes(large(executor, 4, word, count)).tolist()) == {volume}


def test_only_the_plane_of_the_root_scatters_between_servers() -> None:
    program = large(ScatterMeshExecutor, 3, "ring", 64)
    senders = np.flatnonzero(wire_bytes(program))
    assert set(senders % 8) == {0}


@pytest.mark.parametrize(
    ("executor", "word", "count", "batches"),
    [
        (AllReduceMeshExecutor, "NHR", 10_000_000, 1),
        (AllReduceMeshExecutor, "H-D_R", 10_000_000, 1),
        (AllGatherMeshExecutor, "NHR", 1000, 1),
        (ReduceScatterMeshExecutor, "NB", 1000, 1),
        (BroadCastMeshExecutor, "NHR", 10_000_000, 16),
        (ReduceMeshExecutor, "NHR", 10_000_000, 16),
    ],
)
def test_1024_ranks_are_few_batches(
    executor: type[Hierarchical], word: str, count: int, batches: int
) -> None:
    assert len(large(executor, 128, word, count).batches) <= batches
