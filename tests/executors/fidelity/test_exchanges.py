"""All-to-alls, held against models of HCCL's templates: every post, wait and transfer, stream by
stream.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import exchanges
from tests.executors.fidelity.exchanges import Call, Streams
from tests.executors.fidelity.held import Held, Holders, joined_on_a_plane, joined_ranks
from tests.executors.fidelity.recorded import events_of
from tests.recording import recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
DIRECT, FULL = "RunAlltoAllDirectFullmesh", "RunAlltoAllVFullMesh"
STAGED, PIPELINE = "RunAlltoAllVStaged", "RunAlltoAllVTwoLevelPipeline"
DUO = "RunAlltoAllVFor310PExecutor"


class Case(NamedTuple):
    """An executor, HCCL's model of it, and ranks in pods that SDMA joins."""

    executor: str
    model: Callable[[int, Call], Streams]
    topology: Topology
    pod: int
    graph: bool = False
    level0: str = ""


def a2(servers: int, devices: int) -> Topology:
    """Servers of A2; one of more devices than those have is a mesh of any size."""
    if devices > 8:
        return topology_of(devices, preset="mesh")
    return topology_of(servers=servers, devices=devices)


def of_servers(servers: int, devices: int, *, graph: bool = False) -> list[Case]:
    """All executors that such servers of A2 can take."""
    topology = a2(servers, devices)

    def staged(rank: int, call: Call) -> Streams:
        return exchanges.staged(rank, call, servers=servers, graph=graph)

    def full(rank: int, call: Call) -> Streams:
        return exchanges.full_mesh(rank, call, graph=graph)

    found = [
        Case(FULL, full, topology, devices if servers == 1 else 1, graph),
        Case(STAGED, staged, topology, devices, graph),
    ]
    if not graph:
        found.append(Case(DIRECT, exchanges.direct_full_mesh, topology, devices))
        if servers > 1:
            found.append(Case(PIPELINE, exchanges.pipeline, topology, devices))
    return found


def asked(servers: int, devices: int, *, graph: bool = False) -> Case:
    """The exchange in two steps where HCCL_ALGO asks for pairwise inside servers."""

    def staged(rank: int, call: Call) -> Streams:
        return exchanges.staged(rank, call, servers=servers, graph=graph, asked=True)

    return Case(STAGED, staged, a2(servers, devices), devices, graph, "pairwise")


def of_pods(pods: int, servers: int, devices: int) -> list[Case]:
    """Superpods of A3: their devices are switched."""
    topology = topology_of(superpods=pods, servers=servers, devices=devices, preset="atlas-900-a3")

    def staged(rank: int, call: Call) -> Streams:
        return exchanges.staged(rank, call, servers=pods * servers, switched=True)

    pod = servers * devices
    return [
        Case(STAGED, staged, topology, pod),
        Case(DIRECT, exchanges.direct_full_mesh, topology, pod),
    ]


DUO_CASE = Case(DUO, exchanges.duo, topology_of(4, preset="300i-duo"), 4)
CASES = [
    *of_servers(1, 4), *of_servers(1, 8), *of_servers(2, 2), *of_servers(3, 3), *of_servers(3, 1),
    *of_servers(1, 3, graph=True), *of_servers(3, 2, graph=True), *of_pods(3, 1, 2), DUO_CASE,
    asked(1, 4), asked(3, 3), asked(2, 4, graph=True),
]  # fmt: skip
WIDE = [
    *(case for n in (2, 3, 5, 7, 9, 11, 16, 17, 20) for case in of_servers(1, n)),
    *(case for s, n in ((2, 1), (2, 8), (5, 2), (4, 3)) for case in of_servers(s, n)),
    *(asked(s, n, graph=graph) for s, n in ((1, 8), (3, 1), (5, 2)) for graph in (False, True)),
    *of_servers(3, 4, graph=True), *of_pods(1, 1, 10), *of_pods(2, 2, 2), *of_pods(4, 1, 4),
]  # fmt: skip


def name_of(case: Case) -> str:
    shape = "x".join(map(str, case.topology.servers))
    graph = "-graph" if case.graph else ""
    return f"{case.executor}-{case.topology.product.name}-{shape}{graph}{case.level0}"


