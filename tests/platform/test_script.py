"""The scripts of all ranks together do what the program does, wherever the ranks are."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_platform.lowering import script as module
from hccl_platform.lowering.moves import Bytes, run_step
from hccl_platform.lowering.orders import Walk, missing_orders
from hccl_platform.lowering.part import MOVE
from hccl_platform.lowering.script import HostMessage, Script, SlotRange, messages_of, script_of
from hccl_py.enums import POST
from hccl_py.plugins.executor import Executor, PlaneRequest, ResourceRequest
from hccl_py.program.levels import levels, transfers
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from tests.platform.running import slots_of
from tests.platform.test_part import a_program, right_outputs
from tests.recording import op_of, recorded

Hosts = Callable[[int], list[int]]

PLACES: dict[str, Hosts] = {
    "every rank alone": lambda ranks: list(range(ranks)),
    "halves": lambda ranks: [rank * 2 // ranks for rank in range(ranks)],
    "odd and even": lambda ranks: [rank % 2 for rank in range(ranks)],
    "one apart": lambda ranks: [min(rank, 1) for rank in range(ranks)],
}


class Machine:
    """All ranks in one process: a random one that can go on takes a step."""

    def __init__(
        self, program: Program, scripts: Sequence[Script], slots: list[Bytes], seed: int = 5
    ) -> None:
        self.scripts, self.slots, self.random = scripts, slots, Random(seed)
        self.landings = [np.zeros(script.landing_bytes, np.uint8) for script in scripts]
        self.channels: dict[tuple[int, int], deque[bytes]] = {}
        self.posted: dict[int, int] = {}
        self.waited: dict[int, int] = {}
        self.sent = 0

    def run(self) -> None:
        runs = [self.rank(script) for script in self.scripts]
        while runs:
            run = self.random.choice(runs)
            try:
                next(run)
            except StopIteration:
                runs.remove(run)

    def rank(self, script: Script) -> Iterator[None]:
        """Go through a script; give way before every step, and where there is nothing to do."""
        me = script.part.rank
        for exchange, tasks in zip(script.exchanges, script.part.streams, strict=True):
            yield
            for message in exchange.sends:
                self.send(me, message)
            for message in exchange.receives:
                channel = self.channels.setdefault((message.peer, me), deque())
                while not channel:
                    yield
                self.receive(script, message, channel.popleft())
            for kind, number, _ in tasks:
                yield
                if kind == MOVE:
                    run_step([*self.slots, self.landings[me]], script.part.moves.steps[number])
                elif kind == POST:
                    self.posted[number] = self.posted.get(number, 0) + 1
                else:
                    while self.posted.get(number, 0) == self.waited.get(number, 0):
                        yield
                    self.waited[number] = self.waited.get(number, 0) + 1

    def send(self, me: int, message: HostMessage) -> None:
        data = b"".join(self.slots[slot][a:b].tobytes() for slot, a, b in message.ranges)
        assert len(data) == message.size
        assert not message.is_packet or len(data) <= module.PACKET
        self.channels.setdefault((me, message.peer), deque()).append(data)
        self.sent += 1

    def receive(self, script: Script, message: HostMessage, data: bytes) -> None:
        assert len(data) == message.size
        whole, at = np.frombuffer(data, np.uint8), 0
        for slot, start, stop in message.ranges:
            landing = self.landings[script.part.rank]
            into = landing if slot == script.landing else self.slots[slot]
            into[start:stop] = whole[at : at + stop - start]
            at += stop - start


def run_scripts(program: Program, hosts: Sequence[int]) -> tuple[Machine, list[Script]]:
    """Run a program whose ranks are on these hosts, and check what comes out."""
    scripts = [script_of(program, rank, hosts) for rank in range(program.ranks)]
    used = sorted({slot for script in scripts for slot in script.slots})
    with right_outputs(program, used) as slots:
        machine = Machine(program, scripts, slots)
        machine.run()
    assert not any(machine.channels.values())
    assert machine.posted == machine.waited
    return machine, scripts


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
def test_scripts_of_all_ranks_are_the_program(executor: type[Executor]) -> None:
    program = a_program(executor)
    if program is None:
        pytest.skip("one rank only")
    places = list(PLACES.values())[EXECUTORS.index(executor) % len(PLACES)]
    run_scripts(program, places(program.ranks))


@pytest.mark.long
@pytest.mark.parametrize("places", PLACES)
def test_scripts_are_the_program_wherever_its_ranks_are(places: str) -> None:
    for program in filter(None, map(a_program, EXECUTORS)):
        run_scripts(program, PLACES[places](program.ranks))


def test_small_pieces_of_a_level_travel_together() -> None:
    small, large = SlotRange(0, 0, 100), SlotRange(1, 0, module.SMALL + 1)
    pieces = ((0, 7, small), (0, 7, large), (0, 7, small), (1, 7, large), (1, 8, large))
    first, second = messages_of(2, pieces)
    assert first == (
        HostMessage(7, (small, small), is_packet=True, opens=True),
        HostMessage(7, (large,), is_packet=False, opens=False),
    )
    assert second == (
        HostMessage(7, (large,), is_packet=False, opens=False),
        HostMessage(8, (), is_packet=True, opens=True),
        HostMessage(8, (large,), is_packet=False, opens=False),
    )


def test_large_ones_travel_as_they_are_and_the_largest_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SMALL", 64)
    monkeypatch.setattr(module, "LARGEST", 1000)
    whole = recorded("AllGatherMeshExecutor", op_of("all_gather", 600), 2)
    machine, scripts = run_scripts(whole, [0, 1])
    sends = [m for exchange in scripts[0].exchanges for m in exchange.sends]
    assert [(m.size, m.is_packet, m.opens) for m in sends] == [
        (0, True, True),
        (1000, False, False),
        (1000, False, False),
        (400, False, False),
    ]
    assert machine.sent == 8


def test_packets_are_not_longer_than_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 500)
    monkeypatch.setattr(module, "PACKET", 1000)
    program = recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 1000), 8)
    run_scripts(program, [0, 1, 2, 3, 0, 1, 2, 3])


class PostsForAThird:
    """Rank 0 writes to rank 1 and posts to rank 2, which then writes there too: 2's is right."""

    op = "all_gather"
    algorithm = ""

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),))

    def orchestrate(self, op: Any, rank: Any) -> None:
        main, flat, place = rank.main, rank.flat, rank.ccl_out.head(rank.user_in.size)
        if rank.id == 0:
            flat[1].rx_ack(main)
            main.copy(flat[1].remote(place), rank.user_in)
            flat[2].tx_ack(main)
        elif rank.id == 1:
            flat[0].tx_ack(main)
            flat[2].rx_data_signal(main)
            main.copy(rank.user_out[0], place)
        else:
            flat[0].rx_ack(main)
            main.copy(flat[1].remote(place), rank.user_in)
            flat[1].tx_data_signal(main)


