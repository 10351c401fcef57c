"""Links of a batch: what holds for all of its ranks is what holds for each."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_py.enums import Buffer, DataType, ReduceOp, TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.topology import PRESETS, Topology, topology_of
from tests.orchestration.authors import Author
from tests.recording import actions, op_of, recorded

RING = ResourceRequest((PlaneRequest("flat", "ring"),))


@pytest.mark.parametrize("post", [True, False])
@pytest.mark.parametrize("servers", [1, 2])
def test_some_links_without_a_data_ack_are_enough_to_refuse_it(servers: int, post: bool) -> None:
    def body(rank: Any) -> None:
        right = rank.flat.right
        right.tx_data_ack(rank.main) if post else right.rx_data_ack(rank.main)

    topology = topology_of(servers=servers, devices=4 // servers)
    with pytest.raises(OrchestrationError, match="SDMA transports have no DataAck"):
        recorded(Author(body, RING), op_of("all_gather"), topology)


def test_links_that_all_have_a_data_ack_post_it() -> None:
    def body(rank: Any) -> None:
        rank.flat.right.tx_data_ack(rank.main)
        rank.flat.left.rx_data_ack(rank.main)

    program = recorded(Author(body, RING), op_of("all_gather"), topology_of(servers=4, devices=1))
    assert set(program.tasks.kind.tolist()) == {TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT}


def differing(rank: Any) -> ResourceRequest:
    """Rank 3 exports scratch instead of CCL_In; the others ask for the same and are one batch."""
    memory = Buffer.CCL_IN if rank.id < 3 else Buffer.SCRATCH
    planes = (PlaneRequest("flat", "ring", memory, Buffer.CCL_OUT),)
    return ResourceRequest(planes, scratch_bytes=1 << 10)


def test_only_what_every_peer_exports_can_be_reached() -> None:
    """In the batch of ranks 0, 1 and 2, the first one's left peer exports scratch, the others'
    export CCL_In: neither can be reached by all.
    """
    for name in ("ccl_in", "scratch"):

        def body(rank: Any, name: str = name) -> None:
            if rank.id < 3:
                memory = getattr(rank, name).head(64)
                rank.main.copy(rank.ccl_out.head(64), rank.flat.left.remote(memory))

        with pytest.raises(OrchestrationError, match="cannot be reached") as error:
            recorded(Author(body, differing), op_of("all_gather"), 4)
        assert error.value.finding == "REMOTE_NOT_EXPORTED"


def test_what_every_peer_exports_can_be_reached() -> None:
    def body(rank: Any) -> None:
        rank.main.copy(rank.ccl_in.head(64), rank.flat.left.remote(rank.ccl_out.head(64)))

    program = recorded(Author(body, differing), op_of("all_gather"), 4)
    assert program.tasks.kind.tolist() == [TaskKind.READ] * 4


PUSH = "CCL_Out[0:64] to rank 1 CCL_In[64:128]"
MEET = ["posts Ack of rank 1", "waits for Ack from rank 1"]
PART = ["posts DataSignal of rank 1", "waits for DataSignal from rank 1"]
ACKNOWLEDGE = ["posts DataAck of rank 1", "waits for DataAck from rank 1"]


@pytest.mark.parametrize(
    ("devices", "forms", "expected"),
    [
        (2, {}, [*MEET, f"write {PUSH}", *PART]),
        (2, {"signal": False}, [*MEET, f"write {PUSH}"]),
        (2, {"ack": False}, [f"write {PUSH}", *PART]),
        (1, {}, [*MEET, f"rdma_write {PUSH}", *PART, *ACKNOWLEDGE]),
    ],
)
def test_a_handshake_is_around_its_block(
    devices: int, forms: dict[str, bool], expected: list[str]
) -> None:
    def body(rank: Any) -> None:
        link = rank.flat[1 - rank.id]
        with link.handshake(rank.main, **forms):
            rank.main.copy(link.remote(rank.ccl_in[64:128]), rank.ccl_out[:64])

    topology = topology_of(servers=2 // devices, devices=devices)
    program = recorded(Author(body, RING), op_of("all_gather"), topology)
    assert actions(program, 0) == [f"main {action}" for action in expected]
    program.linked.check(program)


@pytest.mark.parametrize(
    ("links", "over_sdma", "over_rdma"),
    [("both", True, True), ("sdma", True, False), ("rdma", False, True), ("none", False, False)],
)
def test_each_link_says_whether_it_reduces(links: str, over_sdma: bool, over_rdma: bool) -> None:
    """Two servers of two devices: rank 0 reaches rank 1 by SDMA, ranks 2 and 3 by RDMA."""
    sums = frozenset({(DataType.FP32, ReduceOp.SUM)})
    product = replace(
        PRESETS["atlas-800t-a2"],
        inline=sums if links in ("both", "sdma") else frozenset(),
        rdma_inline=sums if links in ("both", "rdma") else frozenset(),
    )
    found: dict[int, list[bool]] = {}

    def body(rank: Any) -> None:
        for distance in (1, 2, 3):
            if rank.id == 0:
                found.setdefault(distance, []).append(rank.flat[distance].inline_reduce)

    request = ResourceRequest((PlaneRequest("flat", "mesh"),))
    recorded(Author(body, request), op_of("all_reduce"), Topology(product, (2, 2)), by_rank=True)
    assert found == {1: [over_sdma], 2: [over_rdma], 3: [over_rdma]}
