"""Mutants delete what they say, and nothing else."""

import numpy as np
import pytest

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.testing import Mutant, sync_mutants
from hccl_py.topology import Topology, topology_of
from tests.platform.exchanging import ExchangingRing
from tests.recording import CHOSEN, MESH_ONLY, op_of, recorded

PLACES = {"4 ranks": topology_of(4), "2 x 2": topology_of(servers=2, devices=2)}

PROGRAMS = [
    pytest.param(cls.__name__, str(cls.op), topology, id=f"{cls.__name__}, {place}")
    for cls in CHOSEN
    for place, topology in PLACES.items()
    if cls.__name__ not in MESH_ONLY or topology.is_single_server
]


def kinds(program: Program) -> dict[TaskKind, int]:
    numbers, counts = np.unique(program.tasks.kind, return_counts=True)
    return {TaskKind(k): n for k, n in zip(numbers.tolist(), counts.tolist(), strict=True)}


def of(program: Program, start: str) -> list[Mutant]:
    return [mutant for mutant in sync_mutants(program) if mutant.words.startswith(start)]


@pytest.mark.parametrize(("name", "op", "topology"), PROGRAMS)
def test_mutants_delete_posts_and_waits_only(name: str, op: str, topology: Topology) -> None:
    program = recorded(name, op_of(op), topology)
    mutants = list(sync_mutants(program))
    whole = kinds(program)
    for mutant in mutants:
        left = kinds(mutant.of(program))
        assert len(mutant.rows) == sum(whole.values()) - sum(left.values()) > 0
        for kind in whole.keys() - {TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT}:
            assert left[kind] == whole[kind]
    assert len({mutant.words for mutant in mutants}) == len(mutants)
    assert len({mutant.rows.tobytes() for mutant in mutants}) == len(mutants)


@pytest.mark.parametrize(("name", "op", "topology"), PROGRAMS)
def test_pairs_cover_every_post_once_and_leave_as_many_posts_as_waits(
    name: str, op: str, topology: Topology
) -> None:
    program = recorded(name, op_of(op), topology)
    pairs = [m for m in sync_mutants(program) if "awaited at" in m.words]
    rows = np.concatenate([mutant.rows for mutant in pairs])
    synchronises = np.isin(program.tasks.kind, (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT))
    assert (np.sort(rows) == np.flatnonzero(synchronises)).all()
    for mutant in pairs:
        tasks, cells = mutant.of(program).tasks, program.cells
        posts, waits = (
            np.bincount(tasks.cell[tasks.kind == kind], minlength=cells)
            for kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT)
        )
        assert (posts == waits).all()


@pytest.mark.parametrize(("name", "op", "topology"), PROGRAMS)
def test_nothing_between_ranks_is_left(name: str, op: str, topology: Topology) -> None:
    program = recorded(name, op_of(op), topology)
    (mutant,) = of(program, "all synchronisation between ranks")
    left = mutant.of(program).tasks
    assert not ((left.cell >= 0) & (left.cell < program.transports.cells)).any()
    assert set(program.lines) >= set(mutant.lines) != set()


def test_words_name_notify_and_lines() -> None:
    ring = recorded(ExchangingRing, op_of("all_reduce"), PLACES["2 x 2"])
    words = {mutant.words.partition(" at ")[0] for mutant in sync_mutants(ring)}
    assert {f"{n} posted and awaited" for n in ("Ack", "DataSignal", "DataAck")} <= words
    mesh = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 4)
    (ack,) = of(mesh, "Ack")
    post, wait = ack.lines
    assert ack.words == f"Ack posted at {post}, awaited at {wait}"
    assert post.startswith("templates/mesh_peers.py:")
    forks = of(mesh, "notify of main")
    assert len(forks) == len(of(mesh, "notify of a sub stream")) == 2
    (first,), (second,) = (fork.lines for fork in forks)
    assert first.startswith("all_gather/mesh_opbase.py:")
    assert [m.lines for m in of(mesh, "every post and wait of")] == [
        (line,) for line in (first, post, wait, second, *of(mesh, "DataSignal")[0].lines)
    ]


def test_one_rank_has_nothing_to_delete() -> None:
    assert not list(sync_mutants(recorded("AllReduceComm", op_of("all_reduce"), 1)))
