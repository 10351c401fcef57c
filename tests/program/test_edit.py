"""Taking tasks out and swapping them: the task view of the result is that of the rows."""

import time

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hccl_py.formats import from_npz, to_npz
from hccl_py.program.edit import rearranged, swapped, without
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_batches
from hccl_py.topology import topology_of
from hccl_py.values import IntArray, PerRank
from tests.recording import BY_NAME, SAMPLES, op_of, recorded

PROGRAMS = [
    recorded(name, op_of(str(BY_NAME[name].op), 100, dtype), ranks)
    for name in SAMPLES
    for ranks, dtype in ((1, "fp32"), (4, "int64"))
] + [
    recorded("AllReduceComm", op_of("all_reduce", 100), topology_of(12)),
    recorded("AllGatherComm", op_of("all_gather", 100), 3, by_rank=True),
]


def check_rows(edited: Program, program: Program, rows: IntArray) -> None:
    """The task view of the result has these rows of the original one, and nothing else differs."""
    for name, column in program.tasks.meaning().items():
        assert np.array_equal(edited.tasks.meaning()[name], column[rows]), name
    for name in ("label", "line"):
        mine, theirs = (
            getattr(p.tasks.table, name)[p.tasks.instruction] for p in (edited, program)
        )
        assert np.array_equal(mine, theirs[rows]), name
    assert np.array_equal(edited.tasks.rank, program.tasks.rank[rows])
    assert sorted(r for b in edited.batches for r in b.ranks.tolist()) == list(range(program.ranks))
    for name in ("transports", "local_notifies", "declared", "buffer_sizes", "rounds"):
        assert getattr(edited, name) is getattr(program, name)
    # Batches are whole: other tools can read their formulas.
    assert from_npz(to_npz(edited)).digest == edited.digest


@given(program=st.sampled_from(PROGRAMS), seed=st.integers(0, 999), share=st.floats(0, 1))
def test_without_any_rows(program: Program, seed: int, share: float) -> None:
    keep = np.random.default_rng(seed).random(len(program.tasks)) < share
    check_rows(without(program, keep), program, np.flatnonzero(keep))


@given(program=st.sampled_from(PROGRAMS), data=st.data())
def test_without_one_row(program: Program, data: st.DataObject) -> None:
    keep = np.ones(len(program.tasks), bool)
    keep[data.draw(st.integers(0, len(keep) - 1))] = False
    edited = without(program, keep)
    check_rows(edited, program, np.flatnonzero(keep))
    assert len(edited.batches) <= len(program.batches) + 1


@given(program=st.sampled_from(PROGRAMS), data=st.data())
def test_without_one_instruction_the_batches_stay(program: Program, data: st.DataObject) -> None:
    keep = program.tasks.instruction != data.draw(
        st.integers(0, int(program.tasks.instruction.max()))
    )
    edited = without(program, keep)
    check_rows(edited, program, np.flatnonzero(keep))
    assert len(edited.batches) == len(program.batches)
    for batch, before in zip(edited.batches, program.batches, strict=True):
        assert batch.ranks is before.ranks
        assert {id(i) for i in batch.instructions} <= {id(i) for i in before.instructions}


@given(program=st.sampled_from(PROGRAMS), data=st.data())
def test_neighbours_of_a_stream_swap(program: Program, data: st.DataObject) -> None:
    queues = queues_of(program)
    neighbours = np.flatnonzero(np.diff(queues.first) > 1).tolist()
    assume(neighbours)
    at = data.draw(st.sampled_from(neighbours))
    place = data.draw(st.integers(int(queues.first[at]), int(queues.first[at + 1]) - 2))
    a, b = queues.rows[place : place + 2].tolist()
    rows = np.arange(len(program.tasks))
    rows[[a, b]] = b, a
    edited = swapped(program, a, b)
    check_rows(edited, program, rows)
    assert swapped(edited, a, b).digest == program.digest


def test_parts_of_a_batch_keep_formulas_and_times() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 1000), topology_of(8, preset="ring"))
    rows = np.flatnonzero(program.tasks.rank != 3)
    silent = without(program, program.tasks.rank != 3)
    check_rows(silent, program, rows)
    assert [len(b.ranks) for b in silent.batches] == [7, 1]
    assert any(isinstance(i.src_offset, PerRank) for i in silent.batches[0].instructions)
    assert all(type(i.cell) is int for i in without(program, program.tasks.rank == 3).batches[1][1])
    # A rank of its own, and the same program: the formulas of the parts say what the batch said.
    pair = np.flatnonzero(program.tasks.rank == 3)[:2].tolist()
    apart = swapped(swapped(program, *pair), *pair)
    assert apart.digest == program.digest
    assert len(apart.batches) == 2
    cost = CostModel.of("ring")
    assert (
        simulate_batches(apart, None, cost).total_us
        == simulate_batches(program, None, cost).total_us
    )


def test_a_row_may_come_twice() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 100), 3)
    rows = np.sort(np.append(np.arange(len(program.tasks)), 5))
    check_rows(rearranged(program, rows), program, rows)


def test_wrong_rows_are_refused() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 100), 3)
    count = len(program.tasks)
    with pytest.raises(ValueError, match=rf"{count} rows need a mask of as many, not \(3,\)"):
        without(program, np.ones(3, bool))
    with pytest.raises(ValueError, match="ordered by rank"):
        rearranged(program, np.arange(count)[::-1])
    other = int(np.flatnonzero(program.tasks.stream == 1)[0])
    with pytest.raises(ValueError, match=rf"rows 0 and {other} are not of one stream"):
        swapped(program, 0, other)
    with pytest.raises(ValueError, match="are not of one stream"):
        swapped(program, 0, count - 1)


def test_editing_a_large_program_takes_less_than_recording_it() -> None:
    topology = topology_of(256, preset="ring")
    started = time.process_time()
    program = recorded("AllReduceComm", op_of("all_reduce", 1 << 20), topology, 64 << 20)
    tasks = program.tasks
    recording = time.process_time() - started
    started = time.process_time()
    edited = without(program, tasks.instruction != 7)
    assert time.process_time() - started < recording
    assert len(edited.batches) == 1
    assert edited.task_count == len(tasks) - 256
