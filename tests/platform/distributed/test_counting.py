"""Programs whose notifies count, and buffers that alternate, in real processes, call after call."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from hccl_platform.distributed.session import SharedSession
from hccl_platform.processes.world import World
from hccl_py.errors import NotSupportedError
from hccl_py.verifier import verify_program
from tests.interop.mscclpp import plans
from tests.interop.mscclpp.importing import imported
from tests.platform.counting_programs import CHUNK, all_gather, delayed
from tests.platform.distributed.sessions import ALONE, HALVES, Run, in_sessions
from tests.platform.distributed.test_messages import in_message_sessions

RANKS = 3


def runs() -> list[Run]:
    """Programs without findings, of so many ranks."""
    drawn = [all_gather(Random(seed)) for seed in range(60)]
    found = [p for p in drawn if p.ranks == RANKS and not verify_program(p).errors]
    assert {bool(program.alternating) for program in found} == {False, True}
    assert len(found) > 10
    return [Run.of(program) for program in found]


def wrong_results(world: World, session: SharedSession, drawn: list[Run]) -> list[str]:
    """Run every program some times back to back: SCRATCH is its own, as another program's use of
    it has no order with this one's.
    """
    found = []
    for number, run in enumerate(drawn):
        found += [run.wrong(session, world.rank, str(number)) for _ in range(5)]
    return [wrong for wrong in found if wrong]


def test_in_shared_memory() -> None:
    drawn = runs()
    found = in_sessions(RANKS, lambda world, session: wrong_results(world, session, drawn))
    assert found == [[]] * RANKS


@pytest.mark.parametrize("kind", [ALONE, HALVES])
def test_between_hosts(kind: str) -> None:
    some = runs()[:8]
    found = in_message_sessions(RANKS, kind, lambda world, s: wrong_results(world, s, some))
    assert found == [[]] * RANKS


def handed_on(world: World, session: SharedSession) -> list[list[int]]:
    """Return what each of six calls hands on; call k gives k + 1 of every element."""
    program, found = delayed(), []
    for call in range(6):
        given, taken = np.full(CHUNK, call + 1, np.uint8), np.zeros(2 * CHUNK, np.uint8)
        session.run("tag", program, [given], [taken])
        found.append(taken[:CHUNK].tolist())
    return found


def test_call_k_works_in_half_k_mod_2() -> None:
    expected = [[max(call - 1, 0)] * CHUNK for call in range(6)]
    assert in_sessions(2, handed_on) == [expected] * 2
    assert in_message_sessions(2, ALONE, handed_on) == [expected] * 2


@pytest.mark.parametrize("inplace", [True, False])
def test_peers_reach_memory_that_is_a_slot_of_other_memory(inplace: bool) -> None:
    """In place, input or output is the rank's own slot of the other one, and peers reach both."""
    made = [plans.puts_all_gather(RANKS, inplace=inplace), plans.reduce_scatter_in_place(RANKS)]
    drawn = [Run.of(imported(plan, RANKS * 4096).require()) for plan in made]
    assert bool(drawn[0].program.op.in_place) == inplace

    def wrong(world: World, session: SharedSession) -> list[str]:
        return wrong_results(world, session, drawn)

    assert in_sessions(RANKS, wrong) == [[]] * RANKS
    assert in_message_sessions(RANKS, ALONE, wrong) == [[]] * RANKS


def test_arrays_that_are_no_slot_of_each_other_are_refused() -> None:
    program = imported(plans.puts_all_gather(2, inplace=True), 256).require()

    def refused(world: World, session: SharedSession) -> str:
        into, out = np.ones(32, np.float32), np.ones(64, np.float32)
        with pytest.raises(NotSupportedError) as caught:
            session.run("tag", program, [into], [out])
        return caught.value.message

    # The rank that looks first ends the call at both; either may.
    own = {f"Rank {rank}'s input is not its slot of the other." for rank in range(2)}
    assert set(in_sessions(2, refused)) <= own
