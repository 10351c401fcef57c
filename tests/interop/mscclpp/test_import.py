"""Imported plans: they compute their op at every size, type and placement, call after call; what
the call leaves open comes from the plan.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hccl_py as hccl
from hccl_interop.mscclpp import import_plan, meaning_of, plan_from
from hccl_interop.mscclpp.sizes import RankSizes
from hccl_py.enums import DataType, InPlace, ReduceOp, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.importers import Imported
from hccl_py.simulator import simulate
from hccl_py.verifier.numeric import run_numeric
from tests.interop.mscclpp import plans
from tests.interop.mscclpp.plans import PlanText, local


def imported(
    plan: PlanText, size: int | None = 1 << 10, op: str | None = None, **call: object
) -> Imported:
    found = plan_from(plan.text().encode(), "own.json")
    return import_plan(found, meaning_of(found, op), size, **call)  # type: ignore[arg-type]


PLANS: dict[str, Callable[[], PlanText]] = {
    "puts": plans.puts_all_gather,
    "puts in place": lambda: plans.puts_all_gather(2, inplace=True),
    "sums that are read": plans.read_reduce,
    "sums in place": plans.reduce_scatter_in_place,
    "packets": plans.packet_all_reduce,
    "packets that alternate": plans.packet_all_gather,
    "packets of three ranks": lambda: plans.packet_all_reduce(3),
    "packets of groups": lambda: plans.packet_all_reduce(2, group=3),
    "ports": plans.port_exchange,
    "ports of three ranks": lambda: plans.port_exchange(3, "put"),
    "a switch": plans.switch_all_reduce,
    "a pipeline": plans.pipelined_gather,
    "a barrier": plans.barrier_between_blocks,
}


@pytest.mark.parametrize("size", [1 << 10, pytest.param(5000, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", PLANS)
def test_programs_compute_their_op(name: str, size: int) -> None:
    program = imported(PLANS[name](), size).require()
    assert program.counts_posts
    assert run_numeric(program, seeds=2).ok


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FP16, DataType.INT64])
def test_data_types_are_those_of_the_call(dtype: DataType) -> None:
    program = imported(plans.packet_all_reduce(), 1 << 10, dtype=dtype).require()
    assert program.op.dtype is dtype
    assert run_numeric(program, seeds=1).ok


def test_sizes_are_rounded_up_to_aligned_chunks() -> None:
    op = imported(plans.read_reduce(3), 100).require().op
    assert op.count * 4 == 144  # three chunks of whole 16 bytes
    op = imported(plans.read_reduce(3), 145, dtype=DataType.INT64).require().op
    assert op.count * 8 == 192


def test_sizes_that_nobody_gives_are_those_of_the_plan() -> None:
    plan = plans.read_reduce(2)
    assert imported(plan, None).require().op.count == 1 << 18
    plan.members |= {"min_message_size": 4096, "max_message_size": 9000}
    assert imported(plan, None).require().op.count * 4 == 8992
    plan.members |= {"min_message_size": 1 << 22, "max_message_size": 1 << 23}
    assert imported(plan, None).require().op.count * 4 == 1 << 22


def test_places_in_memory_are_those_of_the_collective() -> None:
    assert imported(plans.puts_all_gather(2)).require().op.in_place is False
    assert imported(plans.puts_all_gather(2, inplace=True)).require().op.in_place is InPlace.SLOT
    assert imported(plans.switch_all_reduce(2)).require().op.in_place is InPlace.START


def test_groups_share_unevenly_what_does_not_go_round() -> None:
    """Three threadblocks of a group, and seven times 16 bytes of a chunk: 3, 2 and 2."""
    program = imported(plans.packet_all_reduce(2, group=3), 2 * 7 * 16).require()
    sizes = program.tasks.size[np.equal(program.tasks.kind, TaskKind.WRITE)]
    assert sorted(set(sizes.tolist())) == [32, 48]


def test_packets_alternate_where_the_plan_says_so() -> None:
    assert imported(plans.packet_all_reduce()).require().alternating == ("PACKETS",)
    assert imported(plans.packet_all_gather(double=False)).require().alternating == ()


def test_scratch_is_shared_and_folded_where_resources_are_reused() -> None:
    """64 MiB of shared scratch, one chunk of it: a chunk of 100 MiB passes through it twice."""
    plan = plans.pipelined_gather(first=1)
    plan.members["reuse_resources"] = True
    for blocks in plan.blocks:
        for block in blocks:
            for op in block.ops:
                if op["name"] == "pipeline":
                    op["iter_context"]["unit_size"] = 1 << 25
    program = imported(plan, 200 << 20).require()
    at = program.buffers.index("SCRATCH")
    assert program.buffer_sizes[:, at].tolist() == [1 << 26] * 2
    assert imported(plan, 200 << 20).report().ok


def test_a_call_has_half_of_the_shared_scratch_where_it_alternates() -> None:
    """32 of the 64 MiB, in two chunks: 16 MiB hold no chunk of 20 MiB, so it is cut; and 12 MiB
    take what they need.
    """
    plan = PlanText("allreduce", 1, (1, 1, 2), reuse_resources=True, use_double_scratch_buffer=True)
    plan.block(0).op("copy", [local("i", 0)], [local("o", 0)])
    found = plan_from(plan.text().encode(), "own.json")
    scratch = [RankSizes(found, found.gpus[0], n << 20, n << 20).scratch >> 20 for n in (20, 12)]
    assert scratch == [32, 24]


def test_pipelines_are_written_out_pass_by_pass() -> None:
    program = imported(plans.pipelined_gather(), 2 * 200).require()  # 208 bytes of a chunk
    sizes = program.tasks.size[np.equal(program.tasks.kind, TaskKind.WRITE)]
    assert sizes.tolist() == 2 * [64, 64, 64, 16]
    with pytest.raises(ParameterError, match=r"own.json:1: this call makes .* operations"):
        imported(plans.pipelined_gather(), 1 << 24)


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_programs_keep_what_they_are_in_files(suffix: str, tmp_path: Path) -> None:
    program = imported(plans.packet_all_reduce()).require()
    program.save(tmp_path / f"plan.{suffix}")
    again = hccl.load(tmp_path / f"plan.{suffix}")
    assert again.digest == program.digest
    assert again.counts_posts
    assert again.alternating == program.alternating


def test_times_grow_with_the_data() -> None:
    topology = hccl.topology_of(ranks=2)
    small, large = (
        simulate(imported(plans.read_reduce(2), size).require(), topology).total_us
        for size in (1 << 10, 1 << 24)
    )
    assert small < large


def test_the_reduction_is_the_plans() -> None:
    plan = plans.read_reduce(2)
    assert imported(plan, reduce=ReduceOp.SUM).require().op.reduce is ReduceOp.SUM
    with pytest.raises(ParameterError, match="operations make a sum, and not max"):
        imported(plan, reduce=ReduceOp.MAX)
    with pytest.raises(ParameterError, match="has no reduce op"):
        imported(plans.puts_all_gather(2), reduce=ReduceOp.SUM)


def test_collectives_without_a_meaning_are_named_by_the_caller() -> None:
    plan = plans.read_reduce(2)
    plan.members["collective"] = "test"
    open_report = imported(plan).report()
    assert open_report.ok
    assert open_report.notes[0].startswith("The op is open: the collective is 'test'; --op OP")
    assert "Results were not judged" in open_report.notes[1]
    assert imported(plan, op="all_reduce").report().ok


def test_order_is_judged_without_a_meaning() -> None:
    """A read beside the peer's write, in a plan of which no op is known."""
    plan = PlanText("test", 2, (2, 0, 0))
    for rank in range(2):
        tb = plan.block(rank)
        tb.channel(1 - rank)
        tb.op("put", [local("i", 0)], [tb.remote(1 - rank, "i", 0)], channel_type="memory")
    errors = imported(plan, 1 << 10).report().errors
    assert "RACE_RW" in {finding.name for finding in errors}


