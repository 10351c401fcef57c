"""HCCL's choice on the Ascend 950, against what HCCL's own selectors named.

`runs/` has the names of HCCL's run (`scripts/oracle`, hicann/hccl@09300b7) for calls of all
engines.
"""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hccl_py.call.config import Config
from hccl_py.errors import ConfigError, NotSupportedError
from hccl_py.selection.answer import Selection
from hccl_py.selection.engines_950 import CHAINS
from hccl_py.selection.tables.hccl_2026_08 import TABLE_950
from hccl_py.topology import PRESETS, Topology, topology_of
from scripts.oracle.calls import words_of
from scripts.oracle.selecting import choice_of, read_selections
from tests.selection.calls import call, chosen, topology

K, M, G = 1 << 10, 1 << 20, 1 << 30
RUNS = Path(__file__).parent / "runs"

ONE = topology_of(8, preset="ascend950")
TWO = topology_of(preset="ascend950", servers=2, devices=8)


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.glob("*.gz")))
def test_every_call_of_hccls_run_names_the_same_algorithm(name: str) -> None:
    """Ranks of uneven servers may name different ones; the first rank's counts here."""
    wrong, asked, uneven, engines = [], 0, 0, Counter[str]()
    for case, names, _ in read_selections(RUNS / name):
        asked += 1
        uneven += len(names) > 1
        engines[case.get("engine", "AI_CPU")] += 1
        found = choice_of(case)
        if (found.executor or f"refused {found.refusal[1].value}") not in names:
            wrong.append(f"HCCL {names}, here {found.executor}: {words_of(case)}")
    assert not wrong, f"{len(wrong)} of {asked}:\n" + "\n".join(wrong[:5])
    assert asked > 900
    assert uneven <= 2
    assert min(engines.values()) > 100


def test_costs_are_hccls_to_a_millionth() -> None:
    compared = 0
    for case, _, costs in read_selections(RUNS / "hccl-2026.08-drawn.jsonl.gz"):
        if costs:
            found = {cost.executor: cost.seconds for cost in choice_of(case).decision.costs}
            assert list(found) == list(costs), words_of(case)
            assert found == pytest.approx(costs, rel=1e-6), words_of(case)
            compared += len(costs)
    assert compared > 1000


@pytest.mark.parametrize("op", TABLE_950)
def test_rows_have_an_engine_and_a_line_of_the_source(op: str) -> None:
    where = re.compile(r"hicann/hccl@09300b7:src/ops/(\w+/)+\w+_auto_selector\.cc:[\d, -]+")
    for row in TABLE_950[op]:
        assert where.fullmatch(row.source), row.source
        assert bool(row.executor) != bool(row.leaves)
        assert row.engine in CHAINS


def taken(op: str, size: int, where: Topology, **settings: Any) -> Selection:
    settings.setdefault("ruleset", "cann-2026.08")
    return chosen(call(op, size, ranks=where.size), where, **settings)


@pytest.mark.parametrize(
    ("mode", "engine", "executor"),
    [
        (None, "AICPU_TS", "AicpuAllReduceSoleMeshOneShot"),
        ("AICPU_TS", "AICPU_TS", "AicpuAllReduceSoleMeshOneShot"),
        ("AICPU_CacheDisable", "AICPU_TS", "AicpuAllReduceSoleMeshOneShot"),
        ("CCU_MS", "CCU_MS", "CcuMSAllReduceSoleMesh"),
        ("CCU_SCHED", "CCU_SCHED", "CcuSchedAllReduceSoleMesh"),
        ("AIV", "AIV", "AivAllReduceSoleMeshTwoShot"),
        ("AIV_ONLY", "AIV", "AivAllReduceSoleMeshTwoShot"),
    ],
)
def test_the_mode_names_the_engine(mode: str | None, engine: str, executor: str) -> None:
    found = taken("all_reduce", M, ONE, op_expansion_mode=mode)
    assert (found.hccl_executor, found.engine, found.refusal) == (executor, engine, "")
    assert found.source.startswith("hicann/hccl@09300b7:src/ops/all_reduce/selector/")


def test_an_engine_hands_on_what_it_leaves_and_the_reasons_say_so() -> None:
    found = taken("all_reduce", 256 * M, TWO, op_expansion_mode="CCU_MS")
    assert (found.hccl_executor, found.engine) == ("AicpuAllReduceParallelMeshNHR", "AICPU_TS")
    assert "CCU_MS leaves it: CCU_MS is for one level" in found.reasons
    assert "CCU_SCHED leaves it: AICPU_TS is faster at this size" in found.reasons
    found = taken("scatter", K, ONE, op_expansion_mode="CCU_MS")
    assert "CCU_MS leaves it: scatter is not for it" in found.reasons


def test_aiv_only_does_not_hand_on() -> None:
    large = ("all_reduce", 64 * M, ONE)
    assert taken(*large, op_expansion_mode="AIV").engine == "AICPU_TS"
    assert taken(*large, op_expansion_mode="AIV_ONLY").engine == "AIV"
    found = taken("all_gather_v", K, ONE, op_expansion_mode="AIV_ONLY")
    assert (found.hccl_executor, found.result) == (None, "HCCL_E_NOT_SUPPORT")
    assert found.refusal == "AIV leaves it: all_gather_v is not for it"


