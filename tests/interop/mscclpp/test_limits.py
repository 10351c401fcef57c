"""What the executor refuses of a plan as a whole, what is a warning, and what leaves no program."""

from collections.abc import Callable

import pytest

from hccl_py.errors import ParameterError
from hccl_py.verifier import Severity
from tests.interop.mscclpp import plans
from tests.interop.mscclpp.importing import checked, imported, named
from tests.interop.mscclpp.plans import PlanText


def changed(plan: PlanText, **members: object) -> PlanText:
    plan.members |= members
    return plan


def output_without_chunks() -> PlanText:
    plan = plans.switch_all_reduce(2)
    plan.chunks = (2, 0, 0)
    return plan


def chunks_of_other_sizes() -> PlanText:
    plan = plans.puts_all_gather(2)
    plan.chunks = (2, 2, 0)
    return plan


def a_group_that_one_rank_lacks() -> PlanText:
    plan = plans.switch_all_reduce(3)
    plan.switches[2].append(("i", [0, 2]))
    return plan


OF_THE_PLAN: dict[str, tuple[Callable[[], PlanText], int, str, str]] = {
    "a message that is too small": (
        lambda: changed(plans.read_reduce(2), min_message_size=4096),
        1 << 10,
        "RUNTIME_LIMIT",
        "The message of 1024 bytes is not between min_message_size, 4096, and",
    ),
    "a message of an all-gather that is too large": (
        lambda: changed(plans.puts_all_gather(2), max_message_size=1000),
        1 << 10,
        "RUNTIME_LIMIT",
        "The message of 1024 bytes is not between min_message_size, 0, and max_message_size, 1000",
    ),
    "sizes that exclude each other": (
        lambda: changed(plans.read_reduce(2), min_message_size=2, max_message_size=1),
        1 << 10,
        "RUNTIME_LIMIT",
        "no data size is between them",
    ),
    "more threads than there are": (
        lambda: changed(plans.read_reduce(2), num_threads_per_block=2048),
        1 << 10,
        "RUNTIME_LIMIT",
        "num_threads_per_block is 2048, the executor takes 1024.",
    ),
    "offsets beyond 32 bits": (
        lambda: plans.read_reduce(2),
        1 << 32,
        "RUNTIME_LIMIT",
        "has a buffer of 4 GiB or more",
    ),
    "output without chunks": (
        output_without_chunks,
        1 << 10,
        "RUNTIME_LIMIT",
        "output_chunks of GPU 0 is 0: the executor of 0.9.0 divides by it.",
    ),
    "chunks of other sizes": (
        chunks_of_other_sizes,
        1 << 10,
        "RUNTIME_LIMIT",
        "GPU 0 cuts 512 bytes of input into 2 chunks and 1024 of output into 2",
    ),
    "a group that one rank lacks": (
        a_group_that_one_rank_lacks,
        1 << 10,
        "MESSAGE_MISMATCH",
        "GPU 2 has 1 switch channels of i with ranks 0, 2, GPU 0 has 0.",
    ),
}


@pytest.mark.parametrize("name", OF_THE_PLAN)
def test_what_the_executor_refuses_of_a_plan_is_said(name: str) -> None:
    make, size, of_class, message = OF_THE_PLAN[name]
    found = [finding for finding in imported(make(), size).findings if finding.name == of_class]
    assert [finding for finding in found if message in finding.message], found
    assert {finding.severity for finding in found} == {Severity.ERROR}


def test_warnings_leave_a_plan_right() -> None:
    report = checked(plans.port_exchange(2, "put"))
    assert report.ok
    assert {(f.name, f.severity) for f in report} == {("RUNTIME_LIMIT", Severity.WARNING)}
    (flush,) = report
    assert "flushes no channel" in flush.message
    assert flush.more == 1
    assert [other.ranks for other in flush.every()] == [(0,), (1,)]
    report = checked(plans.port_exchange(2, "pws"))
    assert report.ok
    assert {(f.name, f.severity) for f in report} == {("STREAM_NOT_JOINED", Severity.WARNING)}
    report = checked(changed(plans.read_reduce(2), reuse_resources=True))
    assert report.ok
    assert "keeps the addresses of the first call" in next(iter(report)).message


def test_relaxed_signals_after_data_are_noted() -> None:
    plan = plans.puts_all_gather(2)
    assert not checked(plan).notes
    for (block,) in plan.blocks:
        named(block, "signal", 1)["name"] = "rlxsignal"
    assert "2 relaxed signals come after data" in checked(plan).notes[0]


def test_defects_of_structure_leave_no_program() -> None:
    plan = plans.puts_all_gather(2)
    named(plan.blocks[0][0], "wait")["channel_ids"] = [3]
    found = imported(plan)
    assert found.program is None
    assert found.report().notes == ("The program was not verified: it is not whole.",)
    with pytest.raises(ParameterError, match=r"own.json:\d+: RUNTIME_LIMIT: The op 3 \(wait\)"):
        found.require()


def crowded_operation() -> PlanText:
    plan = plans.puts_all_gather(2)
    named(plan.blocks[0][0], "signal")["channel_ids"] = [0] * 9
    return plan


def scratch_beyond_offsets() -> PlanText:
    plan = plans.packet_all_gather(2)
    plan.chunks = (1, 2, (1 << 31) - 1)
    return plan


@pytest.mark.parametrize(
    ("make", "size", "message"),
    [
        (lambda: plans.read_reduce(2), 1 << 34, "GPU 0 has a buffer of 4 GiB or more"),
        (scratch_beyond_offsets, 1 << 10, "GPU 0 has a buffer of 4 GiB or more"),
        (crowded_operation, 1 << 10, "has 9 channels, the executor takes 8"),
    ],
)
def test_calls_that_the_executor_cannot_reckon_have_no_program(
    make: Callable[[], PlanText], size: int, message: str
) -> None:
    found = imported(make(), size)
    assert found.program is None
    with pytest.raises(ParameterError, match=message):
        found.require()


def large_switch() -> PlanText:
    plan = plans.switch_all_reduce(64)
    for (block,) in plan.blocks:
        block.ops[:] = [named(block, "glres")] * 20
    return plan


def packets_that_everybody_reads() -> PlanText:
    plan = PlanText("allreduce", 1, (300, 300, 300), protocol="LL", inplace=True)
    writer, reader = plan.block(0), plan.block(0)
    for chunk in range(300):
        writer.op("cpkt", [plans.local("i", chunk)], [plans.local("s", chunk)])
        reader.op("upkt", [plans.local("s", 0, 300)], [plans.local("i", 0, 300)])
    return plan


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (large_switch, "own.json:1: this call makes 81,920 operations"),
        (packets_that_everybody_reads, "makes more than 65,536 notifies"),
    ],
)
def test_what_would_be_too_many_tasks_is_refused(
    make: Callable[[], PlanText], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        imported(make(), 1 << 16)


def test_a_pipeline_of_nothing_has_no_tasks() -> None:
    plan = plans.puts_all_gather(2)
    tasks = imported(plan).require().task_count
    context = {"unit_size": 1, "num_chunks": (1 << 31) - 1}
    plan.blocks[0][0].op("pipeline", iter_context=context, ops=[])
    assert imported(plan).require().task_count == tasks
