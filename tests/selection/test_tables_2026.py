"""HCCL's decision tables of August 2026, row by row."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.selection.hccl import HcclChoice
from hccl_py.topology import Topology, topology_of
from tests.selection.calls import call, product

K, M = 1 << 10, 1 << 20
A2, A3, A910, DUO = "atlas-800t-a2", "atlas-900-a3", "atlas-800-9000", "300i-duo"
PRODUCTS = {
    **{"A2": product(A2), "A2-lite": product(A2, rdma_lite=True)},
    **{"A3": product(A3), "A3-ports": product(A3, hccs_ports=0)},
    **{"910A": product(A910), "Duo": product(DUO)},
}
"""Products by their short names; `-lite` with RDMA lite, `-ports` with other than 7 HCCS ports."""

FIXED: dict[str, Any] = {"deterministic": "true"}
STRICT: dict[str, Any] = {"deterministic": "strict"}
AIV: dict[str, Any] = {"op_expansion_mode": "AIV"}
HOST: dict[str, Any] = {"op_expansion_mode": "HOST"}
GRAPH: dict[str, Any] = {"mode": "graph"}
NO_HCCS: dict[str, Any] = {"inter_hccs_disable": True}
OF_CALL = ("mode", "dtype", "reduce")


def taken(
    where: Topology, op: str | OpParam, size: int = 0, **settings: Any
) -> tuple[str | None, str]:
    """Return HCCL's executor and its algorithm between servers."""
    of_call = {name: settings.pop(name) for name in OF_CALL if name in settings}
    if isinstance(op, str):
        op = call(op, size, ranks=where.size, **of_call)
    choice = HcclChoice(op, where, Config.load({}, ruleset="cann-2026.08", **settings))
    return choice.executor, choice.levels["level1"]


def place(text: str) -> Topology:
    """Return the topology of `PRODUCT SxD`, `PRODUCT PxSxD` or `PRODUCT N`."""
    name, _, sizes = text.partition(" ")
    numbers = [int(number) for number in sizes.split("x")]
    if len(numbers) == 1:
        like = topology_of(numbers[0], preset=PRODUCTS[name].name)
    else:
        names = ("superpods", "servers", "devices")[-len(numbers) :]
        sized: dict[str, Any] = dict(zip(names, numbers, strict=True))
        like = topology_of(preset=PRODUCTS[name].name, **sized)
    return Topology(PRODUCTS[name], like.servers, like.superpods)


Row = tuple[str, str, int, str | None, str, dict[str, Any]]


def r(
    where: str, op: str, size: int, executor: str | None, level1: str = "", **settings: Any
) -> Row:
    """Return a row: a call of `size` bytes per rank and what HCCL takes."""
    return where, op, size, executor, level1, settings


AR, AG, RS = "AllReduce", "AllGather", "ReduceScatter"
SMALL_SERVERS = AR + "MeshOpbaseSmallCountDeterministicExecutor"
RS_SERVERS = RS + "MeshOpbaseSmallCountDeterministicExecutor"
FAST = AR + "FastDoubleRingFor91093Executor"
RS_FAST = RS + "FastDoubleRingFor91093Executor"
AG_RING = "AlignedAllGatherDoubleRingFor91093Executor"
IN_ORDER = "OrderPreservedFor91093Executor"
DIRECT, STAGED = "RunAlltoAllDirectFullmesh", "RunAlltoAllVStaged"
TWO_LEVEL, FULL = "RunAlltoAllVTwoLevelPipeline", "RunAlltoAllVFullMesh"

