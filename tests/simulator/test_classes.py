"""Ranks that do the same: one of each class is timed, and all have the times that they have where
every rank is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.documents.models import checked
from hccl_py.enums import DataType, TaskKind
from hccl_py.errors import DeadlockError
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, LinkCost, Stragglers, Timeline
from hccl_py.simulator.contended import Contention, entry
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from hccl_py.values import PerRank
from tests.recording import op_of, recorded, without
from tests.simulator.moves import PLAIN

COST = PLAIN.model_copy(
    update={
        "task_us": 0.125,
        "copy_gbps": 10.0,
        "memory_gbps": 12.0,
        "notify_us": 0.25,
        "roce": LinkCost(alpha_us=7.0, gbps=0.5),
    }
)


def timed(
    program: Program,
    topology: Topology,
    slow: Sequence[str],
    cost: CostModel,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Contention, Timeline]:
    """Time a program; classes are looked for from so many flows on."""
    with monkeypatch.context() as patch:
        patch.setattr(entry, "_MANY", most)
        contention = Contention(program, topology, cost, Stragglers.parse(slow))
        return contention, contention.timeline()


def assert_same(
    program: Program, topology: Topology, slow: Sequence[str] = (), cost: CostModel = COST
) -> int:
    """Hold times by classes to those of all ranks; return how many ranks were timed."""
    with pytest.MonkeyPatch.context() as patch:
        contention, found = timed(program, topology, slow, cost, 0, patch)
        _, wanted = timed(program, topology, slow, cost, 1 << 40, patch)
    assert found.program is program
    for name in ("start_us", "end_us", "effect_us"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9)
    assert np.array_equal(found.behind, wanted.behind)
    chosen = contention.representatives
    return program.ranks if chosen is None else len(np.unique(chosen.of_rank))


NETWORKS = [
    topology_of(preset="torus:4x4"),
    topology_of(preset="torus:2x3x4"),
    topology_of(16, preset="fat-tree:4,oversubscription=3"),
    topology_of(preset="hypercube:4"),
    topology_of(servers=4, devices=4),
    topology_of(servers=8, devices=1),
    topology_of(servers=1, devices=16, preset="atlas-900-a3"),
]
EXECUTORS = [
    ("AllGatherMeshOpbaseExecutor", "all_gather"),
    ("RunAlltoAllDirectFullmesh", "all_to_all"),
    ("AllReduceComm", "all_reduce"),
]
CHANGES = [(), ("rank=1:3x",), ("link=0-1:2.5x",), ("link=0-1:2x", "rank=0:1.5x")]


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize(("name", "op"), EXECUTORS)
def test_classes_have_the_times_of_all_ranks(name: str, op: str, network: Topology) -> None:
    """With all ranks alike, and with one rank or link that is not."""
    program = recorded(name, op_of(op, 4096), network)
    for slow in CHANGES:
        assert_same(program, network, slow)


class Alike:
    """Every rank moves as much over the same distances, each on a stream of its own; what a stream
    moves next waits until the one that it wrote to has moved, too.
    """

    op = "all_gather"
    algorithm = "level0:mesh"

    def __init__(self, moves: Sequence[tuple[int, int, bool]]) -> None:
        self.moves = moves

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=len(self.moves))

    def orchestrate(self, op: Any, rank: Any) -> None:
        for sub, (distance, kb, writes) in zip(rank.subs, self.moves, strict=True):
            peer = rank.flat[(rank.id + distance) % rank.size]
            here, there = rank.ccl_in.head(kb * 1000), peer.remote(rank.ccl_out.head(kb * 1000))
            sub.copy(*((there, here) if writes else (here, there)))


@given(
    moves=st.lists(
        st.tuples(st.integers(1, 11), st.integers(1, 40), st.booleans()), min_size=1, max_size=8
    ),
    network=st.sampled_from(["ring", "torus:3x4", "torus:2x2x3", "mesh"]),
    slow=st.sampled_from(CHANGES),
)
def test_random_moves_that_all_ranks_make(
    moves: list[tuple[int, int, bool]], network: str, slow: tuple[str, ...]
) -> None:
    topology = topology_of(12 if ":" not in network else None, preset=network)
    program = recorded(Alike(moves), OpParam("all_gather", 1, DataType.INT8), topology, 1 << 24)
    assert_same(program, topology, slow)


class TwoPeers:
    """Every rank writes to the next one and to the one beside it, on a stream each; for ranks of an
    even number both are the same one.
    """

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=2)

    def orchestrate(self, op: Any, rank: Any) -> None:
        for sub, peer in zip(rank.subs, ((rank.id + 1) % rank.size, rank.id ^ 1), strict=True):
            to = rank.flat[peer]
            sub.copy(to.remote(rank.ccl_out.head(8000)), rank.ccl_in.head(8000))


def test_two_streams_that_write_to_one_rdma_connection() -> None:
    """One after the other, in 16 us each of a port of 0.5 GB/s; to two they write at once. Which of
    two is first does not follow from what the ranks do, so all of them are timed.
    """
    topology = topology_of(servers=8, devices=1)
    program = recorded(TwoPeers(), OpParam("all_gather", 1, DataType.INT8), topology, 1 << 24)
    assert assert_same(program, topology) == program.ranks == 8
    with pytest.MonkeyPatch.context() as patch:
        _, timeline = timed(program, topology, (), COST, 0, patch)
    ends = timeline.effect_us.reshape(8, 2)
    np.testing.assert_allclose(ends[::2], [[16.125, 32.125]] * 4)
    np.testing.assert_allclose(ends[1::2], [[32.125, 32.125]] * 4)


def test_flows_that_begin_a_little_before_events_that_are_taken_with_them() -> None:
    """A flow of 204 GB/s that memory lets through at 1 GB/s moves nothing before it has its rate:
    in the 3e-8 us until then it would move 7 thousandths of a byte, which memory takes 3e-5 us for.
    """
    topology = topology_of(servers=2, devices=8, superpods=2, preset="atlas-900-a3")
    program = recorded("AllGatherDoubleRingConcurrentExecutor", op_of("all_gather", 4096), topology)
    update = {"copy_gbps": 10.0, "wait_us": 0.17, "memory_gbps": 1.0, "memory_users": "all"}
    cost = CostModel.of("study").model_copy(update=update)
    assert assert_same(program, topology, cost=cost) == 4
    timeline = Contention(program, topology, cost).timeline()
    assert timeline.total_us == pytest.approx(1595.526, rel=1e-12)


@pytest.mark.parametrize("more", [0, 1, 2000])
def test_one_size_that_is_another(more: int) -> None:
    """Its ranks are then seen to differ, and with them all that share links with it."""
    topology = topology_of(preset="torus:4x4")
    counts = np.full((16, 16), 5000)
    counts[3, 9] += more
    table = tuple(tuple(row) for row in counts.tolist())
    op = OpParam("all_to_all_v", 1, DataType.INT8, counts=table)
    program = recorded("RunAlltoAllDirectFullmesh", op, topology)
    timed = assert_same(program, topology)
    assert timed == (16 if more else 4)


@pytest.mark.parametrize(("side", "wanted"), [(4, 4), (8, 8)])
@pytest.mark.parametrize(
    ("name", "op"),
    [("AllGatherMeshOpbaseExecutor", "all_gather"), ("RunAlltoAllDirectFullmesh", "all_to_all")],
)
def test_ranks_of_a_torus_that_stand_for_others(name: str, op: str, side: int, wanted: int) -> None:
    """One of each column, which says how far the next rank of its row is."""
    topology = topology_of(preset=f"torus:{side}x{side}")
    program = recorded(name, op_of(op, 1 << 14), topology)
    assert assert_same(program, topology) == wanted
    assert assert_same(program, topology, ["link=0-1:2x"]) == side * side
    assert assert_same(program, topology, ["rank=5:2x"]) == side * side


def test_flows_of_the_torus_that_are_timed() -> None:
    """Of 256 ranks' flows to all others 16 ranks' are."""
    topology = topology_of(preset="torus:16x16")
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1024), topology)
    contention = Contention(program, topology, CostModel.of("mesh"))
    chosen = contention.representatives
    assert chosen is not None
    assert len(contention.shared.users.entity) == 256 * 255
    assert len(chosen.shared.users.entity) == 16 * 255
    assert len(chosen.shared.capacity) == 4 * 16


def test_small_programs_are_timed_rank_by_rank() -> None:
    topology = topology_of(preset="torus:4x4")
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1024), topology)
    assert Contention(program, topology, COST).representatives is None


def test_programs_that_cannot_end_are_left_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = topology_of(preset="torus:4x4")
    whole = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1024), topology)
    monkeypatch.setattr(entry, "_MANY", 0)
    stuck = without(whole, lambda i: i.kind == 8)
    contention = Contention(stuck, topology, COST)
    assert contention.representatives is not None
    assert contention.by_classes is None
    with pytest.raises(DeadlockError, match="of 1744 tasks done"):
        contention.timeline()


@pytest.mark.parametrize("preset", ["torus:4x4,spray=all", "fat-tree:4,gbps=1,spray=all"])
def test_ranks_that_spread_data_over_several_routes_are_all_timed(preset: str) -> None:
    topology = topology_of(preset=preset)
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 4096), topology)
    assert assert_same(program, topology) == program.ranks == 16


def test_kernels_that_take_other_ranks_longer() -> None:
    """Every rank of a ring of 12 writes to the next two after a kernel on each stream, of 10 us on
    even ranks and of 30 us on odd ones.
    """
    topology = topology_of(12, preset="ring")
    op = OpParam("all_gather", 1, DataType.INT8)
    plain = recorded(Alike([(1, 10, True), (2, 20, True)]), op, topology, 1 << 24)
    (batch,) = plain.batches
    us = PerRank(np.arange(12) % 2, table=np.array([10.0, 30.0]))
    kernels = [Instruction(TaskKind.COMPUTE, stream, duration_us=us) for stream in (1, 2)]
    program = replace(plain, batches=(Batch(batch.ranks, (*kernels, *batch.instructions)),))
    assert assert_same(program, topology) == 2
    with pytest.MonkeyPatch.context() as patch:
        _, timeline = timed(program, topology, (), COST, 0, patch)
    took = (timeline.end_us - timeline.start_us)[program.tasks.kind == TaskKind.COMPUTE]
    assert took.tolist() == [10, 10, 30, 30] * 6


def test_links_of_other_capacities_that_ranks_use_alike() -> None:
    """Ranks 0 to 3 write 24 kB to ranks 4 to 7 and back. Alone a link to a switch of 10 GB/s binds
    all of them; the first two pairs share a link of 12 GB/s, the others one of 16 GB/s.
    """
    links = [{"from": f"{rank}", "to": "pqrs"[rank // 2], "gbps": 10} for rank in range(8)]
    links += [{"from": "p", "to": "r", "gbps": 12}, {"from": "q", "to": "s", "gbps": 16}]
    links += [{"from": "p", "to": "q", "gbps": 10}]
    document = {"ranks": 8, "switches": [{"name": name} for name in "pqrs"], "links": links}
    topology = topology_from(checked(NetworkModel, document), "drawn")
    op = OpParam("all_gather", 1, DataType.INT8)
    program = recorded(Alike([(4, 24, True)]), op, topology, 1 << 24)
    assert assert_same(program, topology, cost=PLAIN) == 2
    with pytest.MonkeyPatch.context() as patch:
        _, timeline = timed(program, topology, (), PLAIN, 0, patch)
    assert (timeline.effect_us - timeline.start_us).tolist() == pytest.approx([4, 4, 3, 3] * 2)
