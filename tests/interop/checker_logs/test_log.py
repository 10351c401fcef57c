"""What tests a log has, what HCCL's checker said of them; broken lines are named, at once."""

import random
import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hccl_interop.checker_logs import CheckerLog, import_test, read_log
from hccl_py.cli import main
from hccl_py.errors import HcclError, ProgramFileError
from hccl_py.importers import ImportOptions
from tests.interop.checker_logs.logs import Log, all_gather, all_reduce_of_two, error, printed

GOOD = Log().test("AllGatherTest.good", all_gather(2)).text()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def log_of(text: str) -> CheckerLog:
    Path("st.log").write_text(text)
    return read_log("st.log")


def import_all(text: str) -> None:
    log = log_of(text)
    for test in log.tests:
        import_test(log, test, ImportOptions(op="all_gather"))


def refused(text: str) -> str:
    with pytest.raises(ProgramFileError) as caught:
        import_all(text)
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith("st.log: ")
    return caught.value.message.removeprefix("st.log: ")


def test_tests_verdicts_and_messages_are_found() -> None:
    said = (
        error("[TaskGraphGenerator] unmatched local_post: [rankId:0, queueId:5, index:15]."),
        error("[GenGraph]call trace: hcclRet -> 4", "task_graph_generator.cc:18"),
        "testcase.cc:2455: Failure",
    )
    text = (
        Log()
        .test("AllReduceTest.silent")
        .test("AllGatherTest.right", all_gather(2))
        .test("AllReduceTest.wrong", all_reduce_of_two(), said, "  FAILED ")
        .test("AllReduceTest.quiet", all_reduce_of_two(), ("[----------] a line",))
        .text()
    )
    log = log_of(text)
    assert log.tests_run == 4
    assert [(test.number, test.name, test.result, test.verdict) for test in log.tests] == [
        (1, "AllGatherTest.right", "OK", "passed"),
        (2, "AllReduceTest.wrong", "FAILED", "failed"),
        (3, "AllReduceTest.quiet", "OK", "says nothing"),
    ]
    wrong = log.tests[1]
    first = wrong.said[0]
    assert first.text == (
        "[TaskGraphGenerator] unmatched local_post: [rankId:0, queueId:5, index:15]."
    )
    assert "unmatched local_post" in text.split("\n")[first.line - 1]
    assert wrong.tasks == 18
    notes = [import_test(log, test).report().notes[0] for test in log.tests]
    assert notes == [
        "HCCL's checker passed it.",
        f'HCCL\'s checker failed it: "{first.text}" (line {first.line}, and 1 more).',
        "The log does not show the verdict of HCCL's checker.",
    ]


def test_a_test_may_call_the_checker_several_times() -> None:
    once, again = printed(all_gather(2)), printed(all_gather(3))
    lines = ["[ RUN      ] AllGatherTest.two_calls", *once, "Cost time: checkSem= 1e-05"]
    lines += [*again, error("[Checker] wrong"), "[       OK ] AllGatherTest.two_calls (3 ms)"]
    log = log_of("\n".join(lines))
    assert [(test.number, test.verdict) for test in log.tests] == [(1, "passed"), (2, "failed")]
    assert [import_test(log, test).require().ranks for test in log.tests] == [2, 3]


def test_lines_between_tasks_and_of_windows_change_nothing() -> None:
    lines = GOOD.split("\n")
    lines.insert(9, "a program that prints, too")
    lines.insert(3, "")
    log = log_of("\r\n".join(lines))
    program = import_test(log, log.tests[0]).require()
    plain = log_of(GOOD)
    assert program.digest == import_test(plain, plain.tests[0]).require().digest


def test_a_log_that_ends_in_a_test_says_so() -> None:
    log = log_of(GOOD.split("Cost time")[0])
    assert log.tests[0].verdict == "says nothing"
    assert any(
        "The log ends in this test" in n for n in import_test(log, log.tests[0]).report().notes
    )


def line(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, count=1)


POST_OF_QUEUE_1 = r"\[rankId:0, queueId:1, index:1\] .*\n"


def before_the_end(head: str, rows: tuple[str, int], first: int = 0) -> Callable[[str], str]:
    """Return a change that adds lines before those at the end of the first test that prints."""
    words, last = rows
    more = head + "".join(f"{words} {k}\n" for k in range(first, last + 1))
    return lambda text: text.replace("Cost time", f"{more}Cost time", 1)