SUMS = [
    r("A2 1", "all_reduce", K, AR + "SingleExecutor", **GRAPH),
    # 910A
    r("910A 1x4", "all_reduce", M, AR + "DoublingDirect", "H-D_R"),
    r("910A 1x8", "all_reduce", M, AR + "Doubling", "H-D_R"),
    r("910A 1x8", "all_reduce", M, AR + "SmallCountFor910", "H-D_R", dtype="int32"),
    r("910A 1x8", "all_reduce", M + 4, AR + "RingExecutor"),
    r("910A 1x8", "all_reduce", M, AR + "RingExecutor", **GRAPH),
    r("910A 2x4", "all_reduce", K, AR + "MeshExecutor"),
    r("910A 1x8", "reduce_scatter", 256 * K, RS + "Comm", "H-D_R"),
    r("910A 1x8", "reduce_scatter", 256 * K + 4, RS + "RingExecutor"),
    # 310P3
    r("Duo 8", "all_reduce", 256 * K, AR + "DoublingDirect", "H-D_R"),
    r("Duo 16", "all_reduce", K, AR + "Ring"),
    r("Duo 8", "reduce_scatter", 4 * K, RS + "Ring"),
    r("Duo 8", "reduce_scatter", 4 * K + 4, RS + "SlimRing"),
    r("Duo 8", "reduce_scatter", 4 * 320 * K, RS + "SlimRing"),
    r("Duo 8", "reduce_scatter", 4 * 320 * K + 4, RS + "Ring"),
    r("Duo 9", "reduce_scatter", 64 * K, RS + "Ring"),
    # 910B, one server
    r("A2 1x8", "all_reduce", 256 * K, AR + "MeshSmallCountExecutor"),
    r("A2 1x8", "all_reduce", K, AR + "MeshExecutor", dtype="int64"),
    r("A2 1x8", "all_reduce", K, AR + "OrderPreservedExecutor", reduce="max", **STRICT),
    r("A2 1x8", "all_reduce", K, AR + "MeshSmallCountExecutor", dtype="int32", **STRICT),
    r("A2 1x2", "all_reduce", K, AR + "MeshSmallCountExecutor", **STRICT),
    r("A2 12", "all_reduce", K, None, dtype="int32", **STRICT),
    r("A2 1x8", "reduce_scatter", K, RS + "OrderPreservedExecutor", **STRICT),
    r("A2 12", "reduce_scatter", K, None, dtype="int32", **STRICT),
    # 910B, several servers
    r("A2 2x8", "all_reduce", 512 * K - 4, SMALL_SERVERS, "ring"),
    r("A2 2x8", "all_reduce", 512 * K, AR + "MeshExecutor", "ring"),
    r("A2 2x8", "all_reduce", K, AR + "MeshExecutor", "ring", dtype="int64"),
    r("A2 2x2", "all_reduce", K, AR + "MeshExecutor", "ring"),
    r("A2 2x8", "all_reduce", 512 * K, SMALL_SERVERS, **FIXED),
    r("A2 2x8", "all_reduce", M, AR + "MeshOpbaseMidCountDeterministicExecutor", **FIXED),
    r("A2 2x8", "all_reduce", 16 * M, AR + "DeterPipelineExecutor", "pipeline", **FIXED),
    r("A2 2x8", "all_reduce", 32 * M - 4, AR + "MeshExecutor", "ring"),
    r("A2 2x8", "all_reduce", 32 * M, AR + "MeshOpbasePipelineExecutor", "pipeline"),
    r("A2-lite 2x8", "all_reduce", 16 * M, AR + "MeshOpbasePipelineExecutor", "pipeline"),
    r("A2 2x8", "reduce_scatter", 2 * M - 4, RS + "MeshExecutor", "ring"),
    r("A2 2x8", "reduce_scatter", 2 * M, RS + "MeshOpbasePipelineExecutor", "pipeline"),
    r("A2 2x8", "reduce_scatter", 2 * M, RS + "DeterPipelineExecutor", "pipeline", **FIXED),
    r("A2-lite 2x8", "reduce_scatter", 32 * K - 4, RS_SERVERS, "ring"),
    r("A2-lite 2x8", "reduce_scatter", 32 * K, RS + "MeshOpbasePipelineExecutor", "pipeline"),
    r("A2-lite 2x8", "reduce_scatter", 256 * K - 4, RS_SERVERS, "ring", **FIXED),
    r("A2-lite 2x8", "reduce_scatter", 256 * K, RS + "DeterPipelineExecutor", "pipeline", **FIXED),
    r("A2-lite 2x2", "reduce_scatter", 512 * K, RS_SERVERS, "pipeline", **FIXED),
    r("A2 2x8", "reduce_scatter", K, RS + "MeshGraphPipelineExecutor", **GRAPH),
    r("A2 5x8", "reduce_scatter", M, RS + "MeshGraphExecutor", **GRAPH),
    r("A2 5x8", "reduce_scatter", M + 4, RS + "MeshGraphPipelineExecutor", **GRAPH),
    r("A2 5x8", "reduce_scatter", M + 4, RS + "MeshExecutor", **GRAPH, **FIXED),
    # 910B, vector cores
    r("A2 1x8", "all_reduce", 16 * M - 4, AR + "MeshAivSmallCountExecutor", **AIV),
    r("A2 1x8", "all_reduce", 16 * M, AR + "MeshAivExecutor", **AIV),
    r("A2 1x8", "all_reduce", 8 * M, AR + "AivDeterSmallExecutor", **AIV, **FIXED),
    r("A2 1x8", "all_reduce", 8 * M + 4, AR + "MeshMidCountLoopExecutor", **AIV, **FIXED),
    r("A2 1x8", "barrier", 32, AR + "MeshSmallCountExecutor", **AIV),
    r("A2 1x8", "reduce_scatter", M, RS + "AivDeterSmallExecutor", **AIV, **FIXED),
    r("A2 1x8", "reduce_scatter", M + 4, RS + "DeterExecutor", **AIV, **FIXED),
    # 910_93
    r("A3 1x8", "all_reduce", 4 * M, AR + "MeshSmallCountExecutor"),
    r("A3 1x8", "all_reduce", 4 * M + 4, FAST),
    r("A3 1x8", "all_reduce", K, FAST, **GRAPH),
    r("A3 2x8", "all_reduce", 8 * M, AR + "Comm", "NHR"),
    r("A3 2x8", "all_reduce", 8 * M + 4, FAST, "NHR"),
    r("A3 3x8", "all_reduce", 64 * M, FAST, "ring"),
    r("A3 2x8", "all_reduce", 64 * M, AR + "Comm", "NHR", dtype="int64"),
    r("A3 1x8", "all_reduce", K, FAST, dtype="int64"),
    r("A3 2x2x8", "all_reduce", 256 * K, AR + "MidCountFor91093Executor"),
    r("A3 2x2x8", "all_reduce", 256 * K + 4, FAST, "NHR"),
    r("A3 2x2x16", "all_reduce", 256 * K, AR + "Comm", "NHR", **GRAPH),
    r("A3 2x1x16", "all_reduce", 256 * K, FAST, **GRAPH),
    r("A3 3x2x8", "all_reduce", 32 * M, AR + "Comm", "NHR", dtype="int64"),
    r("A3 2x8", "all_reduce", 8 * M, AR + "Comm", "NHR", **NO_HCCS),
    r("A3 1x3", "all_reduce", 64 * M, AR + "RingFor91093Executor"),
    r("A3 1x8", "all_reduce", K, AR + IN_ORDER, **STRICT),
    r("A3 1x8", "all_reduce", K, None, dtype="fp64", **STRICT),
    r("A3 1x8", "all_reduce", K, None, reduce="prod", **STRICT),
    r("A3 1x8", "all_reduce", K, None, **STRICT, **NO_HCCS),
    r("A3 1x8", "all_reduce", K, AR + "MeshSmallCountExecutor", reduce="max", **STRICT),
    r("A3 1x8", "all_reduce", 512 * K, AR + "MeshAivFor91093Executor", **AIV, **STRICT),
    r("A3 1x8", "all_reduce", 512 * K + 4, AR + IN_ORDER, **AIV, **STRICT),
    r("A3 2x8", "all_reduce", 8 * M - 4, AR + "MeshAivFor91093Executor", **AIV),
    r("A3 2x8", "all_reduce", 8 * M, AR + "Comm", **AIV),
    r("A3 1x16", "all_reduce", 16 * M - 4, AR + "MeshAivSmallCountExecutor", **AIV),
    r("A3 1x16", "all_reduce", 16 * M, AR + "MeshAivExecutor", **AIV),
    r("A3 1x16", "all_reduce", 190 * K, AR + "MeshAivSmallCountExecutor", **AIV, **GRAPH),
    r("A3 1x16", "all_reduce", 64 * M, AR + "MeshAivExecutor", **AIV, **GRAPH),
    r("A3 1x8", "reduce_scatter", 512 * K, RS + "DeterExecutor"),
    r("A3 1x8", "reduce_scatter", 512 * K + 4, RS_FAST),
    r("A3-ports 1x8", "reduce_scatter", M, RS + "DeterExecutor"),
    r("A3-ports 1x8", "reduce_scatter", M + 4, RS_FAST),
    r("A3 1x8", "reduce_scatter", K, RS + "SemiRingExecutor", **GRAPH),
    r("A3 2x8", "reduce_scatter", 512 * K, RS + "DeterExecutor"),
    r("A3 2x8", "reduce_scatter", 512 * K + 4, RS_FAST, "NHR"),
    r("A3-ports 2x8", "reduce_scatter", M, RS + "DeterExecutor"),
    r("A3-ports 2x8", "reduce_scatter", M + 4, RS_FAST, "NHR"),
    r("A3 3x8", "reduce_scatter", 256 * K, RS + "Comm", "H-D_R"),
    r("A3 3x8", "reduce_scatter", 256 * K + 4, RS_FAST, "ring"),
    r("A3 2x8", "reduce_scatter", 64 * M, RS + "Comm", "H-D_R", dtype="int64"),
    r("A3 1x8", "reduce_scatter", 64 * M, RS_FAST, dtype="int64"),
    r("A3 2x2x8", "reduce_scatter", 4 * M, RS + "Comm", "H-D_R", dtype="int64"),
    r("A3 2x2x8", "reduce_scatter", 4 * M + 8, RS_FAST, "NHR", dtype="int64"),
    r("A3 2x1x8", "reduce_scatter", 38 * M, RS_FAST, buffsize_mb=400),
    r("A3 2x1x8", "reduce_scatter", 38 * M + 4, RS + "PipelineFor91093Executor", buffsize_mb=400),
    r("A3 2x1x8", "reduce_scatter", 64 * M, RS_FAST, buffsize_mb=127),
    r("A3 1x8", "reduce_scatter", M - 4, RS + "MeshAivFor91093Executor", **AIV, **FIXED),
    r("A3-ports 1x8", "reduce_scatter", M, RS + "DeterExecutor", **AIV, **FIXED),
    r("A3 2x8", "reduce_scatter", 512 * K, RS + "MeshAivFor91093Executor", **AIV),
    r("A3-ports 2x8", "reduce_scatter", 512 * K + 4, RS + "DeterExecutor", **AIV),
    r("A3 1x16", "reduce_scatter", 3 * 190 * K, RS + "MeshAivSmallCountExecutor", **AIV, **GRAPH),
    r("A3 1x16", "reduce_scatter", 3 * 190 * K + 4, RS + "MeshAivExecutor", **AIV, **GRAPH),
]

