"""Times of some ranks' tasks, noted while batches run: the bits of the simulation by tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py import Communicator, parallel_groups
from hccl_py.clocks.stragglers import EVEN
from hccl_py.enums import TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.program.program import Program
from hccl_py.simulator import Stragglers, simulate_tasks
from hccl_py.simulator.batches import time_ranks
from hccl_py.simulator.tasks import simulate_reached
from hccl_py.topology import Topology, topology_of
from tests.jobs.layers import three_layers
from tests.program.authors import Notifies
from tests.recording import BY_NAME, op_of, recorded, without, writing_twice
from tests.simulator.costs import COST
from tests.suited import SuitedCall, suited

EVERYTHING = 1 << 40


def checked(
    program: Program, topology: Topology | None, slow: Stragglers, ranks: list[int], most: int
) -> None:
    """See that noted times are those by tasks, whichever loop found them, and so are the sums."""
    wanted = simulate_tasks(program, topology, COST, slow)
    tasks = program.tasks
    rows = np.flatnonzero(np.isin(tasks.rank, ranks) & (tasks.index < most))
    usage = wanted.usage()
    for lockstep in (True, False):
        found = time_ranks(program, topology, COST, slow, ranks=ranks, most=most, lockstep=lockstep)
        assert found.ranks.tolist() == sorted(set(ranks))
        for name, column in found.part.tasks.meaning().items():
            assert np.array_equal(column, tasks.meaning()[name][rows]), name
        assert np.array_equal(found.start_us, wanted.start_us[rows])
        assert np.array_equal(found.end_us, wanted.end_us[rows])
        assert np.array_equal(found.effect_us, wanted.effect_us[rows])
        assert found.total_us == wanted.total_us
        assert np.array_equal(found.tasks, usage.tasks[found.ranks])
        assert np.allclose(found.spent[..., 0], usage.busy_us[found.ranks], rtol=1e-12)
        assert np.allclose(found.spent[..., 1], usage.waiting_us[found.ranks], rtol=1e-12)


@given(
    call=suited(("mesh", "atlas-800t-a2", "atlas-900-a3"), counts=(0, 1, 1024, 5000)),
    slow=st.sampled_from([(), ("rank=0:2x",), ("link=0-1:3x",)]),
    most=st.sampled_from([1, 7, EVERYTHING]),
    data=st.data(),
)
def test_the_same_bits_as_by_tasks(
    call: SuitedCall, slow: tuple[str, ...], most: int, data: st.DataObject
) -> None:
    program, topology = recorded(*call, 1 << 15), call.topology
    ranks = data.draw(st.lists(st.integers(0, topology.size - 1), min_size=1, max_size=5))
    slowness = Stragglers.parse(slow) if topology.size > 1 else EVEN
    checked(program, topology, slowness, ranks, most)


def test_compiled_loops_note_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    servers = topology_of(servers=2, devices=3)
    for name, count in (("AllReduceComm", 32 * 6), ("AllReduceComm", 1000), ("BroadCastComm", 99)):
        program = recorded(name, op_of(str(BY_NAME[name].op), count), servers)
        checked(program, servers, EVEN, [0, 4, 5], 9)


@pytest.mark.parametrize("count", [32 * 6, 1000])
def test_writes_of_no_bytes_do_not_wait_for_their_connection(count: int) -> None:
    servers = topology_of(servers=3, devices=2)
    program = recorded("AllReduceComm", op_of("all_reduce", count), servers)
    checked(writing_twice(program, 0), servers, EVEN, [0, 3, 4], EVERYTHING)
    checked(writing_twice(program), servers, EVEN, [0, 3, 4], EVERYTHING)


def test_jobs_of_several_communicators_and_kernels() -> None:
    with Communicator(servers=2, devices=4) as world, parallel_groups(world, tp=4) as groups:
        slow = Stragglers.parse(["rank=3:2x"])
        checked(three_layers(world, groups).program(), world.topology, slow, [0, 3, 5], EVERYTHING)


def test_a_deadlock_is_timed_as_far_as_it_gets() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    posts = [i for i in program.batches[0].instructions if i.kind is TaskKind.NOTIFY_POST]
    stuck = without(program, lambda i: i is posts[len(posts) // 2])
    wanted = simulate_reached(stuck, None, COST)
    for lockstep in (True, False):
        found = time_ranks(stuck, None, COST, ranks=range(4), most=EVERYTHING, lockstep=lockstep)
        assert np.isnan(found.end_us).any()
        for mine, theirs in (
            (found.end_us, wanted.end_us),
            (found.effect_us, wanted.effect_us),
        ):
            assert np.array_equal(mine, theirs, equal_nan=True)


def test_overruns_are_refused() -> None:
    late = recorded(Notifies("tx_ack", "tx_ack"), op_of("all_gather"), 2)
    with pytest.raises(OrchestrationError, match="Notify overrun"):
        time_ranks(late, None, COST, ranks=[0], most=9)
