"""The second opinion: right programs stay right in every interleaving, mutated ones are caught."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, LinkKind, Mode, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.formats import from_json
from hccl_py.plugins.executor import Executor
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from hccl_py.values import values_of
from hccl_py.verifier.numeric import NumericResult, WrongResult, repeated, run_numeric, schedules_of
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import space_of
from hccl_py.verifier.verifier import verify_program
from tests.recording import BY_NAME, CHOSEN, SAMPLES, op_of, recorded, without

FEW = schedules_of(2)

BOTH_LINKS = topology_of(servers=2, devices=2)


def is_remote_sync(instruction: Instruction) -> bool:
    return _is_sync(instruction) and not _is_local(instruction)


def _is_sync(instruction: Instruction) -> bool:
    return instruction.kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT)


def _is_local(instruction: Instruction) -> bool:
    return isinstance(instruction.end, int) and instruction.end < 0


@pytest.mark.parametrize("cls", CHOSEN)
def test_the_built_in_executors_are_right(cls: type[Executor]) -> None:
    executor = cls()
    cases = [c for c in space_of(executor, Cases(ranks=(1, 2, 3, 5))).cases if c.op.count < 2000]
    for number, case in enumerate(cases[::4]):
        program = recorded(executor, case.op, case.topology, case.ccl_bytes)
        kinds = [Schedule(number, adversary) for adversary in Adversary]
        assert run_numeric(program, kinds).ok, case.text


def test_every_seed_meets_every_adversary() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 5), 3)
    found = run_numeric(program, seeds=3)
    assert found == NumericResult(runs=15)
    assert found.ok
    assert found.document() == {"ok": True, "programs": 1, "runs": 15, "wrong": None}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_without_any_synchronisation_between_ranks_results_are_wrong(name: str, ranks: int) -> None:
    op = op_of(str(BY_NAME[name].op), 40 * ranks, "int32")
    program = recorded(name, op, ranks)
    assert run_numeric(program, FEW).ok
    broken = run_numeric(without(program, is_remote_sync), FEW)
    assert broken.wrong is not None
    assert broken.wrong.rank >= 0
    assert not broken.ok


def test_rdma_data_that_nobody_waits_for_is_missed() -> None:
    """An RDMA write is posted, not done: without DataSignal and DataAck it may arrive too late."""
    program = recorded("AllGatherComm", op_of("all_gather", 64, "int32"), BOTH_LINKS)
    stride = program.transports.stride

    def is_data_signal(instruction: Instruction) -> bool:
        if not _is_sync(instruction) or _is_local(instruction):
            return False
        cells: Any = np.atleast_1d(values_of(instruction.cell))
        return bool((cells % stride > 0).any())

    late = run_numeric(without(program, is_data_signal), seeds=2)
    assert late.wrong is not None


@pytest.mark.parametrize("kind", [TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT])
def test_a_run_that_cannot_end_well_says_why(kind: TaskKind) -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 5), 3)
    found = run_numeric(without(program, lambda i: i.kind is kind), FEW)
    assert found.wrong is not None
    assert found.runs == 1
    assert found.wrong.rank == -1
    start = "Deadlock: " if kind is TaskKind.NOTIFY_POST else "Notify overrun: "
    assert found.wrong.message.startswith(start)
    assert found.document()["wrong"] == {
        "message": found.wrong.message,
        "seed": 0,
        "schedule": "random",
    }


def test_a_race_between_one_op_and_the_next_shows() -> None:
    """Rank 0 fills CCL again for the next op although rank 1 may not have read it yet."""
    fill, read = ["copy", ["IN", 0, 8], ["CCL", 0, 8]], ["read", 0, ["CCL", 0, 8], ["OUT", 0, 8]]
    tasks: dict[str, Any] = {
        "0": {"0": [fill, ["copy", ["IN", 0, 8], ["OUT", 0, 8]], ["post", 1, 0], ["wait", 1, 0]]},
        "1": {"0": [["wait", 0, 0], ["post", 0, 0], read]},
    }
    sizes = {"IN": 8, "OUT": 8, "CCL": 8}
    program = small("broadcast", tasks, {"0": sizes, "1": sizes}, count=2, root=0)
    wrong = run_numeric(program).wrong
    assert wrong is not None
    assert (wrong.rank, wrong.op) == (1, 1)
    tasks["1"]["0"] = [["wait", 0, 0], read, ["post", 0, 0]]
    assert run_numeric(small("broadcast", tasks, {"0": sizes, "1": sizes}, count=2, root=0)).ok


def small(name: str, tasks: dict[str, Any], buffers: dict[str, Any], **op: Any) -> Program:
    """Read a program of two ranks with one SDMA link that exports everything."""
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": name, "dtype": "int32", **op},
        "ranks": 2,
        "link": "sdma",
        "exported": list(buffers["0"]),
        "buffers": buffers,
        "tasks": tasks,
    }
    return from_json(json.dumps(document).encode(), "test")


def pulled(rank: int, *moves: list[Any]) -> dict[str, Any]:
    """Return the tasks of a rank between two handshakes with its peer."""
    peer = 1 - rank
    before = [["post", peer, 0], ["wait", peer, 0]]
    after = [["post", peer, 1], ["wait", peer, 1]]
    return {"0": [*before, *moves, *after]}


A, B = ["IN", 0, 4], ["IN", 4, 4]
X, Y = ["OUT", 0, 4], ["OUT", 4, 4]

OPS: dict[str, tuple[dict[str, Any], tuple[int, int], list[list[list[Any]]]]] = {
    # op: its parameters, bytes of IN and OUT, and what rank 0 and rank 1 move
    "broadcast": (
        {"count": 1, "root": 1},
        (4, 4),
        [[["read", 1, A, X]], [["copy", A, X]]],
    ),
    "reduce": (
        {"count": 1, "root": 0, "reduce": "max"},
        (4, 4),
        [[["copy", A, X], ["read_reduce", 1, "max", A, X]], []],
    ),
    "scatter": (
        {"count": 1, "root": 0},
        (8, 4),
        [[["copy", A, X]], [["read", 0, B, X]]],
    ),
    "gather": (
        {"count": 1, "root": 1},
        (4, 8),
        [[], [["read", 0, A, X], ["copy", A, Y]]],
    ),
    "reduce_scatter": (
        {"count": 1, "reduce": "sum"},
        (8, 4),
        [
            [["copy", A, X], ["read_reduce", 1, "sum", A, X]],
            [["copy", B, X], ["read_reduce", 0, "sum", B, X]],
        ],
    ),
    "all_to_all": (
        {"count": 1},
        (8, 8),
        [
            [["copy", A, X], ["read", 1, A, Y]],
            [["read", 0, B, X], ["copy", B, Y]],
        ],
    ),
    "send_recv": (
        {"count": 1},
        (4, 4),
        [[["read", 1, A, X]], [["read", 0, A, X]]],
    ),
}


def op_program(name: str, drop: tuple[int, int] | None = None) -> Program:
    parameters, (size_in, size_out), moves = OPS[name]
    kept = [
        [move for at, move in enumerate(mine) if (rank, at) != drop]
        for rank, mine in enumerate(moves)
    ]
    sizes = {"IN": size_in, "OUT": size_out}
    tasks = {str(rank): pulled(rank, *mine) for rank, mine in enumerate(kept)}
    return small(name, tasks, {"0": sizes, "1": sizes}, **parameters)


@pytest.mark.parametrize("name", OPS)
def test_every_op_is_judged_by_its_meaning(name: str) -> None:
    assert run_numeric(op_program(name), FEW).ok
    for rank, moves in enumerate(OPS[name][2]):
        for at in range(len(moves)):
            assert not run_numeric(op_program(name, (rank, at)), FEW).ok, (rank, at)


def test_a_barrier_has_no_data_but_may_hang() -> None:
    sizes = {"IN": 0, "OUT": 0}
    both: dict[str, Any] = {str(rank): pulled(rank) for rank in (0, 1)}
    assert run_numeric(small("barrier", both, {"0": sizes, "1": sizes}, count=0), FEW).ok
    both["1"]["0"].pop(0)
    broken = run_numeric(small("barrier", both, {"0": sizes, "1": sizes}, count=0), FEW)
    assert broken.wrong is not None
    assert "Deadlock" in broken.wrong.message


def test_a_wrong_element_is_named_with_its_schedule() -> None:
    program = op_program("all_to_all", (1, 0))
    wrong = run_numeric(program, [Schedule(3, Adversary.SLOW_RANK)]).wrong
    assert wrong is not None
    assert (wrong.rank, wrong.op, wrong.element) == (1, 1, 0)
    assert wrong.message == (
        f"rank 1 element 0 of op 1: expected {wrong.expected}, found {wrong.found}"
    )
    assert wrong.document() == {
        "message": wrong.message,
        "seed": 3,
        "schedule": "slow-rank",
        "rank": 1,
        "op": 1,
        "element": 0,
        "expected": wrong.expected,
        "found": wrong.found,
    }
    assert run_numeric(program, [wrong.schedule]).wrong == wrong


def test_in_place_input_and_output_share_memory() -> None:
    """Rank 0 copies its slot too late: in place it has overwritten its own input by then."""
    tasks = {
        "0": pulled(0, ["read", 1, A, Y], ["copy", A, X]),
        "1": pulled(1, ["read", 0, A, X], ["copy", A, Y]),
    }
    sizes = {"IN": 4, "OUT": 8}
    program = small("all_gather", tasks, {"0": sizes, "1": sizes}, count=1)
    assert run_numeric(program, FEW).ok
    assert not run_numeric(program, FEW, in_place=True).ok
    said = replace(program, op=replace(program.op, in_place=True))
    assert not run_numeric(said, FEW).ok


def test_a_program_without_user_memory_cannot_be_judged() -> None:
    program = op_program("broadcast")
    nameless = replace(program, buffers=tuple("CCL" if b == "IN" else b for b in program.buffers))
    with pytest.raises(NotSupportedError, match=r"broadcast cannot run with data: .* no buffer IN"):
        run_numeric(nameless)


@st.composite
def mutants(draw: st.DrawFn) -> Program:
    """Draw a small recording less some of its instructions."""
    name = draw(st.sampled_from(SAMPLES))
    op = replace(op_of(str(BY_NAME[name].op), 12, "int32"), in_place=draw(st.booleans()))
    servers = 1 if "Mesh" in name else draw(st.integers(1, 2))
    program = recorded(name, op, topology_of(servers=servers, devices=draw(st.integers(1, 3))))
    every = [id(i) for batch in program.batches for i in batch.instructions]
    gone = draw(st.lists(st.sampled_from(every), max_size=3)) if every else []
    return without(program, lambda i: id(i) in gone)


@given(program=mutants())
def test_what_goes_wrong_with_data_the_verifier_has_found(program: Program) -> None:
    numeric = run_numeric(program, FEW)
    report = verify_program(program)
    assert numeric.ok or not report.ok, (numeric, report.findings)


@given(copies=st.integers(1, 4), count=st.integers(0, 40))
def test_copies_differ_in_user_memory_only(copies: int, count: int) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", count, "int8"), 3)
    again = repeated(program, copies, 128)
    assert again.task_count == copies * program.task_count
    for rank in range(3):
        one = slice(program.tasks.first[rank], program.tasks.first[rank + 1])
        all_of = slice(again.tasks.first[rank], again.tasks.first[rank + 1])
        for side in ("src", "dst"):
            buffer = getattr(program.tasks.table, f"{side}_buffer")[program.tasks.instruction[one]]
            user = (buffer == 0) | (buffer == 1)
            offsets = getattr(program.tasks, f"{side}_offset")[one]
            wanted = [offsets + k * 128 * user for k in range(copies)]
            assert (getattr(again.tasks, f"{side}_offset")[all_of] == np.concatenate(wanted)).all()
    user_sizes = again.buffer_sizes[:, :2] - program.buffer_sizes[:, :2]
    assert (user_sizes == (copies - 1) * 128).all()
    assert (again.buffer_sizes[:, 2:] == program.buffer_sizes[:, 2:]).all()


@pytest.mark.parametrize("dtype", [dtype for dtype in DataType if not dtype.is_moved])
@pytest.mark.parametrize("reduce", ReduceOp)
def test_every_type_and_reduce_op_is_exact(dtype: DataType, reduce: ReduceOp) -> None:
    op = OpParam("all_reduce", 100, dtype, reduce, mode=Mode.GRAPH)
    program = recorded("AllReduceComm", op, Topology(topology_of(5).product, (3, 2)))
    assert LinkKind.RDMA in program.transports.kind
    assert run_numeric(program, FEW[:5]).ok


def test_results_speak_of_their_case() -> None:
    wrong = WrongResult("no", Schedule(), case="2 ranks")
    assert wrong.document()["case"] == "2 ranks"
    assert not NumericResult(1, wrong).ok