OTHERS = [
    r("Duo 8", "all_gather", 4 * K + 4, AG + "SlimRingFor310PExecutor"),
    r("Duo 5", "all_gather_v", K, None),
    r("Duo 5", "reduce_scatter_v", K, None),
    r("Duo 5", "all_to_all", K, None),
    r("Duo 4", "all_to_all", K, "RunAlltoAllVFor310PExecutor"),
    r("A2 2x8", "all_gather", K, AG + "MeshGraphPipelineExecutor", **GRAPH),
    r("A2 5x8", "all_gather", M, AG + "MeshGraphExecutor", **GRAPH),
    r("A2 5x1", "all_gather", M + 4, AG + "RingExecutor", **GRAPH),
    r("A2 1x8", "all_gather_v", K, AG + "VMeshExecutor"),
    r("A2 1x8", "all_gather_v", K, AG + "VMeshGraphExecutor", **GRAPH),
    r("A2 2x8", "all_gather_v", M, AG + "VMeshOpbasePipelineExecutor", "pipeline"),
    r("A2 2x8", "all_gather_v", K, AG + "VMeshExecutor", "ring"),
    r("A2 2x8", "all_gather_v", K, AG + "VMeshGraphPipelineExecutor", **GRAPH),
    r("A2 1x8", "reduce_scatter_v", K, RS + "VMeshOpbaseExecutor"),
    r("A2 2x8", "reduce_scatter_v", K, RS + "VMeshOpbaseExecutor", "NHR"),
    r("A2 2x8", "reduce_scatter_v", K, RS + "VDeterExecutor", "NHR", **GRAPH),
    r("A2 1x8", "reduce_scatter_v", K, RS + "VDeterExecutor", **FIXED),
    r("A2 1x8", "reduce_scatter_v", K, RS + "VMeshOpbaseExecutor", dtype="int32", **FIXED),
    r("A2 1x8", "reduce_scatter_v", K, None, dtype="int64"),
    r("A3 1x8", "all_gather_v", K, "AlignedAllGatherVDoubleRingFor91093Executor"),
    r("A3 1x3", "all_gather_v", K, AG + "VRingFor91093Executor"),
    r("A3 1x8", "reduce_scatter_v", K, RS + "VFastDoubleRingFor91093Executor"),
    r("A3-ports 1x8", "reduce_scatter_v", K, "AlignedReduceScatterVDoubleRingFor91093Executor"),
    r("A3 20", "all_gather_v", K, None),
    r("A3 2x8", "all_gather", 512 * K, AG + "SmallCount"),
    r("A3 2x8", "all_gather", 512 * K + 4, AG_RING, "NHR"),
    r("A3 2x6", "all_gather", 256 * K, AG + "SmallCount"),
    r("A3 2x6", "all_gather", 256 * K + 4, AG_RING),
    r("A3 1x8", "all_gather", 512 * K, AG + "SmallCount"),
    r("A3 1x8", "all_gather", 512 * K, AG_RING, buffsize_mb=3),
    r("A3 1x8", "all_gather", 512 * K + 4, AG_RING),
    r("A3 1x8", "all_gather", K, AG + "SemiRingExecutor", **GRAPH),
    r("A3 2x2x8", "all_gather", 16 * K, AG + "Comm", "H-D_R"),
    r("A3 2x2x8", "all_gather", 16 * K + 4, AG + "MidCountFor91093Executor"),
    r("A3 2x1x8", "all_gather", 16 * K, AG + "MidCountFor91093Executor"),
    r("A3 2x2x8", "all_gather", 256 * K + 4, AG_RING),
    r("A3 2x1x8", "all_gather", 38 * M + 4, AG + "PipelineFor91093Executor", buffsize_mb=400),
    r("A2 1x8", "all_gather", 256 * M, AG + "MeshAivExecutor", **AIV),
    r("A2 1x8", "all_gather", 256 * M + 4, AG + "MeshOpbaseExecutor", **AIV),
    r("A3 2x8", "all_gather", 512 * K, AG + "MeshAivFor91093Executor", **AIV),
    r("A3 4x8", "all_gather", 32 * K, AG + "MeshAivFor91093Executor", **AIV),
    r("A3 4x8", "all_gather", 32 * K + 4, AG + "SmallCount", **AIV),
    r("A3 2x8", "broadcast", 8 * M, "BroadCastComm", "NHR"),
    r("A3 2x8", "broadcast", 8 * M + 4, "BroadCastRingFor91093Executor"),
    r("A3 1x8", "broadcast", 4 * M, "BroadCastSmallCountExecutor"),
    r("A3 1x8", "broadcast", 4 * M, "BroadCastRingFor91093Executor", **GRAPH),
    r("A3 2x1x8", "broadcast", 128 * K, "BroadcastMidCountFor91093Executor"),
    r("A3 2x1x8", "broadcast", 128 * K + 4, "BroadCastRingFor91093Executor"),
    r("A3 3x1x8", "broadcast", 128 * K, "BroadCastComm", "NHR"),
    r("A3 2x8", "broadcast", M, "BroadcastMeshAivFor91093Executor", **AIV),
    r("A2 1x8", "broadcast", 64 * M, "BroadcastMeshAivExecutor", **AIV),
    r("A2 1x8", "all_to_all", K, STAGED),
    r("A2 1x8", "all_to_all", 25 * M + 4, DIRECT),
    r("A2 2x8", "all_to_all", K, TWO_LEVEL, "pipeline"),
    r("A2 2x8", "all_to_all", K, STAGED, "pairwise", buffsize_mb=79),
    r("A2 2x8", "all_to_all", K, STAGED, algo="level0:NA;level1:NHR"),
    r("A2 2x8", "all_to_all", K, TWO_LEVEL, algo="level0:NA;level1:pairwise"),
    r("A2 2x8", "all_to_all_v", K, "RunAlltoAllVContinuousPipeline", "pipeline"),
    r("A2 2x8", "all_to_all_v", K, TWO_LEVEL, algo="level0:NA;level1:pairwise"),
    r("A2 4x1", "all_to_all", K, FULL),
    r("A3 2x1x8", "all_to_all", K, "RunAlltoAllVPipelineFor91093", "pipeline"),
    r("A3 2x2x8", "all_to_all", K, DIRECT, "pairwise"),
    r("A3 1x8", "all_to_all", K, DIRECT, **HOST, **GRAPH, **NO_HCCS),
    r("A3 2x8", "all_to_all", K, STAGED, **HOST, **NO_HCCS),
    r("A3 1x8", "all_to_all", 760 * K, "AlltoAllMeshAivSmallCountExecutor", **AIV, **GRAPH),
    r("A3 1x8", "all_to_all", M, "AlltoAllMeshAivExecutor", **AIV, **GRAPH),
]


