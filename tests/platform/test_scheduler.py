"""The scheduler: interleavings, replay, adversaries, and how wrong programs end."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.scheduler import Scheduler
from hccl_platform.lowering.moves import moves_of
from hccl_py.enums import TaskKind
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.plugins.platforms import Adversary, Chooser, Replayed, Schedule, Seeded
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.program.transports import ACK, DATA_ACK
from hccl_py.topology import topology_of
from hccl_py.values import values_of
from tests.platform.exchanging import ExchangingRing
from tests.platform.running import (
    NUMPY,
    Array,
    Way,
    changed,
    expected,
    run,
    same_bits,
    scheduled,
    slots_of,
    whole_numbers,
)
from tests.recording import op_of, recorded, without

RDMA = topology_of(servers=4, devices=1)


def chosen(program: Program, inputs: list[Array], chooser: Chooser) -> list[Array]:
    """Run with a chooser of one's own."""
    outputs = [np.zeros(program.op.count, program.op.dtype.numpy) for _ in inputs]
    prepared = Prepared(program, moves_of(program, np.arange(len(program.tasks))))
    slots = slots_of(program, prepared.moves.slots, inputs, outputs)
    steps = dict(zip(prepared.moves.row.tolist(), prepared.moves.steps, strict=True))
    Scheduler(program, steps, slots, Adversary.RANDOM, chooser).run()
    return outputs


class Drawn:
    """Lets hypothesis choose, and shrink what it chose."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def choose(self, options: int) -> int:
        return self.data.draw(st.integers(0, options - 1))


@given(data=st.data())
def test_hypothesis_can_choose_the_interleaving(data: st.DataObject) -> None:
    op = op_of("all_reduce", 40, "int32")
    program = recorded("AllReduceComm", op, topology_of(servers=3, devices=1))
    inputs = whole_numbers(op, 3)
    assert same_bits(chosen(program, inputs, Drawn(data)), expected(op, inputs))


def test_recorded_choices_give_the_same_interleaving() -> None:
    op = op_of("all_reduce", 400)
    program = recorded("AllReduceMeshOpbaseLoopExecutor", op, 8)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(400).astype(np.float32) for _ in range(8)]
    seeded = Seeded(4)
    wanted = chosen(program, inputs, seeded)
    assert same_bits(chosen(program, inputs, Replayed(seeded.choices)), wanted)
    assert same_bits(chosen(program, inputs, Seeded(4)), wanted)
    others = [chosen(program, inputs, Seeded(seed)) for seed in range(5, 15)]
    assert not all(same_bits(o, wanted) for o in others), "atomic sums depend on the order"


def test_a_schedule_takes_choices() -> None:
    op = op_of("all_reduce", 400)
    program = recorded("AllReduceMeshOpbaseLoopExecutor", op, 8)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(400).astype(np.float32) for _ in range(8)]
    seeded = Seeded(4)
    wanted = chosen(program, inputs, seeded)
    listed = Schedule(choices=tuple(seeded.choices))
    assert same_bits(run(program, inputs, Way(listed)), wanted)
    assert same_bits(run(program, inputs, scheduled(4)), wanted)
    assert not same_bits(run(program, inputs, Way(Schedule(seed=4, choices=()))), wanted)


def test_replay_survives_choices_that_do_not_fit() -> None:
    op = op_of("all_reduce", 40, "int32")
    program = recorded("AllReduceComm", op, RDMA)
    inputs = whole_numbers(op, 4)
    for choices in ([], [99, 0, 99, 3], [1] * 10):
        assert same_bits(chosen(program, inputs, Replayed(choices)), expected(op, inputs))


# ---- adversaries ----


def is_data_ack(program: Program) -> Any:
    def picks(instruction: Instruction) -> bool:
        cell = int(np.max(values_of(instruction.cell)))
        stride = program.transports.stride
        return 0 <= cell < program.transports.cells and cell % stride == DATA_ACK

    return picks


def failures(program: Program, adversary: Adversary) -> int:
    inputs = whole_numbers(program.op, program.ranks)
    wanted = expected(program.op, inputs)
    ways = [scheduled(seed, adversary) for seed in range(20)]
    return sum(not same_bits(run(program, inputs, way), wanted) for way in ways)


def test_a_late_wire_exposes_a_missing_data_ack() -> None:
    program = recorded(ExchangingRing, op_of("all_reduce", 1000, "int32"), RDMA, 1024)
    careless = without(program, is_data_ack(program))
    careless.linked.check(careless)
    assert failures(program, Adversary.LATE_WIRE) == 0
    assert failures(careless, Adversary.LATE_WIRE) == 20
    assert failures(careless, Adversary.EARLY_WIRE) == 0


def test_a_late_wire_finds_more_than_chance() -> None:
    pair = topology_of(servers=2, devices=1)
    program = recorded(ExchangingRing, op_of("all_reduce", 16, "int32"), pair, 32)
    careless = without(program, is_data_ack(program))
    late, chance = (failures(careless, a) for a in (Adversary.LATE_WIRE, Adversary.RANDOM))
    assert late > 3 * chance > 0


class StaleRead:
    """Rank 0 may read rank 1's CCL_In before rank 1 has filled it: nothing but luck orders them."""

    op = "all_reduce"
    algorithm = "none"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(planes=(PlaneRequest("flat", "ring"),))

    def orchestrate(self, op: Any, rank: Any) -> None:
        work = rank.ccl_in.head(rank.user_in.size)
        rank.main.copy(work, rank.user_in)
        rank.main.copy(rank.user_out, rank.flat.right.remote(work))


