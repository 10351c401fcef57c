"""Programs as MSCCL XML: what was imported comes back as the same program, what others recorded
does what it did, and what does not fit is refused with the task.
"""

import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest

import hccl_py as hccl
from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of, to_xml
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.formats import from_json
from hccl_py.program.program import Program
from hccl_py.verifier.numeric import run_numeric
from tests.interop.msccl.test_import import shift
from tests.interop.msccl.xmls import (
    Step,
    Tb,
    Xml,
    all_pairs,
    exchange,
    ring_all_reduce,
    sums_in_scratch,
)


def program_of(text: str, size: int, op: str | None = None) -> Program:
    (algorithm,) = algorithms_from(text.encode(), "own.xml")
    return import_algorithm(algorithm, meaning_of(algorithm, op), size).require()


def with_copies() -> Xml:
    xml = Xml("allgather", 2, 4)
    xml.usual = (2, 4, 0)
    for gpu in range(2):
        xml.copies[gpu] = [(0, 2 * gpu), (1, 2 * gpu + 1)]
        tb = xml.tb(gpu, send=1 - gpu, recv=1 - gpu)
        tb.step("s", ("o", 2 * gpu), cnt=2).step("r", dst=("o", 2 - 2 * gpu), cnt=2)
    return xml


ALGORITHMS = {
    "ring": ring_all_reduce(4),
    "ring out of place": ring_all_reduce(3, "LL128", inplace=0),
    "ring on three channels": ring_all_reduce(3, "LL", channels=3),
    "all-gather": all_pairs("allgather", 3, inplace=1, outofplace=1),
    "all-to-all": all_pairs("alltoall", 4, "Simple"),
    "scratch": sums_in_scratch(4),
    "exchange": exchange(),
    "copies first": with_copies(),
}


@pytest.mark.parametrize("size", [100_000, pytest.param(1 << 10, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_was_imported_comes_back(name: str, size: int) -> None:
    program = program_of(ALGORITHMS[name].text(), size)
    text = to_xml(program)
    again = program_of(text, size)
    assert again.digest == program.digest
    assert again.executor == program.executor
    assert to_xml(again) == text


def test_steps_stay_what_they_were() -> None:
    xml = ring_all_reduce(4)
    text = to_xml(program_of(xml.text(), 1 << 10))
    types = re.findall(r'<gpu id="2".*?</gpu>', text, re.DOTALL)[0]
    assert re.findall(r'type="(\w+)"', types) == ["s", "rrs", "rrs", "rrcs", "rcs", "rcs", "r"]


def test_custom_collectives_stay_custom() -> None:
    text = to_xml(program_of(shift().text(), 64, "send_recv"))
    assert text.startswith('<algo name="shift" proto="Simple" nchannels="1" nchunksperloop="2" ')
    assert 'coll="custom"' in text


def random_algorithm(source: random.Random) -> Xml:
    """Return messages round two rings, relayed and added on their way, local steps between them,
    and dependencies on what comes earlier. It never waits for itself: steps stand in one order of
    all that happens.
    """
    gpus, chunks = source.randrange(2, 5), source.choice([4, 6])
    proto = source.choice(["Simple", "LL", "LL128"])
    xml = Xml("allreduce", gpus, chunks, proto=proto, nchannels=2)
    xml.usual = (chunks, chunks, 3)
    rings = [
        [xml.tb(gpu, (gpu + way) % gpus, (gpu - way) % gpus, chan) for gpu in range(gpus)]
        for chan, way in enumerate((1, -1))
    ]
    local = [xml.tb(gpu) for gpu in range(gpus)]
    past: list[list[tuple[int, Step]]] = [[] for _ in range(gpus)]

    def add(tb: Tb, kind: str, cnt: int) -> None:
        for dep, waited in source.sample(past[tb.gpu], min(len(past[tb.gpu]), 2)):
            if dep != tb.id and source.random() < 0.4:
                tb.steps.append(
                    Step("nop", ("i", -1), ("o", -1), 0, (dep, position(tb.gpu, dep, waited)))
                )
                waited.hasdep = 1
        places = [(b, source.randrange(3 - cnt + 1)) for b in "ios" for _ in range(1)]
        src, dst = source.choice(places), source.choice([p for p in places if p[0] != "i"])
        if kind in ("cpy", "re"):
            src = source.choice([p for p in places if p[0] != dst[0]])
        step = Step(kind, src, dst, cnt)
        if tb.steps and tb.steps[-1].type == "nop":  # the last one is the step's own
            step.dep = tb.steps.pop().dep
        tb.steps.append(step)
        past[tb.gpu].append((tb.id, step))

    def position(gpu: int, tb: int, step: Step) -> int:
        (block,) = (block for block in xml.tbs if (block.gpu, block.id) == (gpu, tb))
        return next(k for k, other in enumerate(block.steps) if other is step)

    for _ in range(source.randrange(1, 9)):
        cnt, gpu = source.randrange(1, 3), source.randrange(gpus)
        if source.random() < 0.3:
            add(local[gpu], source.choice(["cpy", "re"]), cnt)
            continue
        chan = source.randrange(2)
        add(rings[chan][gpu], "s", cnt)
        for _ in range(source.randrange(gpus)):
            gpu = (gpu + (1, -1)[chan]) % gpus
            add(rings[chan][gpu], source.choice(["rcs", "rrs", "rrcs"]), cnt)
        gpu = (gpu + (1, -1)[chan]) % gpus
        add(rings[chan][gpu], source.choice(["r", "rrc"]), cnt)
    return xml


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.sweep) for n in range(6, 150))]
)
def test_random_algorithms_come_back(seed: int) -> None:
    source = random.Random(seed)
    xml = random_algorithm(source)
    size = source.choice([1 << 8, 5000])
    program = program_of(xml.text(), size)
    assert program_of(to_xml(program), size).digest == program.digest