@pytest.mark.parametrize("row", [*SUMS, *OTHERS], ids=str)
def test_a_row(row: Row) -> None:
    where, op, size, executor, level1, settings = row
    found = taken(place(where), op, size, **settings)
    assert (found[0], level1 and found[1]) == (executor, level1)


def test_parts_reduced_over_uneven_servers_take_nhr() -> None:
    where = Topology(product("atlas-800t-a2"), (8, 4))
    expected = RS + "VMeshOpbaseExecutor", "NHR"
    assert taken(where, "reduce_scatter_v", K) == expected


def uneven(servers: tuple[int, ...], *pods: int) -> Topology:
    return Topology(product(A3), servers, pods or None)


@pytest.mark.parametrize(
    ("op", "executor"),
    [
        ("all_reduce", AR + "ARSFor91093Executor"),
        ("all_gather", AG + "ARSFor91093Executor"),
        ("reduce_scatter", RS + "ARSFor91093Executor"),
        ("broadcast", "BroadCastComm"),
        ("scatter", "ScatterCommExecutor"),
    ],
)
def test_uneven_servers_of_a3(op: str, executor: str) -> None:
    where = uneven((8, 6, 6, 8), 2, 2)
    assert taken(where, op, 64 * M)[0] == executor
    differing = uneven((8, 6, 6, 6), 2, 2)  # superpods of 14 and 12 devices
    flat = {"scatter": "ScatterCommExecutor", "broadcast": "BroadCastComm"}
    names = {"all_reduce": AR, "all_gather": AG, "reduce_scatter": RS}
    assert taken(differing, op, 64 * M)[0] == flat.get(op, names.get(op, "") + "Comm")


