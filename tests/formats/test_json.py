"""JSON program files: what is recorded comes back, what a verifier must see can be said."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import DataType, Mode, ReduceOp, TaskKind
from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from hccl_py.program.describe import format_task
from hccl_py.program.instruction import Batch
from hccl_py.program.program import Program
from hccl_py.program.usage import usage_of
from hccl_py.topology import topology_of
from tests.formats.documents import EXAMPLE, SHORT, with_tasks
from tests.recording import MESH_ONLY, op_of, recorded

TOPOLOGIES = {
    "one": topology_of(1),
    "mesh": topology_of(5),
    "mixed": topology_of(12),
    "rdma": topology_of(servers=4, devices=1),
}

CASES = [
    (executor, name)
    for executor in ("AllGatherComm", "AllReduceComm", *MESH_ONLY)
    for name in TOPOLOGIES
    if executor not in MESH_ONLY or name in ("one", "mesh")
]


def call(executor: str, count: int = 100, dtype: str = "fp32", mode: Mode = Mode.OP_BASE) -> Any:
    """Return the op that an executor carries out."""
    name = "all_gather" if executor.startswith("AllGather") else "all_reduce"
    return op_of(name, count, dtype, mode=mode)


def by_stream(program: Program) -> Program:
    """Return the program with every rank's tasks stream by stream, as files list them."""
    batches = [
        Batch(batch.ranks, tuple(sorted(batch.instructions, key=lambda i: i.stream)))
        for batch in program.batches
    ]
    return replace(program, batches=tuple(batches))


def notes(program: Program) -> list[tuple[str, str, int]]:
    """Return label, source line and round of every task."""
    table, at = program.tasks.table, program.tasks.instruction
    return [
        (
            program.labels[label] if label >= 0 else "",
            program.lines[line] if line >= 0 else "",
            number,
        )
        for label, line, number in zip(
            table.label[at].tolist(), table.line[at].tolist(), table.round[at].tolist(), strict=True
        )
    ]


@pytest.mark.parametrize(("executor", "name"), CASES)
@given(count=st.sampled_from([0, 1, 7, 1000]), ccl_bytes=st.sampled_from([1 << 11, 1 << 20]))
def test_recorded_programs_come_back(executor: str, name: str, count: int, ccl_bytes: int) -> None:
    small = executor not in MESH_ONLY  # the mesh reserves some KiB of its buffer
    topology = TOPOLOGIES[name]
    program = recorded(executor, call(executor, count), topology, ccl_bytes if small else 1 << 20)
    text = to_json(program)
    back = from_json(text)
    wanted = by_stream(program)
    assert back.digest == wanted.digest
    assert notes(back) == notes(wanted)
    assert back.executor == program.executor
    assert (back.declared.sub_streams == program.declared.sub_streams).all()
    assert (back.declared.notifies == program.declared.notifies).all()
    assert (back.declared.scratch_bytes == program.declared.scratch_bytes).all()
    assert (back.declared.local_notifies == program.declared.local_notifies).all()
    assert back.declared.stated.all()
    assert to_json(back) == text


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dtype", ["int8", "bf16", "fp64", "uint16"])
def test_modes_and_dtypes_come_back(mode: Mode, dtype: str) -> None:
    program = recorded("AllReduceComm", call("AllReduceComm", 33, dtype, mode), 3)
    back = from_json(to_json(program))
    assert back.op == program.op
    assert back.digest == by_stream(program).digest


@pytest.mark.parametrize("executor", ["AllReduceComm", *MESH_ONLY])
def test_batching_does_not_show(executor: str) -> None:
    op = call(executor)
    together, alone = recorded(executor, op, 4), recorded(executor, op, 4, by_rank=True)
    assert to_json(together) == to_json(alone)


def test_rounds_come_back() -> None:
    program = recorded("AllReduceComm", call("AllReduceComm", 3000), 3, ccl_bytes=4096)
    assert program.rounds == 3
    assert '"round": 2' in to_json(program)
    assert '"rounds"' not in to_json(program)  # the highest of a task says it
    assert from_json(to_json(program)).rounds == 3


def test_rounds_without_tasks_come_back() -> None:
    program = replace(recorded("AllReduceComm", call("AllReduceComm"), 2), rounds=5)
    back = from_json(to_json(program))
    assert back.rounds == 5
    assert back.digest == program.digest


