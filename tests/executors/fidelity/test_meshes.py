"""Executors of one server of Atlas A2, held against models of HCCL's meshes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import mesh_servers, rings, trees
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.mesh_servers import Seat
from tests.executors.fidelity.meshes import (
    Mesh,
    all_gather_mesh_atomic,
    all_gather_mesh_direct,
    all_gather_mesh_staged,
    all_reduce_mesh,
    all_reduce_mesh_direct,
    reduce_scatter_mesh_atomic,
    reduce_scatter_mesh_direct,
)
from tests.executors.fidelity.recorded import events_of, moves
from tests.executors.fidelity.transports import Event, Slice, even
from tests.recording import op_of, recorded

BOTH = (Mode.OP_BASE, Mode.GRAPH)
MODELS: dict[str, tuple[str, Callable[[Mesh, list[Slice]], None], tuple[Mode, ...]]] = {
    "AllGatherMeshExecutor": ("all_gather", all_gather_mesh_atomic, BOTH),
    "AllGatherMeshGraphExecutor": ("all_gather", all_gather_mesh_atomic, BOTH[1:]),
    "AllReduceMeshExecutor": ("all_reduce", all_reduce_mesh, BOTH),
    "ReduceScatterMeshExecutor": ("reduce_scatter", reduce_scatter_mesh_atomic, BOTH),
    "ReduceScatterMeshGraphExecutor": ("reduce_scatter", reduce_scatter_mesh_atomic, BOTH[1:]),
}
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}


DIRECT: dict[str, tuple[str, Callable[[Mesh, list[Slice]], None], tuple[int, ...]]] = {
    "AllGatherMeshOpbaseExecutor": ("all_gather", all_gather_mesh_direct, (20, 16384, 3 * 16380)),
    "AllReduceMeshOpbaseLoopExecutor": ("all_reduce", all_reduce_mesh_direct, (16384,)),
    "ReduceScatterMeshDmaEliminationExecutor": (
        "reduce_scatter",
        reduce_scatter_mesh_direct,
        (16384,),
    ),
}
"""Op-base mode: from and to user memory, and a sub stream for every peer. The sizes of slices; what
is reduced is rounded up to 16 KiB.
"""


@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("name", DIRECT)
def test_direct_meshes_of_one_server(name: str, ranks: int) -> None:
    op, model, sizes = DIRECT[name]
    assert KINDS[name] == "same"
    for size in sizes:
        count = size // 4 * (ranks if op == "all_reduce" else 1)
        program = recorded(name, op_of(op, count), topology_of(ranks), 1 << 22)
        for rank in range(ranks):
            me = Mesh(rank, ranks, ranks - 1)
            model(me, even(ranks, size))
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("name", ["AllGatherVMeshExecutor", "AllGatherVMeshGraphExecutor"])
def test_blocks_of_different_sizes_are_gathered_in_the_output(name: str, ranks: int) -> None:
    """coll_all_gather_v_mesh_graph_executor.cc:69: slices as the call states them."""
    assert KINDS[name] == "same"
    counts = [1000 * (3 * rank % 5) for rank in range(1, ranks + 1)]
    displs = [sum(counts[:rank]) + 7 * rank for rank in range(ranks)]
    op = replace(op_of("all_gather_v", 0, mode=Mode.GRAPH), counts=tuple(counts))
    program = recorded(name, replace(op, displs=tuple(displs)), topology_of(ranks))
    assert program.declared.sub_streams.tolist() == [ranks - 2] * ranks
    slices = [Slice(4 * at, 4 * count) for at, count in zip(displs, counts, strict=True)]
    for rank in range(ranks):
        me = Mesh(rank, ranks, ranks - 2)
        all_gather_mesh_atomic(me, slices)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("name", ["AllGatherVMeshExecutor", "AllGatherVMeshOpbaseExecutor"])
def test_blocks_of_different_sizes_are_staged_where_buffers_begin(name: str, ranks: int) -> None:
    """all_gather_mesh_direct.cc:114: inputSlices[i].offset is 0. Every rank's block has rounds of
    its own: coll_all_gather_v_mesh_executor.cc:353 of libochao-huawei/hcomm @ 8958adb.
    """
    assert KINDS[name] == "same"
    counts, most = [1000 * (3 * rank % 5) for rank in range(1, ranks + 1)], 1504
    displs = [sum(counts[:rank]) + 7 * rank for rank in range(ranks)]
    op = replace(op_of("all_gather_v", 0), counts=tuple(counts), displs=tuple(displs))
    program = recorded(name, op, topology_of(ranks), 16384 + 4 * most)
    assert program.declared.sub_streams.tolist() == [ranks - 1] * ranks
    for rank in range(ranks):
        me = Mesh(rank, ranks, ranks - 1)
        for begin in range(0, max(counts), most):
            pieces = [min(max(count - begin, 0), most) for count in counts]
            slices = [Slice(4 * (at + begin), 4 * n) for at, n in zip(displs, pieces, strict=True)]
            all_gather_mesh_staged(me, slices, [0] * ranks)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


def test_rounds_of_the_direct_all_gather_stage_at_the_same_place() -> None:
    """12 800 and 7 200 of 20 000 bytes: data is staged where the whole input's place in the output
    says, r * 20 000 mod 16 384, in every round.
    """
    program = recorded(
        "AllGatherMeshOpbaseExecutor", op_of("all_gather", 5000), topology_of(3), 16384 + 12900
    )
    staged = (0, 3616, 7232)
    for rank in range(3):
        found, me = events_of(program, rank), Mesh(rank, 3, 2)
        for stream, peer in ((1, (rank + 2) % 3), (2, (rank + 1) % 3)):
            me.link(stream, peer).move("read", staged[peer], peer * 20000, 12800)
            me.link(stream, peer).move("read", staged[peer], peer * 20000 + 12800, 7200)
            assert moves(found[stream]) == me.streams[stream]


@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("name", MODELS)
def test_meshes_of_one_server(name: str, ranks: int) -> None:
    """Everything that is recorded: main and ranks - 2 sub streams with two notifies each."""
    op, model, modes = MODELS[name]
    assert KINDS[name] == "same"
    count = 32 * (ranks if op == "all_reduce" else 1)
    for mode in modes:
        program = recorded(name, op_of(op, count, mode=mode), topology_of(ranks), 1 << 20)
        for rank in range(ranks):
            me = Mesh(rank, ranks, max(ranks - 2, 0))
            model(me, even(ranks, 128))
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_blocks_in_a_mesh(ranks: int) -> None:
    """coll_reduce_scatter_v_mesh_executor.cc:83 KernelRun: graph mode only."""
    assert KINDS["ReduceScatterVMeshExecutor"] == "same"
    counts = tuple(32 * (rank % 3) for rank in range(ranks))
    op = replace(op_of("reduce_scatter_v", 0, mode=Mode.GRAPH), counts=counts)
    program = recorded("ReduceScatterVMeshExecutor", op, topology_of(ranks), 1 << 20)
    starts = [0, *accumulate(4 * count for count in counts)]
    for rank in range(ranks):
        me = Mesh(rank, ranks, ranks - 2)
        reduce_scatter_mesh_atomic(me, [Slice(starts[r], 4 * counts[r]) for r in range(ranks)])
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_blocks_in_a_direct_mesh(ranks: int) -> None:
    """Op-base mode: blocks are staged at the beginning of the peers' buffer, all_gather_mesh_
    direct.cc:110 of libochao-huawei/hcomm @ 8958adb, and added there.
    """
    counts = tuple(4096 * (rank % 3) + rank for rank in range(ranks))
    starts = [0, *accumulate(4 * count for count in counts)]
    blocks = [Slice(starts[r], 4 * counts[r]) for r in range(ranks)]
    for name, op in (
        ("AllGatherVMeshOpbaseExecutor", "all_gather_v"),
        ("ReduceScatterVMeshOpbaseExecutor", "reduce_scatter_v"),
    ):
        assert KINDS[name] == "same"
        call = replace(op_of(op, 0), counts=counts)
        program = recorded(name, call, topology_of(ranks), 1 << 20)
        for rank in range(ranks):
            me = Mesh(rank, ranks, ranks - 1)
            if op == "all_gather_v":
                all_gather_mesh_staged(me, blocks, [0] * ranks)
            else:
                reduce_scatter_mesh_direct(me, blocks)
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(program.streams)] == me.streams


# ---- wherever HCCL's selection may come to them ----


def _several(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Meshes in the servers, and a ring or NHR between them; 128 bytes a slot, and uneven cuts."""
    form, (op, _, _) = form_of(at), MODELS[name]
    on_910b = at.product.device == "910B"

    def streams(rank: int, size: int, word: str) -> list[list[Event]]:
        me = Seat(rank, form.devices, form.joined)
        if op == "all_gather":
            mesh_servers.all_gather(me, size, GATHER[word], on_910b=on_910b)
        elif op == "reduce_scatter":
            mesh_servers.reduce_scatter(me, size, SCATTER[word])
        else:
            template = rings.ring_all_reduce if word == "ring" else trees.nhr_all_reduce_one_shot
            mesh_servers.all_reduce(me, size, template, is_cut=word == "ring")
        return me.streams

    for word in GATHER if form.is_plain else ["ring"]:
        size = 128 if op != "all_reduce" else 128 * at.size + 4 * 37
        call = replace(op_of(op, size // 4, mode=mode), level1=word)
        yield Held(call, partial(streams, size=size, word=word))


GATHER = {"ring": rings.ring_all_gather, "NHR": trees.nhr_all_gather}
SCATTER = {"ring": rings.ring_reduce_scatter, "NHR": trees.nhr_reduce_scatter}


def _direct(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """One server, from and to user memory."""
    op, model, sizes = DIRECT[name]

    def streams(rank: int, size: int) -> list[list[Event]]:
        me = Mesh(rank, at.size, at.size - 1)
        model(me, even(at.size, size))
        return me.streams

    for size in sizes:
        count = size // 4 * (at.size if op == "all_reduce" else 1)
        yield Held(op_of(op, count, mode=mode), partial(streams, size=size), 1 << 22)


def _staged_at_0(me: Mesh, blocks: Sequence[Slice]) -> None:
    all_gather_mesh_staged(me, blocks, [0] * me.size)


V_MODELS: dict[str, tuple[str, Callable[[Mesh, Sequence[Slice]], None], int]] = {
    "AllGatherVMeshGraphExecutor": ("all_gather_v", all_gather_mesh_atomic, 2),
    "AllGatherVMeshOpbaseExecutor": ("all_gather_v", _staged_at_0, 1),
    "ReduceScatterVMeshExecutor": ("reduce_scatter_v", reduce_scatter_mesh_atomic, 2),
}
"""Blocks of one server, with how many streams fewer than ranks."""


def _blocks(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Some without data."""
    op, model, fewer = V_MODELS[name]
    counts = tuple(32 * (3 * rank % 5) for rank in range(1, at.size + 1))
    starts = list(accumulate((4 * count for count in counts), initial=0))
    blocks = [Slice(start, 4 * n) for start, n in zip(starts, counts, strict=False)]

    def streams(rank: int) -> list[list[Event]]:
        me = Mesh(rank, at.size, at.size - fewer)
        model(me, blocks)
        return me.streams

    yield Held(replace(op_of(op, 0, mode=mode), counts=counts), streams)


HELD: Holders = {
    **dict.fromkeys(MODELS, _several),
    **dict.fromkeys(DIRECT, _direct),
    **dict.fromkeys(V_MODELS, _blocks),
}