@pytest.mark.parametrize(
    ("algo", "level1"),
    [("", "NHR"), ("level0:NA;level1:ring", "ring"), ("level0:NA;level1:H-D_R", "NHR")],
)
def test_ars_knows_three_algorithms_between_servers(algo: str, level1: str) -> None:
    assert taken(uneven((8, 6)), "all_reduce", 64 * M, algo=algo)[1] == level1


def test_superpods_are_cut_to_equal_ones_unless_someone_asks_for_ahc() -> None:
    where = uneven((8,) * 6, 4, 2)
    assert taken(where, "all_gather", 64 * M) == (AG_RING, "ring")
    assert taken(where, "all_gather", 64 * M, algo="level0:NA;level1:AHC") == (AG_RING, "AHC_BROKE")
    joined = taken(where, "all_reduce", 64 * M, algo="level0:NA;level1:AHC")
    assert joined == (FAST, "AHC_BROKE")
    odd = taken(uneven((8,) * 5, 3, 2), "all_reduce", 64 * M, algo="level0:NA;level1:AHC")
    assert odd == (FAST, "AHC")
    assert taken(where, "broadcast", 64 * M, algo="level0:NA;level1:AHC")[0] == "BroadCastComm"
    assert taken(where, "broadcast", 64 * M)[0] == "BroadCastRingFor91093Executor"


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter"])
def test_ahc_is_cut_to_equal_groups_only_where_hccl_looks_at_them(op: str) -> None:
    """It does not on 910A, and not before it takes the executor of one rank."""
    asked = {"algo": "level0:NA;level1:AHC"}
    for where, word in (("910A 2x4", "AHC"), ("A3 1", "AHC"), ("A3 2x8", "AHC_BROKE")):
        assert taken(place(where), op, 64 * M, **asked)[1] == word


