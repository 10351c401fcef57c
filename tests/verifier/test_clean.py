"""What must stay clean, and the 15 ops: right as small programs, and wrong at one place each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer
from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import Executor, PlaneRequest, ResourceRequest
from hccl_py.topology import Topology
from hccl_py.verifier import Options, Report, Severity, verify_executor, verify_program
from tests.recording import CHOSEN, op_of
from tests.verifier.broken.mesh import cases
from tests.verifier.broken_files import FILES
from tests.verifier.programs import PRODUCT, authored
from tests.verifier.sketches import Flow, Sketch, all_gather, mesh, pushed, sketch

RANKS = 4
ALL = range(RANKS)


def errors(report: Report) -> list[str]:
    return [finding.name for finding in report if finding.severity is not Severity.HINT]


# ---- the 15 ops ----


class Op(NamedTuple):
    """An op on 4 ranks in uint8 (int8 where it reduces): its members, and what it means."""

    members: dict[str, Any]
    flows: list[Flow]

    def document(self, name: str) -> dict[str, Any]:
        reduces = "reduce" in self.members
        return {"name": name, "dtype": "int8" if reduces else "uint8", "count": 16, **self.members}


SUM = {"reduce": "sum"}
SENT = [[2, 4, 0, 8], [6, 2, 2, 4], [0, 4, 8, 2], [4, 0, 6, 2]]
"""Bytes that go from a rank (row) to another one; some send nothing."""

BY_ROW = [[sum(row[:r]) for r in ALL] for row in SENT]
BY_COLUMN = [[sum(SENT[k][r] for k in range(s)) for r in ALL] for s in ALL]
GAPPED_IN = [[24 - r * 8 for r in ALL] for _ in ALL]
GAPPED_OUT = [[r * 10 for r in ALL] for _ in ALL]
COUNTS, DISPLS = (8, 0, 6, 2), (0, 8, 12, 24)

OPS_AS_FLOWS = {
    "all_gather": Op({}, [Flow(s, 0, r, s * 16, 16) for r in ALL for s in ALL]),
    "all_reduce": Op(SUM, [Flow(s, 0, r, 0, 16) for r in ALL for s in ALL]),
    "reduce_scatter": Op(SUM, [Flow(s, r * 16, r, 0, 16) for r in ALL for s in ALL]),
    "broadcast": Op({"root": 2}, [Flow(2, 0, r, 0, 16) for r in ALL]),
    "reduce": Op({"root": 1, **SUM}, [Flow(s, 0, 1, 0, 16) for s in ALL]),
    "scatter": Op({"root": 3}, [Flow(3, r * 16, r, 0, 16) for r in ALL]),
    "gather": Op({"root": 1}, [Flow(s, 0, 1, s * 16, 16) for s in ALL]),
    "all_to_all": Op({}, [Flow(s, r * 16, r, s * 16, 16) for r in ALL for s in ALL]),
    "all_gather_v": Op(
        {"counts": COUNTS, "displs": DISPLS},
        [Flow(s, 0, r, DISPLS[s], COUNTS[s]) for r in ALL for s in ALL],
    ),
    "reduce_scatter_v": Op(
        {"counts": COUNTS, "displs": DISPLS, **SUM},
        [Flow(s, DISPLS[r], r, 0, COUNTS[r]) for r in ALL for s in ALL],
    ),
    "all_to_all_v": Op(
        {"counts": SENT, "displs": [GAPPED_IN[r] + GAPPED_OUT[r] for r in ALL]},
        [Flow(s, GAPPED_IN[s][r], r, GAPPED_OUT[r][s], SENT[s][r]) for r in ALL for s in ALL],
    ),
    "all_to_all_vc": Op(
        {"matrix": SENT},
        [Flow(s, BY_ROW[s][r], r, BY_COLUMN[s][r], SENT[s][r]) for r in ALL for s in ALL],
    ),
    "send_recv": Op({"pairs": [[0, 3], [2, 1]]}, [Flow(0, 0, 3, 0, 16), Flow(2, 0, 1, 0, 16)]),
    "batch_send_recv": Op(
        {"pairs": [[0, 1, 4], [1, 0], [0, 1, 8], [3, 1, 2], [2, 2, 6]]},
        [
            Flow(0, 0, 1, 0, 4),
            Flow(1, 0, 0, 0, 16),
            Flow(0, 4, 1, 4, 8),
            Flow(3, 0, 1, 12, 2),
            Flow(2, 0, 2, 0, 6),
        ],
    ),
    "barrier": Op({"count": 0}, []),
}

WITH_DATA = [name for name in OPS_AS_FLOWS if name != "barrier"]
REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v")


def drawn_op(name: str, draw: Callable[..., Sketch] = mesh) -> Sketch:
    op = OPS_AS_FLOWS[name]
    return draw(op.document(name), op.flows, RANKS)


def a_read(drawn: Sketch) -> tuple[int, int]:
    """Return rank and position of its last read of several bytes."""
    rank = next(r for r in ALL if any(task[0].startswith("read") for task in drawn.at(r)))
    tasks = enumerate(drawn.at(rank))
    return rank, max(k for k, t in tasks if t[0].startswith("read") and t[-1][2] > 1)


def test_every_op_is_here() -> None:
    assert set(OPS_AS_FLOWS) == set(OPS)


@pytest.mark.parametrize("draw", [mesh, pushed])
@pytest.mark.parametrize("name", OPS_AS_FLOWS)
def test_every_op_is_clean_over_sdma_and_rdma(name: str, draw: Callable[..., Sketch]) -> None:
    report = drawn_op(name, draw).report(repeat=3)
    assert not errors(report)
    assert not report.notes


@pytest.mark.parametrize("name", WITH_DATA)
def test_halves_in_the_wrong_order_are_a_wrong_offset(name: str) -> None:
    drawn = drawn_op(name)
    rank, at = a_read(drawn)
    *head, src, dst = drawn.at(rank)[at]
    half, rest = dst[2] // 2, dst[2] - dst[2] // 2
    drawn.at(rank)[at : at + 1] = [
        [*head, [src[0], src[1] + half, rest], [dst[0], dst[1], rest]],
        [*head, [src[0], src[1], half], [dst[0], dst[1] + rest, half]],
    ]
    found = drawn.report().errors
    assert {finding.name for finding in found} == {"WRONG_OFFSET"}
    assert {finding.tasks[0].rank for finding in found} == {rank}
    assert {m.buffer for finding in found for m in finding.memory} == {"OUT"}


@pytest.mark.parametrize("name", [name for name in WITH_DATA if name != "batch_send_recv"])
def test_a_wrong_peer_is_a_wrong_source(name: str) -> None:
    """Every rank stages all of its input, so that other ranks have something at the same place."""
    drawn = drawn_op(name)
    rank, at = a_read(drawn)
    peer = drawn.at(rank)[at][1]
    other = next(r for r in ALL if r not in (rank, peer))
    size = drawn.document["buffers"]["0"]["IN"]
    if not any(task[:1] == ["copy"] for task in drawn.at(other)):
        drawn.at(other).insert(0, ["copy", ["IN", 0, size], ["CCL", 0, size]])
    drawn.at(rank)[at][1] = other
    found = {finding.name for finding in drawn.report().errors}
    if name in REDUCING:
        assert {"MISSING_CONTRIBUTION", "DOUBLE_CONTRIBUTION"} <= found
    else:
        assert "WRONG_SOURCE" in found


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_read_that_is_left_out_is_missing(name: str) -> None:
    drawn = drawn_op(name)
    rank, at = a_read(drawn)
    task = drawn.at(rank).pop(at)
    (finding,) = drawn.report().errors
    wanted = "MISSING_CONTRIBUTION" if name in REDUCING else "OUTPUT_MISSING"
    assert finding.name == wanted
    (memory,) = finding.memory
    assert (memory.rank, memory.buffer) == (rank, "OUT")
    assert (memory.start, memory.stop) == (task[-1][1], task[-1][1] + task[-1][2])


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_read_before_its_wait_is_a_race(name: str) -> None:
    drawn = drawn_op(name)
    rank, at = a_read(drawn)
    drawn.at(rank)[at - 1], drawn.at(rank)[at] = drawn.at(rank)[at], drawn.at(rank)[at - 1]
    assert {finding.name for finding in drawn.report().errors} == {"RACE_RW"}


def test_a_barrier_in_which_two_ranks_do_not_hear_of_each_other_is_none() -> None:
    drawn = drawn_op("barrier")
    for rank, peer in ((0, 2), (2, 0)):
        for index in (0, 1):
            drawn.drop(rank, "post", peer, index)
            drawn.drop(rank, "wait", peer, index)
    assert not drawn.report().errors  # through the others they do
    for rank in ALL:
        drawn.at(rank)[:] = [t for t in drawn.at(rank) if {rank, t[1]} in ({0, 1}, {2, 3})]
    (finding,) = drawn.report().errors
    assert finding.name == "MISSING_CONTRIBUTION"
    assert finding.ranks == (0, 1, 2, 3)
    assert finding.message == (
        "Rank 0 leaves the barrier without knowing that rank 2 has entered it (nor rank 3)."
    )


def test_a_rank_that_leaves_the_barrier_out_is_silent() -> None:
    drawn = drawn_op("barrier")
    drawn.at(2).clear()
    (finding,) = drawn.report().of_class("SILENT_RANK")
    assert finding.ranks == (2,)


# ---- what looks wrong and is not ----


def test_independent_posts_may_change_places() -> None:
    drawn = all_gather()
    tasks = drawn.at(0)
    tasks[2], tasks[4] = tasks[4], tasks[2]
    assert not drawn.report().findings


def test_copies_of_nothing_touch_nothing() -> None:
    """Not even where they would race, be out of bounds or read what nobody wrote."""
    drawn = all_gather()
    drawn.at(1).insert(0, ["read", 0, ["CCL", 0, 0], ["OUT", 9999, 0]])
    drawn.put(2, ["copy", ["CCL", 5, 0], ["IN", 0, 0]], stream=1)
    drawn.at(2).insert(0, ["local_post", 1, 0])
    drawn.at(2).append(["local_wait", 0])
    drawn.at(2, 1).insert(0, ["local_wait", 0])
    drawn.at(2, 1).append(["local_post", 0, 0])
    assert not drawn.report().findings


def test_an_extra_barrier_is_a_hint_at_most() -> None:
    drawn = all_gather()
    for rank in ALL:
        others = [peer for peer in ALL if peer != rank]
        for index in (2, 3):
            drawn.at(rank)[5:5] = [["post", p, index] for p in others]
            drawn.at(rank)[8:8] = [["wait", p, index] for p in others]
    report = drawn.report()
    assert report.ok
    assert {finding.severity for finding in report} <= {Severity.HINT}


def test_a_slot_may_be_used_in_every_step_when_the_ack_follows_the_copy_out() -> None:
    """Pairwise all-to-all: in step k rank r writes into the one slot of r + k."""
    flows = OPS_AS_FLOWS["all_to_all"].flows
    drawn = sketch({"name": "all_to_all", "dtype": "uint8", "count": 16}, RANKS, SIZES)
    for rank in ALL:
        drawn.put(rank, ["copy", ["IN", rank * 16, 16], ["OUT", rank * 16, 16]])
        for step in range(1, RANKS):
            to, frm = (rank + step) % RANKS, (rank - step) % RANKS
            drawn.put(rank, ["post", frm, 0], ["wait", to, 0])
            drawn.put(rank, ["write", to, ["IN", to * 16, 16], ["CCL", 0, 16]], ["post", to, 1])
            drawn.put(rank, ["wait", frm, 1], ["copy", ["CCL", 0, 16], ["OUT", frm * 16, 16]])
    assert len(flows) == RANKS**2
    assert not drawn.report(repeat=3).errors
    late = drawn.at(1)
    late.insert(late.index(["copy", ["CCL", 0, 16], ["OUT", 0, 16]]), late.pop(7))
    assert {f.name for f in drawn.report().errors} == {"RACE_RW"}


SIZES = {"IN": 64, "OUT": 64, "CCL": 64}


def test_a_peer_may_order_two_streams_of_a_rank() -> None:
    """Sub 0 writes, the peer is told and tells main, which reads: no local notify in between."""
    drawn = sketch({"name": "all_gather", "dtype": "uint8", "count": 32}, 2, SIZES)
    for rank in range(2):
        peer, mine = 1 - rank, ["OUT", rank * 32, 32]
        drawn.put(rank, ["local_post", 1, 0], ["wait", peer, 1], ["copy", ["CCL", 0, 32], mine])
        drawn.put(rank, ["read", peer, ["CCL", 0, 32], ["OUT", peer * 32, 32]])
        drawn.put(rank, ["post", peer, 2], ["wait", peer, 2])
        drawn.put(rank, ["local_wait", 0], ["copy", ["IN", 0, 32], ["CCL", 0, 32]], stream=1)
        drawn.put(rank, ["post", peer, 0], ["wait", peer, 0], ["post", peer, 1], stream=1)
    assert not drawn.report(repeat=3).errors
    drawn.at(0).insert(1, drawn.at(0).pop(2))
    assert "RACE_RW" in {finding.name for finding in drawn.report().errors}


def test_atomic_sums_of_several_peers_are_a_warning() -> None:
    report = FILES["REDUCE_ORDER_NONDET"](True).report()
    assert report.ok
    assert set(errors(report)) == {"REDUCE_ORDER_NONDET"}
    assert {finding.severity for finding in report} == {Severity.WARNING}


def test_a_contribution_may_be_there_for_a_while() -> None:
    """The output is wrong in between: what counts is how it ends."""
    drawn = all_gather()
    drawn.at(0).insert(0, ["copy", ["IN", 0, 64], ["OUT", 128, 64]])
    report = drawn.report()
    assert report.ok
    assert [finding.name for finding in report] == ["DEAD_TRANSFER"]


def test_notifies_may_go_back_and_forth() -> None:
    drawn = sketch({"name": "barrier", "dtype": "uint8", "count": 0}, 2, SIZES)
    for _ in range(4):
        drawn.put(0, ["post", 1, 0], ["wait", 1, 0])
        drawn.put(1, ["wait", 0, 0], ["post", 0, 0])
    assert not drawn.report(repeat=3).findings


def test_forks_may_be_nested_and_follow_each_other() -> None:
    def body(rank: Any) -> None:
        half = rank.user_in.size // 2
        for _ in range(2):
            with rank.fork(1) as (sub,):
                rank.main.copy(rank.user_out[:half], rank.user_in[:half])
                sub.post(rank.notifies[4])
                rank.subs[1].wait(rank.notifies[4])
                rank.subs[1].copy(rank.user_out[half:], rank.user_in[half:])
                rank.subs[1].post(rank.notifies[5])
                sub.wait(rank.notifies[5])

    request = ResourceRequest(sub_streams=2, notifies=6)
    program = authored(body, request, op_of("all_reduce", 32), 1)
    report = verify_program(program, Options(repeat=3))
    assert not report.errors


@pytest.mark.parametrize("kind", ["ring", "mesh"])
def test_exchange_over_rdma_is_clean(kind: str) -> None:
    memories = (Buffer.CCL_IN, Buffer.CCL_OUT)
    request = ResourceRequest((PlaneRequest("flat", kind, *memories),))

    def body(rank: Any) -> None:
        slots = rank.stage_out()
        rank.main.copy(slots[rank.id], rank.user_in)
        for step in range(rank.size - 1):
            send, recv = slots[rank.id - step], slots[rank.id - 1 - step]
            exchange(rank.main, rank.flat.right, rank.flat.left, send, recv)
        rank.deliver(slots)

    topology = Topology(PRODUCT, (2, 1))
    program = authored(body, request, op_of("all_gather", 32), topology)
    assert not verify_program(program, Options(repeat=3)).errors


@pytest.mark.sweep
@pytest.mark.parametrize("cls", CHOSEN)
def test_the_built_in_executors_are_clean(cls: type[Executor]) -> None:
    narrowed = cases(ranks=(2, 3), counts=(0, 33), modes=(), topology=None, in_place=None)
    report = verify_executor(cls(), narrowed)
    assert report.ok
    assert not [finding for finding in report if finding.severity is Severity.ERROR]
    assert report.cases > 1
