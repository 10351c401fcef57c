"""Kernels of the CCU: projects that are right on every cluster and size, and wrong edits of them,
each named with its line.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.export.starting import starting_project
from hccl_py import simulate
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.errors import ParameterError
from hccl_py.importers import Imported
from hccl_py.scaffold import write_project
from hccl_py.verifier import Severity
from hccl_py.verifier.verdict import format_verdict
from tests.interop.cpp.ccu_edits import EDITS, KERNEL, Edit
from tests.interop.cpp.kit import builder, check

SMALL = "ascend950-4x1"
QUICK = (
    *("no wait for moves", "no exchange", "a notify that is doubled", "a token of its own"),
    *("length 0", "one argument less", "too many registers", "an operation before CCU_ELSE"),
)


def project(folder: Path, op: str, edit: Edit | None = None, kernel: str = "") -> CustomOp:
    files = starting_project("mine", op, "ccu")
    if edit is not None:
        assert edit.old in files[edit.path]
        files[edit.path] = files[edit.path].replace(edit.old, edit.new, 1)
    if kernel:
        files[KERNEL] = kernel
    write_project(files, folder / "mine")
    return CustomOp(find_project(str(folder / "mine")), builder())


def record(shop: CustomOp, cluster: str, size: int, calls: int = 1) -> Imported:
    spec = CallSpec(shop.op_name(), bytes=size, root=None, cluster=ClusterSpec(cluster))
    where = spec.topology()
    param = spec.param(where.size)
    param = replace(param, in_place=True) if param.name == "broadcast" else param
    return shop.record(CppCall(param, where, calls=calls))


@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "reduce_scatter", "all_to_all"])
def test_a_project_is_right_as_it_is(op: str, tmp_path: Path) -> None:
    shop = project(tmp_path, op)
    for size in (4, 1 << 19, 1 << 29, (400 << 20) + 4):
        report = check(record(shop, SMALL, size))
        assert not list(report.every()), format_verdict(report)


def test_the_bits_of_a_second_notify_need_no_hint(tmp_path: Path) -> None:
    kernel = starting_project("mine", "all_gather", "ccu")[KERNEL]
    apart = kernel.replace("kNotify, kDoneBit", "1, kDoneBit")
    assert apart != kernel
    report = check(record(project(tmp_path, "all_gather", kernel=apart), SMALL, 1 << 16))
    assert not list(report.every()), format_verdict(report)


@pytest.mark.parametrize("cluster", ["ascend950-2x8", "ascend950-8+4"])
def test_larger_clusters_and_calls_in_a_row(cluster: str, tmp_path: Path) -> None:
    report = check(record(project(tmp_path, "broadcast"), cluster, 1 << 19, calls=2))
    assert not list(report.every()), format_verdict(report)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in EDITS],
)
def test_wrong_edits_are_named(name: str, tmp_path: Path) -> None:
    edit = EDITS[name]
    cluster = "ascend950-2x8" if "die" in name else SMALL
    report = check(record(project(tmp_path, edit.op, edit), cluster, 1 << 16))
    errors = [found for found in report.findings if found.severity is Severity.ERROR]
    named = [found for found in errors if found.name in edit.found]
    assert named, {found.name for found in errors}
    assert all(found.hint for found in named)
    if edit.found != {"OUTPUT_MISSING"}:
        assert named[0].source
        assert ".cc:" in named[0].source


def test_streams_and_notifies_have_the_names_of_the_ccu(tmp_path: Path) -> None:
    program = record(project(tmp_path, "all_gather"), SMALL, 1 << 12).require()
    assert program.engine == "ccu"
    assert program.stream_names[:3] == (
        *("main", "die 1, mission 0", "die 1, mission 0, event 0 bit 0"),
    )
    assert program.transports.name_of(3) == "notify 0 bit 3"


def test_a_missing_wait_is_told_in_words_of_the_ccu(tmp_path: Path) -> None:
    report = check(record(project(tmp_path, "all_gather", EDITS["no wait for moves"]), SMALL, 4096))
    found = next(f for f in report.findings if f.name == "UNMATCHED_POST")
    assert "event 0 bit 0 of die 1, mission 0" in found.message
    assert "EventWait" in found.hint


def test_times_have_a_launch_and_grow_with_the_data(tmp_path: Path) -> None:
    shop = project(tmp_path, "all_gather")
    spec = CallSpec("all_gather", bytes=1, cluster=ClusterSpec(SMALL))
    times = []
    for size in (1 << 12, 1 << 26):
        program = record(shop, SMALL, size).require()
        times.append(simulate(program, spec.topology(), network="contended").total_us)
    port_us = 3 * (1 << 24) / 168.6e3  # three peers' 16 MiB through the port of a rank
    assert times[0] < 20
    assert times[1] - times[0] == pytest.approx(port_us, rel=0.05)


BRANCHES = """
#include "custom.h"
namespace ccu = ::AscendC::ccu;
CcuResult MineKernel(CcuKernelArg argument)
{
    const KernelParam& param = *static_cast<const KernelParam*>(argument);
    ccu::Variable input, inputToken, outputToken, ownSource, offset, bytes, rounds, slot;
    ccu::LoadArg(input, kInput);
    ccu::LoadArg(inputToken, kInputToken);
    ccu::LoadArg(outputToken, kOutputToken);
    ccu::LoadArg(ownSource, kOwnSource);
    ccu::LoadArg(offset, kOffset);
    ccu::LoadArg(bytes, kBytes);
    for (uint32_t i = 0; i < param.ranks; ++i) {
        ccu::LoadArg(slot, kDestinations + i);
    }
    ccu::LocalAddr to, from;
    to.addr = slot;
    to.token = outputToken;
    from.addr = ownSource;
    from.token = inputToken;
    ccu::Event moved;
    rounds = 0;
    CCU_WHILE(rounds != 3)
    {
        rounds += 1;
        CCU_IF(rounds == 2)
        {
            ccu::LocalCopy(to, from, bytes, moved);
            ccu::EventWait(moved);
        }
        CCU_ELSE
        {
            ccu::EventRecord(moved);
            ccu::EventWait(moved);
        }
    }
    CCU_DO
    {
        rounds = rounds - 1;
        ccu::EventRecord(moved, 2);
        ccu::EventWait(moved, 2);
    }
    CCU_WHILE(rounds != 0);
    return CCU_SUCCESS;
}
"""


def test_branches_follow_values(tmp_path: Path) -> None:
    program = record(project(tmp_path, "all_gather", kernel=BRANCHES), SMALL, 1 << 12).require()
    of_rank = [0] * 4
    for rank, kind in zip(program.tasks.rank.tolist(), program.tasks.kind.tolist(), strict=True):
        of_rank[rank] += kind == 0
    assert of_rank == [1, 1, 1, 1]  # one copy each
    # start and end of launch and move: 4 posts; records: 2 of the first loop and 3 of the second
    posts = [int(kind) for kind in program.tasks.kind if kind == 8]
    assert len(posts) == 4 * (4 + 5)


LOOP = """
#include "custom.h"
namespace ccu = ::AscendC::ccu;
CcuResult MineKernel(CcuKernelArg argument)
{{
    const KernelParam& param = *static_cast<const KernelParam*>(argument);
    ccu::Variable input, inputToken, outputToken, ownSource, offset, bytes, slot;
    ccu::LoadArg(input, kInput);
    ccu::LoadArg(inputToken, kInputToken);
    ccu::LoadArg(outputToken, kOutputToken);
    ccu::LoadArg(ownSource, kOwnSource);
    ccu::LoadArg(offset, kOffset);
    ccu::LoadArg(bytes, kBytes);
    for (uint32_t i = 0; i < param.ranks; ++i) {{
        ccu::Variable one;
        ccu::LoadArg(one, kDestinations + i);
        if (i == param.rank) {{
            slot = static_cast<const ccu::Variable&>(one);
        }}
    }}
    ccu::LocalAddr to, from;
    to.addr = slot;
    to.token = outputToken;
    from.addr = ownSource;
    from.token = inputToken;
    ccu::Array<ccu::Event> moved(4);
    ccu::Array<ccu::CcuBuffer> buffers({buffers});
    ccu::Variable piece;
    piece = 4096;
    ccu::Func body([&]() {{
        ccu::LocalCopy(buffers[0], from, piece, moved[0]);
        ccu::EventWait(moved[0]);
        ccu::LocalCopy(to, buffers[0], piece, moved[0]);
        {last}
    }});
    ccu::Loop loop(CcuLoopConfig{{4 * 4096, {iterations}}}, body);
    ccu::LoopGroup group(CcuLoopGroupConfig{{3, 0, 4096, 1, {events}}}, 4, {{loop}});
    return CCU_SUCCESS;
}}
"""


def looped(folder: Path, iterations: int, **other: int | str) -> Imported:
    """A group that copies 4 x `iterations` pages of the input through buffers."""
    fill: dict[str, int | str] = {"buffers": 4, "last": "ccu::EventWait(moved[0]);", "events": 1}
    fill.update(other, iterations=iterations)
    text = LOOP.format_map(fill)
    return record(project(folder, "all_gather", kernel=text), SMALL, 4 * iterations * 4 * 4096)


def own_slot_errors(recording: Imported) -> set[str]:
    """Classes of errors, but for the output of peers, which the group does not fetch."""
    findings = [*recording.findings, *check(recording).findings]
    return {f.name for f in findings if f.severity is Severity.ERROR} - {"OUTPUT_MISSING"}


def test_long_loops_are_few_tasks_and_move_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    short, long = looped(tmp_path / "a", 32), looped(tmp_path / "b", 4096)
    assert own_slot_errors(short) == own_slot_errors(long) == set()
    assert short.require().task_count == long.require().task_count
    for recording, pages in ((short, 4 * 32), (long, 4 * 4096)):
        tasks = recording.require().tasks
        assert sum(tasks.size[(tasks.kind == 0) & (tasks.rank == 0)].tolist()) == 2 * pages * 4096


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        ({"events": 0}, "NOTIFY_OVERRUN"),
        ({"events": 2}, "RESOURCE_EXCEEDED"),
        ({"buffers": 2}, "RESOURCE_EXCEEDED"),
        ({"last": ""}, "UNMATCHED_POST"),
        ({"last": "ccu::EventRecord(moved[0]);"}, "INVALID_ARGUMENT"),
    ],
)
def test_wrong_loops_are_named(edit: dict[str, int | str], name: str, tmp_path: Path) -> None:
    assert name in own_slot_errors(looped(tmp_path, 64, **edit))


def test_two_engines_in_one_folder(tmp_path: Path) -> None:
    shop = project(tmp_path, "all_gather")
    (tmp_path / "mine" / "op_kernel_aicpu").mkdir()
    with pytest.raises(ParameterError, match="kernels of two engines"):
        find_project(str(tmp_path / "mine"))
    (tmp_path / "mine" / "hccl-py.toml").write_text('engine = "ccu"\n')
    assert find_project(str(tmp_path / "mine")).device == shop.project.device


def test_ops_that_no_project_starts_with() -> None:
    with pytest.raises(ParameterError, match="No project for the CCU starts with 'scatter'"):
        starting_project("mine", "scatter", "ccu")
