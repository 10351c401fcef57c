"""exchange: places that data keeps or is led between, and what never can be right."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.enums import TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded

Orchestrate = Callable[[Any], None]


class Swap:
    """Two ranks or more that exchange with their neighbours on a ring, as a test says."""

    op = "all_gather"
    algorithm = "level0:ring"

    def __init__(self, body: Orchestrate) -> None:
        self.body = body

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "ring"),))

    def orchestrate(self, op: Any, rank: Any) -> None:
        self.body(rank)


def other_buffer(rank: Any) -> None:
    ring = rank.flat
    exchange(
        rank.main, ring.right, ring.left, send=rank.ccl_in.head(64), recv=rank.ccl_out.head(64)
    )


def other_offset(rank: Any) -> None:
    ring, memory = rank.flat, rank.ccl_in
    exchange(rank.main, ring.right, ring.left, send=memory[:64], recv=memory[64:128])


def earlier_offset(rank: Any) -> None:
    ring, memory = rank.flat, rank.ccl_in
    exchange(rank.main, ring.right, ring.left, send=memory[64:128], recv=memory[:64])


def the_wrong_place_is_named(rank: Any) -> None:
    """Over SDMA where data lands, over RDMA where it comes from."""
    ring, near, far = rank.flat, rank.ccl_in.head(64), rank.ccl_out.head(64)
    places = {"source": rank.ccl_in} if ring.right.rdma else {"land": rank.ccl_out}
    exchange(rank.main, ring.right, ring.left, send=near, recv=far, **places)


REFUSED = [other_buffer, other_offset, earlier_offset, the_wrong_place_is_named]


@pytest.mark.parametrize(("servers", "missing"), [(1, "source"), (2, "land")], ids=["sdma", "rdma"])
@pytest.mark.parametrize("body", REFUSED)
def test_two_places_and_nothing_between_is_refused(
    body: Orchestrate, servers: int, missing: str
) -> None:
    topology = topology_of(servers=servers, devices=2 // servers)
    with pytest.raises(OrchestrationError, match="Data keeps its place") as caught:
        recorded(Swap(body), op_of("all_gather"), topology)
    assert "CCL_IN" in caught.value.message
    assert f"{missing}=" in caught.value.hint
    assert caught.value.line.startswith("orchestration/test_exchange.py:")


@pytest.mark.parametrize("servers", [1, 6])
def test_a_pipeline_sends_what_came_in_the_call_before(servers: int) -> None:
    def body(rank: Any) -> None:
        ring, cuts = rank.flat, [rank.ccl_in[64 * k : 64 * (k + 1)] for k in range(3)]
        first, last = rank.id == 0, rank.id == 5
        if not first:
            exchange(rank.main, None, ring.left, recv=cuts[0])
        for k in range(2):
            to, frm = None if last else ring.right, None if first else ring.left
            exchange(rank.main, to, frm, send=cuts[k], recv=cuts[k + 1])
        if not last:
            exchange(rank.main, ring.right, None, send=cuts[2])

    program = recorded(
        Swap(body), op_of("all_gather"), topology_of(servers=servers, devices=6 // servers)
    )
    assert not len(program.linked.stuck)


@pytest.mark.parametrize("servers", [1, 2, 3, 6])
def test_a_pipeline_hands_on_every_part(servers: int) -> None:
    """Over SDMA, over RDMA, and over both: what a rank sends is what its peer receives next."""

    class Broadcast(Swap):
        op = "broadcast"

    def body(rank: Any) -> None:
        ring, last = rank.flat, rank.size - 1
        work = rank.ccl_in.head(rank.user_in.size)
        cuts = [work[16 * k : 16 * (k + 1)] for k in range(4)]
        if rank.id == 0:
            rank.main.copy(work, rank.user_in)
        else:
            exchange(rank.main, None, ring.left, recv=cuts[0])
        for now, following in pairwise(cuts):
            to, frm = (
                None if rank.id == edge else way
                for edge, way in ((last, ring.right), (0, ring.left))
            )
            exchange(rank.main, to, frm, send=now, recv=following)
        if rank.id != last:
            exchange(rank.main, ring.right, None, send=cuts[3])
        rank.main.copy(rank.user_out, work)

    with hccl.Communicator(topology=topology_of(servers=servers, devices=6 // servers)) as comm:
        inputs = [np.arange(16, dtype=np.float32) + 100 * r for r in range(6)]
        outputs = comm.broadcast(inputs, root=0, executor=Broadcast(body)).outputs
    assert all((out == np.arange(16)).all() for out in outputs)


@pytest.mark.parametrize("servers", [1, 3])
def test_a_step_of_a_ring_sends_one_slot_and_receives_another(servers: int) -> None:
    def body(rank: Any) -> None:
        ring, slots = rank.flat, rank.ccl_in.head(384).split(3)
        exchange(rank.main, ring.right, ring.left, slots[rank.id], slots[(rank.id - 1) % 3])

    program = recorded(
        Swap(body), op_of("all_gather"), topology_of(servers=servers, devices=3 // servers)
    )
    assert not len(program.linked.stuck)


def test_ranks_may_have_data_at_places_of_their_own() -> None:
    """The even ranks send from CCL_In what the odd ones receive there, and the other way round."""

    def body(rank: Any) -> None:
        mate = rank.flat[rank.id ^ 1]
        near, far = rank.ccl_in.head(64), rank.ccl_out.head(64)
        if rank.id % 2:
            near, far = far, near
        exchange(rank.main, mate, mate, send=near, recv=far)

    recorded(Swap(body), op_of("all_gather"), 2)


def test_what_lands_where_it_belongs_is_not_copied_onto_itself() -> None:
    def body(rank: Any) -> None:
        ring, out = rank.flat, rank.ccl_out.head(64)
        exchange(rank.main, ring.right, ring.left, rank.ccl_in.head(64), out, land=rank.ccl_out)

    program = recorded(Swap(body), op_of("all_gather"), topology_of(servers=3, devices=1))
    assert TaskKind.COPY not in program.tasks.kind


@pytest.mark.parametrize("lands", ["ccl_out", "user_out"])
@pytest.mark.parametrize("servers", [1, 2, 4])
def test_pieces_of_unequal_sizes_go_by_way_of_source_and_land(servers: int, lands: str) -> None:
    """Each of four ranks gets what its left neighbour has, over SDMA, RDMA, or both."""

    def body(rank: Any) -> None:
        ring, data = rank.flat, rank.ccl_in[128:192]
        rank.main.copy(data, rank.user_in)
        to = rank.user_out if lands == "user_out" else rank.ccl_out[256:320]
        cuts = ((0, 8), (8, 24), (24, 64))
        send, recv = ([memory[a:b] for a, b in cuts] for memory in (data, to))
        exchange(rank.main, ring.right, ring.left, send, recv, source=data, land=rank.ccl_out)
        if lands == "ccl_out":
            rank.main.copy(rank.user_out, to)

    class Shift(Swap):
        op = "all_reduce"  # for its buffers: as much out as in

    with hccl.Communicator(topology=topology_of(servers=servers, devices=4 // servers)) as comm:
        inputs = [np.arange(16, dtype=np.float32) + 100 * r for r in range(4)]
        outputs = comm.all_reduce(inputs, executor=Shift(body)).outputs
    assert all((outputs[r] == inputs[r - 1]).all() for r in range(4))


@pytest.mark.parametrize("servers", [1, 2])
def test_what_hardware_cannot_reduce_stays_where_it_landed(servers: int) -> None:
    def body(rank: Any) -> None:
        mate, size = rank.flat.right, rank.user_in.size
        mine, land = rank.ccl_in.head(size), rank.ccl_out[4096 : 4096 + size]
        rank.main.copy(mine, rank.user_in)
        total = rank.ccl_out.head(size)
        exchange(rank.main, mate, mate, mine, total, reduce=True, source=mine, land=land)
        rank.main.copy(rank.user_out, land)

    class Landed(Swap):
        op = "all_reduce"

    topology = topology_of(servers=servers, devices=2 // servers)
    with hccl.Communicator(topology=topology) as comm:
        inputs = [np.arange(7, dtype=np.int64) + 10 * r for r in range(2)]
        outputs = comm.all_reduce(inputs, executor=Landed(body)).outputs
    assert all((outputs[r] == inputs[1 - r]).all() for r in range(2))


@pytest.mark.parametrize("servers", [1, 2])
def test_who_names_only_what_it_moves_itself_is_believed(servers: int) -> None:
    """A pull does not look at what is sent, nor a push at where it is received."""

    def body(rank: Any) -> None:
        ring, memory = rank.flat, rank.ccl_in.head(64)
        named = {"send" if ring.right.rdma else "recv": memory}
        exchange(rank.main, ring.right, ring.left, **named)

    topology = topology_of(servers=servers, devices=2 // servers)
    program = recorded(Swap(body), op_of("all_gather"), topology)
    moved = [kind for kind in program.tasks.kind if TaskKind(kind).moves_data]
    assert len(moved) == 2
    assert not len(program.linked.stuck)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("servers", [1, 2])
def test_a_reduction_between_two_places_goes_by_way_of_land(servers: int, dtype: Any) -> None:
    """float32 is reduced inline, int64 is not."""

    class Sum(Swap):
        op = "all_reduce"

    def body(rank: Any) -> None:
        mate, size = rank.flat.right, rank.user_in.size
        mine, total = rank.ccl_in.head(size), rank.ccl_out.head(size)
        rank.main.copy(mine, rank.user_in)
        rank.main.copy(total, rank.user_in)
        beside = rank.ccl_out[4096 : 4096 + size]
        exchange(rank.main, mate, mate, mine, total, reduce=True, source=mine, land=beside)
        rank.main.copy(rank.user_out, total)

    topology = topology_of(servers=servers, devices=2 // servers)
    with hccl.Communicator(topology=topology) as comm:
        inputs = [np.arange(7, dtype=dtype) + 10 * r for r in range(2)]
        outputs = comm.all_reduce(inputs, executor=Sum(body)).outputs
    assert all((out == sum(inputs)).all() for out in outputs)


def test_a_phase_that_is_no_block_is_refused() -> None:
    def body(rank: Any) -> None:
        rank.main.phase("gather")
        with rank.main.phase("scatter"):
            rank.main.copy(rank.ccl_out.head(4), rank.ccl_in.head(4))

    with pytest.raises(OrchestrationError, match=r"phase\('gather'\) is no block") as caught:
        recorded(Swap(body), op_of("all_gather"), 2)
    assert caught.value.line.startswith("orchestration/test_exchange.py:")