DEFECTS: dict[str, tuple[Callable[[str], str], str]] = {
    "cut inside a task": (
        lambda t: t[: t.index("queueId:1, index:3") + 60],
        "line 16: expected a whole task on a line of its own, found ",
    ),
    "cut inside a number": (
        line(r"(index:3\] Read.*, size=)64\]\]", r"\1"),
        "line 16: expected a whole task",
    ),
    "two lines in one": (
        line(r"(index:3\] Read\[.*)\n", r"\1"),
        "line 16: expected the members of Read, found ",
    ),
    "something before a task": (
        line(POST_OF_QUEUE_1, r"[7] \g<0>"),
        "line 14: expected a whole task on a line of its own, found ",
    ),
    "a task missing": (line(POST_OF_QUEUE_1, ""), "line 14: expected index 1, found index 2."),
    "a task twice": (
        line(POST_OF_QUEUE_1, r"\g<0>\g<0>"),
        "line 15: expected index 2, found index 1.",
    ),
    "a queue's head missing": (
        line(r"stream/queue id is 1\n", ""),
        "line 12: expected queue 0, found queue 1.",
    ),
    "the first queue's head missing": (
        line(r"stream/queue id is 0\n", ""),
        "line 6: expected a queue of rank 0, found a task.",
    ),
    "too many queues": (
        before_the_end("rank id is 2\n", ("stream/queue id is", (1 << 15) - 1)),
        "line 32805: expected at most 32,767 queues of a rank, found more.",
    ),
    "too many ranks": (
        before_the_end("rank id is 2\nrank id is 3\n", ("rank id is", 1 << 16), first=4),
        "line 65571: expected at most 65,536 ranks, found more.",
    ),
    "a rank's head missing": (
        line(r"rank id is 1\n", ""),
        "line 22: expected queue 2, found queue 0.",
    ),
    "a rank's head broken": (
        line(r"rank id is 1\n", "rank id is 1x\n"),
        'line 21: expected the number of a rank, found "rank id is 1x".',
    ),
    "a rank missing": (
        lambda t: t[: t.index("rank id is 1")],
        "line 14: expected a remoteRank below 1, found 1.",
    ),
    "a rank of its own": (
        line(r"Post\[remoteRank=1", "Post[remoteRank=0"),
        "line 14: expected another rank, found rank 0 itself.",
    ),
    "an unknown task": (
        line(r"index:1\] Post\[", "index:1] Pots["),
        "line 14: expected a task of LocalCopy, LocalReduce, LocalPostTo, LocalWaitFrom, Post, "
        "Wait, Read, Write, ReadReduce, WriteReduce, found Pots.",
    ),
    "a kernel": (
        line(r"index:1\] Post\[.*\]", "index:1] AivTaskStub[rankId=0, aivStart=0x1, rankPos=0]"),
        "line 14: expected a task of LocalCopy,",
    ),
    "an unknown link": (
        line("LinkProtoStub::SDMA", "LinkProtoStub::CCU"),
        "line 14: expected a link of SDMA or RDMA, found CCU.",
    ),
    "a read over RDMA": (
        line(r"(Read\[remoteRank=1, link=link prototyp=LinkProtoStub::)SDMA", r"\1RDMA"),
        "line 16: expected no read over RDMA, found Read.",
    ),
    "an unknown notify": (
        line("NotifyTypeStub::READY", "NotifyTypeStub::STEADY"),
        "line 14: expected a notifyType of READY, FIN, FIN_ACK, found STEADY.",
    ),
    "an unknown buffer": (
        line("BufferType::INPUT_CCL", "BufferType::MS"),
        "line 7: expected a buffer of INPUT, OUTPUT, INPUT_CCL, OUTPUT_CCL, CCL, SCRATCH, "
        "INPUT_AIV, OUTPUT_AIV, found MS.",
    ),
    "memory without end": (
        line("offset=0, size=64", "offset=9223372036854775807, size=64"),
        "line 7: expected memory below 2**62 bytes, found 9223372036854775871.",
    ),
    "a number without end": (
        line("offset=0, size=64", f"offset={'9' * 30}, size=64"),
        "line 7: expected the members of LocalCopy, found ",
    ),
    "a negative number": (
        line("offset=0, size=64", "offset=-1, size=64"),
        "line 7: expected the members of LocalCopy, found ",
    ),
    "no tests": (lambda t: "nothing\n", "$: expected tests that print their tasks, found none."),
    "an empty file": (lambda t: "", "$: expected tests that print their tasks, found none."),
    "tests without tasks": (
        lambda t: Log().test("A.b").test("A.c").text(),
        "$: expected tests that print their tasks, found 2 tests without any.",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_one_sentence_with_its_line(name: str) -> None:
    change, expected = DEFECTS[name]
    text = change(GOOD)
    assert text != GOOD
    assert refused(text).startswith(expected)


HCCL_DEFECTS: dict[str, tuple[Callable[[str], str], str]] = {
    "a task missing": (
        line(r"rankIdx:0, threadIdx:1, \[Read.*\n", ""),
        "line 20: expected 7 tasks in the queue before, found 6.",
    ),
    "the last task missing": (
        line(r"rankIdx:1, threadIdx:1, \[LocalPostTo\].*\n", ""),
        "line 36: expected 7 tasks in the queue before, found 6.",
    ),
    "a decimal offset": (
        line("offset=0x0", "offset=0"),
        "line 7: expected the members of LocalCopy",
    ),
    "a task cut": (
        line(r"\[Read\]:\[.*", "[Re"),
        "line 16: expected a whole task on a line of its own",
    ),
    "a task behind another": (line("rankIdx:0", "x rankIdx:0"), "line 7: expected a whole task on"),
    "a thread missing": (
        line("threadIdx : 1, taskNum : 7 \n", ""),
        "line 12: expected queue 0, found queue 1.",
    ),
}


@pytest.mark.parametrize("name", HCCL_DEFECTS)
def test_a_defect_of_a_log_of_hccl_is_one_sentence(name: str) -> None:
    change, expected = HCCL_DEFECTS[name]
    good = Log().hccl_test("ST_ALL_GATHER_TEST.good", all_gather(2)).text()
    assert refused(change(good)).startswith(expected)


def test_the_checker_of_hccl_prints_errors_alone() -> None:
    text = Log().hccl_test("ST_ALL_GATHER_TEST.good", all_gather(2))
    text.hccl_test("ST_ALL_GATHER_TEST.bad", all_gather(2), (error("[Checker] no"),))
    verdicts = [(test.verdict, test.result) for test in log_of(text.text()).tests]
    assert verdicts == [("passed", "OK"), ("failed", "FAILED")]


def test_numbers_that_name_no_type_or_reduction_are_refused() -> None:
    text = Log().test("AllReduceTest.two", all_reduce_of_two()).text()
    found = refused(text.replace("dataType=4", "dataType=16"))
    assert found == "line 13: expected a dataType that HCCL reduces with, found 16."
    found = refused(text.replace("reduceOp=0", "reduceOp=4"))
    assert found == "line 13: expected a reduceOp that HCCL reduces with, found 4."


def test_a_log_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    many = "".join(f"[12:00:00][INFO] line {number} of no task\n" for number in range(200_000))
    tests = "".join(GOOD.replace("good", f"test{number}") for number in range(20))
    size = len(many) + len(tests)
    Path("st.log").write_text(many + tests + many)
    tracemalloc.start()
    log = read_log("st.log")
    program = import_test(log, log.tests[-1]).require()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert program.task_count == 22
    assert len(log.tests) == 20
    assert peak < size / 8


def test_a_line_without_end_is_passed_over() -> None:
    head, tail = GOOD.split("Cost time", 1)
    log = log_of("x" * 300_000 + "\n" + head + "y" * 300_000 + "\nCost time" + tail)
    assert (log.tests[0].line, log.tests[0].verdict) == (5, "passed")
    assert import_test(log, log.tests[0]).report().ok


def test_places_that_are_no_files_are_refused() -> None:
    Path("folder.log").mkdir()
    for name in ("none.log", "folder.log"):
        with pytest.raises(HcclError, match=f"{name}: the file cannot be read"):
            read_log(name)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_in_a_log_the_answer_is_one_sentence(
    seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    own = Log().hccl_test("ST_ALL_GATHER_TEST.good", all_gather(2)).text()
    whole = (GOOD + own + Log().test("AllReduceTest.two", all_reduce_of_two()).text()).encode()
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            begin = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data[begin] = chance.randrange(256)
            elif kind == 1:
                del data[begin : begin + chance.randrange(1, 200)]
            elif kind == 2:
                data[begin:begin] = data[begin // 2 : begin // 2 + chance.randrange(300)]
            else:
                data[begin : begin + 1] = b"9" * chance.randrange(1, 40)
        Path("st.log").write_bytes(data)
        started = time.process_time()
        status = main(["check", "st.log"])
        assert time.process_time() - started < 3
        out, err = capfd.readouterr()
        assert status in (0, 1, 2)
        assert "internal error" not in err, (bytes(data), err)
        assert "Traceback" not in out + err
        if status == 2:
            assert err.startswith("error: ")
