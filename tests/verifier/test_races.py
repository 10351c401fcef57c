"""What two tasks do to the same memory in no order."""

from typing import Any

import pytest

from hccl_py.verifier import MemoryRange, Severity, TaskAt
from tests.verifier.broken_files import FILES
from tests.verifier.sketches import Sketch, all_gather, all_reduce, sketch

PUT = {"name": "broadcast", "dtype": "fp32", "count": 16, "root": 1}
SIZES = {"IN": 64, "OUT": 64, "CCL": 64}


def local(*streams: list[Any], size: int = 64) -> Sketch:
    """One rank that copies its input, and runs tasks on sub streams beside."""
    drawn = sketch(
        {"name": "all_gather", "dtype": "fp32", "count": 16},
        1,
        {"IN": 64, "OUT": 64, "CCL": size, "TEMP": size},
    )
    drawn.put(0, *(["local_post", k, 0] for k in range(1, len(streams) + 1)))
    drawn.put(0, ["copy", ["IN", 0, 64], ["OUT", 0, 64]])
    drawn.put(0, *(["local_wait", k] for k in range(len(streams))))
    for k, tasks in enumerate(streams, 1):
        drawn.put(0, ["local_wait", 0], *tasks, ["local_post", 0, k - 1], stream=k)
    return drawn


def test_a_read_before_the_ack_names_both_tasks_and_the_bytes() -> None:
    (finding,) = FILES["RACE_RW"](True).report().errors
    assert finding.name == "RACE_RW"
    assert finding.tasks == (TaskAt(1, 0, 11), TaskAt(0, 0, 0))
    assert finding.memory == (MemoryRange(0, "CCL", 0, 64),)
    assert finding.ranks == (0, 1)
    assert finding.repeat == 1
    assert finding.message == (
        "rank 0 main task 0 writes rank 0's CCL[0:64] and rank 1 main task 11 reads it in no "
        "order: nothing makes one wait for the other, and they touch the same bytes."
    )
    assert finding.hint == "Post a notify after the write and wait for it before the read (Ack)."


def test_only_the_bytes_that_both_touch_are_named() -> None:
    write = ["copy", ["IN", 0, 32], ["CCL", 0, 32]]
    read = ["copy", ["CCL", 24, 32], ["TEMP", 0, 32]]
    report = local([write], [["copy", ["IN", 0, 64], ["CCL", 64, 64]]], size=128).report()
    assert not report.errors
    (race,) = local([write], [read], size=128).report().of_class("RACE_RW")
    assert race.memory == (MemoryRange(0, "CCL", 24, 32),)
    assert race.tasks[:1] in ((TaskAt(0, 2, 1),), (TaskAt(0, 1, 1),))


def test_two_writes_into_one_slot_are_named_with_the_slot() -> None:
    (finding,) = FILES["RACE_WW"](True).report().errors
    assert finding.name == "RACE_WW"
    assert finding.memory == (MemoryRange(0, "CCL", 64, 128),)
    assert finding.ranks == (0, 1, 2)
    assert {task.rank for task in finding.tasks} == {1, 2}
    assert "main task 9 writes rank 0's CCL[64:128] and rank 1 main" in finding.message
    assert "they overlap" in finding.message


def test_a_race_with_the_next_op_says_so() -> None:
    """Rank 0 does not wait until the others have read: its next op stages over what they read."""
    drawn = all_gather()
    for peer in (1, 2, 3):
        drawn.drop(0, "wait", peer, 1)
        drawn.drop(peer, "post", 0, 1)
    report = drawn.report()
    assert {finding.repeat for finding in report.of_class("RACE_RW")} == {2}
    race = next(f for f in report.of_class("RACE_RW") if f.tasks[1].rank == 1)
    assert race.tasks[0] == TaskAt(0, 0, 14)
    assert race.message.startswith("rank 1 main task 12 reads rank 0's CCL[0:64] and rank 0 main ")
    assert "rank 0 main task 0 of op 2 writes it in no order" in race.message
    assert race.hint.startswith("Post a notify after the read")
    assert not drawn.report(repeat=1).of_class("RACE_RW")


