"""What a job says, what it refuses, and when its kernels run."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hccl_py
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import DeadlockError, ParameterError
from hccl_py.jobs import Event, Job, JobProgram, JobStream
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_tasks
from hccl_py.topology import Topology, topology_of
from tests.groups import group_of

FREE = CostModel.of("atlas-800t-a2").formula()
RANKS = 3


def all_reduce(count: int = 1000) -> OpParam:
    return OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM)


# ---- events against a simulation by hand ----


@dataclass(frozen=True)
class Said:
    what: str
    stream: int
    ranks: tuple[int, ...]
    event: int
    us: int


SAID = st.builds(
    Said,
    st.sampled_from(["compute", "record", "wait"]),
    st.integers(0, 2),
    st.sets(st.integers(0, RANKS - 1), min_size=1).map(lambda ranks: tuple(sorted(ranks))),
    st.integers(0, 3),
    st.integers(0, 9),
)


def sensible(said: list[Said]) -> list[Said]:
    """Record every event once per rank; wait only for what the rank records anywhere."""
    kept, recorded = [], set()
    for one in said:
        if one.what == "record":
            ranks = tuple(r for r in one.ranks if (one.event, r) not in recorded)
            recorded |= {(one.event, r) for r in ranks}
            kept.append(Said("record", one.stream, ranks, one.event, 0))
        else:
            kept.append(one)
    known = [
        one
        if one.what != "wait"
        else Said(
            "wait",
            one.stream,
            tuple(r for r in one.ranks if (one.event, r) in recorded),
            one.event,
            0,
        )
        for one in kept
    ]
    return [one for one in known if one.ranks]


def by_hand(said: list[Said], rank: int) -> dict[str, float] | None:
    """Return when every kernel of a rank starts; None where a stream is stuck."""
    queues = [
        [(n, one) for n, one in enumerate(said) if one.stream == s and rank in one.ranks]
        for s in range(3)
    ]
    clock, happened, started = [0.0] * 3, dict[int, float](), dict[str, float]()
    moved = True
    while moved:
        moved = False
        for s, queue in enumerate(queues):
            if not queue or (queue[0][1].what == "wait" and queue[0][1].event not in happened):
                continue
            number, one = queue.pop(0)
            moved = True
            if one.what == "compute":
                started[f"k{number}"] = clock[s]
                clock[s] += one.us
            elif one.what == "record":
                happened[one.event] = clock[s]
            else:
                clock[s] = max(clock[s], happened[one.event])
    return None if any(queues) else started


def issued(said: list[Said]) -> JobProgram:
    job = Job(topology_of(RANKS))
    streams = [job.stream(f"s{number}") for number in range(3)]
    events = [job.event() for _ in range(4)]
    for number, one in enumerate(said):
        stream = streams[one.stream].on(one.ranks)
        if one.what == "compute":
            stream.compute(one.us, f"k{number}")
        elif one.what == "record":
            assert stream.record(events[one.event]) is events[one.event]
        else:
            stream.wait(events[one.event])
    return job.program()


@given(st.lists(SAID, max_size=25).map(sensible))
def test_kernels_start_when_events_let_them(said: list[Said]) -> None:
    program = issued(said)
    assume(program.task_count)
    wanted = [by_hand(said, rank) for rank in range(RANKS)]
    if None in wanted:
        with pytest.raises(DeadlockError, match="can never go on"):
            simulate_tasks(program, None, FREE)
    else:
        assert kernel_starts(program) == wanted


def kernel_starts(program: Program) -> list[dict[str, float]]:
    """Return when the kernels of every rank start, by their labels."""
    tasks, timeline = program.tasks, simulate_tasks(program, None, FREE)
    found: list[dict[str, float]] = [{} for _ in range(RANKS)]
    for row in np.flatnonzero(tasks.kind == TaskKind.COMPUTE).tolist():
        label = program.labels[tasks.table.label[tasks.instruction[row]]]
        found[int(tasks.rank[row])][label] = float(timeline.start_us[row])
    return found


# ---- what is said in a few lines ----


def kernel_ends(job: Job) -> list[float]:
    program = job.program()
    timeline = simulate_tasks(program, None, FREE)
    ends = timeline.end_us[program.tasks.kind == TaskKind.COMPUTE]
    return list(map(float, ends))


def test_durations_may_differ_by_rank() -> None:
    job = Job(topology_of(4))
    main = job.stream("compute")
    main.compute([3, 1, 3, 2])
    main.on([1, 3]).compute([10, 20])
    assert kernel_ends(job) == [3, 1, 11, 3, 2, 22]
    assert [batch.ranks.tolist() for batch in job.program().batches] == [[0, 2], [1, 3]]


def test_an_event_is_not_used_up() -> None:
    job = Job(topology_of(1))
    first, *others = (job.stream(f"s{number}") for number in range(4))
    first.compute(5)
    event = first.record()
    for stream in others:
        stream.wait(event)
        stream.wait(event)
        stream.compute(1)
    first.wait(event)
    assert kernel_ends(job) == [5, 6, 6, 6]


def test_a_job_goes_on_after_its_program_was_made() -> None:
    job = Job(topology_of(2))
    main = job.stream("compute")
    assert job.program().task_count == 0
    main.compute(1)
    assert job.program().task_count == 2
    assert repr(job.program()) == "<Program of a job on compute: 2 ranks, 2 tasks>"
    assert job.program().lines[0].startswith("jobs/test_job.py:")


def test_calls_in_another_order_on_another_rank_are_a_deadlock() -> None:
    with Communicator(2) as world:
        one, other = group_of(world, [0, 1], name="one"), group_of(world, [0, 1])
        job = Job(world.topology)
        comm = job.stream("comm")
        for rank, order in enumerate(((one, other), (other, one))):
            for communicator in order:
                comm.on([rank]).run(communicator, all_reduce())
        program = job.program()
        with pytest.raises(DeadlockError, match="can never go on"):
            simulate_tasks(program, None, FREE)
        report = hccl_py.verify(program)
        assert not report.ok
        assert "DEADLOCK_CYCLE" in {finding.name for finding in report.findings}


def test_a_call_that_other_ranks_never_make_is_a_deadlock() -> None:
    with Communicator(2) as world:
        job = Job(world.topology)
        job.stream("comm").on([0]).run(world, all_reduce())
        with pytest.raises(DeadlockError, match="rank 0"):
            simulate_tasks(job.program(), None, FREE)


def test_ranks_may_issue_their_parts_of_a_call_one_by_one() -> None:
    with Communicator(3) as world:
        whole, parts = Job(world.topology), Job(world.topology)
        whole.stream("comm").run(world, all_reduce())
        comm = parts.stream("comm")
        for rank in (2, 0, 1):
            comm.on([rank]).compute(0)
            comm.on([rank]).run(world, all_reduce())
        ends = [simulate_tasks(job.program(), None, FREE).total_us for job in (whole, parts)]
        assert ends[0] == ends[1] > 0


# ---- refusals ----


@dataclass
class Scene:
    world: Communicator
    job: Job
    stream: JobStream
    other: JobStream
    event: Event


Act = Callable[[Scene], object]


def two_pairs(scene: Scene) -> tuple[Communicator, Communicator]:
    return group_of(scene.world, [0, 1], name="left"), group_of(scene.world, [1, 2])


def run_twice_differently(scene: Scene) -> None:
    scene.stream.on([0]).run(scene.world, all_reduce(10))
    scene.stream.on([1]).run(scene.world, all_reduce(20))


def run_on_two_streams(scene: Scene) -> None:
    scene.stream.run(scene.world, all_reduce())
    scene.other.run(scene.world, all_reduce())


def wait_in_vain(scene: Scene) -> None:
    scene.other.wait(scene.event)
    scene.job.program()


def wait_for_another_rank(scene: Scene) -> None:
    scene.stream.on([0, 2]).record(scene.event)
    scene.other.wait(scene.event)
    scene.job.program()


def place_twice(scene: Scene) -> None:
    inner = group_of(group_of(scene.world, [3, 4], name="outer"), [0], name="inner")
    for rank in (3, 11):
        scene.stream.run(inner, all_reduce(), members=[rank])


def plan_of_another_layout(scene: Scene) -> None:
    apart = Communicator(servers=2, devices=1).plan(all_reduce())
    scene.stream.run(two_pairs(scene)[0], apart)


def another_network(scene: Scene) -> None:
    torus, other = (Communicator(topology=name) for name in ("torus:2x3", "torus:3x2"))
    Job(torus.topology).stream("comm").run(group_of(other, [0, 1]), all_reduce())


REFUSED: dict[str, tuple[Act, str]] = {
    "no topology": (lambda s: Job(s.world), "as topology"),  # type: ignore[arg-type]
    "a name twice": (lambda s: s.job.stream("compute"), "'compute' is taken for a stream"),
    "no name": (lambda s: s.job.stream(""), "'' is no name for a stream"),
    "no rank": (lambda s: s.stream.on([]), "are not ranks of stream compute"),
    "a rank too far": (lambda s: s.stream.on([3, 99]), "Give some of 12 ranks, 0 to 11"),
    "half a rank": (lambda s: s.stream.on([0.5]), "are not ranks"),  # type: ignore[list-item]
    "a rank that the view has not": (lambda s: s.stream.on([1, 2]).on([0]), "are not ranks"),
    "negative": (lambda s: s.stream.compute(-1), "cannot take -1 microseconds"),
    "not a number": (lambda s: s.stream.compute(float("nan")), "cannot take nan"),
    "no number": (lambda s: s.stream.compute("long"), "cannot take 'long'"),  # type: ignore[arg-type]
    "one rank": (lambda s: s.stream.on(3), "3 are not ranks"),  # type: ignore[arg-type]
    "members that are none": (
        lambda s: s.stream.run(s.world, all_reduce(), members=["a"]),  # type: ignore[list-item]
        "lies on ranks 0, 1, 2, 3, 4, 5, 6, 7 ..., not on ranks -1",
    ),
    "no label": (lambda s: s.stream.compute(1, 2), "2 is no label"),  # type: ignore[arg-type]
    "no label of a call": (
        lambda s: s.stream.run(s.world, all_reduce(), None),  # type: ignore[arg-type]
        "None is no label",
    ),
    "too few durations": (lambda s: s.stream.compute([1, 2]), "2 durations for 12 ranks"),
    "twice recorded": (
        lambda s: (s.stream.on([2]).record(s.event), s.other.record(s.event)),
        "Rank 2 records an event twice, the second time on stream dp",
    ),
    "another job's event": (lambda s: s.stream.wait(Event()), "no event of this job"),
    "no event": (lambda s: s.stream.record(7), "7 is no event"),  # type: ignore[arg-type]
    "never recorded": (
        wait_in_vain,
        "Rank 0 waits on stream dp for an event that it never records",
    ),
    "recorded elsewhere": (wait_for_another_rank, "Rank 1 waits on stream dp"),
    "no communicator": (lambda s: s.stream.run(s.job, all_reduce()), "as communicator"),  # type: ignore[arg-type]
    "no communicators": (lambda s: s.stream.run([], all_reduce()), "got 0 communicators"),
    "members of two": (
        lambda s: s.stream.run(two_pairs(s), all_reduce(), members=[0, 1]),
        "2 communicators and members",
    ),
    "a shared rank": (lambda s: s.stream.run(two_pairs(s), all_reduce()), "Rank 1 is in two"),
    "placed elsewhere": (place_twice, "lies on ranks 3, not on ranks 11"),
    "no op": (lambda s: s.stream.run(s.world, "all_reduce"), "cannot run 'all_reduce'"),  # type: ignore[arg-type]
    "another's plan": (
        lambda s: s.stream.run(two_pairs(s)[0], s.world.plan(all_reduce())),
        "left cannot run",
    ),
    "ranks outside": (
        lambda s: s.stream.on([5]).run(two_pairs(s)[0], all_reduce()),
        "No rank of <JobStream compute of 1 ranks> is in left",
    ),
    "two streams": (run_on_two_streams, "runs on stream compute, and is called on stream dp"),
    "another op": (run_twice_differently, "is all_reduce of 10 fp32 by AllReduce"),
    "another layout": (plan_of_another_layout, "takes RDMA from rank 0 to rank 1 of the job"),
    "another network": (another_network, "is not made of torus 2 x 3"),
    "another cluster": (
        lambda s: s.stream.run(Communicator(16), all_reduce()),
        "is not made of Atlas 800T A2",
    ),
    "members that lie otherwise": (
        lambda s: s.stream.run(Communicator(2), all_reduce(), members=[7, 8]),
        "is not made of ranks 7, 8 of Atlas 800T A2",
    ),
    "members of another shape": (
        lambda s: s.stream.run(Communicator(2), all_reduce(), members=[[0, 1]]),  # type: ignore[list-item]
        "is not made of ranks -1 of",
    ),
}


@pytest.mark.parametrize(("act", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(act: Act, said: str) -> None:
    with Communicator(12) as world:
        job = Job(world.topology)
        scene = Scene(world, job, job.stream("compute"), job.stream("dp"), job.event())
        with pytest.raises(ParameterError) as refused:
            act(scene)
        assert said in str(refused.value)
        assert refused.value.hint


def busy_ranks(job: Job) -> list[int]:
    """Return the ranks with tasks."""
    busy: list[int] = np.flatnonzero(np.diff(job.program().tasks.first)).tolist()
    return busy


@pytest.mark.parametrize(
    "topology", [topology_of(servers=4, devices=4), topology_of(preset="torus:4x4")], ids=repr
)
def test_groups_of_groups_know_their_ranks(topology: Topology) -> None:
    """Also where ranks with the numbers that they have in their own group are placed alike."""
    with Communicator(topology=topology) as world:
        outer = group_of(world, range(15, 3, -1), name="outer")
        inner = group_of(group_of(outer, [1, 0, 9]), [0, 1])
        for members in (None, [14, 15]):
            job = Job(world.topology)
            job.stream("comm").run(inner, all_reduce(), members=members)
            assert busy_ranks(job) == [14, 15]
        part = Job(outer.topology)
        part.stream("comm").run(inner, all_reduce())
        assert busy_ranks(part) == [0, 1]


def test_members_place_what_was_made_elsewhere() -> None:
    job = Job(topology_of(servers=2, devices=4))
    comm = job.stream("comm")
    comm.run(Communicator(servers=2, devices=4), all_reduce(0))
    comm.run(Communicator(4), all_reduce(), members=[4, 5, 6, 7])
    assert busy_ranks(job) == [4, 5, 6, 7]


def test_a_group_with_the_layout_of_the_world_is_not_the_world() -> None:
    """Its rank 0 is the world's rank 2, though its topology is no other."""
    with Communicator(servers=3, devices=1) as world:
        group = group_of(world, [2, 1, 0])
        job = Job(world.topology)
        job.stream("comm").run(group, OpParam("broadcast", 64, DataType.FP32, root=0))
        steps = job.program().tasks
        sent = steps.size * (steps.kind == TaskKind.RDMA_WRITE)
        assert np.bincount(steps.rank, sent, 3).argmax() == 2