@pytest.mark.parametrize("adversary", [Adversary.STARVED_STREAM, Adversary.SLOW_RANK])
def test_a_slow_neighbour_exposes_a_missing_ack(adversary: Adversary) -> None:
    op = op_of("all_reduce", 10, "int32")
    program = recorded(StaleRead, op, 2)
    inputs = [np.full(10, r + 1, np.int32) for r in range(2)]
    for seed in range(10):
        outputs = run(program, inputs, scheduled(seed, adversary))
        assert sorted(int(o[0]) for o in outputs) in ([0, 1], [0, 2]), "CCL memory begins as zeros"


class EarlyAck(StaleRead):
    """The sub stream fills CCL_In; the main stream lets the peer read without waiting for that."""

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),), sub_streams=1)

    def orchestrate(self, op: Any, rank: Any) -> None:
        work = rank.ccl_in.head(rank.user_in.size)
        with rank.flat.fork() as subs:
            for sub, _, link in subs:
                sub.copy(work, rank.user_in)
                link.tx_ack(rank.main)
                link.rx_ack(rank.main)
        rank.main.copy(rank.user_out, rank.flat.right.remote(work))


def test_a_slow_rank_is_slow_on_all_its_streams() -> None:
    program = recorded(EarlyAck, op_of("all_reduce", 10, "int32"), 2)
    inputs = [np.full(10, r + 1, np.int32) for r in range(2)]
    ways = (scheduled(seed, Adversary.SLOW_RANK) for seed in range(20))
    found = [int(output[0]) for way in ways for output in run(program, inputs, way)]
    assert 0 in found, "CCL memory begins as zeros"


# ---- programs that cannot end well ----


def nth(program: Program, kind: TaskKind, number: int) -> int:
    rows = [k for k, i in enumerate(program.batches[0].instructions) if i.kind is kind]
    return rows[number]


@pytest.mark.parametrize("way", [None, *Adversary])
@pytest.mark.parametrize("name", ["AllGatherComm", "AllGatherMeshOpbaseExecutor"])
def test_a_missing_post_is_a_deadlock_that_names_lines(name: str, way: Adversary | None) -> None:
    program = recorded(name, op_of("all_gather", 10), 4, by_rank=True)
    posts = TaskKind.NOTIFY_POST
    is_ack = [
        k
        for k, i in enumerate(program.batches[0].instructions)
        if i.kind is posts and i.cell < program.transports.cells and i.cell % 3 == ACK
    ]
    broken = changed(program, 0, is_ack[0], lambda _: None)
    inputs = whole_numbers(program.op, 4)
    outputs = [np.full(40, 7, np.float32) for _ in range(4)]
    session = (NUMPY if way is None else scheduled(1, way)).session(broken)
    with pytest.raises(DeadlockError) as error:
        session.run("tag", broken, inputs, outputs)
    assert error.value.message == broken.linked.report(broken)[0]
    lines = error.value.message.splitlines()
    assert re.match(
        r"Deadlock: \d+ of \d+ streams can never go on \(\d+ of \d+ tasks done\)", lines[0]
    )
    assert re.match(r"  rank \d (main|sub \d) +task \d+  waits for \w+ .*\.py:\d+$", lines[1])
    assert way is not None or all((o == 7).all() for o in outputs), "refused before data moves"
    session.close()


def test_waits_in_the_wrong_order_are_a_deadlock() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 10), 2)
    instructions = list(program.batches[0].instructions)
    first, second = nth(program, TaskKind.NOTIFY_POST, 0), nth(program, TaskKind.NOTIFY_WAIT, 0)
    assert first < second
    broken = changed(program, 0, first, lambda _: instructions[second])
    broken = changed(broken, 0, second, lambda _: instructions[first])
    for way in (scheduled(), scheduled(1)):
        with pytest.raises(DeadlockError, match="Deadlock: 2 of 2 streams"):
            run(broken, whole_numbers(program.op, 2), way)


def test_posting_twice_overruns() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 10), 2)
    at = nth(program, TaskKind.NOTIFY_POST, 0)
    instructions = program.batches[0].instructions
    wait = nth(program, TaskKind.NOTIFY_WAIT, 0)
    broken = changed(program, 0, wait, lambda _: instructions[at])
    with pytest.raises(OrchestrationError, match="Notify overrun: rank") as error:
        run(broken, whole_numbers(program.op, 2), scheduled())
    assert error.value.finding == "NOTIFY_OVERRUN"
    assert "one bit" in error.value.hint


@pytest.mark.parametrize("schedule", [False, True])
def test_a_post_without_a_wait_is_left_over(schedule: bool) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 10), 2)
    broken = changed(program, 0, nth(program, TaskKind.NOTIFY_WAIT, -1), lambda _: None)
    with pytest.raises(OrchestrationError, match="Unmatched post: no task waits") as error:
        run(broken, whole_numbers(program.op, 2), *([scheduled()] if schedule else []))
    assert error.value.finding == "UNMATCHED_POST"