def test_a_race_is_one_finding_in_all_copies_and_directions() -> None:
    report = FILES["RACE_RW"](True).report(repeat=4)
    assert len(report.errors) == 1
    report = FILES["REDUCE_ORDER_NONDET"](True).report(repeat=4)
    pairs = [tuple(sorted(task.rank for task in f.tasks)) for f in report]
    assert pairs == [(1, 2), (1, 3), (2, 3)]


def test_what_ranks_record_first_is_taken_to_be_first() -> None:
    """Whichever rank the walk runs first: the advice is about a read that comes too early."""
    drawn = all_gather()
    for rank in range(4):
        for peer in (p for p in range(4) if p != rank):
            drawn.move(rank, ["read", peer], drawn.find(rank, "wait", peer, 0))
    races = drawn.report().of_class("RACE_RW")
    assert len(races) == 8
    assert races[-1].more == 4
    for race in races:
        reader, writer = race.tasks
        assert writer.index == 0
        assert reader.index > 4
        assert race.hint.endswith("wait for it before the read (Ack).")


def reading(exported: str, *, late: bool = False) -> Sketch:
    """Rank 0 reads rank 1's user memory directly."""
    drawn = sketch(PUT, 2, SIZES)
    drawn.document["exported"] = ["IN", "OUT"]
    read = ["read", 1, [exported, 0, 64], ["OUT", 0, 64]]
    drawn.put(1, ["copy", ["IN", 0, 64], ["OUT", 0, 64]], ["post", 0, 0])
    drawn.put(0, ["wait", 1, 0], read, ["post", 1, 1])
    if late:
        drawn.at(0)[1:] = [["post", 1, 1], read]
    drawn.put(1, ["wait", 0, 1])
    return drawn


@pytest.mark.parametrize("memory", ["IN", "OUT"])
def test_user_memory_belongs_to_the_caller_after_the_op(memory: str) -> None:
    assert not reading(memory).report().findings
    report = reading(memory, late=True).report()
    race = report.of_class("RACE_RW")[0]
    word = {"IN": "user_in", "OUT": "user_out"}[memory]
    assert race.message == (
        f"rank 0 main task 2 may still read rank 1's {word}[0:64] when the op is over for rank 1: "
        "its caller may use that memory again."
    )
    assert race.tasks == (TaskAt(0, 0, 2),)
    assert race.memory == (MemoryRange(1, memory, 0, 64),)
    assert race.hint.startswith("Let rank 1's main wait for a notify that is posted after the read")


def test_a_loose_stream_races_with_the_caller_of_a_peer_all_the_same() -> None:
    """Rank 0's sub 0 reads rank 1's input after its Ack, and no stream waits for that: a finding of
    the stream says so for rank 0's own memory, and a race for rank 1's.
    """
    op = {"name": "all_gather", "dtype": "uint8", "count": 64}
    drawn = sketch(op, 2, {"IN": 64, "OUT": 128})
    drawn.document["exported"] = ["IN"]
    for rank in (0, 1):
        drawn.put(rank, ["copy", ["IN", 0, 64], ["OUT", 64 * rank, 64]], ["post", 1 - rank, 0])
    drawn.put(0, ["local_post", 1, 0], ["wait", 1, 1])
    read = ["read", 1, ["IN", 0, 64], ["OUT", 64, 64]]
    drawn.put(0, ["local_wait", 0], ["wait", 1, 0], read, stream=1)
    drawn.put(1, ["wait", 0, 0], ["read", 0, ["IN", 0, 64], ["OUT", 0, 64]], ["post", 0, 1])
    report = drawn.report(repeat=1)
    assert [finding.name for finding in report.errors] == ["STREAM_NOT_JOINED", "RACE_RW"]
    race = report.errors[1]
    assert race.tasks == (TaskAt(0, 1, 2),)
    assert race.memory == (MemoryRange(1, "IN", 0, 64),)
    assert race.message == (
        "rank 0 sub 0 task 2 may still read rank 1's user_in[0:64] when the op is over for rank 1: "
        "its caller may use that memory again."
    )


