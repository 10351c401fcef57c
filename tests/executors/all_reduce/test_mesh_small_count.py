"""The small all-reduce: its four forms, task by task as HCCL's templates have them."""

from dataclasses import replace

import pytest

from hccl_executors.all_reduce.mesh_small_count import AllReduceMeshSmallCountExecutor
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Unsuitable
from hccl_py.program.program import Program
from hccl_py.simulator.chain import longest_chain
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from tests.executors.flat import moves
from tests.executors.streams import streams_of
from tests.recording import op_of, recorded

SIZE = 4000
A2, A3 = "atlas-800t-a2", "atlas-900-a3"


def small(
    ranks: int, preset: str = A2, mode: Mode = Mode.OP_BASE, fixed: bool = False, count: int = 1000
) -> Program:
    op = replace(op_of("all_reduce", count, mode=mode), deterministic=fixed)
    return recorded(AllReduceMeshSmallCountExecutor, op, topology_of(ranks, preset=preset))


AT_RANK_0 = (
    "rx_ack 0, write_reduce 0, tx_data_signal 0, "  # added there
    "rx_ack 0, read 0, tx_data_signal 0"
)


def test_a2_adds_at_rank_0_and_reads_from_there() -> None:
    """AllReduceReduceBcast: only rank 0 forks, twice; its last peer is main's."""
    program = small(3)
    half = "copy, post, post, tx_ack 2, rx_data_signal 2, wait, wait"
    serve = "wait, tx_ack 1, rx_data_signal 1, post"
    idle = "wait, post"
    assert streams_of(program, 0) == [f"{part}, {part}" for part in (half, serve, idle)]
    assert streams_of(program, 1) == [AT_RANK_0]
    assert streams_of(program, 2) == [AT_RANK_0]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("ranks", "fixed"), [(2, False), (7, False), (8, False), (7, True)])
def test_a2_moves_two_buffers_per_rank(ranks: int, fixed: bool, mode: Mode) -> None:
    others = ranks - 1
    program = small(ranks, mode=mode, fixed=fixed)
    assert moves(program) == ([0] + [2] * others, [0] + [2 * SIZE] * others)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a2_takes_two_steps(ranks: int) -> None:
    assert longest_chain(small(ranks)) == (2, 2 * SIZE, SIZE)


@pytest.mark.parametrize(
    ("ranks", "folds"),
    [(2, []), (3, [1]), (4, [1, 1]), (5, [2, 1]), (6, [1, 2, 1]), (7, [2, 2, 1])],
)
def test_a2_in_a_fixed_order_collects_at_rank_0(ranks: int, folds: list[int]) -> None:
    """AllReduceLocalReduceBcast: what exceeds a power of two first, then halves, in one task."""
    program = small(ranks, fixed=True)
    tasks = program.tasks
    rows = range(int(tasks.first[0]), int(tasks.first[1]))
    reduced = [int(tasks.size[row]) for row in rows if tasks.kind[row] == TaskKind.REDUCE]
    assert reduced == [SIZE * n for n in folds]
    assert "write_reduce 0" in streams_of(program, 1)[0]
    assert all("write 0" in streams_of(program, rank)[0] for rank in range(2, ranks))
    assert longest_chain(program) == (2, 2 * SIZE, (ranks - 1) * SIZE)


def test_eight_ranks_in_a_fixed_order_double() -> None:
    """AllReduceDoublingDirect: a write, a read to CCL_Out, a read to user memory."""
    assert streams_of(small(8, fixed=True), 5) == [
        "copy, tx_ack 4, rx_ack 4, write_reduce 4, tx_data_signal 4, rx_data_signal 4, "
        "copy, tx_ack 7, rx_ack 7, read_reduce 7, tx_data_signal 7, rx_data_signal 7, "
        "copy, tx_ack 1, rx_ack 1, read_reduce 1, tx_data_signal 1, rx_data_signal 1"
    ]


def test_a3_doubles_in_slots() -> None:
    """AllReduceHDOptim with a power of two, on main alone: HCCL always passes `aicpu`."""
    assert streams_of(small(8, A3), 5) == [
        "copy, tx_ack 4, rx_ack 4, write_reduce 4, tx_data_signal 4, rx_data_signal 4, "
        "copy, tx_ack 7, rx_ack 7, read_reduce 7, tx_data_signal 7, rx_data_signal 7, "
        "copy, tx_ack 1, rx_ack 1, read_reduce 1, tx_data_signal 1, rx_data_signal 1"
    ]


def test_a3_without_a_power_of_two_has_helpers() -> None:
    """Of 6 ranks, 4 and 5 help 0 and 1; 2 and 3 have no helper."""
    program = small(6, A3)
    steps = (
        "tx_ack {0}, rx_ack {0}, read_reduce {0}, tx_data_signal {0}, rx_data_signal {0}, "
        "copy, tx_ack {1}, rx_ack {1}, read_reduce {1}, tx_data_signal {1}, rx_data_signal {1}"
    )
    assert streams_of(program, 0)[0] == (
        f"copy, tx_ack 4, rx_data_signal 4, copy, {steps.format(1, 2)}, "
        "tx_ack 4, copy, rx_data_signal 4"
    )
    assert streams_of(program, 2)[0] == f"copy, copy, {steps.format(3, 0)}, copy"
    assert streams_of(program, 4) == [AT_RANK_0]


@pytest.mark.parametrize("ranks", range(3, 17))
def test_a3_steps_follow_the_formula(ranks: int) -> None:
    """Who has no helper is ready early, so that its Ack hides one α from some."""
    k = ranks.bit_length() - 1
    extra = ranks != 1 << k
    steps, moved, reduced = longest_chain(small(ranks, A3))
    assert steps in {k + extra, k + 2 * extra}
    assert (moved, reduced) == ((k + 2 * extra) * SIZE, (k + extra) * SIZE)


@pytest.mark.parametrize(
    ("ranks", "preset", "mode", "dtype", "reason"),
    [
        (16, A2, Mode.OP_BASE, "fp32", "needs one server, there are 2"),
        (4, A2, Mode.OP_BASE, "int64", "needs links that reduce int64 on their way"),
        (2, A3, Mode.OP_BASE, "fp32", "two sub streams on Atlas A3: 3 ranks, there are 2"),
        (3, A3, Mode.GRAPH, "fp32", "two sub streams on Atlas A3: 4 ranks, there are 3"),
    ],
)
def test_refusals(ranks: int, preset: str, mode: Mode, dtype: str, reason: str) -> None:
    refusal = AllReduceMeshSmallCountExecutor().suits(
        op_of("all_reduce", dtype=dtype, mode=mode), topology_of(ranks, preset=preset)
    )
    assert isinstance(refusal, Unsuitable)
    assert reason in refusal.reason


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("ranks", "preset"), [(1, A2), (7, A2), (8, A2), (6, A3), (16, A3)])
def test_nothing_to_add_is_no_special_case(ranks: int, preset: str, mode: Mode) -> None:
    program = small(ranks, preset, mode, fixed=True, count=0)
    assert verify(program, product=topology_of(ranks, preset=preset).product).ok