@pytest.mark.parametrize("rounds", [1, 2])
def test_fewer_rounds_than_tasks_use_are_refused(rounds: int) -> None:
    """Rounds count from 0: a task of round 2 makes 3."""
    task = ["compute", 1.0, {"round": 2}]
    with pytest.raises(ProgramFileError, match=rf"rounds: expected .*found {rounds}"):
        with_tasks(task, rounds=rounds)
    assert with_tasks(task, rounds=3).rounds == 3


def test_one_task_per_line() -> None:
    program = recorded("AllGatherComm", call("AllGatherComm"), 3)
    lines = to_json(program).splitlines()
    assert sum(line.startswith("        [") for line in lines) == program.task_count


def test_alike_links_take_the_short_form() -> None:
    text = json.loads(to_json(recorded("AllGatherMeshOpbaseExecutor", call("AllGather"), 3)))
    assert (text["link"], text["exported"]) == ("sdma", ["CCL_IN", "CCL_OUT"])
    assert text["resources"]["1"] == {
        "streams": 3,
        "local_notifies": {"0": 2, "1": 1, "2": 1},
        "channel_notifies": {"0": 3, "2": 3},
    }


def test_mixed_links_take_the_general_form() -> None:
    op = op_of("all_to_all", 100)
    text = json.loads(to_json(recorded("RunAlltoAllDirectFullmesh", op, topology_of(9))))
    assert "link" not in text
    assert {link["kind"] for link in text["links"]} == {"sdma", "rdma"}
    assert text["links"][0]["exports"] == {"0": ["CCL_IN", "CCL_OUT"], "1": ["CCL_IN", "CCL_OUT"]}


def test_the_example_of_the_format_loads() -> None:
    program = from_json(EXAMPLE)
    kinds = [TaskKind(kind).spelling for kind in program.tasks.kind.tolist()]
    assert kinds == ["copy", "notify_post", "notify_post", "notify_wait", "read"]
    assert program.declared.sub_streams.tolist() == [2, 0, 0, 0]
    assert program.transports.counts(4).tolist() == [3, 1, 1, 1]
    assert program.local_notifies.slots == ((0, 0), (0, 1), (1, 0), (2, 0))
    assert len(program.linked.stuck) == 1
    assert to_json(from_json(to_json(program))) == to_json(program)


def test_every_task_of_the_format() -> None:
    s: list[Any] = ["CCL", 0, 4]
    d: list[Any] = ["OUT", 4, 4]
    tasks: list[list[Any]] = [
        ["copy", s, d],
        ["reduce", "sum", s, d],
        ["read", 1, s, d],
        ["read_reduce", 1, "prod", s, d],
        ["write", 1, s, d],
        ["write_reduce", 1, "max", s, d],
        ["post", 1, 0],
        ["wait", 1, 1],
        ["compute", 2.5],
        ["local_post", 0, 0],
        ["local_wait", 0],
    ]
    program = with_tasks(*tasks)
    kinds = [TaskKind(kind).spelling for kind in program.tasks.kind.tolist()]
    assert kinds[:6] == ["copy", "reduce", "read", "read_reduce", "write", "write_reduce"]
    assert kinds[6:] == ["notify_post", "notify_wait", "compute", "notify_post", "notify_wait"]
    table = program.tasks.table
    assert table.duration_us[8] == 2.5
    assert table.reduce.tolist()[:6] == [-1, ReduceOp.SUM, -1, ReduceOp.PROD, -1, ReduceOp.MAX]
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == tasks


def test_a_barrier_needs_no_data_type() -> None:
    program = from_json(json.dumps({**SHORT, "op": {"name": "barrier"}}))
    assert (program.op.dtype, program.op.count) == (DataType.UINT8, 0)
    assert from_json(to_json(program)).op == program.op


@pytest.mark.parametrize(
    "task",
    [
        ["copy", ["IN", 0, 64], ["OUT", 0, 64]],  # beyond both
        ["copy", ["IN", 2**61, 1], ["OUT", 0, 1]],
        ["read", 1, ["IN", 0, 4], ["OUT", 0, 4]],  # not exported
        ["copy", ["OUT", 0, 8], ["OUT", 4, 8]],  # overlaps itself
        ["copy", ["IN", 4, 0], ["OUT", 8, 0]],  # nothing
    ],
)
def test_what_the_verifier_judges_loads(task: list[Any]) -> None:
    program = with_tasks(task)
    assert program.task_count == 1
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == [task]