def test_servers_that_differ_keep_a_ring_that_is_asked_for_without_level0() -> None:
    op = call("reduce_scatter_v", 64 * K, ranks=14)
    servers = Topology(product(A2), (8, 6))
    name = "ReduceScatterVMeshOpbaseExecutor"
    assert taken(servers, op, algo="level0:null;level1:ring") == (name, "ring")
    assert taken(servers, op, algo="level0:NA;level1:ring") == (name, "NHR")


def test_level2_is_nhr() -> None:
    op = call("all_reduce", 512 * M, ranks=48)
    for pods in (2, 3):
        where = topology_of(superpods=pods, servers=2, devices=8, preset=A3)
        choice = HcclChoice(op, where, Config.load({}, ruleset="cann-2026.08"))
        assert choice.levels["level2"] == "NHR"


def test_an_exchange_of_which_one_rank_sends_little() -> None:
    """Every rank must send and receive more than a buffer holds for the direct full mesh."""
    where = topology_of(4, preset=A2)
    much, none = 16 * M, 0
    matrix = [[much] * 4 for _ in range(4)]
    op = replace(call("all_to_all_vc", K, ranks=4), matrix=tuple(map(tuple, matrix)))
    assert taken(where, op)[0] == DIRECT
    matrix[3] = [none] * 4
    op = replace(op, matrix=tuple(map(tuple, matrix)))
    assert taken(where, op)[0] == STAGED


def test_registered_memory() -> None:
    for op, size, executor in (
        ("all_reduce", 64 * M, AR + "RingZerocopyExecutor"),
        ("all_gather", 64 * M, AG + "RingZerocopyExecutor"),
        ("reduce_scatter", 64 * M, RS + "RingZerocopyExecutor"),
        ("broadcast", 64 * M, "BroadCastRingZerocopyExecutor"),
    ):
        assert taken(place("A3 2x8"), op, size, zero_copy=True)[0] == executor
        assert taken(place("A3 2x8"), op, size, zero_copy=True, **GRAPH)[0] != executor
        assert taken(place("A3 2x8"), op, size, zero_copy=True, **HOST)[0] != executor
    exchanging = AG + "RingZerocopyExchangeExecutor"
    assert taken(place("A3 4x8"), "all_gather", 64 * M, zero_copy=True)[0] == exchanging
    piped = AG + "RingZerocopyPipelineExecutor"
    assert taken(place("A3 2x4x8"), "all_gather", 2 * M, zero_copy=True)[0] == piped
    assert taken(place("A3 2x4x8"), "all_gather", 2 * M - 4, zero_copy=True)[0] == exchanging