def check(case: Case, op: OpParam, ccl: int) -> None:
    """Compare all streams of all ranks."""
    assert KINDS[case.executor] == "same"
    ranks = case.topology.size
    op = replace(op, mode=Mode.GRAPH if case.graph else Mode.OP_BASE, level0=case.level0)
    matrix = op.matrix or ((op.count,) * ranks,) * ranks
    call = Call(op.name, [[4 * count for count in row] for row in matrix], ccl, case.pod)
    program = recorded(case.executor, op, case.topology, ccl)
    for rank in range(ranks):
        hccl = case.model(rank, call)
        found = events_of(program, rank)
        ours: list[Any] = [found.get(k, []) for k in range(max(program.streams, len(hccl)))]
        if case.executor == PIPELINE:
            hccl = exchanges.by_peers(hccl, rank, case.pod)
            ours = [exchanges.unordered(ours[0]), *ours[1:]]
        assert ours == hccl + [[]] * (len(ours) - len(hccl)), rank


def even(count: int) -> OpParam:
    return OpParam("all_to_all", count, DataType.FP32)


def uneven(ranks: int, most: int) -> OpParam:
    """Amounts up to `most`, with empty ones among them."""
    amounts = np.random.default_rng(ranks).integers(0, most + 1, (ranks, ranks))
    amounts[amounts % 5 == 0] = 0
    matrix = tuple(map(tuple, amounts.tolist()))
    return OpParam("all_to_all_vc", int(amounts.max()), DataType.FP32, matrix=matrix)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_every_post_wait_and_transfer(case: Case) -> None:
    check(case, even(100), 1 << 20)
    check(case, uneven(case.topology.size, 30_000), 1 << 18)


@pytest.mark.sweep
@pytest.mark.parametrize("case", WIDE, ids=name_of)
def test_many_layouts_and_sizes(case: Case) -> None:
    ranks = case.topology.size
    for count, ccl in ((1, 1 << 20), (300_000, 1 << 24), (32_768, 1 << 20)):
        check(case, even(count), ccl)
        check(case, uneven(ranks, count), ccl)


def test_a_post_left_out_is_seen() -> None:
    """The comparison notices a signal, a transfer, and a stream."""
    case = CASES[1]
    call = Call("all_to_all", [[400] * 4] * 4, 1 << 20, 4)
    program = recorded(case.executor, even(100), case.topology, 1 << 20)
    ours = events_of(program, 0)
    streams = case.model(0, call)
    assert [ours[k] for k in range(3)] == streams
    for k in range(3):
        assert ours[k][:-1] != streams[k]
    assert any(event[0] == "read" for event in streams[0])


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """As much for everybody, and amounts of many sizes."""
    reached = joined_on_a_plane(at) if name == FULL else joined_ranks(at)
    graph, joined = mode is Mode.GRAPH, reached.count(0)
    switched = at.product.shape == "dies"
    models: dict[str, Callable[..., Streams]] = {
        FULL: partial(exchanges.full_mesh, graph=graph),
        STAGED: partial(exchanges.staged, servers=len(at.servers), graph=graph, switched=switched),
        DIRECT: exchanges.direct_full_mesh,
        DUO: exchanges.duo,
    }
    small, most = 1 << (20 if name == DUO and graph else 18), 240_000 // max(at.size, 8)
    for op, ccl in ((even(100), 1 << 20), (uneven(at.size, most), small)):
        matrix = op.matrix or ((op.count,) * at.size,) * at.size
        call = Call(op.name, [[4 * count for count in row] for row in matrix], ccl, joined)
        known, folded = partial(models[name], call=call), ccl if name == DUO and graph else 0
        yield Held(replace(op, mode=mode), known, ccl, folded)


def _pipelined(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """The same; a server's streams by their peers, and what main does at once in any order."""
    n, joined = at.servers[0], joined_ranks(at).count(0)
    for op, ccl in ((even(100), 1 << 20), (uneven(at.size, 240_000 // max(at.size, 8)), 1 << 18)):
        matrix = op.matrix or ((op.count,) * at.size,) * at.size
        call = Call(op.name, [[4 * count for count in row] for row in matrix], ccl, n, joined)

        def streams(rank: int, call: Call = call) -> list[list[Any]]:
            return exchanges.by_peers(exchanges.pipeline(rank, call), rank, n)

        yield Held(replace(op, mode=mode), streams, ccl, seen=_main_unordered)


def _main_unordered(streams: Streams) -> list[list[Any]]:
    return [exchanges.unordered(streams[0]), *streams[1:]]


HELD: Holders = {**dict.fromkeys((FULL, STAGED, DIRECT, DUO), _held), PIPELINE: _pipelined}
