"""Candidates: who takes part, in which ways, and whom HCCL's rules choose."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.errors import ParameterError
from hccl_py.operators import OPERATORS
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection.select import select
from hccl_py.topology import topology_of
from hccl_py.tuning.candidates import Candidate, candidates
from tests.recording import filled, op_of

REGISTRY = installed_executors()


def found(op: OpParam, ranks: int, **settings: str) -> list[Candidate]:
    return candidates(op, topology_of(ranks), Config(**settings), REGISTRY)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(OPERATORS)),
    st.sampled_from([(1, 4), (2, 4), (3, 2)]),
    st.sampled_from([1, 1000, 1 << 20]),
)
def test_each_can_run_and_one_is_what_hccl_chooses(
    name: str, shape: tuple[int, int], count: int
) -> None:
    topology = topology_of(servers=shape[0], devices=shape[1])
    op = filled(op_of(name, count), topology.size)
    ways = candidates(op, topology, Config(), REGISTRY)
    chosen, _ = select(op, topology, Config(), REGISTRY)
    marked = [way for way in ways if way.is_hccl]
    assert [(way.executor, way.algorithm) for way in marked] == [
        (chosen.executor, dict(chosen.algorithm))
    ]
    assert len({way.name for way in ways}) == len(ways)
    for way in ways:
        one, _ = select(op, topology, Config(), REGISTRY, way.executor, levels=way.levels)
        assert one.algorithm == way.algorithm


def test_open_levels_are_tried_where_they_have_ranks() -> None:
    op = op_of("all_reduce", 1000)
    one = [w.levels for w in found(op, 8) if w.executor == "AllReduceMeshExecutor"]
    two = [w.levels for w in found(op, 16) if w.executor == "AllReduceMeshExecutor"]
    assert one == [{}]
    assert {levels["level1"] for levels in two} >= {"ring", "NHR", "NB", "H-D_R"}
    flat = [w for w in found(op, 8) if w.executor == "AllReduceComm"]
    assert len(flat) == 7
    assert flat[0].name == "AllReduceComm ring"


def test_who_breaks_the_order_of_sums_is_left_out() -> None:
    op = op_of("all_reduce", 1 << 20)
    loop = "AllReduceMeshOpbaseLoopExecutor"
    assert loop in {way.executor for way in found(op, 8)}
    kept = found(op, 8, deterministic="true")
    assert loop not in {way.executor for way in kept}
    assert any(way.is_hccl for way in kept)


def test_an_illegal_call_has_none() -> None:
    with pytest.raises(ParameterError, match="needs a root"):
        candidates(op_of("broadcast", 10), topology_of(4), Config(), REGISTRY)