def test_aiv_only_is_for_configurations_alone() -> None:
    with pytest.raises(ConfigError, match="'AIV_ONLY'"):
        Config.load({"HCCL_OP_EXPANSION_MODE": "AIV_ONLY"})
    with pytest.raises(ConfigError, match="'AIV_ONLY' for Atlas 800T A2"):
        taken("all_reduce", K, topology(1, 8), op_expansion_mode="AIV_ONLY")


def test_programs_of_other_engines_are_not_modelled_and_another_executor_runs() -> None:
    found = taken("all_reduce", M, ONE, op_expansion_mode="CCU_SCHED")
    assert found.executor != found.hccl_executor
    assert not found.is_same
    why = next(reason for reason in found.reasons if "HCCL would take" in reason)
    assert "programs of CCU_SCHED are not modelled" in why
    with pytest.raises(NotSupportedError, match="CcuSchedAllReduceSoleMesh, which is not offered"):
        taken("all_reduce", M, ONE, op_expansion_mode="CCU_SCHED", strict=True)


def test_a_release_without_a_table_is_unknown_and_no_refusal() -> None:
    found = taken("all_reduce", K, ONE, ruleset="cann-2025.07")
    assert (found.hccl_executor, found.result, found.refusal) == (None, "", "")
    assert "has no table of 950" in found.unknown
    assert any("not known here" in reason for reason in found.reasons)
    with pytest.raises(NotSupportedError, match="not known here"):
        taken("all_reduce", K, ONE, ruleset="cann-2025.07", strict=True)


def test_barriers_of_other_engines_are_those_of_hcomm() -> None:
    assert taken("barrier", 0, ONE).hccl_executor == "AicpuBarrierSoleNHR"
    assert "hcomm" in taken("barrier", 0, ONE, op_expansion_mode="AIV").unknown


def on(where: Topology, **bus: Any) -> Topology:
    """Return a topology whose links answer otherwise."""
    product = where.product
    changed = replace(product, bus=replace(product.bus, **bus))
    return Topology(changed, where.servers, where.superpods)


def named(op: str, size: int, where: Topology, **settings: Any) -> str | None:
    return taken(op, size, where, **settings).hccl_executor


def test_ubx_servers_have_rows_of_their_own() -> None:
    """Not run: HCCL's system tests draw no such server. The lines are 491-510 and 385-394."""
    ubx = on(topology_of(preset="ascend950", servers=1, devices=16), ubx=True)
    four = on(topology_of(4, preset="ascend950"), ubx=True)
    assert named("all_reduce", 16 * M, four) == "AicpuAllReduceConcurMeshTwoShotNHR"
    assert named("all_reduce", 512 * K, ubx) == "InsAllReduceParallelRSAGUBX"
    assert named("all_reduce", 512 * K, ubx, zero_copy=True) == "AicpuAllReducePipeLineUBX"
    assert named("all_reduce", 512 * K - 4, ubx) == "AicpuAllReduceSoleNHR"
    assert named("all_gather", 512 * K, ubx) == "AicpuAllGatherSoleNHR"
    assert named("all_gather", 4 * M, ubx) == "AicpuAllGatherPipeLineUBX"


def test_two_dies_and_a_clos_network_beside_a_lone_server() -> None:
    """Not run, as above; lines 137-144 and 541-548."""
    dies = on(ONE, dies="regular")
    assert named("all_reduce", K, dies, op_expansion_mode="CCU_MS") == "CcuMSAllReduceSoleMesh2Die"
    pair = on(topology_of(2, preset="ascend950"), lone_clos=True)
    assert named("all_reduce", 8 * M, pair) == "AicpuAllReduceSoleMeshConcur"
    assert named("all_reduce", 8 * M - 4, pair) == "AicpuAllReduceSoleMeshOneShot"


def test_one_rank_copies_and_a_broken_mesh_is_refused() -> None:
    assert named("all_gather", K, topology_of(1, preset="ascend950")) == "SingleRankProc"
    corner = Topology.placed(PRESETS["ascend950"], [0, 0, 0], [0, 1, 8])
    assert taken("all_gather", K, corner).result == "HCCL_E_INTERNAL"


def test_tags_are_those_of_hccls_algorithms() -> None:
    found = taken("all_to_all", K, ONE)
    assert found.tag.startswith("ALLTOALL_hccl_world_group_")
    assert found.tag.endswith(f"{found.executor}_device")


def test_other_devices_read_no_table_of_the_950() -> None:
    code = (
        "import sys, hccl_py as hccl; from hccl_py.topology import topology_of\n"
        "from hccl_py.call.config import Config; from hccl_py.selection.hccl import HcclChoice\n"
        "op = hccl.OpParam('all_gather', 8, hccl.DataType.FP32)\n"
        "chosen = HcclChoice(op, topology_of(4), Config())\n"
        "assert chosen.executor, chosen\n"
        "print([name for name in sys.modules if 'hccl_2026_08' in name or 'cost_table' in name])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
