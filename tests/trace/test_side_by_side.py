"""Columns: waits below their posts, one point in time per line, and a picture of a mesh."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.program.instruction import Batch
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.trace.scene import Scene, scene_of
from hccl_py.trace.side_by_side import draw_columns, lay_out, pair_names
from hccl_py.trace.steps import TraceStep, bars_in_time
from hccl_py.trace.steps import steps_of as steps_of_bars
from hccl_py.trace.words import Words

COLUMNS = """
     us  main             sub 0            sub 1            sub 2
   0.00  copy 256K        ╎                ╎                ╎
         all-gather
   0.35  post a ▸sub 0    ╎                ╎                ╎
         post b ▸sub 1    wait a ◂main     ╎                ╎
         post c ▸sub 2    TxAck ▸r3        wait b ◂main     ╎
         ╎                ╎                TxAck ▸r2        wait c ◂main
         ╎                ╎                ╎                TxAck ▸r1
  10.35  ╎                RxAck ◂r3        RxAck ◂r2        RxAck ◂r1
         ╎                post d ▸main     post e ▸main     post f ▸main
         wait d ◂sub 0    ╎                ╎                ╎
         wait e ◂sub 1    ╎                ╎                ╎
         wait f ◂sub 2    ╎                ╎                ╎
         copy 0           ╎                ╎                ╎
         post g ▸sub 0    ╎                ╎                ╎
         post h ▸sub 1    wait g ◂main     ╎                ╎
         post i ▸sub 2    read 256K ◂r3    wait h ◂main     ╎
         copy 256K        ╏                read 256K ◂r2    wait i ◂main
         ╏                ╏                ╏                read 256K ◂r1
  21.41  ╎                TxDataSignal ▸r3 TxDataSignal ▸r2 TxDataSignal ▸r1
         ╎                RxDataSignal ◂r3 RxDataSignal ◂r2 RxDataSignal ◂r1
         ╎                post j ▸main     post k ▸main     post l ▸main
         wait j ◂sub 0
         wait k ◂sub 1
         wait l ◂sub 2
         copy 0
"""


def program_of(op: OpParam, executor: str | None = None, **topology: int) -> Program:
    with Communicator(**topology) as comm:  # type: ignore[arg-type]
        return comm.plan(op, executor).program


def all_gather(ranks: int) -> Scene:
    program = program_of(OpParam("all_gather", 65536, DataType.FP32), ranks=ranks)
    return scene_of(program, topology_of(ranks))


def steps_of(scene: Scene, rank: int = 0) -> list[TraceStep]:
    return steps_of_bars(scene, bars_in_time(scene, rank))


def test_the_streams_of_a_mesh_side_by_side() -> None:
    scene = all_gather(4)
    lines = draw_columns(steps_of(scene), Words.of(scene, unicode=True), 80)
    assert "\n".join(["", *(line.plain for line in lines), ""]) == COLUMNS


def test_a_step_shows_the_length_of_either_side() -> None:
    program = all_gather(2).program
    batch = program.batches[0]
    first = batch.instructions[0]._replace(dst_size=24)
    uneven = replace(program, batches=(Batch(batch.ranks, (first, *batch.instructions[1:])),))
    step = steps_of(scene_of(uneven, topology_of(2)))[0]
    assert step.src is not None
    assert step.dst is not None
    assert (step.src.stop - step.src.start, step.dst.stop - step.dst.start) == (step.size, 24)


@pytest.mark.parametrize("width", [80, 100, 160, 240])
def test_columns_fit_and_hold_every_task(width: int) -> None:
    scene = all_gather(8)
    words = Words.of(scene, unicode=True)
    lines = [line.plain for line in draw_columns(steps_of(scene), words, width)]
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for peer in range(1, 8):
        for word in ("TxAck ▸r", "RxAck ◂r", "TxDataSignal ▸r", "RxDataSignal ◂r"):
            assert f"{word}{peer}" in text
    assert text.count("read 256K ◂r") == 7


@given(st.integers(1, 8), st.sampled_from(["AllReduceComm", "AllReduceMeshOpbaseLoopExecutor"]))
def test_layout(ranks: int, executor: str) -> None:
    op = OpParam("all_reduce", 1000, DataType.FP32, ReduceOp.SUM)
    scene = scene_of(program_of(op, executor, ranks=ranks), topology_of(ranks))
    for rank in range(ranks):
        steps = steps_of(scene, rank)
        lines = lay_out(steps)
        number = {step.place: n for n, line in enumerate(lines) for step in line.steps.values()}
        assert len(number) == len(steps)
        assert [line.at_us for line in lines] == sorted(line.at_us for line in lines)
        for step in steps:
            line = number[step.place]
            assert lines[line].at_us == step.at_us
            before = step.place._replace(number=step.place.number - 1)
            assert number.get(before, -1) < line
            if step.kind is TaskKind.NOTIFY_WAIT and step.partner in number:
                assert number[step.partner] < line
        names = pair_names(lines)
        local = [s for s in steps if s.partner is not None and s.peer is None]
        assert len(names) == len(local)
        assert len(set(names.values())) * 2 == len(local)
        for step in local:
            assert step.partner is not None
            assert names[step.place] == names[step.partner]