def test_a_plan_of_signals_alone_has_no_chunks() -> None:
    plan = PlanText("test", 2, (0, 0, 0))
    for rank in range(2):
        tb = plan.block(rank)
        peer = tb.channel(1 - rank)
        tb.signal(peer)
        tb.wait(peer)
    assert {f.name for f in imported(plan).report().errors} == {"RUNTIME_LIMIT"}
    plan.blocks[0][0].signal(0)  # nobody waits for the second one
    assert "UNMATCHED_POST" in {f.name for f in imported(plan).report().errors}


def test_send_recv_goes_round() -> None:
    plan = PlanText("sendrecv", 3, (1, 1, 0))
    for rank in range(3):
        tb = plan.block(rank)
        after, before = tb.channel((rank + 1) % 3), tb.channel((rank - 1) % 3)
        tb.signal(before)
        tb.wait(after)
        tb.nop()
        target = tb.remote((rank + 1) % 3, "o", 0)
        tb.op("put", [local("i", 0)], [target], channel_type="memory")
        tb.nop()
        tb.signal(after)
        tb.wait(before)
        tb.signal(before)
        tb.wait(after)
    found = imported(plan)
    assert found.report().ok
    assert run_numeric(found.require(), seeds=2).ok


def test_plans_without_alignment_are_of_an_earlier_release() -> None:
    plan = plans.switch_all_reduce(2)
    for name in ("buffer_alignment", "min_message_size", "max_message_size"):
        del plan.members[name]
    text = plan.text().replace('"buffer_type"', '"buff"')
    found = plan_from(text.encode(), "own.json")
    report = import_plan(found, meaning_of(found), 1 << 10).report()
    assert report.ok
    assert any("before 0.8" in note for note in report.notes)
