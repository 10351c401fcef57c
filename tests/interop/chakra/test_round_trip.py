"""Chakra to a job to Chakra to a job: any trace, written by the tests' own writer of the format."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hccl_py
from hccl_interop.chakra import job_of, read_trace, write_trace
from hccl_py.jobs import Job, JobProgram
from hccl_py.simulator import Timeline
from tests.interop.chakra.ets import (
    ALL_GATHER,
    ALL_REDUCE,
    BARRIER,
    BROADCAST,
    COLL,
    COMP,
    METADATA,
    RECV,
    REDUCE_SCATTER,
    SEND,
    Et,
    Value,
    coll,
    decode,
    groups,
    write,
)

RANKS = 4
WORLD = hccl_py.Communicator(ranks=RANKS)
GROUPS = {"1": [0, 1], "2": [2, 3], "7": [3, 1, 0], "tp": [1, 2]}


@st.composite
def traces(draw: st.DrawFn) -> list[list[Et]]:
    """Kernels, collectives and messages of four ranks, each in the order of one list of all, so
    that the calls meet; dependencies on anything before; ids in any order.
    """
    ranks: list[list[Et]] = [[] for _ in range(RANKS)]
    kinds = [ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, BARRIER]
    for _ in range(draw(st.integers(1, 10))):
        what = draw(st.sampled_from(["kernel", "kernel", "group", "world", "message", "nothing"]))
        size = draw(st.sampled_from([0, 4, 100, 4096]))
        if what == "kernel":
            us, name = draw(st.integers(0, 50)), draw(st.sampled_from(["mul", "add", ""]))
            kinds_of_kernels: list[dict[str, Value]] = [{}, {"stream": 7}, {"is_cpu_op": True}]
            attrs = draw(st.sampled_from(kinds_of_kernels))
            alike = draw(st.booleans())
            for rank in draw(st.sets(st.integers(0, RANKS - 1), min_size=1)):
                mine = us if alike else us + rank
                ranks[rank].append(Et(0, COMP, name, us=mine, attrs={**attrs}))
        elif what == "message":
            source, destination = draw(st.permutations(range(RANKS)))[:2]
            tag = draw(st.integers(0, 1))
            said = {"comm_size": size, "comm_tag": tag}
            ranks[source].append(Et(0, SEND, "s", attrs={"comm_dst": destination, **said}))
            ranks[destination].append(Et(0, RECV, "r", attrs={"comm_src": source, **said}))
        elif what == "nothing":
            ranks[draw(st.integers(0, RANKS - 1))].append(Et(0, METADATA, "note"))
        else:
            name = draw(st.sampled_from(sorted(GROUPS))) if what == "group" else ""
            kind = draw(st.sampled_from(kinds))
            for rank in GROUPS[name] if name else range(RANKS):
                ranks[rank].append(coll(0, kind, size, name))
    for nodes in ranks:
        ids = draw(st.permutations(range(1, len(nodes) + 1)))
        for at, node in enumerate(nodes):
            node.id = ids[at] * 3
            if at:
                before = st.sets(st.sampled_from([n.id for n in nodes[:at]]), max_size=3)
                node.deps, node.ctrl = sorted(draw(before)), sorted(draw(before))
        nodes.append(groups(0, GROUPS))
    return ranks


def job_in(folder: Path, *, buffered: bool = False) -> tuple[Job, JobProgram]:
    job = job_of(read_trace(folder), WORLD, buffered=buffered)
    return job, job.program()


def meaning(program: JobProgram) -> tuple[object, ...]:
    """What a job is: all that its program does, with streams, calls and labels."""
    calls = program.calls_run
    return program.digest, program.stream_names, calls, sorted(program.labels)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces(), st.booleans())
def test_the_same_job_comes_back(ranks: list[list[Et]], buffered: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        own, theirs = Path(scratch) / "own", Path(scratch) / "theirs"
        job, program = job_in(write(own, ranks), buffered=buffered)
        write_trace(job, theirs)
        again, program_again = job_in(theirs)
        assert meaning(program_again) == meaning(program)
        written = [path.read_bytes() for path in sorted(theirs.iterdir())]
        write_trace(again, theirs)
        assert [path.read_bytes() for path in sorted(theirs.iterdir())] == written
        for rank, nodes in enumerate(ranks):
            _, found = decode((theirs / f"trace.{rank}.et").read_bytes())
            assert said(found) == said(nodes)


def test_tags_tell_messages_apart(tmp_path: Path) -> None:
    """What is sent first is received last: a tag is an exchange of its own, and comes back so."""
    sends = [
        Et(k, SEND, "s", attrs={"comm_dst": 1, "comm_size": 8 * k, "comm_tag": k}) for k in (1, 2)
    ]
    receives = [
        Et(k, RECV, "r", attrs={"comm_src": 0, "comm_size": 8 * k, "comm_tag": k}) for k in (2, 1)
    ]
    ranks = [sends, receives, [], []]
    job, program = job_in(write(tmp_path / "own", ranks))
    assert program.stream_names == ("p2p", "p2p 2")
    assert timed(program).total_us > 0
    write_trace(job, tmp_path / "out")
    found = [decode((tmp_path / "out" / f"trace.{rank}.et").read_bytes())[1] for rank in (0, 1)]
    assert [[node.attrs["comm_size"] for node in nodes] for nodes in found] == [[8, 16], [16, 8]]
    assert meaning(job_in(tmp_path / "out")[1]) == meaning(program)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(traces(), st.randoms(use_true_random=False))
def test_dependencies_count_and_not_the_order_of_the_file(
    ranks: list[list[Et]], random: Random
) -> None:
    """Where every node depends on the one before it, any order of the file is the same job."""
    for nodes in ranks:
        for node, following in pairwise(nodes[:-1]):
            following.deps = [*following.deps, node.id]
    with tempfile.TemporaryDirectory() as scratch:
        _, program = job_in(write(Path(scratch) / "own", ranks))
        for nodes in ranks:
            random.shuffle(nodes)
        _, shuffled = job_in(write(Path(scratch) / "shuffled", ranks))
        assert meaning(shuffled) == meaning(program)


def said(nodes: list[Et]) -> Counter[object]:
    """What the nodes of a rank do, whatever their order: sizes in whole elements of fp32."""
    return Counter(
        (node.type, node.attrs.get("comm_type"), whole(node), node.us, node.name)
        for node in nodes
        if node.type == COMP or (node.type != METADATA and (whole(node) or is_barrier(node)))
    )


def is_barrier(node: Et) -> bool:
    return node.type == COLL and node.attrs["comm_type"] == BARRIER


def whole(node: Et) -> int:
    if node.type == COMP or is_barrier(node):
        return 0
    size = int(str(node.attrs["comm_size"]))
    parts = 1
    if node.type == COLL and node.attrs["comm_type"] == REDUCE_SCATTER:
        parts = len(GROUPS.get(str(node.attrs.get("pg_name", "")), range(RANKS)))
    if node.attrs.get("hccl_py.dtype"):
        return size
    return -(-size // (4 * parts)) * 4 * parts


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(traces())
def test_written_times_keep_the_order_of_the_trace(ranks: list[list[Et]]) -> None:
    """Nothing begins before what it depends on has ended, by the dependencies of the file that was
    read: the k-th node of a kind and name is the k-th of the file that is written.
    """
    with tempfile.TemporaryDirectory() as scratch:
        own, theirs = Path(scratch) / "own", Path(scratch) / "theirs"
        for nodes in ranks:
            for node in nodes:
                node.name = f"{node.id}"
        job, program = job_in(write(own, ranks), buffered=True)
        write_trace(job, theirs, timed(program))
        for rank, nodes in enumerate(ranks):
            _, found = decode((theirs / f"trace.{rank}.et").read_bytes())
            end = {int(n.name): n.start + n.us for n in found if n.name.isdigit()}
            start = {int(n.name): n.start for n in found if n.name.isdigit()}
            is_send = {n.id for n in nodes if n.type == SEND}
            for node in nodes:
                for dep in {*node.deps, *node.ctrl} - is_send:
                    if node.id in start and dep in end:
                        assert start[node.id] >= end[dep]


def timed(program: JobProgram) -> Timeline:
    return hccl_py.simulate(program, WORLD.topology)


def hand_made() -> Iterator[tuple[str, Job]]:
    """Jobs that no trace has made: events before their record, one stream for kernels and calls."""
    world = hccl_py.Communicator(ranks=RANKS)
    op = hccl_py.OpParam("all_reduce", 1000, hccl_py.DataType.BF16, hccl_py.ReduceOp.MAX)
    job = Job(world.topology)
    first, second = job.stream("first"), job.stream("second")
    event = job.event()
    first.wait(event)
    first.compute(3.0, "late")
    second.compute(4.0, "early")
    second.record(event)
    first.run(world, op, "sum")
    yield "an event that is recorded later", job
    job = Job(world.topology)
    one, two = job.stream("one"), job.stream("two")
    message = hccl_py.OpParam("send_recv", 500, hccl_py.DataType.INT8, pairs=((1, 0),))
    pairs = [world.create_group([0, 3]) for _ in range(2)]
    assert pairs[0] is not None
    assert pairs[1] is not None
    one.run(pairs[0], message)
    two.run(pairs[1], message)
    one.run(pairs[0], message)
    yield "two communicators of two ranks", job
    job = Job(world.topology)
    only = job.stream("only")
    groups = [world.create_group(ranks) for ranks in ([0, 1], [2, 3])]
    only.compute([1.0, 2.0, 3.0, 4.0], "kernel")
    only.run([group for group in groups if group], op, "halves")
    only.on([0, 2]).compute(5.0, "some")
    yield "two groups at once", job


@pytest.mark.parametrize(("name", "job"), [*hand_made()])
def test_jobs_become_traces(name: str, job: Job, tmp_path: Path) -> None:
    program = job.program()
    write_trace(job, tmp_path / "out")
    again, program_again = job_in(tmp_path / "out")
    assert program_again.stream_names == program.stream_names
    assert timed(program_again).total_us == timed(program).total_us
    write_trace(again, tmp_path / "once_more")
    assert meaning(job_in(tmp_path / "once_more")[1]) == meaning(program_again)


def test_groups_are_stated_as_pytorch_does(tmp_path: Path) -> None:
    ranks = [[coll(1, ALL_REDUCE, 8), coll(2, ALL_GATHER, 8, "tp")] for _ in range(2)]
    ranks += [[coll(1, ALL_REDUCE, 8)] for _ in range(2)]
    job, _ = job_in(write(tmp_path / "own", ranks))
    write_trace(job, tmp_path / "out")
    head, nodes = decode((tmp_path / "out" / "trace.1.et").read_bytes())
    assert head == {"hccl_py.streams": ["comm", "comm 2"]}
    listed = json.loads(nodes[0].values[2:-2])
    assert [(group["pg_name"], group["ranks"]) for group in listed] == [
        ("0", [0, 1, 2, 3]),
        ("1", [0, 1]),
    ]
    assert [node.attrs["pg_name"] for node in nodes[1:]] == ["0", "1"]