EXECUTORS = {
    "AllGatherRingExecutor": ("all_gather", None),
    "ReduceScatterRingExecutor": ("reduce_scatter", ReduceOp.SUM),
    "ScatterRingExecutor": ("scatter", None),
    "SendExecutor": ("send_recv", None),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.sweep) for n in EXECUTORS])
def test_executors_that_fit_do_what_they_did(name: str) -> None:
    op, reduce = EXECUTORS[name]
    root = 0 if op == "scatter" else None
    ring = "" if op == "send_recv" else "ring"
    call = hccl.OpParam(op, 1024, DataType.FP32, reduce, root, level1=ring)
    program = hccl.record(name, call, hccl.topology_of(servers=4, devices=1))
    text = to_xml(program, protocol="LL")
    (algorithm,) = algorithms_from(text.encode(), "own.xml")
    assert (algorithm.name, algorithm.protocol) == (program.executor, "LL")
    found = import_algorithm(algorithm, meaning_of(algorithm, op), 4 * 4096)
    assert found.report().ok
    assert run_numeric(found.require(), seeds=1).ok


def test_reads_are_refused_with_the_task() -> None:
    op = hccl.OpParam("all_gather", 64, DataType.FP32)
    program = hccl.record("AllGatherRingExecutor", op, hccl.topology_of(ranks=4))
    with pytest.raises(NotSupportedError) as caught:
        to_xml(program)
    assert re.match(
        r"The program is no MSCCL algorithm: rank \d main task \d+ reads rank \d's "
        r"CCL_Out\[\d+:\d+\] to rank \d's CCL_Out\[\d+:\d+\], and threadblocks do not read the "
        r"memory of peers\.",
        caught.value.message,
    )


def test_two_peers_are_refused_with_the_task() -> None:
    op = hccl.OpParam("all_reduce", 64, DataType.FP32, ReduceOp.SUM)
    program = hccl.record("AllReduceDoubling", op, hccl.topology_of(servers=4, devices=1))
    with pytest.raises(NotSupportedError, match="and its threadblock already sends to another one"):
        to_xml(program)


def test_the_first_message_out_of_order_is_refused() -> None:
    sends = [
        task
        for k in range(2)
        for task in (["write", 1, ["IN", 4 * k, 4], ["OUT", 4 * k, 4]], ["post", 1, k])
    ]
    buffers = {"IN": 8, "OUT": 8}
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "send_recv", "dtype": "fp32", "count": 2},
        "ranks": 2,
        "link": "sdma",
        "exported": ["OUT"],
        "buffers": {"0": buffers, "1": buffers},
        "tasks": {"0": {"0": sends}, "1": {"0": [["wait", 0, 1], ["wait", 0, 0]]}},
    }
    program = from_json(json.dumps(document))
    with pytest.raises(NotSupportedError, match=r"rank 1 main task 0.* another order than they"):
        to_xml(program)


def test_deadlocks_are_refused() -> None:
    program = program_of(exchange().text(), 12 << 20)
    with pytest.raises(hccl.HcclError, match="Deadlock"):
        to_xml(program)


@pytest.mark.parametrize(
    ("change", "what"),
    [({"counts_posts": True}, "notifies count"), ({"alternating": ("FIFO",)}, "buffers alternate")],
)
def test_what_no_algorithm_has_is_refused(change: dict[str, Any], what: str) -> None:
    op = hccl.OpParam("all_gather", 64, DataType.FP32)
    program = hccl.record("AllGatherRingExecutor", op, hccl.topology_of(ranks=4))
    with pytest.raises(NotSupportedError, match=f"no MSCCL algorithm: its {what}"):
        to_xml(replace(program, **change))


def test_unknown_protocols_are_refused() -> None:
    program = program_of(exchange().text(), 1 << 10)
    with pytest.raises(ParameterError, match="Protocol 'll' is unknown"):
        to_xml(program, protocol="ll")
