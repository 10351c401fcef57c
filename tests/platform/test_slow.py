"""Stragglers and slow links of emulated schedules: fewer turns, right results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_platform.emulated import EmulatedPlatform
from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.scheduler import Scheduler
from hccl_platform.emulated.turns import Turns
from hccl_platform.lowering.moves import moves_of
from hccl_py.call.config import Config
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.communicator.communicator import Communicator
from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.operators import OPERATORS
from hccl_py.plugins.platforms import Adversary, Group, Replayed, Schedule, Seeded
from hccl_py.program.program import Program
from hccl_py.testing.conformance import format_schedule
from hccl_py.testing.schedules import choices_of, shortest
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier.numeric import run_numeric
from tests.groups import group_of
from tests.platform.running import expected, same_bits, slots_of, whole_numbers
from tests.recording import filled, op_of, recorded

MESH = topology_of(4)
RDMA = topology_of(servers=4, devices=1)


def order_of(
    program: Program, topology: Topology, slow: Stragglers, chooser: Seeded | Replayed
) -> list[int]:
    """Run a program, check the result, and return its rows in the order of execution."""
    inputs = whole_numbers(program.op, program.ranks)
    right = expected(program.op, inputs)
    outputs = [np.full(len(r), 77, r.dtype) for r in right if r is not None]
    prepared = Prepared(program, moves_of(program, np.arange(len(program.tasks))))
    slots = slots_of(program, prepared.moves.slots, inputs, outputs)
    steps = dict(zip(prepared.moves.row.tolist(), prepared.moves.steps, strict=True))
    turns = Turns.of(program, topology, slow)
    scheduler = Scheduler(program, steps, slots, Adversary.RANDOM, chooser, turns)
    scheduler.run()
    assert same_bits(outputs, right)
    return scheduler.order


def place(program: Program, topology: Topology, slow: Stragglers, rows: list[int]) -> float:
    """Return where some rows are in the order of execution, from 0 to 1, in the middle of runs."""
    found = []
    for seed in range(12):
        order = order_of(program, topology, slow, Seeded(seed))
        found.append(np.mean(np.argsort(order)[rows]) / len(order))
    return float(np.mean(found))


def test_tasks_of_a_slow_rank_come_later() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 16, "int32"), MESH)
    mine = np.flatnonzero(program.tasks.rank == 2).tolist()
    places = [
        place(program, MESH, Stragglers(((2, factor),)) if factor > 1 else EVEN, mine)
        for factor in (1.0, 4.0, 100.0)
    ]
    assert places[0] + 0.05 < places[1] < places[2]


@pytest.mark.parametrize("topology", [MESH, RDMA])
def test_what_goes_over_a_slow_link_comes_later(topology: Topology) -> None:
    program = recorded(
        "AllGatherMeshOpbaseExecutor" if topology is MESH else "AllGatherComm",
        op_of("all_gather", 16, "int32"),
        topology,
    )
    tasks, ends = program.tasks, program.transports
    over = {(0, 1), (1, 0)}
    is_over = np.array([(r, p) in over for r, p in zip(ends.rank, ends.peer, strict=True)])
    waits = (tasks.kind == TaskKind.NOTIFY_WAIT) & (tasks.cell < ends.cells)
    link = np.where(waits, tasks.cell // ends.stride, -1)
    rows = np.flatnonzero(waits & is_over[link]).tolist()
    assert rows
    slow = Stragglers.parse(["link=0-1:30x"])
    assert place(program, topology, slow, rows) > place(program, topology, EVEN, rows) + 0.02


def test_lots_are_in_proportion() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 16), MESH)
    slow = Stragglers.parse(["rank=1:2.5x", "rank=2:5x", "link=0-3:2x"])
    turns, tasks = Turns.of(program, MESH, slow), program.tasks
    by_rank = {r: {turns.on_stream[k] for k in np.flatnonzero(tasks.rank == r)} for r in range(4)}
    assert by_rank == {0: {10, 5}, 1: {4}, 2: {2}, 3: {10, 5}}
    assert set(Turns.of(program).on_stream) == {1}
    ends = program.transports
    by_link = {(r, p): n for r, p, n in zip(ends.rank, ends.peer, turns.on_connection, strict=True)}
    assert by_link[0, 1] == by_link[3, 2] == 10
    assert by_link[0, 3] == by_link[3, 0] == 5
    assert (by_link[1, 0], by_link[2, 0]) == (4, 2)
    huge = Turns.of(program, MESH, Stragglers.parse(["rank=1:1e6x"]))
    assert set(huge.on_stream) == {1, 1000}


def test_a_rank_as_slow_as_can_be_still_ends() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 40, "int32"), MESH)
    slow = Stragglers.parse(["rank=0:1e6x", "link=1-2:1e6x"])
    assert len(order_of(program, MESH, slow, Seeded(0))) == program.task_count


@settings(max_examples=15)
@given(choices=st.lists(st.integers(0, 5000), max_size=60), rdma=st.booleans())
def test_every_list_of_choices_is_legal_and_repeats(choices: list[int], rdma: bool) -> None:
    topology = RDMA if rdma else MESH
    program = recorded("AllReduceComm", op_of("all_reduce", 40, "int32"), topology)
    slow = Stragglers.parse(["rank=3:2x", "link=0-1:10x"])
    one, other = (order_of(program, topology, slow, Replayed(choices)) for _ in range(2))
    assert one == other


def test_seeded_choices_replay() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 40, "int32"), MESH)
    slow, seeded = Stragglers.parse(["rank=3:2x", "link=0-1:10x"]), Seeded(5)
    order = order_of(program, MESH, slow, seeded)
    assert order == order_of(program, MESH, slow, Replayed(seeded.choices))
    assert order != order_of(program, MESH, EVEN, Seeded(5))


@pytest.mark.parametrize("name", sorted({*OPERATORS} - {"barrier"}))
def test_results_are_right_for_every_op(name: str) -> None:
    slow = Stragglers.parse(["rank=3:2x", "link=0-1:10x"])
    topology = topology_of(servers=2, devices=2)
    with Communicator(topology=topology) as comm:
        program = comm.plan(filled(op_of(name, 24, "int32"), 4)).program
    schedules = [Schedule(seed, adversary, slow=slow) for seed, adversary in enumerate(Adversary)]
    assert run_numeric(program, schedules).wrong is None


def test_shortening_keeps_what_is_slow() -> None:
    slow = Stragglers.parse(["rank=1:3x"])
    program = recorded("AllReduceComm", op_of("all_reduce", 40, "int32"), 2)

    def fails(schedule: Schedule) -> bool:
        chooser = schedule.chooser()
        order_of(program, topology_of(2), schedule.slow, chooser)  # type: ignore[arg-type]
        return schedule.slow == slow

    assert choices_of(fails, Schedule(3, slow=slow))
    assert shortest(fails, Schedule(3, slow=slow)) == Schedule(choices=(), slow=slow)


@pytest.mark.parametrize("choices", [None, (1, 2)])
def test_a_schedule_with_stragglers_is_spelled_as_python(choices: tuple[int, ...] | None) -> None:
    schedule = Schedule(
        0, Adversary.LATE_WIRE, choices, Stragglers.parse(["rank=1:3x", "link=0-1:2x"])
    )
    names = {"Schedule": Schedule, "Adversary": Adversary, "Stragglers": Stragglers}
    assert eval(format_schedule(schedule), names) == schedule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rank=9:2x", "rank=9 names no rank"),
        ("link=0-9:2x", "no node '9'"),
        ("link=hccs7-1:2x", "no node 'hccs7'"),
    ],
)
def test_what_does_not_exist_is_refused_when_a_session_opens(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        EmulatedPlatform().open(
            MESH,
            Config(buffsize_mb=1),
            Schedule(slow=Stragglers.parse([text])),
            Group.world(MESH.size),
        )


def test_groups_have_the_stragglers_among_them() -> None:
    slow = Stragglers.parse(
        ["rank=3:2x", "rank=0:5x", "link=0-1:10x", "link=1-3:4x", "link=2-roce:2x"]
    )
    assert slow.among([3, 1, 2]) == Stragglers.parse(["rank=0:2x", "link=0-1:4x", "link=2-roce:2x"])
    with Communicator(4, schedule=Schedule(slow=slow)) as comm, group_of(comm, [3, 2]) as group:
        inputs = [np.full(5, r + 1.0, np.float32) for r in range(2)]
        assert all((o == 3).all() for o in group.all_reduce(inputs).outputs if o is not None)


@pytest.mark.parametrize("texts", [[], ["rank=3:2x"], ["rank=0:1.25x", "link=a--b-0:1e+06x"]])
def test_what_is_slow_is_spelled_as_it_is_read(texts: list[str]) -> None:
    slow = Stragglers.parse(texts)
    assert Stragglers.parse(slow.options()) == slow
