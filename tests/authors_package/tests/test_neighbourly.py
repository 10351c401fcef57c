"""What an author tests: the conformance suite, hypothesis, replayed runs, the front door."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from neighbourly import EXECUTORS
from neighbourly.gather import MeshGather, NeighborExchange, Turns

import hccl_py as hccl
from hccl_py.operators import make_operator
from hccl_py.orchestration import PerBool, PerRank
from hccl_py.orchestration.record import record
from hccl_py.platforms import Adversary, Schedule
from hccl_py.simulate import CostModel, simulate_tasks
from hccl_py.testing import (
    PROPERTIES,
    ConformanceError,
    Mutant,
    Property,
    Suite,
    check_executor,
    choices_of,
    shortest,
    sync_mutants,
)
from hccl_py.testing import strategies as drawn
from hccl_py.testing.conformance import InapplicableError
from hccl_py.topology import Topology, topology_of
from hccl_py.verify import verify
from hccl_py.verify.sweeps.cases import Case, Cases

FP32 = (hccl.DataType.FP32,)
TWO, FOUR = (Cases(ranks=(n,), counts=(300,), dtypes=FP32) for n in (2, 4))
SERVERS = Cases(servers=2, devices=2, counts=(300,), dtypes=FP32)
FEW = {"HandMadeSum": TWO, "TwoLevelGather": SERVERS}


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda executor: executor.__name__)
def test_executor(executor):
    cases = FEW.get(executor.__name__, FOUR)
    names = ["semantics", "races", "deadlock", "resources"]
    check_executor(executor, cases=cases, properties=names)


def test_all_properties():
    check_executor(MeshGather, cases=TWO)


def test_one_property():
    suite = Suite(Turns, cases=Cases(ranks=(3,), counts=(5,)))
    by_name: dict[str, Property] = {chosen.name: chosen for chosen in PROPERTIES}
    by_name["races"].check(suite)
    with pytest.raises(InapplicableError):
        by_name["rounds"].check(suite)


class Hasty(Turns):
    """Reads without asking whether the data is there."""

    def orchestrate(self, op, rank):
        main, mine = rank.main, rank.ccl_in.head(rank.user_in.size)
        main.copy(mine, rank.user_in)
        main.copy(rank.user_out[rank.id], mine)
        for k in range(1, rank.size):
            peer = (rank.id - k) % rank.size
            main.copy(rank.user_out[peer], rank.flat[peer].remote(mine))


def test_what_is_wrong_is_named():
    with pytest.raises(ConformanceError, match="RACE_RW"):
        check_executor(Hasty, cases=Cases(ranks=(2,)), properties=["races"])


def program_of(executor, call: Case) -> hccl.Program:
    return record(executor(), call.op, call.topology, make_operator(call.op.name), call.ccl_bytes)


@hypothesis.settings(max_examples=5, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    call=drawn.calls(NeighborExchange, topology=drawn.topologies(max_ranks=6)),
    schedule=drawn.schedules(length=20),
    amounts=st.integers(1, 4).flatmap(drawn.v_counts),
)
def test_any_call(call, schedule, amounts):
    program = program_of(NeighborExchange, call)
    program.linked.check(program)
    assert verify(program, product=call.topology.product).ok
    assert isinstance(schedule, Schedule)
    assert sum(amounts) >= 0


def test_every_deletion_is_seen():
    op = hccl.OpParam("all_gather", 300, hccl.DataType("fp32"))
    program = program_of(MeshGather, Case(topology_of(3), op, 1 << 20))
    mutants: list[Mutant] = list(sync_mutants(program))
    assert mutants
    assert not any(verify(mutant.of(program)).ok for mutant in mutants)


def test_a_wrong_run_is_replayed():
    inputs = [np.full(4, rank + 1, np.int32) for rank in range(3)]

    def fails(schedule):
        with hccl.Communicator(ranks=3, schedule=schedule) as comm:
            outputs = comm.all_gather(inputs, executor=Hasty).outputs
        return any((output != np.concatenate(inputs)).any() for output in outputs)

    seed = next(seed for seed in range(100) if fails(Schedule(seed)))
    found = shortest(fails, Schedule(seed, Adversary.RANDOM))
    assert fails(Schedule(choices=found.choices))
    assert choices_of(fails, Schedule(choices=found.choices)) is not None


def test_the_front_door():
    comm = hccl.Communicator(servers=2, devices=2)
    inputs = [np.full(3, rank, np.int32) for rank in range(4)]
    result = comm.all_gather(inputs, executor="NeighborExchange")
    assert (result.outputs[3] == np.concatenate(inputs)).all()
    assert len(result.program.batches) >= 2
    plan = comm.plan(hccl.OpParam("all_gather", 4, hccl.DataType("fp32")), "NeighborExchange")
    assert simulate_tasks(plan.program, CostModel.of("atlas-800t-a2")).total_us > 0


def test_numbers_per_rank():
    seen = []

    class Looking(Turns):
        def orchestrate(self, op, rank):
            seen.append((type(rank.id), type(rank.id == 0)))
            super().orchestrate(op, rank)

    op = hccl.OpParam("all_gather", 3, hccl.DataType.FP16)
    topology: Topology = topology_of(servers=1, devices=4)
    program_of(Looking, Case(topology, op, 1 << 20))
    assert seen[0] == (PerRank, PerBool)
