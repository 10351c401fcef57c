"""The builder as plugin authors and importers use it: by hand, refused, and in bulk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hccl_py
from hccl_py.enums import DataType, LinkKind, ReduceOp, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.formats import from_json, to_json
from hccl_py.program.builder import BuildError, ProgramBuilder, TaskNote
from hccl_py.program.program import Program

ALL_GATHER = hccl_py.OpParam("all_gather", 16, DataType.FP32)


def builder(ranks: int = 2, op: hccl_py.OpParam = ALL_GATHER) -> ProgramBuilder:
    """Return a builder whose ranks have IN, OUT and SCRATCH."""
    found = ProgramBuilder(op, ranks)
    found.buffer("IN", 64)
    found.buffer("OUT", 64 * ranks)
    found.buffer("SCRATCH", [64 * rank for rank in range(ranks)])
    return found


def built(kind: LinkKind, task: TaskKind) -> Program:
    found = builder()
    link = found.link(0, 1, kind, exports=["IN"])
    found.stream(0).move(task, ("IN", 0, 64), ("OUT", 0, 64), link=link)
    return found.build()


def test_an_all_gather_by_hand_is_the_recorded_one() -> None:
    recorded = hccl_py.record("AllGatherComm", ALL_GATHER, hccl_py.topology_of(ranks=2))
    made = ProgramBuilder(recorded.op, 2, "by hand")
    for name, sizes in zip(recorded.buffers, recorded.buffer_sizes.T, strict=True):
        made.buffer(name, sizes.tolist())
    link = made.link(0, 1, notifies=3, exports=["CCL_IN", "CCL_OUT"])
    for rank in range(2):
        main, peer = made.stream(rank), 1 - rank
        mine, theirs = (("CCL_OUT", 64 * owner, 64) for owner in (rank, peer))
        main.copy(("IN", 0, 64), mine)
        for index in (0, 1):
            main.post(link, index)
            main.wait(link, index)
        main.read(link, theirs, theirs, TaskNote("all-gather", "mine.py:7"))
        for index in (0, 1):
            main.post(link, index)
            main.wait(link, index)
        for part in (0, 64):
            main.copy(("CCL_OUT", part, 64), ("OUT", part, 64))
    program = made.build()
    assert program.digest == recorded.digest
    assert (program.executor, program.labels, program.lines) == (
        "by hand",
        ("all-gather",),
        ("mine.py:7",),
    )
    assert hccl_py.verify(program).ok


def test_the_example_of_the_docstring_gathers() -> None:
    from hccl_py.program.builder import builder as module

    assert module.__doc__ is not None
    code = module.__doc__.split("\n\n")[1]
    names = {"ProgramBuilder": ProgramBuilder, "OpParam": hccl_py.OpParam, "DataType": DataType}
    exec("\n".join(line[4:] for line in code.splitlines()), names)
    program = names["program"]
    assert isinstance(program, Program)
    assert hccl_py.verify(program).ok


def test_alike_ranks_are_one_batch_with_formulas() -> None:
    ranks = 8
    made = builder(ranks)
    links = [made.link(rank, (rank + 1) % ranks, exports=["IN"]) for rank in range(ranks)]
    for rank in range(ranks):
        main = made.stream(rank)
        main.copy(("IN", 0, 64), ("OUT", 64 * rank, 64))
        main.post(links[rank], 0)
        main.wait(links[rank - 1], 0)
    program = made.build()
    assert [batch.ranks.tolist() for batch in program.batches] == [[*range(ranks)]]
    assert program.tasks.dst_offset.reshape(ranks, 3)[:, 0].tolist() == [
        64 * rank for rank in range(ranks)
    ]
    read = from_json(to_json(program))
    assert read.digest == program.digest
    assert len(read.batches) == 1


def test_ranks_without_tasks_are_one_batch() -> None:
    made = builder(5)
    made.stream(3).compute(1.5)
    assert [batch.ranks.tolist() for batch in made.build().batches] == [[0, 1, 2, 4], [3]]


def test_resources_are_requested_as_used_or_as_stated() -> None:
    made = builder()
    link = made.link(0, 1)
    made.stream(0, 2).local_wait(4)
    made.stream(0).local_post(2, 4)
    made.stream(1).wait(link, 6)
    made.request(1, streams=4, local_notifies={0: 2}, link_notifies={link: 9})
    declared = made.build().declared
    assert declared.sub_streams.tolist() == [2, 3]
    assert declared.local_notifies.tolist() == [[0, 0, 5, 0], [2, 0, 0, 0]]
    assert declared.scratch_bytes.tolist() == [0, 64]
    assert declared.stated.tolist() == [[False] * 3, [True] * 3]
    assert made.build().transports.notifies.tolist() == [9, 9]


def test_writes_over_rdma_become_rdma_writes() -> None:
    kinds = {
        TaskKind.WRITE: TaskKind.RDMA_WRITE,
        TaskKind.WRITE_REDUCE: TaskKind.RDMA_WRITE_REDUCE,
    }
    for write, push in kinds.items():
        assert built(LinkKind.RDMA, write).tasks.kind.tolist() == [push]
        assert built(LinkKind.SDMA, write).tasks.kind.tolist() == [write]


def test_reductions_and_types_are_the_ops_unless_stated() -> None:
    made = builder(op=hccl_py.OpParam("all_reduce", 16, DataType.FP32, reduce=ReduceOp.MAX))
    part = ("IN", 0, 64)
    made.stream(0).reduce(part, ("OUT", 0, 64))
    made.stream(0).move(
        TaskKind.REDUCE, part, ("OUT", 0, 64), dtype=DataType.INT8, reduce=ReduceOp.MIN, joined=True
    )
    table = made.build().tasks.table
    assert table.dtype.tolist() == [DataType.FP32.number, DataType.INT8.number]
    assert table.reduce.tolist() == [ReduceOp.MAX, ReduceOp.MIN]
    assert table.joined.tolist() == [0, 1]


REFUSED: dict[str, tuple[Callable[[ProgramBuilder], object], str]] = {
    "ranks": (lambda _: ProgramBuilder(ALL_GATHER, 0), "0 is not a number of ranks from 1"),
    "names": (
        lambda _: ProgramBuilder(ALL_GATHER, 2, notify_names=["n"] * 129),
        "129 is not a number of names from 0 to 128",
    ),
    "buffer twice": (lambda b: b.buffer("IN", 1), "There is a buffer 'IN' already"),
    "sizes": (lambda b: b.buffer("TMP", [1, 2, 3]), "TMP has 3 sizes for 2 ranks"),
    "size": (lambda b: b.buffer("TMP", -1), "-1 is not a size in bytes from 0 to 2"),
    "buffers": (
        lambda b: list(map(b.buffer, map(str, range(127)), [1] * 127)),
        "128 is not a number of buffers",
    ),
    "link's rank": (lambda b: b.link(0, 2), "2 is not a rank from 0 to 1"),
    "link to itself": (lambda b: b.link(1, 1), "A link joins rank 1 with itself"),
    "link's notifies": (lambda b: b.link(0, 1, notifies=1 << 15), "32768 is not a number of notif"),
    "exports": (lambda b: b.link(0, 1, exports=["INN"]), "There is no buffer 'INN'"),
    "request's rank": (lambda b: b.request(2), "2 is not a rank"),
    "streams": (lambda b: b.request(0, streams=0), "0 is not a number of streams from 1"),
    "owner": (lambda b: b.request(0, local_notifies={-1: 1}), "-1 is not the number of a stream"),
    "count": (lambda b: b.request(0, local_notifies={0: -1}), "-1 is not a number of notifies"),
    "stream's rank": (lambda b: b.stream(2), "2 is not a rank"),
    "stream": (lambda b: b.stream(0, 1 << 15), "32768 is not the number of a stream"),
    "no link": (lambda b: b.stream(0).post(0, 0), "There is no link 0"),
    "other link": (
        lambda b: b.stream(2).wait(b.link(0, 1), 0),
        "Rank 2 uses link 0, which joins ranks 0 and 1",
    ),
    "index": (lambda b: b.stream(0).local_wait(-1), "-1 is not a notify's index"),
    "posted stream": (lambda b: b.stream(0).local_post(-1, 0), "-1 is not the number of a stream"),
    "source": (
        lambda b: b.stream(0).copy(("IM", 0, 1), ("OUT", 0, 1)),
        "There is no buffer 'IM'",
    ),
    "offset": (
        lambda b: b.stream(0).copy(("IN", -1, 1), ("OUT", 0, 1)),
        "-1 is not an offset in bytes",
    ),
    "length": (
        lambda b: b.stream(0).copy(("IN", 0, 1 << 62), ("OUT", 0, 1)),
        r"is not a length in bytes from 0 to 2\*\*62 - 1",
    ),
    "link missing": (
        lambda b: b.stream(0).move(TaskKind.READ, ("IN", 0, 1), ("OUT", 0, 1)),
        "read needs a link",
    ),
    "link too many": (
        lambda b: b.stream(0).move(TaskKind.COPY, ("IN", 0, 1), ("OUT", 0, 1), link=0),
        "copy takes no link",
    ),
    "no data": (
        lambda b: b.stream(0).move(TaskKind.COMPUTE, ("IN", 0, 1), ("OUT", 0, 1)),
        "compute moves no data",
    ),
    "microseconds": (lambda b: b.stream(0).compute(-1), r"-1 is not microseconds from 0 to 1e\+12"),
    "round": (
        lambda b: b.stream(0).compute(1, TaskNote(round=-1)),
        "-1 is not a round",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_number(case: str) -> None:
    act, words = REFUSED[case]
    ranks = 3 if case == "other link" else 2
    with pytest.raises(ParameterError, match=words) as raised:
        act(builder(ranks))
    assert raised.value.hint


@pytest.mark.parametrize("kind", [TaskKind.READ, TaskKind.READ_REDUCE])
def test_reads_over_rdma_are_refused(kind: TaskKind) -> None:
    with pytest.raises(BuildError, match=r"Task 0 .* no read over an RDMA link") as raised:
        built(LinkKind.RDMA, kind)
    assert raised.value.row == 0


def test_too_many_cells_streams_and_slots_are_refused() -> None:
    made = builder(32)
    for rank in range(31):
        for plane in range(10):
            made.link(rank, rank + 1, plane=str(plane), notifies=32767)
    with pytest.raises(BuildError, match="at most 16777216 notifies, found 20315540"):
        made.build()
    many = ProgramBuilder(ALL_GATHER, 200)
    many.stream(0, 32000).compute(1)
    with pytest.raises(BuildError, match="at most 4194304 streams, found 6400200"):
        many.build()
    slots = builder()
    slots.request(0, local_notifies=dict.fromkeys(range(5), 32767))
    with pytest.raises(BuildError, match="at most 131072 notifies of a rank, found 163835"):
        slots.build()


def test_builds_share_nothing() -> None:
    made = builder()
    made.stream(0).compute(1)
    first = made.build()
    made.stream(1).compute(2)
    assert (first.task_count, made.build().task_count) == (1, 2)
    assert not first.buffer_sizes.flags.writeable
    assert np.array_equal(first.buffer_sizes, made.build().buffer_sizes)
