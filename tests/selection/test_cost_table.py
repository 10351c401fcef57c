"""HCCL_ALGO of the Ascend 950, and the cost table that heeds it."""

from typing import Any

import pytest

from hccl_py.errors import ConfigError, NotSupportedError
from hccl_py.selection.answer import Selection
from hccl_py.topology import Topology, topology_of
from tests.selection.calls import call, chosen, topology

K, M = 1 << 10, 1 << 20
ONE = topology_of(8, preset="ascend950")
TWO = topology_of(preset="ascend950", servers=2, devices=8)
AICPU = "AicpuAllGather"


def by_cost(op: str, size: int, where: Topology, **settings: Any) -> Selection:
    return chosen(call(op, size), where, new_selector=True, ruleset="cann-2026.08", **settings)


def left(algo: str, where: Topology = ONE, mode: str | None = None) -> set[str]:
    """Return the executors that the cost table compares for an all_gather."""
    found = by_cost("all_gather", M, where, algo=algo, op_expansion_mode=mode)
    return {cost.executor for cost in found.costs}


def test_an_algorithm_alone_is_a_sole_executor() -> None:
    assert left("mesh") == left("sole{mesh}") == {f"{AICPU}SoleMesh"}
    assert left("nhr") == {f"{AICPU}SoleNHR"}


def test_a_kind_without_algorithms_is_all_of_the_kind() -> None:
    assert left("parallel{}", TWO) == {f"{AICPU}ParallelMeshNHR", f"{AICPU}ParallelNHRNHR"}


def test_levels_are_matched_one_by_one() -> None:
    assert left("parallel{mesh,nhr}", TWO) == {f"{AICPU}ParallelMeshNHR"}
    assert left("parallel{not(mesh),nhr}", TWO) == {f"{AICPU}ParallelNHRNHR"}
    assert left("sole{not(mesh)}") == {f"{AICPU}SoleMeshConcur", f"{AICPU}SoleNHR"}


def test_names_that_begin_with_no_engine_are_struck_by_any_setting() -> None:
    loose = "CcuAllGatherSoleMeshScheConcur"
    everything = left("")
    assert loose in everything
    assert left("not(mesh)") == everything - {f"{AICPU}SoleMesh", loose}


def test_the_last_choice_that_fits_the_op_counts() -> None:
    assert left("mesh;nhr") == {f"{AICPU}SoleNHR"}
    assert left("nhr;allreduce:mesh") == {f"{AICPU}SoleNHR"}
    assert left("nhr;mesh2die") == {f"{AICPU}SoleNHR"}, "no engine has mesh2die"
    assert left("nhr;allgather:not(mesh)") == left("not(mesh)")


@pytest.mark.parametrize(
    ("mode", "engines"),
    [
        (None, {"Aicpu"}),
        ("AI_CPU", {"Aicpu"}),
        ("AIV", {"Aiv", "Aicpu"}),
        ("AIV_ONLY", {"Aiv"}),
        ("CCU_SCHED", {"CcuSched", "Aicpu"}),
        ("CCU_MS", {"CcuMS", "CcuSched", "Aicpu"}),
    ],
)
def test_modes_name_engines(mode: str | None, engines: set[str]) -> None:
    assert left("mesh", mode=mode) == {f"{engine}AllGatherSoleMesh" for engine in engines}


def test_the_first_of_the_cheapest_is_taken_and_small_calls_cost_the_same() -> None:
    found = by_cost("all_reduce", K, ONE)
    best = min(cost.seconds for cost in found.costs)
    assert best == 0.0005
    first = next(cost for cost in found.costs if cost.seconds == best)
    assert (found.hccl_executor, found.engine) == (first.executor, first.engine)
    assert first.executor == "AicpuAllReduceStrictOrderedMesh"


def test_no_executor_of_known_cost_is_not_supported() -> None:
    found = by_cost("reduce_scatter", K, ONE, deterministic="strict")
    assert (found.hccl_executor, found.result) == (None, "HCCL_E_NOT_SUPPORT")
    with pytest.raises(NotSupportedError, match="cost table has no executor"):
        by_cost("reduce_scatter", K, ONE, deterministic="strict", strict=True)


def test_other_ops_and_the_older_selector_choose_by_rules() -> None:
    ruled = by_cost("broadcast", K, ONE, algo="mesh")
    assert not ruled.costs
    assert any("HCCL_ALGO has no say" in reason for reason in ruled.reasons)
    assert not any("HCCL_ALGO" in reason for reason in by_cost("all_gather", K, ONE).reasons)


def test_other_devices_have_no_executors_of_this_form() -> None:
    with pytest.raises(ConfigError, match="illegal value 'mesh' for Atlas 800T A2"):
        chosen(call("all_gather", K), topology(1, 8), algo="mesh")
