"""Rings of blocks over uneven servers of Atlas A3, held against a model of HCCL's."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity import blocks, rings, trees
from tests.executors.fidelity.blocks import OnBlocks
from tests.executors.fidelity.held import Held, Holders
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event, Part, Slice
from tests.recording import op_of, recorded

FIDELITY = {executor.__name__: executor.fidelity for executor in EXECUTORS}
A3 = PRESETS["atlas-900-a3"]


def cut(template: Callable[..., None]) -> Callable[[Part, list[Slice]], None]:
    """Let a template of slices work on one, cut evenly."""

    def run(me: Part, slots: list[Slice]) -> None:
        [slot] = slots
        each = slot.size // me.size
        assert each % 128 == 0
        template(me, [Slice(slot.offset + i * each, each) for i in range(me.size)])

    return run


MODELS: dict[str, tuple[Callable[..., None], dict[str, Callable[..., None]]]] = {
    "all_gather": (blocks.all_gather, {"ring": rings.ring_all_gather, "NHR": trees.nhr_all_gather}),
    "reduce_scatter": (
        blocks.reduce_scatter,
        {"ring": rings.ring_reduce_scatter, "NHR": trees.nhr_reduce_scatter},
    ),
    "all_reduce": (blocks.all_reduce, {"ring": cut(rings.ring_all_reduce)}),
}
PREFIX = {"all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "all_reduce": "AllReduce"}
LENGTHS = [
    ((4, 2), 256, "NHR", 2),
    ((4, 2), 256, "ring", 2),
    ((8, 4), 384, "ring", 4),
    ((16, 14), 256, "ring", 6),
    ((8, 6), 128 << 20, "NHR", 14),
    ((3, 2), 256, "NHR", 1),  # packages torn apart
]
"""Servers, bytes of a slot, level1, and how many ranks a block has."""


@pytest.mark.parametrize(("servers", "size", "word", "length"), LENGTHS)
@pytest.mark.parametrize("op", MODELS)
def test_blocks(op: str, servers: tuple[int, ...], size: int, word: str, length: int) -> None:
    model, level1 = MODELS[op]
    if word not in level1:
        word = "ring"
    name, ranks = f"{PREFIX[op]}ARSFor91093Executor", sum(servers)
    assert FIDELITY[name].is_same
    assert FIDELITY[name].cases[word].is_same
    slot = size * ranks // length if op == "all_reduce" else size
    count = slot * (length if op == "all_reduce" else 1) // 4
    call = replace(op_of(op, count), level1=word, level2="NHR")
    program = recorded(name, call, Topology(A3, servers), 1 << 31)
    assert program.streams == 1 + (length > 2)
    for rank in range(ranks):
        me = OnBlocks(rank, ranks, length)
        model(me, slot, level1[word])
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Blocks as long as LENGTHS has them."""
    op = next(op for op, prefix in PREFIX.items() if name.startswith(prefix + "ARS"))
    model, level1 = MODELS[op]
    size, length = next((size, n) for servers, size, _, n in LENGTHS if servers == at.servers)
    slot = size * at.size // length if op == "all_reduce" else size
    count = slot * (length if op == "all_reduce" else 1) // 4

    def streams(rank: int) -> list[list[Event]]:
        me = OnBlocks(rank, at.size, length)
        model(me, slot, level1["ring"])
        return me.streams

    yield Held(replace(op_of(op, count, mode=mode), level1="ring", level2="NHR"), streams, 1 << 31)


HELD: Holders = {f"{prefix}ARSFor91093Executor": _held for prefix in PREFIX.values()}
