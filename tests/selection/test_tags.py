"""HCCL's newTag, op by op."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.selection.calls import call, chosen, product, topology

K = 1 << 10
G = "hccl_world_group"
RECENT: dict[str, Any] = {"ruleset": "cann-2026.08"}
A2, A3, A910, DUO = "atlas-800t-a2", "atlas-900-a3", "atlas-800-9000", "300i-duo"

TAGS = [
    ("all_reduce", A2, {}, f"AllReduce_{G}ringAnything_host"),
    ("barrier", A2, {}, f"AllReduce_{G}ringAnything_host"),
    ("all_gather", A910, {}, f"AllGather_{G}H-DAnything_host"),
    ("all_gather_v", A2, {}, f"AllGatherV_{G}H-DAnything_host"),
    ("all_reduce", A3, {}, f"AllReduce_{G}NHRAnything_device"),
    ("all_reduce", A3, {"mode": "graph"}, f"AllReduce_{G}_device"),
    ("all_reduce", A2, {"mode": "graph"}, f"AllReduce_{G}_host"),
    ("reduce_scatter", A2, {}, f"ReduceScatter_{G}ringAnything_host"),
    ("reduce_scatter", A2, {"dtype": "int64"}, f"ReduceScatter_{G}ringAnything_no_inline_host"),
    ("reduce_scatter", A910, {}, f"ReduceScatter_{G}H-DAnything_host"),
    ("reduce_scatter_v", A2, {}, f"ReduceScatterV_{G}H-DAnything_host"),
    ("reduce_scatter_v", A910, {"dtype": "fp16"}, f"ReduceScatterV_{G}H-DAnything_no_inline_host"),
    ("all_reduce", A2, {"dtype": "int64"}, f"AllReduce_{G}ringAnything_host"),
    ("all_reduce", A3, {"dtype": "int64"}, f"AllReduce_{G}NHRAnything_host"),
    ("reduce", A3, {"reduce": "prod"}, f"Reduce_{G}_1ringAnything_host"),
    ("all_gather", A3, {"dtype": "int64"}, f"AllGather_{G}NHRAnything_device"),
    ("broadcast", A2, {"root": 0}, f"Broadcast_{G}_1_host"),
    ("broadcast", A2, {"root": 8}, f"Broadcast_{G}_1_host"),
    ("broadcast", A3, {}, f"Broadcast_{G}NHRAnything_device"),
    ("broadcast", A2, {"mode": "graph"}, f"Broadcast_{G}_host"),
    ("reduce", A2, {"root": 15}, f"Reduce_{G}_1H-DAnything_host"),
    ("reduce", A3, {}, f"Reduce_{G}_1ringAnything_device"),
    ("scatter", A2, {}, f"Scatter_{G}Anything_host"),
    ("all_to_all", A2, {}, f"AlltoAll_{G}AnythingZCopy_host"),
    ("all_to_all_v", A2, {}, f"AlltoAllV_{G}AnythingZCopy_host"),
    ("all_to_all_vc", A3, {}, f"AlltoAllVC_{G}Anything_device"),
    ("all_to_all", A2, {"mode": "graph"}, f"AlltoAll_{G}"),
    ("send_recv", A2, {"pairs": ((3, 5),)}, f"worldCommSendRecv_3_5_{G}Anything_host"),
    ("send_recv", A2, {"pairs": ((3, 5),), "mode": "graph"}, f"worldCommSendRecv_3_5_{G}_host"),
    ("batch_send_recv", A2, {}, f"worldBatchSendRecv_{G}_host"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "preset", "more", "tag"), TAGS)
def test_on_two_servers(op: str, preset: str, more: dict[str, object], tag: str) -> None:
    where = topology(2, 8, preset)
    assert chosen(call(op, K, ranks=16, **more), where).tag == tag  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("preset", "mode", "place"),
    [
        (A3, "AIV", "_device"),
        (A3, "HOST", "_host"),
        (A2, "AIV", "_host"),
        (A2, "AI_CPU", "_device"),
    ],
)
def test_the_mode_says_where_tasks_are_made(preset: str, mode: str, place: str) -> None:
    settings = {"op_expansion_mode": mode, "ruleset": "cann-2026.08"}
    found = chosen(call("all_gather", K, ranks=16), topology(2, 8, preset), **settings)
    assert found.tag.endswith(place)


TWO = (2, 2, 8)
THREE = (3, 2, 8)
SINCE_2026 = [
    ("broadcast", A2, (1, 2, 8), {"root": 15}, f"Broadcast_{G}Anything_L1_1_host"),
    ("broadcast", A2, (1, 3, 8), {"root": 15}, f"Broadcast_{G}Anything_L1_0_host"),
    ("broadcast", A3, TWO, {"root": 0}, f"Broadcast_{G}NHRAnything_device"),
    ("broadcast", A3, TWO, {"algo": "level2:H-D_R"}, f"Broadcast_{G}Anything_L2_1_device"),
    ("reduce", A2, (1, 2, 8), {"root": 15}, f"Reduce_{G}_L1_1H-DAnything_host"),
    ("reduce", A2, (1, 3, 8), {}, f"Reduce_{G}ringAnything_host"),
    ("reduce", A3, TWO, {"root": 8}, f"Reduce_{G}_L1_1ringAnything_device"),
    ("reduce", A3, THREE, {"root": 24, "algo": "level1:H-D_R;level2:H-D_R"},
     f"Reduce_{G}_L1_1_L2_0ringAnything_device"),
    ("scatter", A2, (1, 2, 8), {}, f"Scatter_{G}Anything_host"),
    ("scatter", A2, (1, 2, 8), {"algo": "level2:H-D_R"}, f"Scatter_{G}_L2_1Anything_host"),
    ("scatter", A3, THREE, {"root": 24, "algo": "level2:H-D_R"},
     f"Scatter_{G}_L2_0Anything_device"),
    ("all_to_all", A3, (1, 2, 8), {}, f"AlltoAll_{G}Anything_device"),
    ("all_to_all", A3, (1, 2, 8), {"op_expansion_mode": "HOST"}, f"AlltoAll_{G}Anything_host"),
    ("all_to_all", A2, (1, 2, 8), {"op_expansion_mode": "AI_CPU"},
     f"AlltoAll_{G}AnythingZCopy_device"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "preset", "shape", "more", "tag"), SINCE_2026)
def test_since_2026_the_root_s_side_is_said_level_by_level(
    op: str, preset: str, shape: tuple[int, int, int], more: dict[str, Any], tag: str
) -> None:
    pods, servers, devices = shape
    where = topology_of(
        superpods=pods if preset == A3 else None, servers=servers, devices=devices, preset=preset
    )
    asked = {key: value for key, value in more.items() if key != "root"}
    root = {"root": more["root"]} if "root" in more else {}
    found = call(op, K, ranks=pods * servers * devices, **root)
    assert chosen(found, where, ruleset="cann-2026.08", **asked).tag == tag


def test_300i_duo_names_no_algorithm() -> None:
    where = topology_of(4, preset=DUO)
    assert chosen(call("all_reduce", K), where).tag == f"AllReduce_{G}Anything_host"
    broadcast = call("broadcast", K)
    assert chosen(broadcast, where).tag == f"Broadcast_{G}_1_host"
    now = chosen(broadcast, where, ruleset="cann-2026.08")
    assert now.tag == f"Broadcast_{G}Anything_host"


ALONE = [
    ("all_reduce", ""),
    ("all_gather", ""),
    ("reduce_scatter", ""),
    ("reduce", ""),
    ("scatter", ""),
    ("broadcast", f"Broadcast_{G}BroadCastRingExecutor_L1_1_host"),
    ("all_to_all", f"AlltoAll_{G}RunAlltoAllSingleExecutorBCopy_host"),
    ("all_to_all_v", f"AlltoAllV_{G}RunAlltoAllSingleExecutor_host"),
    ("all_gather_v", f"AllGatherV_{G}ringAllGatherVMeshExecutor_host"),
    ("batch_send_recv", f"worldBatchSendRecv_{G}_host"),
]


@pytest.mark.parametrize(("op", "tag"), ALONE)
def test_some_executors_of_one_rank_are_taken_before_there_is_a_tag(op: str, tag: str) -> None:
    """Of A2 in August 2026, as its operators return them; all_to_all_v of one mesh goes directly
    (coll_alg_utils.cc:56-98).
    """
    where = topology_of(1)
    found = chosen(call(op, K, ranks=1), where, *EXECUTORS, ruleset="cann-2026.08")
    assert found.tag == tag


@pytest.mark.parametrize(("preset", "op", "word"), [
    (A2, "all_gather_v", "H-D_R"), (A910, "all_gather", "NHR"), (A3, "reduce_scatter", "AHC_BROKE"),
])  # fmt: skip
def test_a_tag_has_the_word_of_the_operator_whatever_the_executor_makes_of_it(
    preset: str, op: str, word: str
) -> None:
    where, settings = topology(4, 8, preset), {"algo": f"level0:NA;level1:{word}"}
    found = chosen(call(op, 64 << 20, ranks=32), where, *EXECUTORS, **RECENT, **settings)
    assert f"{G}{word.removesuffix('_R')}" in found.tag


def test_300i_duo_says_how_it_copies_where_no_switch_joins_all_ranks() -> None:
    """RunAlltoAllDirectFullmesh there is the device's choice, not that of its links."""
    found = chosen(call("all_to_all", K, ranks=2), topology_of(2, preset=DUO), *EXECUTORS, **RECENT)
    assert found.tag == f"AlltoAll_{G}RunAlltoAllDirectFullmeshBCopy_host"