def test_user_memory_belongs_to_the_caller_before_the_op() -> None:
    drawn = sketch(PUT, 2, SIZES)
    drawn.document["exported"] = ["OUT"]
    drawn.put(1, ["copy", ["IN", 0, 64], ["OUT", 0, 64]], ["write", 0, ["IN", 0, 64], OUT])
    drawn.put(1, ["post", 0, 0], ["wait", 0, 1])
    drawn.put(0, ["wait", 1, 0], ["post", 1, 1])
    race = drawn.report().of_class("RACE_WW")[0]
    assert race.message == (
        "rank 1 main task 1 writes rank 0's user_out[0:64] without knowing that rank 0 has begun "
        "the op: its caller may still be using that memory."
    )
    assert race.hint == "Wait for an Ack of rank 0 before touching its user memory."
    drawn.put(0, ["post", 1, 2])
    drawn.at(0).insert(0, drawn.at(0).pop())
    drawn.at(1).insert(1, ["wait", 0, 2])
    assert not drawn.report().errors


OUT = ["OUT", 0, 64]


def test_a_source_that_rdma_may_still_send_names_the_write_and_the_issue() -> None:
    (finding,) = FILES["RDMA_SOURCE_REUSE"](True).report().errors
    assert finding.tasks == (TaskAt(1, 0, 5), TaskAt(1, 0, 4))
    assert finding.memory == (MemoryRange(1, "CCL", 64, 128),)
    assert finding.ranks == (1,)
    assert finding.message.startswith(
        "rank 1 main task 4 sends rank 1's CCL[64:128] by RDMA, and rank 1 main task 5 overwrites "
        "it before the transfer is known to be over"
    )
    assert "DataAck" in finding.hint


def test_the_caller_may_overwrite_what_rdma_still_sends() -> None:
    drawn = sketch(PUT, 2, SIZES, "rdma")
    drawn.put(1, ["copy", ["IN", 0, 64], OUT], ["wait", 0, 0])
    drawn.put(1, ["write", 0, ["IN", 0, 64], ["CCL", 0, 64]], ["post", 0, 1])
    drawn.put(0, ["post", 1, 0], ["wait", 1, 1], ["copy", ["CCL", 0, 64], OUT])
    finding = drawn.report().of_class("RDMA_SOURCE_REUSE")[0]
    assert "and the op ends and the caller may overwrite it before the transfer" in finding.message
    drawn.put(0, ["post", 1, 2])
    drawn.put(1, ["wait", 0, 2])
    assert not drawn.report().findings


def add(op: str, **members: Any) -> list[Any]:
    return ["write_reduce", 0, op, ["IN", 0, 64], ["CCL", 0, 64], *([members] if members else [])]


@pytest.mark.parametrize(
    ("dtype", "reduce", "expected"),
    [
        ("fp32", "sum", ["REDUCE_ORDER_NONDET"] * 3),
        ("fp16", "prod", ["REDUCE_ORDER_NONDET"] * 3),
        ("bf16", "max", []),
        ("fp32", "min", []),
        ("int32", "sum", []),
        ("int64", "prod", []),
    ],
)
def test_only_rounding_makes_the_order_of_atomic_sums_matter(
    dtype: str, reduce: str, expected: list[str]
) -> None:
    drawn = FILES["REDUCE_ORDER_NONDET"](True)
    drawn.document["op"] |= {"dtype": dtype, "reduce": reduce}
    drawn.document["op"]["count"] = 64 // {"fp32": 4, "int32": 4, "int64": 8}.get(dtype, 2)
    for rank in (1, 2, 3):
        drawn.at(rank)[1][2] = reduce
    report = drawn.report()
    assert [finding.name for finding in report] == expected
    assert report.ok
    assert drawn.report(deterministic=True).ok == (not expected)


