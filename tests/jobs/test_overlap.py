"""What is overlapped and what is exposed, against a count by hand."""

import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.jobs import Job, JobProgram, Overlap, draw_overlap, overlap
from hccl_py.simulator import CostModel, Stragglers, Timeline, simulate_tasks

FREE = CostModel.of("atlas-800t-a2").formula()
OP = OpParam("all_reduce", 1 << 18, DataType.FP32, ReduceOp.SUM)
WORLD = Communicator(4)
ALONE_US = simulate_tasks(WORLD.plan(OP).program, WORLD.topology, FREE).total_us

Span = tuple[float, float]

HEADS = ("compute", "communication", "overlapped", "exposed")


def by_hand(timeline: Timeline, rank: int) -> tuple[float, float, float]:
    """Return compute, communication and both, looking at each stretch between two moments."""
    program = timeline.program
    assert isinstance(program, JobProgram)
    tasks, kernels, calls = program.tasks, list[Span](), dict[int, Span]()
    for row in range(int(tasks.first[rank]), int(tasks.first[rank + 1])):
        span = float(timeline.start_us[row]), float(timeline.end_us[row])
        call = int(program.call_of_task[row])
        if tasks.kind[row] == TaskKind.COMPUTE:
            kernels.append(span)
        elif call >= 0 and tasks.stream[row] == program.calls_run[call].stream:
            first, last = calls.get(call, span)
            calls[call] = min(first, span[0]), max(last, span[1])
    moments = sorted({moment for span in [*kernels, *calls.values()] for moment in span})
    found = np.zeros(3)
    for start, end in pairwise(moments):
        busy = [any(a <= start and end <= b for a, b in s) for s in (kernels, calls.values())]
        found += (end - start) * np.array([*busy, all(busy)])
    return float(found[0]), float(found[1]), float(found[2])


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "run", "a>c", "c>a"]), st.integers(0, 60)),
        min_size=1,
        max_size=12,
    )
)
def test_every_stretch_is_counted(said: list[tuple[str, int]]) -> None:
    job = Job(WORLD.topology)
    streams = {name: job.stream(name) for name in "abc"}
    for what, us in said:
        if what in streams:
            streams[what].compute([us, 0, us + 3, us])
        elif what == "run":
            streams["c"].run(WORLD, OP)
        else:
            streams[what[2]].wait(streams[what[0]].record())
    assume(any(what in ("a", "b", "run") for what, _ in said))
    timeline = simulate_tasks(job.program(), WORLD.topology, FREE)
    report = overlap(timeline)
    for rank in range(4):
        wanted = by_hand(timeline, rank)
        found = (report.compute_us, report.communication_us, report.overlapped_us)
        assert [column[rank] for column in found] == pytest.approx(wanted, abs=1e-9)
    assert report.total_us.max() == timeline.total_us
    exposed = report.communication_us - report.overlapped_us
    assert np.array_equal(report.exposed_us, exposed)


def backward(kernel_us: float, *, waits: bool, slow: Stragglers | None = None) -> Overlap:
    """Compute four layers with a call behind each; `waits`: the next one waits for the call."""
    job = Job(WORLD.topology)
    compute, comm = job.stream("compute"), job.stream("dp")
    for layer in range(4):
        compute.compute(kernel_us, f"layer {layer}")
        comm.wait(compute.record())
        comm.run(WORLD, OP, f"bucket {layer}")
        if waits:
            compute.wait(comm.record())
    timeline = simulate_tasks(job.program(), WORLD.topology, FREE, slow or Stragglers())
    return overlap(timeline)


def test_only_the_last_bucket_is_exposed_where_kernels_are_long() -> None:
    report = backward(2 * ALONE_US, waits=False)
    assert report.compute_us == pytest.approx([8 * ALONE_US] * 4)
    assert report.communication_us == pytest.approx([4 * ALONE_US] * 4)
    assert report.exposed_us == pytest.approx([ALONE_US] * 4)
    assert report.hidden == pytest.approx(0.75)
    exposed = [call.exposed_us for call in report.calls]
    assert exposed == pytest.approx([0, 0, 0, ALONE_US], abs=1e-6)
    assert [call.label for call in report.calls] == [f"bucket {layer}" for layer in range(4)]
    assert {call.stream for call in report.calls} == {"dp"}


def test_nothing_is_hidden_where_kernels_wait() -> None:
    report = backward(2 * ALONE_US, waits=True)
    assert report.hidden == pytest.approx(0, abs=1e-12)
    assert report.total_us == pytest.approx([12 * ALONE_US] * 4)


def test_others_are_exposed_to_a_straggler() -> None:
    even = backward(2 * ALONE_US, waits=False)
    report = backward(2 * ALONE_US, waits=False, slow=Stragglers.parse(["rank=2:2x"]))
    assert report.compute_us[2] == pytest.approx(2 * report.compute_us[0])
    assert report.worst != 2
    assert report.exposed_us[report.worst] > 2 * even.exposed_us.max()


def test_without_calls_nothing_is_exposed() -> None:
    job = Job(WORLD.topology)
    job.stream("compute").compute(3)
    report = overlap(simulate_tasks(job.program(), WORLD.topology, FREE))
    assert report.hidden == 1.0
    assert report.calls == ()
    assert report.exposed_us.tolist() == [0] * 4


def test_other_programs_are_refused() -> None:
    timeline = simulate_tasks(WORLD.plan(OP).program, WORLD.topology, FREE)
    with pytest.raises(ParameterError, match="does not say which of its tasks are calls"):
        overlap(timeline)


def test_tables_name_ranks_and_calls() -> None:
    report = backward(100.0, waits=False, slow=Stragglers.parse(["rank=2:2x"]))
    screen = Console(file=io.StringIO(), width=100)
    screen.print(draw_overlap(report), draw_overlap(report, calls=True))
    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    assert lines[0].split() == ["rank", "total", "ms", *HEADS]
    assert {lines[1].split()[0], lines[2].split()[0]} == {"2", str(report.worst)}
    assert [line.split()[:3] for line in lines[4:]] == [
        ["bucket", str(layer), "dp"] for layer in range(4)
    ]