class ReadsFromAThird(PostsForAThird):
    """Rank 2 writes to rank 1 and posts to rank 0, which then reads it there."""

    def orchestrate(self, op: Any, rank: Any) -> None:
        main, flat, place = rank.main, rank.flat, rank.ccl_out.head(rank.user_in.size)
        if rank.id == 0:
            flat[2].rx_ack(main)
            main.copy(rank.user_out[0], flat[1].remote(place))
        elif rank.id == 1:
            flat[2].tx_ack(main)
        else:
            flat[1].rx_ack(main)
            main.copy(flat[1].remote(place), rank.user_in)
            flat[0].tx_ack(main)


@pytest.mark.parametrize(("author", "reader"), [(PostsForAThird, 1), (ReadsFromAThird, 0)])
def test_what_a_post_to_another_host_orders_for_a_third_rank_stays_ordered(
    author: type[PostsForAThird], reader: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = recorded(author, op_of("all_gather", 4), 3)

    def is_right(seed: int) -> bool:
        scripts = [script_of(program, rank, [0, 0, 1]) for rank in range(3)]
        outputs = [np.zeros(12, np.float32) for _ in range(3)]
        inputs = [np.full(4, rank + 1, np.float32) for rank in range(3)]
        used = [slot for script in scripts for slot in script.slots]
        slots = slots_of(program, used, inputs, outputs)
        Machine(program, scripts, slots, seed).run()
        return bool((outputs[reader][:4] == 3).all())

    orders = missing_orders(program, Walk.of(program, [0, 0, 1]))
    assert {(o.first, o.then) for o in orders} == {(1 - reader, reader)}
    assert all(is_right(seed) for seed in range(40))
    monkeypatch.setattr(module, "missing_orders", lambda *_: [])
    assert not all(is_right(seed) for seed in range(40))


def test_built_in_programs_need_no_more_order() -> None:
    program = recorded(
        "AllReduceMeshExecutor", op_of("all_reduce"), topology_of(servers=2, devices=4)
    )
    assert missing_orders(program, Walk.of(program, [0] * 4 + [1] * 4)) == []


def test_transfers_inside_a_place_count_no_level() -> None:
    program = recorded("AllGatherComm", op_of("all_gather"), 4)
    everywhere = levels(program)
    assert everywhere.max() == levels(program, range(4)).max() == 3
    assert levels(program, [0] * 4).max() == 0
    assert transfers(program, [0, 0, 1, 1]).sum() < transfers(program, range(4)).sum()