@pytest.mark.parametrize("tasks", [{}, {"0": {}}, {"1": {"0": []}}])
def test_silent_ranks_load(tasks: dict[str, Any]) -> None:
    program = from_json(json.dumps({**SHORT, "tasks": tasks}))
    assert len(program.tasks) == 0
    program.linked.check(program)
    assert program.tasks.first.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "src", "dst"),
    [("copy", 8, 4), ("copy", 4, 8), ("copy", 0, 4), ("copy", 4, 0), ("read", 2**61, 1)],
)
def test_sides_of_different_lengths_load(name: str, src: int, dst: int) -> None:
    peer = [1] if name == "read" else []
    task = [name, *peer, ["CCL", 0, src], ["OUT", 0, dst]]
    even = [name, *peer, ["CCL", 0, src], ["OUT", 0, src]]
    program = with_tasks(even, task)
    tasks = program.tasks
    assert tasks.size.tolist() == [src, src]
    assert tasks.dst_size.tolist() == [src, dst]
    assert tasks.table.dst_size.tolist() == [-1, dst]
    assert tasks.table.has_dst_size.tolist() == [False, True]
    assert program.digest != with_tasks(even, even).digest
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == [even, task]
    assert from_npz(to_npz(program)).digest == program.digest
    assert f"CCL[0:{src}] to user_out[0:{dst}]" in format_task(program, 1)


def test_scratch_is_reached_by_both_lengths() -> None:
    buffers = {"0": {"IN": 4, "OUT": 4, "SCRATCH": 64}}
    tasks = ["copy", ["IN", 0, 4], ["SCRATCH", 8, 40]]
    program = with_tasks(tasks, buffers=buffers, exported=[])
    assert usage_of(program).scratch_bytes.tolist() == [48, 0]


def test_notes_are_kept() -> None:
    note = {"round": 2, "label": "Schritt – 一", "source": "a.py:1", "dtype": "int8"}
    program = with_tasks(["copy", ["IN", 0, 4], ["OUT", 0, 4], note], ["compute", 1.0, {}])
    assert notes(program)[0] == ("Schritt – 一", "a.py:1", 2)
    assert program.tasks.table.dtype.tolist() == [DataType.INT8.number, -1]
    assert program.rounds == 3
    assert json.loads(to_json(program))["tasks"]["0"]["0"][0][3] == note


def test_waiting_for_another_streams_notify_is_kept() -> None:
    program = with_tasks(["local_wait", 0, {"owner": 2}])
    slot = int(program.tasks.cell[0]) - program.transports.cells
    assert program.local_notifies.slots[slot] == (2, 0)
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == [["local_wait", 0, {"owner": 2}]]


def test_key_order_and_layout_do_not_matter() -> None:
    text = to_json(recorded("AllReduceComm", call("AllReduceComm"), 3))
    shuffled = json.dumps(dict(reversed(json.loads(text).items())), indent=3)
    assert to_json(from_json(shuffled)) == text
    assert to_json(from_json("\ufeff" + shuffled)) == text
    assert to_json(from_json(shuffled.encode())) == text


@pytest.mark.parametrize(
    ("k", "cells", "owner"), [(0, (3, 5), "its transport"), (1, (6, 6), "its rank")]
)
def test_only_cells_of_the_task_itself_can_be_written(
    k: int, cells: tuple[int, int], owner: str
) -> None:
    """The link has 2 ends of 3 cells, a post goes to the other end; then one cell per rank."""
    program = with_tasks(["post", 1, 0], ["local_post", 0, 0])
    ranks, instructions = program.batches[0]

    def text_at(cell: int) -> str:
        odd = [i._replace(cell=cell) if i is instructions[k] else i for i in instructions]
        return to_json(replace(program, batches=(Batch(ranks, tuple(odd)), *program.batches[1:])))

    for cell in cells:
        assert '"tasks"' in text_at(cell)
    for cell in (cells[0] - 1, cells[1] + 1):
        with pytest.raises(ProgramFileError, match=rf"rank 0 main task {k}.*none of {owner}"):
            text_at(cell)
