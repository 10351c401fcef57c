"""Programs as logs: what is read again is the same program; what no log can have is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import hccl_py as hccl
from hccl_executors import EXECUTORS
from hccl_interop.checker_logs import import_test, read_log, to_log
from hccl_py.call.ops import OPS
from hccl_py.cli import main
from hccl_py.errors import NotSupportedError
from hccl_py.formats.op import op_object
from hccl_py.importers import ImportOptions
from hccl_py.plugins.executor import Executor
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.testing.calls import recorded
from tests.executors.calls import some_calls
from tests.interop.checker_logs.logs import Log, all_gather

LARGEST = 4_000
"""Tasks of a program that is looked at."""

SAID = ("name", "count", "root", "counts", "displs", "matrix", "pairs")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read_back(program: Program) -> Program:
    op = program.op
    found = op_object(op)
    members = {name: found[name] for name in SAID if found.get(name) is not None}
    Path("op.json").write_text(json.dumps(members))
    Path("own.log").write_text(to_log(program))
    log = read_log("own.log")
    (test,) = log.tests
    reduce = op.reduce if OPS[op.name].reduces else None
    return import_test(log, test, ImportOptions("op.json", None, op.dtype, reduce)).require()


def what_is_done(program: Program) -> list[tuple[object, ...]]:
    """Every task in the order of its queue, with the place of the post that a wait waits for."""
    tasks, table = program.tasks, program.tasks.table
    rows = queues_of(program).rows
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    post = program.linked.post_of.astype(np.int64)
    names = [*program.buffers, ""]
    found: list[tuple[object, ...]] = []
    for row in rows.tolist():
        at = int(tasks.instruction[row])
        kind = int(table.kind[at])
        moved = (
            names[int(table.src_buffer[at])],
            int(tasks.src_offset[row]),
            names[int(table.dst_buffer[at])],
            int(tasks.dst_offset[row]),
            int(tasks.size[row]),
            int(table.reduce[at]),
        )
        partner = int(place[post[row]]) if post[row] >= 0 else -1
        peer = int(tasks.peer[row])
        found.append((int(tasks.rank[row]), kind, peer, partner, *moved))
    return found


def fits(program: Program) -> bool:
    """Whether each rank has a link at most to each other one over SDMA and over RDMA, and four
    notifies at most of each.
    """
    transports, tasks = program.transports, program.tasks
    ends = np.unique(tasks.end[(tasks.cell >= 0) & (tasks.end >= 0)])
    pairs = zip(transports.rank[ends], transports.peer[ends], transports.kind[ends], strict=True)
    index = tasks.cell[(tasks.cell >= 0) & (tasks.end >= 0)] % max(transports.stride, 1)
    return len(set(pairs)) == len(ends) and index.max(initial=0) < 4


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda executor: executor.__name__)
def test_what_is_read_again_is_the_same_program(executor: type[Executor]) -> None:
    for case in some_calls(executor, 1):
        program = recorded(executor, case)
        if program.task_count > LARGEST or not program.task_count:
            continue
        if not fits(program):
            with pytest.raises(NotSupportedError, match=r"several links|uses notify [45]"):
                to_log(program)
            continue
        again = read_back(program)
        assert what_is_done(again) == what_is_done(program)
        assert again.op.name == program.op.name


def test_an_imported_test_is_printed_as_it_was() -> None:
    Path("st.log").write_text(Log().test("AllGatherTest.four", all_gather(4)).text())
    log = read_log("st.log")
    program = import_test(log, log.tests[0]).require()
    lines = Path("st.log").read_text().split("\n")
    of_tasks = [line for line in lines if line.startswith("[rankId:")]
    assert of_tasks == [line for line in to_log(program).split("\n") if "rankId:" in line]


REFUSED: dict[str, tuple[dict[str, object], list[list[object]], str]] = {
    "a notify that HCCL has not": (
        {"links": [{"id": 0, "ranks": [0, 1], "kind": "sdma", "notifies": 5, "exports": {}}]},
        [["post", 1, 4]],
        "rank 0 main task 0 uses notify 4 of its link, and a log has 4",
    ),
    "two links of a pair": (
        {
            "links": [
                {"id": k, "ranks": [0, 1], "kind": "sdma", "exports": {}, "plane": f"level{k}"}
                for k in range(2)
            ]
        },
        [["post", "link:0", 0], ["post", "link:1", 0]],
        "rank 0 main task 1 uses one of several links between the same ranks",
    ),
    "a kernel": ({"link": "sdma", "exported": []}, [["compute", 3.5]], "main task 0 is a kernel"),
    "a buffer of its own": (
        {"link": "sdma", "exported": []},
        [["copy", ["IN", 0, 4], ["FIFO", 0, 4]]],
        "main task 0 touches FIFO, which is no buffer of HCCL",
    ),
    "posts that count": (
        {"link": "sdma", "exported": [], "notifies": "counting"},
        [["copy", ["IN", 0, 4], ["OUT", 0, 4]]],
        "Notifies of HCCL's logs do not count posts",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_log_can_have_is_refused(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    links, tasks, message = REFUSED[name]
    document: dict[str, object] = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_reduce", "dtype": "fp32", "count": 1, "reduce": "sum"},
        "ranks": 2,
        "buffers": {rank: {"IN": 4, "OUT": 4, "FIFO": 4} for rank in "01"},
        "tasks": {"0": {"0": tasks}},
        **links,
    }
    Path("own.json").write_text(json.dumps(document))
    with pytest.raises(NotSupportedError, match=message):
        to_log(hccl.load("own.json"))
    assert main(["convert", "own.json", "own.log"]) == 2
    assert message in capfd.readouterr().err
    assert not Path("own.log").exists()


def test_convert_writes_a_log(capfd: pytest.CaptureFixture[str]) -> None:
    op = hccl.OpParam("all_gather", 16, hccl.DataType.FP32)
    hccl.record("AllGatherComm", op, hccl.topology_of(ranks=4)).save("own.json")
    assert main(["convert", "own.json", "own.log"]) == 0
    assert main(["check", "own.log", "-d", "fp32"]) == 0
    assert "own.log#1: ok" in capfd.readouterr().out
    Path("notes.log").write_text("my notes")
    assert main(["convert", "own.json", "notes.log"]) == 2
    assert Path("notes.log").read_text() == "my notes"
    assert main(["convert", "own.json", "own.log", "--proto", "LL"]) == 2