def test_the_root_s_server_decides_about_links_of_halving_doubling() -> None:
    """Of 6 servers the first 4 are folded into 2: of those, even ones stay."""
    where = topology(6, 2)
    suffixes = [
        chosen(call("broadcast", K, root=2 * server), where).tag.removesuffix("_host")[-1]
        for server in range(6)
    ]
    assert suffixes == ["1", "0", "1", "0", "1", "1"]


def test_all_to_all_s_copies_depend_on_what_fits_the_buffers() -> None:
    where = topology(2, 8)
    fits, more = call("all_to_all", 64 << 10), call("all_to_all", (64 << 10) + 4)
    assert "ZCopy" in chosen(fits, where, buffsize_mb=1).tag
    assert "BCopy" in chosen(more, where, buffsize_mb=1).tag
    uneven = [[0] * 16 for _ in range(16)]
    uneven[3][7] = (1 << 18) + 1
    matrix = tuple(map(tuple, uneven))
    op = call("all_to_all_vc", K, ranks=16, matrix=matrix)
    assert "BCopy" in chosen(op, where, buffsize_mb=1).tag
    assert "ZCopy" in chosen(op, where, buffsize_mb=2).tag


@pytest.mark.parametrize(
    ("op", "preset", "pods", "mode", "end"),
    [
        ("all_to_all_v", A2, 1, "HOST", "VContinuousPipelineBCopy_host"),
        ("all_to_all_v", A2, 1, "AI_CPU", "VContinuousPipelineBCopy_device"),
        ("all_to_all", A3, 2, "HOST", "VPipelineFor91093_host"),
        ("all_to_all", A3, 2, "AI_CPU", "VPipelineFor91093_device"),
    ],
)
def test_continuous_pipelines_are_chosen_before_the_buffers_are_looked_at(
    op: str, preset: str, pods: int, mode: str, end: str
) -> None:
    """alltoall_operator.cc:333 of August 2026: the copies are BCopy until somebody says more."""
    where = topology_of(
        superpods=pods if preset == A3 else None, servers=2 // pods, devices=8, preset=preset
    )
    settings = {"op_expansion_mode": mode, "ruleset": "cann-2026.08"}
    found = chosen(call(op, K, ranks=16), where, *EXECUTORS, **settings)
    assert found.tag.endswith(f"RunAlltoAll{end}")


