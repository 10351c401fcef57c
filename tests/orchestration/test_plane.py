"""Planes: the barrier of their members."""

from typing import Any

import pytest

from hccl_py import verify
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import OpParam, PlaneRequest, Rank, RankView, ResourceRequest
from hccl_py.topology import topology_of
from tests.orchestration.authors import Author
from tests.recording import actions, op_of, recorded

BARRIER = ResourceRequest((PlaneRequest("flat", "ring", extra_notifies=2, barrier=True),))


def test_members_meet_at_the_first_one() -> None:
    program = recorded(
        Author(lambda rank: rank.flat.barrier(rank.main), BARRIER), op_of("all_gather"), 3
    )
    # Notifies 0 and 1 are the author's.
    assert actions(program, 0) == [
        "main waits for extra notify 2 from rank 2",
        "main waits for extra notify 2 from rank 1",
        "main posts extra notify 2 of rank 2",
        "main posts extra notify 2 of rank 1",
    ]
    for member in (1, 2):
        assert actions(program, member) == [
            "main posts extra notify 2 of rank 0",
            "main waits for extra notify 2 from rank 0",
        ]
    assert program.labels == ("barrier",)


class Pushed:
    """All-gather by pushes into CCL_In, between barriers."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Any) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh", barrier=True),))

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        slots = rank.slots(rank.user_in.size)
        rank.main.copy(slots[rank.id], rank.user_in)
        rank.flat.barrier(rank.main)
        for _, link in rank.flat.others():
            rank.main.copy(link.remote(slots[rank.id]), slots[rank.id])
        rank.flat.barrier(rank.main)
        rank.main.copy(rank.user_out, slots)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_barriers_order_what_members_do(ranks: int) -> None:
    assert list(verify(recorded(Pushed, op_of("all_gather", 96), ranks))) == []


def test_a_barrier_in_each_server_meets_at_its_first_rank() -> None:
    request = ResourceRequest((PlaneRequest("level0", "mesh", barrier=True),))
    author = Author(lambda rank: rank.level0.barrier(rank.main), request)
    program = recorded(author, op_of("all_gather"), topology_of(servers=2, devices=3))
    assert actions(program, 5) == [
        "main posts extra notify 0 of rank 3",
        "main waits for extra notify 0 from rank 3",
    ]
    # Links that do not reach the first rank have no notify for it.
    ends = zip(program.transports.rank.tolist(), program.transports.peer.tolist(), strict=True)
    expected = [4 if {0, 3} & set(end) else 3 for end in ends]
    assert program.transports.notifies.tolist() == expected
    assert (expected.count(3), expected.count(4)) == (4, 8)


def test_a_barrier_that_was_not_requested_is_refused() -> None:
    request = ResourceRequest((PlaneRequest("flat", "mesh"),))
    author = Author(lambda rank: rank.flat.barrier(rank.main), request)
    with pytest.raises(OrchestrationError, match="no notify for barriers") as caught:
        recorded(author, op_of("all_gather"), 3)
    assert caught.value.finding == "NOTIFY_INDEX_OUT_OF_RANGE"
    assert "barrier=True" in caught.value.hint


def test_the_last_extra_notify_is_not_the_barriers() -> None:
    author = Author(lambda rank: rank.flat.right.post(rank.main, 2), BARRIER)
    with pytest.raises(OrchestrationError, match="extra notifies requested: 2"):
        recorded(author, op_of("all_gather"), 3)
