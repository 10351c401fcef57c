"""The continuous pipelines of all-to-all, held against a model of HCCL's template: every post, wait
and transfer, stream by stream.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode
from hccl_py.errors import OrchestrationError
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity.continuous import continuous_pipeline
from tests.executors.fidelity.exchanges import Call
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of
from tests.recording import recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
A2, A3 = "RunAlltoAllVContinuousPipeline", "RunAlltoAllVPipelineFor91093"


class Case(NamedTuple):
    """An executor, and servers of so many devices."""

    executor: str
    topology: Topology
    devices: int


def servers(number: int, devices: int) -> Case:
    return Case(A2, topology_of(servers=number, devices=devices), devices)


def pods(number: int, devices: int) -> Case:
    found = topology_of(superpods=number, servers=1, devices=devices, preset="atlas-900-a3")
    return Case(A3, found, devices)


MODULES = Case(A2, topology_of(servers=2, devices=4, preset="atlas-200t-a2-box16"), 4)
CASES = [servers(2, 2), servers(3, 3), servers(4, 2), MODULES, pods(2, 4), pods(3, 2)]
WIDE = [
    *(servers(s, n) for s, n in ((2, 3), (2, 7), (2, 8), (3, 6), (5, 4), (6, 3), (10, 2))),
    *(pods(s, n) for s, n in ((2, 2), (2, 9), (2, 10), (2, 16), (4, 5))),
]


def name_of(case: Case) -> str:
    shape = "x".join(map(str, case.topology.servers))
    return f"{case.executor}-{case.topology.product.name}-{shape}"


def check(case: Case, amounts: list[list[int]], ccl: int) -> int:
    """Compare all streams of all ranks; return how many events there are."""
    assert KINDS[case.executor] == "same"
    table, ranks = tuple(map(tuple, amounts)), case.topology.size
    op = OpParam("all_to_all_v", max(map(max, amounts)), DataType.FP32, counts=table)
    pod = ranks if case is MODULES else case.devices
    call = Call(op.name, [[4 * count for count in row] for row in amounts], ccl, pod)
    program, events = recorded(case.executor, op, case.topology, ccl), 0
    for rank in range(ranks):
        hccl, found = continuous_pipeline(rank, call, case.devices), events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == hccl, rank
        events += sum(map(len, hccl))
    return events


def even(ranks: int, count: int) -> list[list[int]]:
    return [[count] * ranks] * ranks


def uneven(ranks: int, most: int, empty: float = 0.2) -> list[list[int]]:
    """Amounts up to `most`, some of them 0."""
    chance = np.random.default_rng(ranks)
    amounts = chance.integers(0, most + 1, (ranks, ranks))
    amounts[chance.random((ranks, ranks)) < empty] = 0
    return [[int(amount) for amount in row] for row in amounts]


def one_server_only(ranks: int, devices: int, most: int) -> list[list[int]]:
    """Large parts in the first server, and small ones from it to the second."""
    amounts = [[0] * ranks for _ in range(ranks)]
    for rank in range(devices):
        amounts[rank][:devices] = [most + rank] * devices
        amounts[rank][devices] = 3
    return amounts


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_every_post_wait_and_transfer(case: Case) -> None:
    ranks = case.topology.size
    check(case, even(ranks, 100), 1 << 20)
    few = check(case, uneven(ranks, 20_000), 1 << 20)
    many = check(case, uneven(ranks, 20_000), 1 << 18)
    assert many > few  # more than one piece
    check(case, uneven(ranks, 3, 0.8), 1 << 20)


@pytest.mark.parametrize("case", [servers(2, 3), servers(3, 2), pods(2, 3)], ids=name_of)
def test_servers_take_as_many_pieces_as_their_own_parts_have(case: Case) -> None:
    ranks = case.topology.size
    check(case, one_server_only(ranks, case.devices, 9_000), 1 << 16)
    check(case, even(ranks, 0), 1 << 16)


@pytest.mark.sweep
@pytest.mark.parametrize("case", WIDE, ids=name_of)
def test_many_layouts_and_sizes(case: Case) -> None:
    ranks = case.topology.size
    for count, ccl in ((1, 1 << 20), (300_000, 1 << 24), (10_000, 1 << 19)):
        check(case, even(ranks, count), ccl)
        check(case, uneven(ranks, count, 0.6), ccl)


def test_a_buffer_without_room_for_slots_and_counts_is_refused() -> None:
    """:187 SplitBuffer: 128 bytes for each of eight slots, and 8 bytes for each of 16 counts."""
    case, enough = servers(2, 2), 128 * 8 + 8 * 16
    check(case, even(4, 100), enough)
    with pytest.raises(OrchestrationError, match=r"8 slots of 128 bytes .* too small"):
        check(case, even(4, 100), enough - 1)


def test_a_post_left_out_is_seen() -> None:
    """The comparison notices a signal, a transfer, and a stream."""
    case = servers(2, 3)
    call = Call("all_to_all_v", [[400] * 6] * 6, 1 << 20, 3)
    op = OpParam("all_to_all_v", 100, DataType.FP32, counts=((100,) * 6,) * 6)
    ours = events_of(recorded(case.executor, op, case.topology), 0)
    streams = continuous_pipeline(0, call, 3)
    assert [ours[k] for k in range(4)] == streams
    for k in range(4):
        assert ours[k][:-1] != streams[k]
    assert {event[0] for event in streams[1]} >= {"read", "write"}
    assert any(event[0] == "rdma_write" for event in streams[3])


def _held(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Parts of many sizes, in one piece and in several."""
    form, amounts = form_of(at), uneven(at.size, 80_000 // max(at.size, 4))
    devices = form.devices * (form.servers if at.product.superpod_servers else 1)
    sizes = [[4 * count for count in row] for row in amounts]
    table = tuple(map(tuple, amounts))
    op = OpParam("all_to_all_v", max(map(max, amounts)), DataType.FP32, mode=mode, counts=table)
    for ccl in (1 << 20, 1 << 18):
        call = Call(op.name, sizes, ccl, form.joined.count(0))
        yield Held(op, partial(continuous_pipeline, call=call, devices=devices), ccl)


HELD: Holders = {A2: _held, A3: _held}
