"""Tests of a log become programs that mean what the log says; what is wrong with them is found."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hccl_interop.checker_logs import import_test, read_log
from hccl_py import DataType, ReduceOp
from hccl_py.enums import LinkKind, TaskKind
from hccl_py.errors import ParameterError, ProgramFileError
from hccl_py.importers import Imported, ImportOptions
from tests.interop.checker_logs.logs import (
    Log,
    Tasks,
    all_gather,
    all_reduce_of_two,
    copy,
    local_post,
    local_wait,
    post,
    printed,
    reduce_scatter_of_two,
    reducing,
    wait,
    write,
)

FOLDER = Path("st.log")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def imported(tasks: Tasks, name: str, stated: ImportOptions | None = None) -> Imported:
    FOLDER.write_text(Log().test(name, tasks).text())
    log = read_log(FOLDER)
    return import_test(log, log.tests[0], stated)


def classes(checked: Imported) -> set[str]:
    """What one call of the test shows."""
    return {finding.name for finding in checked.report().errors if not finding.between_calls}


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(FOLDER.read_text().split("\n"), 1) if text in line)


def test_collectives_verify_with_the_op_that_the_log_says() -> None:
    found = imported(all_gather(4, 96), "AllGatherTest.four_ranks")
    assert found.report().ok
    assert (found.require().op.name, found.require().op.size) == ("all_gather", 96)
    assert found.require().ranks == 4
    assert found.require().streams == 4
    found = imported(all_reduce_of_two(256, dtype=3, op=2), "AHCTest.allreduce_910_93_2server")
    assert found.report().ok
    op = found.require().op
    assert (op.name, op.dtype, op.reduce, op.count) == (
        "all_reduce",
        DataType.FP16,
        ReduceOp.MAX,
        128,
    )
    assert set(found.require().transports.kind.tolist()) == {LinkKind.RDMA}
    found = imported(reduce_scatter_of_two(), "ReduceScatterTest.two")
    assert found.report().ok
    assert (found.require().op.name, found.require().op.count) == ("reduce_scatter", 32)


def test_every_kind_of_task_is_what_it_says() -> None:
    tasks = all_reduce_of_two()
    mine, theirs = ("SCRATCH", 0, 32), ("OUTPUT_AIV", 64, 32)
    tasks[0][0] += [
        write(1, mine, theirs),
        reducing("WriteReduce", 1, mine, theirs, op=3),
        reducing("WriteReduce", 1, mine, theirs, dtype=11, op=1, kind="RDMA"),
        reducing("ReadReduce", 1, mine, theirs),
    ]
    program = imported(tasks, "AllReduceTest.two").require()
    view = program.tasks
    rows = [row for row in range(len(view.rank)) if view.rank[row] == 0][-4:]
    table, used = view.table, view.instruction[rows]
    assert [TaskKind(int(kind)) for kind in table.kind[used]] == [
        TaskKind.WRITE,
        TaskKind.WRITE_REDUCE,
        TaskKind.RDMA_WRITE_REDUCE,
        TaskKind.READ_REDUCE,
    ]
    assert [int(table.reduce[i]) for i in used[1:]] == [ReduceOp.MIN, ReduceOp.PROD, ReduceOp.SUM]
    assert [int(table.dtype[i]) for i in used[1:]] == [
        DataType.FP32.number,
        DataType.BF16.number,
        DataType.FP32.number,
    ]
    names = [program.buffers[int(table.src_buffer[i])] for i in used]
    assert names == ["SCRATCH", "SCRATCH", "SCRATCH", "AIV_OUT"]
    sizes = dict(zip(program.buffers, program.buffer_sizes[1].tolist(), strict=True))
    assert sizes["AIV_OUT"] == 96
    lines = [program.lines[int(table.line[i])] for i in used]
    assert (
        lines[0]
        == f"st.log:{line_of('Write[remoteRank=1, link=link prototyp=LinkProtoStub::SDMA')}"
    )


def wait_before_post(tasks: Tasks) -> None:
    for queues in tasks:
        for queue in queues[1:]:
            queue.insert(1, queue.pop(2))


FAULTS: dict[str, tuple[Callable[[Tasks], object], set[str]]] = {
    "a post is missing": (lambda t: t[1][1].pop(1), {"WAIT_WITHOUT_POST"}),
    "a wait is missing": (lambda t: t[1][1].pop(5), {"UNMATCHED_POST"}),
    "main starts a queue no more": (lambda t: t[0][0].pop(2), {"WAIT_WITHOUT_POST"}),
    "main joins a queue no more": (lambda t: t[0][0].pop(), {"UNMATCHED_POST"}),
    "a read of the wrong rank": (
        lambda t: t[2][1].__setitem__(3, t[2][1][3].replace("offset=192", "offset=128")),
        {"RACE_WW", "OUTPUT_MISSING"},
    ),
    "own part is not copied": (lambda t: t[3][0].pop(4), {"OUTPUT_MISSING"}),
    "nothing says that the data is staged": (
        lambda t: t[0][0].insert(6, t[0][0].pop(0)),
        {"RACE_RW"},
    ),
    "waits in a cycle": (wait_before_post, {"DEADLOCK_CYCLE"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault: str) -> None:
    change, expected = FAULTS[fault]
    tasks = all_gather(4)
    change(tasks)
    checked = imported(tasks, "AllGatherTest.broken")
    assert expected <= classes(checked)
    for finding in checked.report().errors:
        if finding.tasks:
            assert finding.source is not None
            line = FOLDER.read_text().split("\n")[int(finding.source.rpartition(":")[2]) - 1]
            assert line.startswith(f"[rankId:{finding.tasks[0].rank}, ")


def test_a_notify_holds_one_bit_where_the_checker_counts() -> None:
    tasks: Tasks = [[[post(1), post(1)]], [[wait(0), wait(0)]]]
    assert classes(imported(tasks, "MiscTest.posts_twice")) == {"NOTIFY_OVERRUN"}


def test_kinds_and_links_tell_notifies_of_a_pair_apart() -> None:
    posted = [post(1, "FIN"), post(1, "READY", kind="RDMA"), post(1, "READY"), post(1, tag="POST")]
    waited = [wait(0, tag="WAIT"), wait(0, "READY"), wait(0, "READY", kind="RDMA"), wait(0, "FIN")]
    assert not classes(imported([[posted], [waited]], "MiscTest.kinds"))
    waited[1] = wait(0, "FIN_ACK")
    found = classes(imported([[posted], [waited]], "MiscTest.kinds"))
    assert found == {"WAIT_WITHOUT_POST", "UNMATCHED_POST"}


def test_a_topic_is_one_notify_whoever_waits_for_it() -> None:
    main = [local_post(7), local_post(40_000_000), local_wait(9)]
    first = [local_wait(7), local_post(8)]
    second = [local_wait(40_000_000), local_wait(8), local_post(7), local_wait(7), local_post(9)]
    found = imported([[main, first, second]], "MiscTest.topics")
    assert not classes(found)
    assert found.require().local_notifies.slots


def walks(queues: list[list[str]]) -> tuple[bool, bool]:
    """Whether posts and waits of a rank run to their end with nothing left over, and whether a
    topic ever has two posts: by the rules of HCCL's checker.
    """
    at, pending, twice = [0] * len(queues), dict[str, int](), False
    moved = True
    while moved:
        moved = False
        for number, queue in enumerate(queues):
            while at[number] < len(queue):
                word, _, topic = queue[at[number]].partition("[")
                if word == "LocalWaitFrom" and not pending.get(topic):
                    break
                pending[topic] = pending.get(topic, 0) + (1 if word == "LocalPostTo" else -1)
                twice |= pending[topic] > 1
                at[number] += 1
                moved = True
    done = all(a == len(queue) for a, queue in zip(at, queues, strict=True))
    return done and not any(pending.values()), twice


def test_posts_and_waits_match_by_the_rules_of_the_checker() -> None:
    outcomes = set()
    for seed in range(120):
        chance = random.Random(seed)
        words = [local_post, local_wait]
        queues = [
            [chance.choice(words)(chance.randrange(2)) for _ in range(chance.randrange(1, 4))]
            for _ in range(2)
        ]
        works, twice = walks(queues)
        found = classes(imported([queues], "MiscTest.any"))
        unfinished = {"WAIT_WITHOUT_POST", "DEADLOCK_CYCLE", "UNMATCHED_POST"}
        if not twice:  # else one bit is too little, which is a finding of its own
            assert bool(found & unfinished) != works, (seed, queues)
        outcomes.add((works, twice))
    assert len(outcomes) >= 3


def test_what_is_stated_goes_before_the_log() -> None:
    tasks = all_gather(2)
    assert imported(tasks, "MiscTest.any").unknown == "no op is in the test's name"
    stated = ImportOptions(op="all_gather", dtype=DataType.FP32)
    checked = imported(tasks, "MiscTest.any", stated)
    assert checked.report().ok
    assert checked.require().op.count == 16
    other = imported(tasks, "AllGatherTest.any", ImportOptions(op="all_to_all"))
    assert classes(other) == {"WRONG_OFFSET"}
    larger = imported(tasks, "AllGatherTest.any", ImportOptions(size=256))
    assert classes(larger) == {"OUTPUT_MISSING", "WRONG_SOURCE"}
    smaller = imported(tasks, "AllGatherTest.any", ImportOptions(size=64))
    assert "OUT_OF_BOUNDS" in classes(smaller)
    other = imported(all_reduce_of_two(), "AllReduceTest.any", ImportOptions(reduce=ReduceOp.MIN))
    assert classes(other) == {"WRONG_REDUCE_OP"}
    for wrong in (
        ImportOptions(reduce=ReduceOp.SUM),
        ImportOptions(root=0),
        ImportOptions(op="all_gathr"),
    ):
        with pytest.raises(ParameterError):
            imported(tasks, "AllGatherTest.any", wrong)


def broadcast() -> Tasks:
    part = ("INPUT", 0, 64)
    root = [
        copy(part, ("OUTPUT", 0, 64)),
        wait(1),
        write(1, part, ("OUTPUT", 0, 64)),
        post(1, "FIN"),
    ]
    return [[root], [[post(0), wait(0, "FIN")]]]


def test_roots_and_amounts_are_not_in_a_log() -> None:
    checked = imported(broadcast(), "BroadcastTest.two")
    assert checked.unknown == "it is broadcast, and the log does not print the root"
    assert imported(broadcast(), "BroadcastTest.two", ImportOptions(root=0)).report().ok
    wrong = imported(broadcast(), "BroadcastTest.two", ImportOptions(root=1))
    assert "WRONG_SOURCE" in classes(wrong)
    with pytest.raises(ParameterError, match="out of range"):
        imported(broadcast(), "BroadcastTest.two", ImportOptions(root=2))
    checked = imported(all_gather(2), "AllGatherVTest.two")
    assert checked.unknown == "it is all_gather_v, and the log does not print the counts"
    Path("op.json").write_text('{"name": "all_gather_v", "counts": [64, 64]}')
    assert imported(all_gather(2), "AllGatherVTest.two", ImportOptions(op="op.json")).report().ok
    Path("op.json").write_text('{"name": "all_gather_v", "counts": [64, 60]}')
    found = imported(all_gather(2), "AllGatherVTest.two", ImportOptions(op="op.json"))
    assert "OUT_OF_BOUNDS" in classes(found)


def test_without_an_op_order_is_judged_and_results_are_not() -> None:
    tasks = all_gather(3)
    tasks[0][0][3] = copy(("INPUT", 0, 64), ("OUTPUT", 64, 64))  # rank 0's part in rank 1's place
    checked = imported(tasks, "MiscTest.any")
    report = checked.report()
    assert classes(checked) == {"RACE_WW"}
    assert any("Results were not judged" in note for note in report.notes)
    assert any("The op is open: no op is in the test's name" in note for note in report.notes)
    with pytest.raises(ParameterError, match="the op is not known"):
        checked.require_op()
    with pytest.raises(ProgramFileError, match="what the program is to compute is not known"):
        checked.require().save("program.json")
    assert "unknown op" in repr(checked.require())


HCCL_TESTS: dict[str, tuple[Callable[[], Tasks], tuple[str, int]]] = {
    "ST_ALL_GATHER_TEST.st_all_gather_mesh": (lambda: all_gather(4, 96), ("all_gather", 96)),
    "ST_ALL_REDUCE_TEST.st_all_reduce_1shot": (all_reduce_of_two, ("all_reduce", 64)),
    "ST_REDUCE_SCATTER_TEST.st_reducescatter": (reduce_scatter_of_two, ("reduce_scatter", 32)),
}


@pytest.mark.parametrize("name", HCCL_TESTS)
def test_logs_of_hccl_mean_the_same(name: str) -> None:
    tasks, op = HCCL_TESTS[name]
    FOLDER.write_text(Log().hccl_test(name, tasks()).text())
    log = read_log(FOLDER)
    found = import_test(log, log.tests[0])
    assert (log.tests[0].verdict, log.tests[0].tasks) == ("passed", found.require().task_count)
    assert found.report().ok
    assert found.notes[0] == "HCCL's checker passed it."
    assert (found.require().op.name, found.require().op.count) == op
    assert found.require().transports.notify_names == ()
    in_hcomm = imported(tasks(), "A.b", ImportOptions(op=op[0])).require()
    for column in ("kind", "src_offset", "dst_offset", "size"):
        mine, theirs = getattr(found.require().tasks, column), getattr(in_hcomm.tasks, column)
        assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("fault", [name for name in FAULTS if "wrong rank" not in name])
def test_faults_in_logs_of_hccl_are_named(fault: str) -> None:
    change, expected = FAULTS[fault]
    tasks = all_gather(4)
    change(tasks)
    FOLDER.write_text(Log().hccl_test("ST_ALL_GATHER_TEST.broken", tasks).text())
    log = read_log(FOLDER)
    assert expected <= classes(import_test(log, log.tests[0]))


def test_numbers_tell_notifies_of_a_pair_apart() -> None:
    posted = [post(1, "FIN"), post(1, "READY"), post(1, "FIN_ACK")]
    waited = [wait(0, "FIN_ACK"), wait(0, "READY"), wait(0, "FIN")]
    FOLDER.write_text(Log().hccl_test("MiscTest.numbers", [[posted], [waited]]).text())
    log = read_log(FOLDER)
    assert not classes(import_test(log, log.tests[0]))
    text = FOLDER.read_text().replace("notifyId=101", "notifyId=109", 1)
    FOLDER.write_text(text)
    log = read_log(FOLDER)
    assert classes(import_test(log, log.tests[0])) == {"WAIT_WITHOUT_POST", "UNMATCHED_POST"}


def test_an_excerpt_without_google_test_is_read() -> None:
    FOLDER.write_text("\n".join(printed(all_gather(2))))
    log = read_log(FOLDER)
    assert [(test.name, test.result) for test in log.tests] == [("", "")]
    assert import_test(log, log.tests[0], ImportOptions(op="all_gather")).report().ok
