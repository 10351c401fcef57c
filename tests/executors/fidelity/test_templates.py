"""The words of HCCL_ALGO between servers, held against models of HCCL's templates.

A word records the same transfers and signals in the same order, for the numbers of ranks at which
its template is held; one that is held at some only has the same `steps`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from hccl_executors.levels import LEVELS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode
from hccl_py.topology import PRESETS, Topology, topology_of
from tests.executors.fidelity import ahc, grid, halving, rings, trees
from tests.executors.fidelity.held import Held, Holders, joined_on_a_plane
from tests.executors.fidelity.recorded import events_of, travels
from tests.executors.fidelity.transports import Event, Part, Slice, Template, even, run
from tests.recording import BY_NAME, filled, op_of, recorded, same_tasks

EXECUTORS = {
    "all_gather": "AllGatherComm",
    "reduce_scatter": "ReduceScatterComm",
    "all_reduce": "AllReduceComm",
    "broadcast": "BroadCastComm",
    "reduce": "ReduceComm",
    "scatter": "ScatterCommExecutor",
}
UNRINGED = {op: type(name, (BY_NAME[name],), {"ringed": ()}) for op, name in EXECUTORS.items()}
"""The same with every word as it is between servers."""

LARGE = 520 << 10
"""Bytes of a slice from which on nothing is reduced over a tree: more than 256 KiB in all. NHR's
broadcasts go over one up to 2 MiB."""


@dataclass(frozen=True)
class Case:
    """A word of an op, HCCL's template, and how much data a rank has in how many slices."""

    op: str
    word: str
    template: Template
    slice_bytes: int = 128

    @property
    def is_cut(self) -> bool:
        """Whether the template takes slices, rather than the whole buffer."""
        return self.template in _CUT

    def call(self, ranks: int, root: int | None) -> tuple[OpParam, dict[str, Any]]:
        """Return the op, and what the template is told."""
        if self.is_cut:
            whole = self.op in ("all_reduce", "broadcast", "reduce")
            count = self.slice_bytes // 4 * (ranks if whole else 1)
            told: dict[str, Any] = {"slices": even(ranks, self.slice_bytes)}
        else:
            count = self.slice_bytes // 4 * ranks + 5
            told = {"whole": Slice(0, 4 * count)}
        op = replace(op_of(self.op, count), level1=self.word)
        return (op, told) if root is None else (replace(op, root=root), {**told, "root": root})


_SCATTERED = (trees.nhr_scatter, trees.nhr_broadcast, trees.nb_scatter, trees.nb_broadcast)
"""Of some numbers of ranks these also send what the sender does not have; that is left out."""

_CUT = (
    *_SCATTERED,
    rings.ring_all_gather,
    rings.ring_reduce_scatter,
    rings.ring_all_reduce,
    rings.ring_broadcast,
    rings.ring_scatter,
    trees.nhr_all_gather,
    trees.nhr_reduce_scatter,
    trees.nhr_all_reduce,
    trees.nb_all_gather,
    trees.nb_reduce_scatter,
    halving.hd_all_gather,
    halving.hd_reduce_scatter,
    grid.nhr_v1_all_gather,
    grid.nhr_v1_reduce_scatter,
)
CASES = (
    Case("all_gather", "ring", rings.ring_all_gather),
    Case("reduce_scatter", "ring", rings.ring_reduce_scatter),
    Case("all_reduce", "ring", rings.ring_all_reduce),
    Case("broadcast", "ring", rings.ring_broadcast),
    Case("reduce", "ring", rings.ring_reduce),
    Case("scatter", "ring", rings.ring_scatter),
    Case("all_gather", "NHR", trees.nhr_all_gather),
    Case("reduce_scatter", "NHR", trees.nhr_reduce_scatter),
    Case("all_reduce", "NHR", trees.nhr_all_reduce, LARGE),
    Case("all_reduce", "NHR", trees.nhr_all_reduce_one_shot),
    Case("broadcast", "NHR", trees.nhr_broadcast_one_shot),
    Case("broadcast", "NHR", trees.nhr_broadcast, 2 * LARGE),
    Case("scatter", "NHR", trees.nhr_scatter),
    Case("broadcast", "NB", trees.nb_broadcast_binary),
    Case("broadcast", "NB", trees.nb_broadcast, 8 * LARGE),
    Case("scatter", "NB", trees.nb_scatter),
    Case("all_gather", "NB", trees.nb_all_gather),
    Case("reduce_scatter", "NB", trees.nb_reduce_scatter),
    Case("all_reduce", "NB", trees.nb_all_reduce),
    Case("all_reduce", "NB", trees.nb_all_reduce, 40 << 10),
    Case("all_reduce", "NB", trees.nb_all_reduce, LARGE),
    Case("all_gather", "H-D_R", halving.hd_all_gather),
    Case("reduce_scatter", "H-D_R", halving.hd_reduce_scatter),
    Case("all_reduce", "H-D_R", halving.hd_all_reduce),
    Case("broadcast", "H-D_R", halving.hd_broadcast),
    Case("reduce", "H-D_R", halving.hd_reduce),
    Case("all_gather", "NHR_V1", grid.nhr_v1_all_gather),
    Case("reduce_scatter", "NHR_V1", grid.nhr_v1_reduce_scatter),
    Case("all_reduce", "NHR_V1", grid.nhr_v1_all_reduce),
    Case("broadcast", "NHR_V1", grid.nhr_v1_broadcast),
)
NAMES = [f"{case.op}-{case.word}-{case.template.__name__}" for case in CASES]


def layout(ranks: int, *, rdma: bool) -> Topology:
    """Ranks that are all linked by RDMA, or all by SDMA."""
    return topology_of(servers=ranks, devices=1) if rdma else topology_of(ranks, preset="mesh")


