"""The program of a job: the times of its calls, what they share, and how few batches there are."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hccl_py
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.groups import parallel_groups
from hccl_py.enums import Buffer, DataType, Mode, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from hccl_py.jobs import Job, JobProgram
from hccl_py.jobs.compose import composed
from hccl_py.jobs.steps import Communicate
from hccl_py.program.program import Program
from hccl_py.simulator import Stragglers, simulate_batches, simulate_tasks
from hccl_py.topology import Topology
from hccl_py.trace.scene import scene_of
from hccl_py.trace.steps import bars_in_time, steps_of
from tests.groups import group_of
from tests.jobs.layers import three_layers
from tests.recording import filled, op_of
from tests.simulator.costs import COST

Floats = npt.NDArray[np.float64]


def all_reduce(count: int, mode: Mode = Mode.OP_BASE) -> OpParam:
    return OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM, mode=mode)


def ends_of(program: Program, topology: Topology) -> Floats:
    """Return when each rank has done everything."""
    timeline = simulate_tasks(program, topology, COST)
    last = np.zeros(program.ranks)
    np.maximum.at(last, program.tasks.rank, timeline.end_us)
    return last


def alone(world: Communicator, *ops: OpParam) -> JobProgram:
    job = Job(world.topology)
    stream = job.stream("comm")
    for op in ops:
        stream.run(world, op)
    return job.program()


def backward(world: Communicator, layers: int, op: OpParam) -> Job:
    """Compute layers, each followed by a collective on another stream."""
    job = Job(world.topology)
    compute, comm = job.stream("compute"), job.stream("dp")
    for layer in range(layers):
        compute.compute(100.0, f"layer {layer}")
        comm.wait(compute.record())
        comm.run(world, op, f"bucket {layer}")
    compute.wait(comm.record())
    return job


@pytest.mark.parametrize(
    ("change", "what"),
    [({"counts_posts": True}, "notifies count"), ({"alternating": ("CCL",)}, "buffers alternate")],
)
def test_calls_whose_notifies_count_are_refused(change: dict[str, Any], what: str) -> None:
    with Communicator(2) as world:
        job = Job(world.topology)
        job.stream("comm").run(world, all_reduce(64))
        (step,) = job.steps
        assert isinstance(step, Communicate)
        group, plan = step.parts[0]
        other = replace(plan, program=replace(plan.program, **change))
        steps = [replace(step, parts=((group, other),))]
        with pytest.raises(NotSupportedError, match=f"A job cannot call .*, whose {what}"):
            composed(world.topology, ("comm",), steps)


# ---- times ----


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("servers", "devices"), [(1, 4), (2, 3), (3, 1)])
@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "all_to_all", "broadcast"])
def test_one_call_takes_as_long_as_its_plan(
    name: str, servers: int, devices: int, mode: Mode
) -> None:
    with Communicator(servers=servers, devices=devices, buffsize_mb=1) as world:
        op = filled(op_of(name, 100_000, mode=mode), world.size)
        plain, program = world.plan(op).program, alone(world, op)
        wanted, found = (simulate_tasks(p, world.topology, COST) for p in (plain, program))
        assert np.array_equal(wanted.start_us, found.start_us)
        assert np.array_equal(wanted.effect_us, found.effect_us)
        one, other = (simulate_batches(p, world.topology, COST) for p in (plain, program))
        assert np.array_equal(one.end_us, other.end_us)


def test_groups_take_as_long_as_each_alone() -> None:
    with Communicator(servers=4, devices=4) as world, parallel_groups(world, tp=4) as groups:
        job = Job(world.topology)
        job.stream("compute").compute(0.0)
        job.stream("dp").run(groups.dp, all_reduce(1 << 20))
        job.stream("tp").run(groups.tp, all_reduce(1 << 19))
        program = job.program()
        found = simulate_batches(program, world.topology, COST)
        wanted = np.zeros((2, world.size))
        for row, (kind, count) in enumerate(((groups.dp, 1 << 20), (groups.tp, 1 << 19))):
            for group in kind:
                plan = group.plan(all_reduce(count)).program
                wanted[row, list(group.ranks)] = ends_of(plan, group.topology)
        # The first stream wakes the others one by one, by local notifies; each says when it ends.
        woken = COST.inside_us + COST.wait_us + COST.post_us * np.array([[1 + 1], [2 + 1]])
        assert np.allclose(found.end_us[:, 1:3].T - woken, wanted, rtol=1e-12)
        assert found.lockstep == 1.0
        assert len(program.batches) == 1


def test_tensor_data_and_pipeline_parallelism_at_once() -> None:
    """Two stages, two micro-batches; in the end all gradients are reduced at once. One message
    between the stages is on the way, with its α: over RDMA it follows the data.
    """
    free, kernel_us, message, cut = COST.formula(), 100.0, 1 << 16, 1 << 18
    with Communicator(servers=4, devices=4) as world:
        groups = parallel_groups(world, tp=4, pp=2)
        stages, tensors = (range(8), range(8, 16)), (groups.tp[:2], groups.tp[2:])
        send = OpParam("batch_send_recv", 0, DataType.FP32, pairs=((0, 1, message),))
        job = Job(world.topology)
        compute, tp, pp, dp = (job.stream(name) for name in ("compute", "tp", "pp", "dp"))
        for _ in range(2):
            for stage, tensor in zip(stages, tensors, strict=True):
                mine = compute.on(stage)
                if stage is stages[1]:
                    pp.on(stages[0]).wait(compute.on(stages[0]).record())
                    pp.run(groups.pp, send)
                    mine.wait(pp.on(stage).record())
                mine.compute(kernel_us)
                tp.on(stage).wait(mine.record())
                tp.on(stage).run(tensor, all_reduce(cut))
                mine.wait(tp.on(stage).record())
        dp.wait(compute.record())
        dp.run(groups.dp, all_reduce(cut))
        found = simulate_tasks(job.program(), world.topology, free)
        layer_us, last_us = (
            simulate_tasks(g.plan(all_reduce(cut)).program, g.topology, free).total_us
            for g in (groups.tp[0], groups.dp[0])
        )
        message_us = free.roce.alpha_us + 4 * message * free.roce.beta_us
        wanted = 3 * (kernel_us + layer_us) + message_us + last_us
        assert found.total_us == pytest.approx(wanted, rel=1e-12)


def test_unlike_groups_are_placed_by_their_own_numbers() -> None:
    with Communicator(servers=2, devices=5) as world:
        colors = ["a", "b", "a", None, "b", "a", "b", "a", "a", "b"]
        groups = world.split(colors, keys=[3, 0, 2, 0, 1, 9, 8, 7, 6, 5])
        job = Job(world.topology)
        job.stream("comm").run(list(groups.values()), all_reduce(3000))
        program = job.program()
        ends = ends_of(program, world.topology)
        for group in groups.values():
            plan = group.plan(all_reduce(3000)).program
            wanted = simulate_tasks(plan, group.topology, COST)
            last = np.zeros(group.size)
            np.maximum.at(last, plan.tasks.rank, wanted.end_us)
            assert np.array_equal(ends[list(group.ranks)], last)
        assert ends[3] == 0


def test_walks_agree_to_the_last_bit_on_whole_jobs() -> None:
    with Communicator(servers=2, devices=4) as world, parallel_groups(world, tp=4) as groups:
        program = three_layers(world, groups).program()
        slow = Stragglers.parse(["rank=3:2x"])
        timeline = simulate_tasks(program, world.topology, COST, slow)
        for lockstep in (True, False):
            clocks = simulate_batches(program, world.topology, COST, slow, lockstep=lockstep)
            assert clocks.total_us == timeline.total_us


def test_communicators_on_one_network_slow_each_other_down() -> None:
    with Communicator(servers=4, devices=1) as world, group_of(world, range(4)) as other:
        job = Job(world.topology)
        for number, communicator in enumerate((world, other)):
            job.stream(f"s{number}").run(communicator, all_reduce(1 << 20))
        program = job.program()
        alone = hccl_py.simulate(program, world.topology)
        shared_us = hccl_py.simulate(program, world.topology, network="contended").total_us
        assert 1.5 * alone.makespan_us < shared_us < 2.1 * alone.makespan_us
        assert alone.makespan_us < alone.total_us <= shared_us  # the busiest link's bytes


# ---- resources ----


def test_calls_with_one_tag_share_resources() -> None:
    with Communicator(servers=2, devices=2) as world:
        one, many = alone(world, all_reduce(4096)), alone(world, *[all_reduce(4096)] * 5)
        assert len(many.transports) == len(one.transports)
        assert many.local_notifies == one.local_notifies
        assert many.streams == one.streams
        assert np.array_equal(many.buffer_sizes, one.buffer_sizes)
        assert many.task_count == 5 * one.task_count


def test_communicators_of_the_same_ranks_share_nothing() -> None:
    with Communicator(4, buffsize_mb=1) as world, group_of(world, range(4)) as other:
        job = Job(world.topology)
        for number, communicator in enumerate((world, other)):
            job.stream(f"s{number}").run(communicator, all_reduce(4096))
        program, single = job.program(), world.plan(all_reduce(4096)).program
        assert len(program.transports) == 2 * len(single.transports)
        assert program.streams == 2 * single.streams
        sizes = program.buffer_sizes[:, Buffer.CCL_IN]
        assert (sizes == 2 * single.buffer_sizes[:, Buffer.CCL_IN]).all()
        planes = program.transports
        names = {planes.planes[p] for p in planes.plane.tolist()}
        assert len(names) == 2


def test_disjoint_groups_have_the_same_numbers() -> None:
    with Communicator(8, buffsize_mb=1) as world:
        halves = [group_of(world, range(4)), group_of(world, range(4, 8))]
        together, apart = Job(world.topology), Job(world.topology)
        together.stream("comm").run(halves, all_reduce(4096))
        comm = apart.stream("comm")
        for half in halves:
            comm.run(half, all_reduce(4096))
        for job in (together, apart):
            program = job.program()
            assert program.streams == halves[0].plan(all_reduce(4096)).program.streams
            assert (program.declared.sub_streams == program.streams - 1).all()
        plan = halves[0].plan(all_reduce(4096)).program
        assert len(together.program().batches) == len(plan.batches)
        assert together.program().digest == apart.program().digest


def test_labels_name_call_and_phase() -> None:
    with Communicator(servers=2, devices=2) as world:
        program = backward(world, 2, all_reduce(4096)).program()
        used = {label.partition(": ")[0] for label in program.labels}
        assert used == {"start", "event", "layer 0", "layer 1", "bucket 0", "bucket 1"} - {"start"}
        phases = [label for label in program.labels if label.startswith("bucket 1: ")]
        assert phases
        calls = {program.call_of_label[program.labels.index(phase)] for phase in phases}
        assert [program.calls_run[call].label for call in calls] == ["bucket 1"]


# ---- like any other program ----


def test_jobs_are_verified_and_drawn() -> None:
    with Communicator(servers=2, devices=2) as world:
        program = backward(world, 2, all_reduce(4096)).program()
        report = hccl_py.verify(program)
        assert report.ok
        assert "STREAM_NOT_STARTED" not in {finding.name for finding in report.findings}
        scene = scene_of(program, world.topology)
        steps = steps_of(scene, bars_in_time(scene, 3))
        kinds = {step.label.partition(":")[0] for step in steps}
        assert {"layer 1", "bucket 1", "event"} <= kinds


def test_files_keep_the_times() -> None:
    with Communicator(servers=2, devices=2) as world:
        program = backward(world, 2, all_reduce(4096)).program()
        wanted = ends_of(program, world.topology)
        loaded = from_npz(to_npz(program)), from_json(to_json(program).encode())
        for copy in loaded:
            assert copy.digest == program.digest
            assert np.array_equal(ends_of(copy, world.topology), wanted)


def waiting(stream: str) -> Program:
    """Return the program of a job whose second or third stream waits for the first, as stated, and
    one of which the other one does later.
    """
    with Communicator(2) as world:
        job = Job(world.topology)
        streams = {name: job.stream(name) for name in ("main", "a", "b")}
        for name in (stream, "a" if stream == "b" else "b"):
            streams["main"].compute(1.0)
            streams[name].wait(streams["main"].record())
        return job.program()


def test_how_notifies_are_numbered_is_no_matter_of_the_digest() -> None:
    """Streams own their notifies in both orders, as they came; who waits first differs."""
    one, other = waiting("a"), waiting("b")
    assert one.local_notifies.slots != other.local_notifies.slots
    assert one.digest != other.digest
    for program in (one, other):
        assert from_json(to_json(program)).digest == program.digest
        assert from_npz(to_npz(program)).digest == program.digest


def test_idle_calls_and_single_ranks_cost_nothing() -> None:
    with Communicator(3) as world, group_of(world, [2]) as lonely:
        job = Job(world.topology)
        stream = job.stream("comm")
        stream.run(world, all_reduce(0))
        stream.run(lonely, all_reduce(0))
        stream.compute(5.0)
        assert simulate_tasks(job.program(), world.topology, COST).total_us == 5.0


def job_of(servers: int) -> float:
    """Hold a job of so many servers to one batch in lock-step; return the CPU seconds it takes."""
    with Communicator(servers=servers, devices=8) as world:
        began = time.process_time()
        program = backward(world, 8, all_reduce(25 << 18)).program()
        clocks = simulate_batches(program, world.topology, COST)
        took = time.process_time() - began
    assert (program.ranks, len(program.batches), clocks.lockstep) == (servers * 8, 1, 1.0)
    assert clocks.total_us > 100
    return took


def test_a_thousand_ranks_are_one_batch_and_cost_little_more_than_a_hundred() -> None:
    job_of(16)  # whatever is loaded or compiled once
    small = min(job_of(16) for _ in range(3))
    assert job_of(128) < 8 * small + 0.1
