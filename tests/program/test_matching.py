"""The untimed walk: order, links, deadlocks, overruns and left-over posts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import POST, WAIT, TaskKind
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.matching import match_tasks, queues_of
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from tests.counting import counting
from tests.program.authors import Notifies
from tests.recording import BY_NAME, MESH_ONLY, SAMPLES, op_of, recorded, without


@given(name=st.sampled_from(SAMPLES), ranks=st.integers(1, 12))
def test_the_order_respects_streams_and_posts(name: str, ranks: int) -> None:
    ranks = min(ranks, 8) if name in MESH_ONLY else ranks
    program = recorded(name, op_of(str(BY_NAME[name].op)), ranks)
    linked, tasks = program.linked, program.tasks
    place = np.empty(len(tasks), np.int64)
    place[linked.order] = np.arange(len(tasks))
    queues = queues_of(program)
    for q in range(len(queues.first) - 1):
        assert (np.diff(place[queues.rows[queues.first[q] : queues.first[q + 1]]]) > 0).all()
    waits = np.flatnonzero(tasks.kind == TaskKind.NOTIFY_WAIT)
    posts = linked.post_of[waits]
    assert (tasks.cell[posts] == tasks.cell[waits]).all()
    assert (place[posts] < place[waits]).all()
    assert len(set(posts.tolist())) == len(posts) == (tasks.kind == TaskKind.NOTIFY_POST).sum()


def test_compiled_and_plain_walks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce"), 4)
    cut = without(plain, lambda i: i.kind == TaskKind.NOTIFY_POST and i.stream == 2)
    found = [plain.linked, cut.linked]
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    for before, program in zip(found, (replace(plain), replace(cut)), strict=True):
        after = program.linked
        assert np.array_equal(before.order, after.order)
        assert np.array_equal(before.post_of, after.post_of)
        assert np.array_equal(before.stuck, after.stuck)
        assert np.array_equal(before.leftover, after.leftover)
    assert len(cut.linked.stuck) > 0


def test_a_deadlock_says_who_waits_for_what_where() -> None:
    ring = recorded("AllGatherComm", op_of("all_gather"), 3)
    silent = without(ring, lambda i: i.kind == TaskKind.NOTIFY_POST and i.label == 0)
    with pytest.raises(DeadlockError) as caught:
        silent.linked.check(silent)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Deadlock: 3 of 3 streams can never go on (3 of 48 tasks done)."
    assert lines[1].startswith("  rank 0 main   task 1  waits for Ack from rank 1   templates/")
    assert lines[-1] == (
        "Rank 1 must post Ack to rank 0 once for each wait (2 of 3); each rx_ack needs a tx_ack at "
        "the other end."
    )


def test_a_large_deadlock_shows_the_first_streams() -> None:
    ring = recorded("AllGatherComm", op_of("all_gather"), topology_of(20, preset="ring"))
    silent = without(ring, lambda i: i.kind == TaskKind.NOTIFY_POST)
    with pytest.raises(DeadlockError, match="and 12 more"):
        silent.linked.check(silent)


def test_a_deadlock_of_eight_streams_shows_them_all() -> None:
    ring = recorded("AllGatherComm", op_of("all_gather"), topology_of(8, preset="ring"))
    silent = without(ring, lambda i: i.kind == TaskKind.NOTIFY_POST)
    with pytest.raises(DeadlockError) as caught:
        silent.linked.check(silent)
    assert str(caught.value).count("waits for Ack") == 8
    assert "more" not in str(caught.value)


def test_patience_comes_back_after_an_overrun() -> None:
    """Queue 0 posts notify 0 twice, for which no queue waits, then notify 1 twice, which queue 1
    takes one after the other.
    """
    kinds = np.array([POST] * 4 + [WAIT] * 2, np.int8)
    rows, cells = np.arange(6, dtype=np.int32), np.array([0, 0, 1, 1, 1, 1])
    found = match_tasks.plain(np.array([0, 4, 6]), rows, rows, kinds, cells, 2, True, False)
    order, done, post_of, late, early, overruns = found[:6]
    assert done == 6
    assert (late[:overruns].tolist(), early[:overruns].tolist()) == ([1], [0])
    assert post_of.tolist() == [-1, -1, -1, -1, 2, 3]
    assert order.tolist().index(4) < order.tolist().index(3)


@pytest.mark.parametrize(
    ("steps", "finding", "words"),
    [
        (("tx_ack", "tx_ack", "rx_ack", "rx_ack"), "NOTIFY_OVERRUN", "posts Ack of rank 1"),
        (("tx_ack",), "UNMATCHED_POST", "no task waits for Ack of rank 1"),
        (("post",), "UNMATCHED_POST", "notify 0 of sub 0"),
        (("post", "post", "wait", "wait"), "NOTIFY_OVERRUN", "rank 0 main task 1"),
    ],
)
def test_lost_and_left_over_posts(steps: tuple[str, ...], finding: str, words: str) -> None:
    program = recorded(Notifies(*steps), op_of("all_gather"), 2)
    if program.linked.stuck.size:
        with pytest.raises(DeadlockError):
            program.linked.check(program)
        assert finding == "NOTIFY_OVERRUN"
        assert len(program.linked.overruns)
        return
    with pytest.raises(OrchestrationError, match=words) as caught:
        program.linked.check(program)
    assert caught.value.finding == finding


def test_the_digest_sees_every_column_that_matters() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 3)
    batch = program.batches[0]
    for number, instruction in enumerate(batch.instructions):
        for name, value in (
            ("stream", 1),
            ("round", 7),
            ("src_offset", 8),
            ("size", 4),
            ("dtype", 0),
        ):
            changed: Instruction = instruction._replace(**{name: value})  # type: ignore[arg-type]
            if changed == instruction:
                continue
            edited = (*batch.instructions[:number], changed, *batch.instructions[number + 1 :])
            other = replace(program, batches=(Batch(batch.ranks, edited),))
            assert other.digest != program.digest
        if number > 6:
            break
    assert replace(program, labels=("x",) * 9).digest == program.digest


def test_what_a_deadlock_needs_is_said_of_the_wait_that_lacks_a_post() -> None:
    def stuck(*steps: str) -> str:
        program = recorded(Notifies(*steps), op_of("all_gather"), 2)
        return program.linked.report(program)[1]

    assert (
        stuck("wait") == "Rank 0's notify 0 of sub 0 has 0 of 1 posts: post it once for each wait."
    )
    assert stuck("rx_data_signal") == (
        "Rank 1 must post DataSignal to rank 0 once for each wait (0 of 1); each rx_data_signal "
        "needs a tx_data_signal at the other end."
    )
    assert stuck("rx_ack", "tx_ack").startswith("Post before you wait")


def one_notify(posts: int, waits: int) -> Program:
    """Return a program whose rank 0 posts, and whose rank 1 waits, a notify that counts."""
    return counting({"0": {"0": [["post", 1, 0]] * posts}, "1": {"0": [["wait", 0, 0]] * waits}})


def test_the_kth_wait_of_a_notify_that_counts_takes_the_kth_post() -> None:
    program = one_notify(3, 3)
    assert program.linked.post_of.tolist() == [-1, -1, -1, 0, 1, 2]
    program.linked.check(program)


def test_what_is_left_over_on_a_notify_that_counts_matters_where_calls_follow() -> None:
    program = one_notify(3, 1)
    program.linked.check(program, once=True)
    with pytest.raises(OrchestrationError, match="Unmatched post"):
        program.linked.check(program)
    with pytest.raises(DeadlockError):
        one_notify(1, 2).linked.check(one_notify(1, 2), once=True)


def test_what_is_left_over_on_a_one_bit_notify_matters_where_no_call_follows() -> None:
    program = recorded(Notifies("tx_ack"), op_of("all_gather"), 2)
    with pytest.raises(OrchestrationError, match="Unmatched post"):
        program.linked.check(program, once=True)