def test_without_links_between_superpods_a_pipeline_s_tag_says_how_it_copies() -> None:
    apart: dict[str, Any] = {"op_expansion_mode": "HOST", "inter_hccs_disable": True}
    where = topology_of(superpods=2, servers=1, devices=8, preset=A3)
    op = call("all_to_all", K, ranks=16)
    found = chosen(op, where, *EXECUTORS, ruleset="cann-2026.08", **apart)
    assert found.tag.endswith("RunAlltoAllVPipelineFor91093BCopy_host")


def test_pairs_have_tags_of_their_own() -> None:
    where = topology(1, 8)
    ring = chosen(call("send_recv", K), where).tag
    swap = chosen(call("send_recv", K, pairs=((0, 1), (1, 0))), where).tag
    back = chosen(call("send_recv", K, pairs=((1, 0), (0, 1))), where).tag
    assert len({ring, swap, back}) == 3
    assert swap.startswith("worldCommSendRecv_2_pairs_")
    assert len(chosen(call("send_recv", K), topology(512, 8)).tag) <= 255


@pytest.mark.parametrize(
    ("op", "size", "algo", "name", "ring"),
    [
        ("all_gather", 4 * K, "", "NHRAllGatherARSFor91093Executor", 2),
        ("all_gather", 32 << 20, "", "NHRAllGatherARSFor91093Executor", 14),
        ("reduce_scatter", 4 * K, "", "NHRReduceScatterARSFor91093Executor", 2),
        ("all_reduce", 128 << 20, "", "NHRAllReduceARSFor91093Executor", 2),
        ("all_reduce", 512 << 20, "level1:ring", "ringAllReduceARSFor91093Executor", 14),
    ],
)
def test_calls_over_uneven_servers_say_how_long_a_ring_is(
    op: str, size: int, algo: str, name: str, ring: int
) -> None:
    where, eager = Topology(product(A3), (8, 6)), call(op, size, ranks=14)
    for found, middle in (
        (chosen(eager, where, *EXECUTORS, ruleset="cann-2026.08", algo=algo), name),
        (
            chosen(
                replace(eager, mode=Mode.GRAPH),
                where,
                *EXECUTORS,
                ruleset="cann-2026.08",
                algo=algo,
            ),
            "",
        ),
    ):
        assert found.tag.endswith(f"_{G}{middle}{ring}_device")
        assert found.executor == found.hccl_executor