def test_unordered_sums_are_errors_in_deterministic_mode() -> None:
    finding = FILES["REDUCE_ORDER_NONDET"](True).report(deterministic=True).errors[0]
    assert finding.severity is Severity.ERROR
    assert finding.memory == (MemoryRange(0, "CCL", 0, 64),)
    assert "rank 1 main task 1 and rank 2 main task 1 add to rank 0's CCL[0:64] in no order" in (
        finding.message
    )
    assert "HCCL_DETERMINISTIC" in finding.hint


@pytest.mark.parametrize("other", [{"dtype": "fp16"}, {}])
def test_unordered_reductions_that_are_not_alike_race(other: dict[str, str]) -> None:
    drawn = FILES["REDUCE_ORDER_NONDET"](True)
    drawn.at(2)[1] = add("sum", **other) if other else add("max")
    races = drawn.report().of_class("RACE_WW")
    assert races
    assert any({task.rank for task in race.tasks} == {1, 2} for race in races)


def test_a_local_reduction_is_not_atomic() -> None:
    drawn = FILES["REDUCE_ORDER_NONDET"](True)
    into = ["CCL", 0, 64]
    drawn.at(0).insert(4, ["reduce", "sum", ["IN", 0, 64], into])
    races = drawn.report().of_class("RACE_WW")
    assert {race.tasks[0].rank for race in races} | {race.tasks[1].rank for race in races} == {
        *range(4)
    }


def test_rdma_reductions_are_not_atomic_with_each_other() -> None:
    drawn = FILES["REDUCE_ORDER_NONDET"](True)
    drawn.document["link"] = "rdma"
    for rank in (1, 2, 3):
        drawn.put(0, ["post", rank, 2])
        drawn.put(rank, ["wait", 0, 2])
    assert {finding.name for finding in drawn.report()} == {"RACE_WW"}


def test_in_place_the_same_bytes_have_two_names() -> None:
    """Rank 1 hands out its input while rank 0's part arrives in its output."""
    drawn = all_gather()
    drawn.document["exported"] = ["IN"]
    for rank in range(4):
        for task in drawn.at(rank):
            if task[0] == "read":
                task[2] = ["IN", 0, 64]
        drawn.drop(rank, "copy", ["IN", 0, 64], ["CCL", 0, 64])
    assert not drawn.report().errors
    report = drawn.report(in_place=True)
    assert {finding.name for finding in report.errors} == {"INPLACE_CLOBBER"}
    race = report.errors[0]
    assert race.message.startswith("In place, rank ")
    assert "in no order: IN and OUT are the same memory. (IN and OUT begin at" in race.message
    assert race.hint.startswith("Stage the input in CCL memory first")


def test_what_is_synchronised_wrongly_is_found_in_place_too() -> None:
    for name in ("NOTIFY_OVERRUN", "STREAM_NOT_STARTED", "STREAM_NOT_JOINED"):
        drawn = FILES[name](True)
        drawn.document["op"] = drawn.document["op"] | {"in_place": True}
        found = drawn.report().of_class(name)
        assert len(found) == len(FILES[name](True).report().of_class(name))
        assert "begin at the same address" not in found[0].message


def test_many_races_at_one_line_are_a_few_and_a_number() -> None:
    drawn = all_reduce()
    line = {"source": "ring.py:7"}
    for rank in range(4):
        drawn.at(rank).sort(key=lambda task: task[0] == "wait" and task[2] == 0)
        drawn.at(rank)[:] = [[*task, line] for task in drawn.at(rank)]
    races = drawn.report().of_class("RACE_RW")
    assert len(races) == 8
    assert [race.more for race in races[:-1]] == [0] * 7
    assert races[-1].more > 0
    assert {race.source for race in races} == {"ring.py:7"}