def compared(
    case: Case, ranks: int, *, rdma: bool, root: int | None
) -> tuple[list[list[Event]], ...]:
    """Return HCCL's events and ours, by rank."""
    op, told = case.call(ranks, root)
    program = recorded(UNRINGED[case.op], op, layout(ranks, rdma=rdma), 1 << 30)
    ours = [events_of(program, rank).get(0, []) for rank in range(ranks)]
    if case.template in _SCATTERED:
        told["only_owned"] = not trees.sends_all_it_has(ranks)
    return run(case.template, ranks, rdma=rdma, **told), ours


def check(case: Case, ranks: int, *, rdma: bool, root: int | None) -> None:
    """Compare what is recorded with the template, where it is held."""
    hccl, ours = compared(case, ranks, rdma=rdma, root=root)
    assert LEVELS[case.op][case.word].fidelity.kind in ("same", "steps")
    if case.template is trees.nb_broadcast_binary and not rdma:
        assert [travels(events) for events in ours] == [travels(events) for events in hccl]
    else:
        assert ours == hccl


def takes(case: Case, ranks: int) -> bool:
    """Whether the template is held for so many ranks; NB broadcasts over a tree to 2 ranks."""
    return case.template is not trees.nb_broadcast or ranks != 2


def roots(case: Case, ranks: int) -> list[int | None]:
    """Return every root, where the op has one."""
    return [*range(ranks)] if case.op in ("broadcast", "reduce", "scatter") else [None]


@pytest.mark.parametrize("rdma", [True, False], ids=["rdma", "sdma"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_templates(case: Case, rdma: bool) -> None:
    for ranks in (2, 6, 7):
        if takes(case, ranks):
            check(case, ranks, rdma=rdma, root=roots(case, ranks)[-1])


def test_who_sends_all_it_has() -> None:
    found = [ranks for ranks in range(1, 21) if not trees.sends_all_it_has(ranks)]
    assert found == [7, 11, 13, 14, 15, 19]


@pytest.mark.sweep
@pytest.mark.parametrize("rdma", [True, False], ids=["rdma", "sdma"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_templates_of_up_to_20_ranks(case: Case, rdma: bool) -> None:
    for ranks in range(1, 21):
        for root in roots(case, ranks) if takes(case, ranks) else ():
            check(case, ranks, rdma=rdma, root=root)


@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
def test_nhr_meets_on_a3(op: str) -> None:
    """coll_reduce_scatter_comm_executor.cc:152 closes the barrier of all but A3."""
    case = next(c for c in CASES if (c.op, c.word) == (op, "NHR") and c.is_cut)
    for ranks in (2, 5, 8):
        call, told = case.call(ranks, None)
        pods = Topology(PRESETS["atlas-900-a3"], (1,) * ranks, (1,) * ranks)
        program = recorded(UNRINGED[op], call, pods, 1 << 30)
        hccl = run(case.template, ranks, rdma=True, meets=True, **told)
        assert [events_of(program, rank).get(0, []) for rank in range(ranks)] == hccl


def test_every_word_that_is_same_has_a_model() -> None:
    same = {(o, w) for o, words in LEVELS.items() for w in words if words[w].fidelity.is_same}
    held = {(case.op, case.word) for case in CASES}
    held |= {("all_reduce", word) for word in ahc.TEMPLATES}
    assert same - held == set()


def test_a_step_left_out_is_seen() -> None:
    """The comparison notices one signal and one transfer."""
    case = next(case for case in CASES if case.word == "NHR")
    hccl, ours = compared(case, 4, rdma=True, root=None)
    assert ours == hccl
    assert ours[0][1:] != hccl[0]
    move = next(event for event in ours[0] if event[0] == "rdma_write")
    assert travels([event for event in ours[0] if event != move]) != travels(hccl[0])


@pytest.mark.parametrize(
    ("op", "word"),
    [
        *(("all_reduce", word) for word in ("H-D_R", "AHC", "AHC_BROKE")),
        *(("broadcast", "H-D_R"), ("reduce", "H-D_R"), ("reduce", "NHR")),
    ],
)
def test_some_words_are_a_ring_over_all_ranks(op: str, word: str) -> None:
    """impl/coll_executor: coll_all_reduce_comm_executor.cc:138, coll_broadcast_comm_executor.cc:112
    and coll_reduce_comm_executor.cc:74 of libochao-huawei/hcomm @ 8958adb, and, but for AHC, in
    July 2025.
    """
    executor = BY_NAME[EXECUTORS[op]]
    call = filled(op_of(op, 1000), 5)
    ring, same = (
        recorded(executor, replace(call, level1=level1), layout(5, rdma=True))
        for level1 in ("ring", word)
    )
    assert same_tasks(ring, same)
    assert executor.fidelity.among([word]).is_same


def _flat(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """A ring over all ranks: over RDMA where any two are joined by it, impl/topo_matcher.cc:214
    GetIsUsedRdma of libochao-huawei/hcomm @ 8958adb.
    """
    op = {executor: op for op, executor in EXECUTORS.items()}[name]
    case = next(case for case in CASES if (case.op, case.word) == (op, "ring"))
    found = roots(case, at.size)

    def streams(rank: int, told: dict[str, Any]) -> list[list[Event]]:
        me = Part([], range(at.size), rank, rdma=len(set(joined_on_a_plane(at))) > 1)
        case.template(me, **told)
        return [me.events]

    for root in {found[0], found[len(found) * 2 // 3]}:
        call, told = case.call(at.size, root)
        yield Held(replace(call, mode=mode), partial(streams, told=told))


HELD: Holders = dict.fromkeys(EXECUTORS.values(), _flat)
