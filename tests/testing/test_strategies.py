"""What the strategies draw is legal, suits, and reaches the corners."""

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from hccl_executors import EXECUTORS
from hccl_executors.all_gather.mesh_opbase import AllGatherMeshOpbaseExecutor
from hccl_executors.flat import AllGatherComm
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, LinkKind, Mode, ReduceOp
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.plugins.executor import Executor
from hccl_py.plugins.platforms import Schedule
from hccl_py.testing import strategies as hccl
from hccl_py.testing.calls import recorded, suits
from hccl_py.topology import PRESETS, Topology, topology_of
from hccl_py.verifier.sweeps.cases import Case

QUIET = settings(database=None, derandomize=True, max_examples=2000)
UNSHRUNK = settings(QUIET, phases=[Phase.generate])


@given(topology=hccl.topologies(max_ranks=9))
def test_topologies_keep_to_the_limits(topology: Topology) -> None:
    assert 1 <= topology.size <= 9
    assert len(topology.servers) <= 4


@given(topology=hccl.topologies(uneven=False))
def test_uneven_servers_are_optional(topology: Topology) -> None:
    assert topology.is_even


@pytest.mark.parametrize("preset", PRESETS)
def test_topologies_reach_every_preset_and_kind_of_link(preset: str) -> None:
    only = hccl.topologies(presets=[preset])
    assert find(only, lambda t: not t.is_even, settings=QUIET).product.name == preset
    assert find(only, lambda t: t.size == 1, settings=QUIET).servers == (1,)
    assert find(only, lambda t: t.servers == (2, 2), settings=QUIET)
    assert find(only, lambda t: t.is_single_server and t.size > 4, settings=QUIET).size == 5


@pytest.mark.parametrize("wanted", [0, 1, 31, 32, 33, 4000])
def test_counts_reach_the_corners(wanted: int) -> None:
    assert find(hccl.counts(), lambda count: count == wanted, settings=QUIET) == wanted


@given(ranks=st.integers(1, 6), data=st.data())
def test_v_counts_are_one_per_rank(ranks: int, data: st.DataObject) -> None:
    counts = data.draw(hccl.v_counts(ranks, 50))
    assert len(counts) == ranks
    assert all(0 <= count <= 50 for count in counts)


def test_v_counts_reach_the_corners() -> None:
    assert find(hccl.v_counts(3), lambda c: not any(c), settings=QUIET) == (0, 0, 0)
    assert find(hccl.v_counts(3), lambda c: c[1] > 400 > 0 == c[0] + c[2], settings=QUIET)
    assert find(hccl.v_counts(3), lambda c: c[1] == 0 and min(c[0], c[2]) > 100, settings=QUIET)


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
def test_ops_are_legal(op: str, data: st.DataObject) -> None:
    topology = data.draw(hccl.topologies())
    drawn = data.draw(hccl.ops(op, topology))
    make_operator(op).check(drawn, topology)
    assert drawn.name == op


@pytest.mark.parametrize("op", OPERATORS)
def test_dtypes_are_those_that_the_op_takes(op: str) -> None:
    if make_operator(op).reduces:
        assert find(hccl.dtypes(op), lambda t: t is DataType.FP32, settings=QUIET)
        drawn = _all(hccl.dtypes(op))
        assert not drawn & {DataType.UINT8, DataType.FP64}, "the product does not reduce them"
        multiplies = op != "reduce_scatter_v"
        assert (DataType.BF16 not in drawn) == multiplies, "A2 does not multiply them"
    else:
        of_8_bits = {DataType(f"fp8{form}") for form in ("e4m3", "e5m2", "e8m0")}
        assert _all(hccl.dtypes(op)) == set(DataType) - {DataType.HIF8} - of_8_bits, "not on A2"
    assert _all(hccl.reduce_ops()) == set(ReduceOp)


def _all(strategy: st.SearchStrategy[DataType] | st.SearchStrategy[ReduceOp]) -> set[object]:
    drawn = set()

    @settings(QUIET, max_examples=100)
    @given(value=strategy)
    def draw(value: object) -> None:
        drawn.add(value)

    draw()
    return drawn


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
@settings(max_examples=1)
@given(data=st.data())
def test_calls_suit_and_record(executor: type[Executor], data: st.DataObject) -> None:
    call = data.draw(hccl.calls(executor))
    assert suits(executor, call.op, call.topology)
    program = recorded(executor, call)
    program.linked.check(program)


def test_calls_reach_rounds_rdma_graphs_and_in_place() -> None:
    calls = hccl.calls(AllGatherComm)
    assert find(calls, lambda c: recorded(AllGatherComm, c).rounds > 1, settings=UNSHRUNK)
    assert find(calls, lambda c: c.op.mode is Mode.GRAPH and c.op.in_place, settings=UNSHRUNK)
    found = find(calls, lambda c: c.op.count > 0 and _has_rdma(c), settings=QUIET)
    assert found.topology.size == 2


def _has_rdma(call: Case) -> bool:
    return LinkKind.RDMA in recorded(AllGatherComm, call).transports.kind


@given(
    call=hccl.calls(AllGatherMeshOpbaseExecutor, topology=st.just(topology_of(3)), count=st.just(7))
)
def test_calls_can_be_narrowed(call: Case) -> None:
    assert (call.topology.size, call.op.count) == (3, 7)


def test_nothing_suits() -> None:
    several = topology_of(servers=2, devices=2)
    ops: st.SearchStrategy[OpParam] = hccl.ops(AllGatherMeshOpbaseExecutor, several)
    with pytest.raises(InvalidArgument, match=r"AllGatherMesh.* takes no call on Topology\("):
        find(ops, lambda op: True, settings=QUIET)


@given(schedule=hccl.schedules(length=30))
def test_schedules_say_nothing_beyond_their_last_choice(schedule: Schedule) -> None:
    assert schedule.choices is not None
    assert len(schedule.choices) <= 30
    assert not schedule.choices or schedule.choices[-1] > 0
