"""What HCCL_ALGO leaves of HCCL's executors for the Ascend 950."""

import pytest

from hccl_py.call.config import Config
from hccl_py.errors import ConfigError, NotSupportedError
from hccl_py.selection.ascend950 import left_of, refusal_of
from hccl_py.topology import topology_of
from tests.selection.calls import call, chosen, topology

K = 1 << 10
AICPU = "AicpuAllGather"


def left(algo: str, op: str = "all_gather", mode: str | None = None) -> set[str]:
    return set(left_of(op, Config.load({}, algo=algo, op_expansion_mode=mode)))


def test_an_algorithm_alone_is_a_sole_executor() -> None:
    assert left("mesh") == left("sole{mesh}") == {"AicpuAllGatherSoleMesh"}
    assert left("nhr_multi_link") == {"AicpuAllGatherSoleNHRMultiLink"}


def test_a_kind_without_algorithms_is_all_of_the_kind() -> None:
    assert left("parallel{}") == {"AicpuAllGatherParallelMeshNHR", "AicpuAllGatherParallelNHRNHR"}


def test_levels_are_matched_one_by_one() -> None:
    assert left("parallel{mesh,nhr}") == {"AicpuAllGatherParallelMeshNHR"}
    assert left("parallel{not(mesh),nhr}") == {"AicpuAllGatherParallelNHRNHR"}
    sole = {f"{AICPU}Sole{rest}" for rest in ("MeshConcur", "NHR", "NHRMultiLink")}
    assert left("sole{not(mesh)}") == sole


def test_what_is_forbidden_leaves_the_rest() -> None:
    everything = left("")
    assert len(everything) == 8
    assert left("not(mesh)") == everything - {"AicpuAllGatherSoleMesh"}
    assert left("not(sole{})") == {name for name in everything if "Sole" not in name}


def test_the_last_choice_that_fits_the_op_counts() -> None:
    assert left("mesh;nhr") == {"AicpuAllGatherSoleNHR"}
    assert left("nhr;allreduce:mesh") == {"AicpuAllGatherSoleNHR"}
    assert left("nhr;mesh2die") == {"AicpuAllGatherSoleNHR"}, "no engine has mesh2die"
    assert left("mesh2die") == left("")
    assert left("nhr;allgather:not(mesh)") == left("not(mesh)")


@pytest.mark.parametrize(
    ("mode", "engines"),
    [
        (None, {"Aicpu"}),
        ("AI_CPU", {"Aicpu"}),
        ("AIV", {"Aiv", "Aicpu"}),
        ("CCU_SCHED", {"CcuSched", "Aicpu"}),
        ("CCU_MS", {"CcuMS", "CcuSched", "Aicpu"}),
    ],
)
def test_modes_name_engines(mode: str | None, engines: set[str]) -> None:
    assert left("mesh", mode=mode) == {f"{engine}AllGatherSoleMesh" for engine in engines}


def test_the_refusal_says_which_part_is_missing() -> None:
    where = topology_of(8, preset="ascend950")
    found = chosen(call("all_gather", K), where, algo="nhr")
    assert (found.hccl_executor, found.result) == (None, "HCCL_E_NOT_SUPPORT")
    assert "HCCL_ALGO leaves 1 of 8 executors: AicpuAllGatherSoleNHR" in found.refusal
    assert "nor the cost table" in found.refusal
    with pytest.raises(NotSupportedError, match="AicpuAllGatherSoleNHR"):
        chosen(call("all_gather", K), where, algo="nhr", strict=True)
    assert "HCCL_ALGO" not in refusal_of("all_gather", Config())
    assert "forbid none" in refusal_of("all_gather", Config(algo="level1:NHR"))
    assert "HCCL_ALGO has no say" in refusal_of("scatter", Config(algo="nhr"))


def test_other_devices_have_no_executors_of_this_form() -> None:
    with pytest.raises(ConfigError, match="illegal value 'mesh' for Atlas 800T A2"):
        chosen(call("all_gather", K), topology(1, 8), algo="mesh")
