"""Recording: batches equal rank by rank, splits, rounds, resources, patterns."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_py.enums import Buffer, Mode, ReduceOp, TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest, ops_of
from hccl_py.program.describe import format_line_of
from hccl_py.program.program import Program
from hccl_py.program.usage import differences
from hccl_py.testing.calls import suits
from hccl_py.topology import topology_of
from tests.orchestration.authors import Author, MeshAuthor
from tests.recording import BY_NAME, SAMPLES, filled, op_of, recorded, same_tasks
from tests.suited import SuitedCall, suited

SERVERS = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def texts(program: Program) -> list[tuple[str, str]]:
    """Labels and lines of all tasks; their numbers depend on batching, their texts must not."""
    labels = program.tasks.table.label[program.tasks.instruction].tolist()
    return [
        (program.labels[label] if label >= 0 else "", format_line_of(program, row))
        for row, label in enumerate(labels)
    ]


@given(
    call=suited(("mesh",), SERVERS, (0, 1, 5, 1000, 3000), ("fp32", "int64", "int8"), tuple(Mode)),
    ccl_kib=st.sampled_from([32, 1024]),
)
def test_batches_record_what_single_ranks_record(call: SuitedCall, ccl_kib: int) -> None:
    together = recorded(*call, ccl_kib << 10)
    alone = recorded(*call, ccl_kib << 10, by_rank=True)
    assert len(alone.batches) == call.topology.size
    assert together.digest == alone.digest
    assert same_tasks(together, alone)
    assert texts(together) == texts(alone)
    together.linked.check(together)


@pytest.mark.parametrize("name", [*SAMPLES, "ReduceScatterComm", "BroadCastComm"])
@pytest.mark.parametrize("dtype", ["fp32", "int64"])
def test_ranks_use_what_they_declare(name: str, dtype: str) -> None:
    name_of_op = ops_of(BY_NAME[name]())[0]
    for ranks, mode in product((1, 2, 3, 8, 9, 16), Mode):
        op = filled(op_of(name_of_op, 4096, dtype, mode=mode), ranks)
        if suits(BY_NAME[name], op, topology_of(ranks)):
            found = differences(recorded(name, op, ranks))
            # A root makes the last member of a ring, say, use one of its links only.
            assert [text for text in found if op.root is None or "transports" not in text] == []


def test_what_is_declared_and_not_used_is_found() -> None:
    class Wasteful(MeshAuthor):
        subs = 2
        scratch = 64

        def orchestrate(self, op: Any, rank: Any) -> None:
            rank.flat.right.tx_ack(rank.subs[0])
            rank.flat.left.rx_ack(rank.subs[0])

    assert differences(recorded(Wasteful, op_of("all_gather"), 3))[::3] == [
        "rank 0: 2 sub streams declared, 1 used",
        "rank 0: 4 notifies declared, 0 used",
        "rank 0: 64 scratch bytes declared, 0 used",
    ]


def test_the_numbers_of_hccl_s_mesh_all_gather() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 4)
    tasks = program.tasks
    for rank in range(4):
        mine = tasks.rank == rank
        assert np.bincount(tasks.stream[mine]).tolist() == [16, 9, 9, 9]
        assert (tasks.kind[mine] == 9).sum() == 18
    assert program.declared.sub_streams.tolist() == [3] * 4
    assert program.declared.notifies.tolist() == [6] * 4
    assert program.declared.scratch_bytes.tolist() == [0] * 4
    assert program.transports.counts(4).tolist() == [3] * 4
    assert len(program.batches) == 1


def around(rank: Any) -> None:
    """Pass the input round a ring, by whatever links there are."""
    slots, ring = rank.stage_out(), rank.flat
    rank.main.copy(slots[rank.id], rank.user_in)
    for step in range(rank.size - 1):
        mine, theirs = (rank.id - step) % rank.size, (rank.id - step - 1) % rank.size
        exchange(rank.main, ring.right, ring.left, send=slots[mine], recv=slots[theirs])
    rank.deliver(slots)


def test_a_ring_of_one_kind_is_one_batch_and_a_mixed_one_few() -> None:
    op, links = op_of("all_gather", 1 << 10), PlaneRequest("flat", "ring")
    author = Author(around, ResourceRequest((links,)))
    assert len(recorded(author, op, topology_of(64, preset="ring")).batches) == 1
    assert len(recorded(author, op, topology_of(servers=4, devices=8)).batches) == 3


def test_data_beyond_the_buffer_goes_in_rounds() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 5000), 4, ccl_bytes=8192)
    assert program.rounds == 3
    assert sorted(set(program.tasks.table.round.tolist())) == [0, 1, 2]
    graph = recorded("AllReduceComm", op_of("all_reduce", 5000, mode=Mode.GRAPH), 4, 8192)
    assert graph.rounds == 1


def test_graph_mode_links_user_memory_and_keeps_the_input() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 5000, mode=Mode.GRAPH), 4)
    table = program.tasks.table
    used = set(table.src_buffer[table.moves_data]) | set(table.dst_buffer[table.moves_data])
    assert used == {Buffer.USER_IN, Buffer.USER_OUT}
    assert Buffer.USER_IN not in set(table.dst_buffer[table.moves_data])


class Rooted(MeshAuthor):
    """Branches on the rank in every way an author might."""

    def orchestrate(self, op: Any, rank: Any) -> None:
        links, stream = rank.flat, rank.main
        staged = rank.ccl_out.head(rank.user_in.size)
        stream.copy(staged, rank.user_in)
        stream.copy(rank.user_out[rank.id], staged)
        for peer in range(rank.size):
            if peer == rank.id:
                for other in range(rank.size):
                    if other != rank.id:
                        exchange(stream, to=links[other], send=staged)
            else:
                exchange(
                    stream, frm=links[peer], recv=rank.user_out[peer], source=rank.ccl_out,
                    land=rank.ccl_in,
                )  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_plain_python_branches_split_and_stay_right(ranks: int) -> None:
    op = op_of("all_gather", 9)
    together = recorded(Rooted, op, ranks)
    assert len(together.batches) == ranks
    assert together.digest == recorded(Rooted, op, ranks, by_rank=True).digest
    together.linked.check(together)


def test_many_batches_leave_the_author_s_line() -> None:
    program = recorded(Rooted, op_of("all_gather", 1), topology_of(70, preset="mesh"))
    assert len(program.batches) == 70
    assert all("test_record.py:" in line for line in program.splits)
    assert "records 70 ranks in 70 batches: orchestration/test_record.py:" in program.batching_hint
    assert recorded(Rooted, op_of("all_gather", 1), 8).batching_hint == ""


class UnevenSubs(MeshAuthor):
    """Asks for as many sub streams as its server has other ranks."""

    planes = (PlaneRequest("level0", "mesh"),)

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(self.planes, sub_streams=rank.level0.size - 1)

    def orchestrate(self, op: Any, rank: Any) -> None:
        with rank.level0.fork() as subs:
            for sub, _, link in subs:
                link.tx_ack(sub)
                link.rx_ack(sub)


def test_requests_may_differ_by_rank() -> None:
    topology = topology_of(11)  # servers of 8 and 3
    program = recorded(UnevenSubs, op_of("all_gather"), topology)
    assert program.declared.sub_streams.tolist() == [7] * 8 + [2] * 3
    assert differences(program) == []
    assert (
        program.digest == recorded(UnevenSubs, op_of("all_gather"), topology, by_rank=True).digest
    )
    program.linked.check(program)


def test_a_reduction_may_have_another_op_than_the_call() -> None:
    class Mixed(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            rank.main.reduce(rank.ccl_in, rank.ccl_out, ReduceOp.MAX)
            rank.main.reduce(rank.ccl_in, rank.flat.right.remote(rank.ccl_out), op=ReduceOp.MIN)
            if op.reduce is not None:
                rank.main.reduce(rank.ccl_in, rank.ccl_out)
            rank.main.copy(rank.ccl_in, rank.ccl_out)

    table = recorded(Mixed, op_of("all_gather"), 4).tasks.table
    assert table.reduce.tolist() == [ReduceOp.MAX, ReduceOp.MIN, -1]
    table = recorded(Mixed, op_of("all_reduce"), 4).tasks.table
    assert table.reduce.tolist() == [ReduceOp.MAX, ReduceOp.MIN, ReduceOp.SUM, -1]


def test_links_over_rdma_where_sdma_would_do() -> None:
    class Pushes(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest((PlaneRequest("flat", "ring", rdma=True),))

        def orchestrate(self, op: Any, rank: Any) -> None:
            part = rank.ccl_in.head(8)
            rank.main.copy(rank.flat.right.remote(part), part)

    program = recorded(Pushes, op_of("all_gather"), 2)
    assert {TaskKind(kind) for kind in program.tasks.kind.tolist()} == {TaskKind.RDMA_WRITE}


@pytest.mark.parametrize("servers", [1, 4])
def test_several_pieces_lie_one_after_the_other_in_source_and_land(servers: int) -> None:
    class Pieces(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            n, links = rank.size, rank.flat
            mine = rank.ccl_in.head(rank.user_in.size)
            rank.main.copy(mine, rank.user_in)
            rank.main.copy(rank.user_out[rank.id], mine)
            for k in range(1, n):
                to, frm = (rank.id + k) % n, (rank.id - k) % n
                recv = list(rank.user_out[frm].split(3, align=4))
                land = rank.ccl_out.head(mine.size)
                exchange(rank.main, links[to], links[frm], list(mine.split(3, align=4)), recv,
                         source=mine, land=land)  # fmt: skip

    topology = topology_of(servers=servers, devices=4 // servers)
    with hccl.Communicator(topology=topology) as comm:
        inputs = [np.arange(7, dtype=np.int32) + 10 * r for r in range(4)]
        outputs = comm.all_gather(inputs, executor=Pieces).outputs
    assert all((o == np.concatenate(inputs)).all() for o in outputs)


def test_non_inline_reductions_land_beside() -> None:
    inline = recorded("AllReduceComm", op_of("all_reduce"), 4).tasks.table.kind
    local = recorded("AllReduceComm", op_of("all_reduce", dtype="int64"), 4).tasks.table.kind
    prod = recorded("AllReduceComm", op_of("all_reduce", reduce=ReduceOp.PROD), 4).tasks.table.kind
    for kinds, used, unused in ((inline, 4, 3), (local, 3, 4), (prod, 3, 4)):
        assert used in kinds
        assert unused not in kinds


def test_extra_notifies_and_custom_patterns() -> None:
    class Pairs(MeshAuthor):
        planes = (PlaneRequest("flat", lambda me, n: [me ^ 1], extra_notifies=2),)

        def orchestrate(self, op: Any, rank: Any) -> None:
            link = rank.flat[rank.id ^ 1]
            for index in range(2):
                link.post(rank.main, index)
                link.wait(rank.main, index)

    program = recorded(Pairs, op_of("all_gather"), 4)
    program.linked.check(program)
    assert program.transports.counts(4).tolist() == [1] * 4


def test_a_pattern_of_the_authors_is_asked_once_for_every_index() -> None:
    asked = []

    def ahead_and_behind(me: int, n: int) -> list[int]:
        asked.append(me)
        return sorted({(me + 1) % n, (me - 1) % n} - {me})

    class Between(MeshAuthor):
        planes = (PlaneRequest("level1", ahead_and_behind),)

        def orchestrate(self, op: Any, rank: Any) -> None:
            pass

    program = recorded(Between, op_of("all_gather"), topology_of(servers=3, devices=4))
    assert asked == [0, 1, 2]
    assert program.transports.counts(12).tolist() == [2] * 12


def halving_doubling(ranks: int) -> set[tuple[int, int]]:
    """Return the links: even and odd of the first pairs, then the hypercube of who is left."""
    block = 2 ** (len(bin(ranks)) - 3)
    folded = 2 * (ranks - block)
    left = [*range(0, folded, 2), *range(folded, ranks)]
    pairs = {(r, r + 1) for r in range(0, folded, 2)}
    cube = {
        (a, b) for i, a in enumerate(left) for j, b in enumerate(left) if (i ^ j).bit_count() == 1
    }
    return pairs | {(b, a) for a, b in pairs} | cube


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 12])
def test_patterns_reach_the_peers_of_their_algorithm(ranks: int) -> None:
    def links(pattern: str) -> set[tuple[int, int]]:
        class Only(MeshAuthor):
            planes = (PlaneRequest("flat", pattern),)

            def orchestrate(self, op: Any, rank: Any) -> None:
                pass

        ends = recorded(Only, op_of("all_gather"), topology_of(ranks, preset="mesh")).transports
        found = list(zip(ends.rank.tolist(), ends.peer.tolist(), strict=True))
        assert len(set(found)) == len(found)
        return set(found)

    everyone = range(ranks)
    powers = [step for step in (1, 2, 4, 8) if step < ranks]
    assert links("mesh") == {(a, b) for a in everyone for b in everyone if a != b}
    assert links("ring") == {(r, (r + step) % ranks) for r in everyone for step in (1, -1)}
    assert links("nhr") == {
        (r, (r + sign * step) % ranks) for r in everyone for step in powers for sign in (1, -1)
    }
    assert links("rhd") == halving_doubling(ranks)


def test_two_forks_one_after_the_other_are_fine() -> None:
    class Twice(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest(sub_streams=1)

        def orchestrate(self, op: Any, rank: Any) -> None:
            for _ in range(2):
                with rank.fork():
                    pass

    program = recorded(Twice, op_of("all_gather"), 2)
    program.linked.check(program)


class Rounds:
    """Copies its input, in rounds that it names."""

    op = "all_reduce"
    algorithm = "level0:NA"
    first: Any = (3, 5)

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(max_count=4, first_rounds=self.first)

    def orchestrate(self, op: Any, rank: Any) -> None:
        rank.main.copy(rank.user_out, rank.user_in)


def test_first_rounds_take_their_own_numbers() -> None:
    tasks = recorded(Rounds, op_of("all_reduce", 14)).tasks
    assert tasks.size[tasks.rank == 0].tolist() == [4 * n for n in (3, 5, 4, 2)]


def test_all_first_rounds_take_place() -> None:
    """Also those for which there is nothing left."""
    program = recorded(type("Rest", (Rounds,), {"first": (3, 0, 5, 0)}), op_of("all_reduce", 6))
    tasks = program.tasks
    assert program.rounds == 4
    assert tasks.size[tasks.rank == 0].tolist() == [4 * n for n in (3, 0, 3, 0)]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (7, "first_rounds is a int"),
        ((3, -1), "the elements of a round is -1"),
    ],
)
def test_wrong_rounds_are_named(first: Any, words: str) -> None:
    with pytest.raises(OrchestrationError, match=words):
        recorded(type("Odd", (Rounds,), {"first": first}), op_of("all_reduce"))


def test_ranks_name_the_same_rounds() -> None:
    class Odd(Rounds):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest(max_count=4, first_rounds=(1,) if rank.id == 0 else (2,))

    with pytest.raises(OrchestrationError, match="ranks name 2 different first_rounds"):
        recorded(Odd, op_of("all_reduce"))
