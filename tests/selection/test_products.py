"""Rows of the decision tables for products that no preset has, and for limits of products."""

import pytest

from hccl_py.errors import ParameterError
from hccl_py.topology import Topology, topology_of
from tests.selection.calls import Anything, call, chosen, product, topology

K, M = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("ranks", "size", "dtype", "executor"),
    [
        (4, 256 * K, "fp32", "AllReduceDoubling"),
        (4, 256 * K + 4, "fp32", "AllReduceRing"),
        (6, K, "fp32", "AllReduceRing"),
        (2, M, "fp32", "AllReduceRing"),
        (4, K, "int32", "AllReduceRing"),
    ],
)
def test_310p3_that_is_no_duo(ranks: int, size: int, dtype: str, executor: str) -> None:
    where = Topology(product("300i-duo", name="300i-pro"), (ranks,))
    assert chosen(call("all_reduce", size, dtype=dtype), where).hccl_executor == executor
    selection = chosen(call("all_to_all", K, ranks=ranks), where)
    assert selection.hccl_executor == "RunAlltoAllDirectFullmesh"


def test_other_310p() -> None:
    where = Topology(product("300i-duo", device="310P", name="310p"), (2,))
    names = [
        chosen(call(op, K, ranks=2), where).hccl_executor for op in ("all_reduce", "broadcast")
    ]
    assert names == ["AllReduceReducePlusBcast", "BroadcastPlusBroadcast"]
    refused = chosen(call("all_gather", K, ranks=2), where)
    assert (refused.hccl_executor, refused.result) == (None, "HCCL_E_NOT_SUPPORT")
    assert refused.refusal == "its selection has no all_gather on 310P"


@pytest.mark.parametrize(("ports", "rings"), [(7, ("", "Fast")), (0, ("Aligned", ""))])
def test_seven_hccs_ports_take_the_fast_double_ring(ports: int, rings: tuple[str, str]) -> None:
    where = Topology(product("atlas-900-a3", hccs_ports=ports), (8,))
    for op, name in (("all_reduce", "AllReduce"), ("reduce_scatter", "ReduceScatter")):
        expected = f"{rings[0]}{name}{rings[1]}DoubleRingFor91093Executor"
        assert chosen(call(op, 64 * M), where).hccl_executor == expected


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
@pytest.mark.parametrize("ruleset", ["cann-2025.07", "cann-2026.08"])
def test_servers_of_one_device_of_a2_are_a_ring_as_cards_are(op: str, ruleset: str) -> None:
    """IsStandardCard: HCCS joins no pair of devices there (hccl_communicator_attrs_host.cc:55-68 of
    August 2026, hccl_communicator_attrs.cc:40-49 of July 2025).
    """
    ring, mesh = topology(2, 1), topology(2, 2)
    links = [
        chosen(call(op, M, ranks=where.size, mode="graph"), where, ruleset=ruleset).hccl_algorithm
        for where in (ring, mesh)
    ]
    assert [level["level0"] for level in links] == ["ring", "mesh"]


@pytest.mark.parametrize(
    ("ranks", "device", "mode", "dtype", "executor"),
    [
        (2, "910B", "op_base", "fp32", "AllReduceMeshOneshotLoopExecutor"),
        (2, "910B", "op_base", "int64", "AllReduceRingExecutor"),
        (2, "910B", "graph", "fp32", "AllReduceRingExecutor"),
        (2, "910A", "op_base", "fp32", "AllReduceMeshExecutor"),
        (5, "910A", "op_base", "fp32", "AllReduceRingExecutor"),
        (9, "910A", "op_base", "fp32", None),
    ],
)
def test_pcie_cards(ranks: int, device: str, mode: str, dtype: str, executor: str) -> None:
    cards = product("atlas-800t-a2", shape="pcie", device=device, devices_per_server=16)
    op = call("all_reduce", M, dtype=dtype, mode=mode)
    assert chosen(op, Topology(cards, (ranks,))).hccl_executor == executor


def test_two_cards_are_a_ring_whatever_hccl_algo_says() -> None:
    cards = Topology(product("atlas-800t-a2", shape="pcie", devices_per_server=16), (2,))
    op = call("all_reduce", M, mode="graph")
    selection = chosen(op, cards, algo="level0:null;level1:ring")
    assert selection.hccl_algorithm["level0"] == "null"
    assert selection.hccl_executor == "AllReduceRingExecutor"


def test_reduce_scatter_v_needs_links_that_reduce() -> None:
    where = Topology(product("atlas-800t-a2", inline=frozenset()), (8,))
    selection = chosen(call("reduce_scatter_v", K), where)
    assert selection.refusal == "ReduceScatterV needs links that can reduce"


def test_advice_of_hccl_s_documents() -> None:
    def says(op: str, where: Topology) -> str:
        return "; ".join(chosen(call(op, K, ranks=where.size), where).reasons)

    assert "HCCL's documents" not in says("all_reduce", topology(1, 4, "atlas-800-9000"))
    assert "advise servers with as many devices" in says("all_reduce", topology_of(11))
    assert "at most 3 of these at once" in says("batch_send_recv", topology(63, 8))
    assert "at once" not in says("batch_send_recv", topology(62, 8))


@pytest.mark.parametrize("devices", [3, 6])
def test_hccl_joins_1_2_4_or_8_devices_of_910a(devices: int) -> None:
    """It looks at the first server."""
    for servers in ((devices,), (devices, 4)):
        selection = chosen(call("all_reduce", K), Topology(product("atlas-800-9000"), servers))
        assert (selection.hccl_executor, selection.result) == (None, "HCCL_E_PARA")
        assert f"has 1, 2, 4 or 8 devices, not {devices}" in selection.refusal
    taken = chosen(call("all_reduce", K), Topology(product("atlas-800-9000"), (4, devices)))
    assert taken.hccl_executor == "AllReduceComm"


def test_halving_doubling_needs_servers() -> None:
    """Three devices of 910A are one ring, and HCCL's default for two servers is H-D_R."""
    where = topology(2, 3, "atlas-800-9000")
    for op in ("all_reduce", "all_to_all", "broadcast"):
        selection = chosen(call(op, K, ranks=6), where)
        assert (selection.hccl_executor, selection.result) == (None, "HCCL_E_PARA")
        assert "all ranks are one ring" in selection.refusal
    with pytest.raises(ParameterError, match="with HCCL_E_PARA: level1:H-D_R needs servers"):
        chosen(call("all_reduce", K), where, Anything, strict=True)


def test_level0_null_leaves_level1_as_it_is() -> None:
    flat = {"algo": "level0:null;level1:H-D_R"}
    selection = chosen(call("all_reduce", K, ranks=16), topology(2, 8), **flat)
    assert (selection.hccl_executor, selection.refusal) == ("AllReduceComm", "")
    assert selection.hccl_algorithm == {"level0": "null", "level1": "H-D_R"}
    default = chosen(call("all_reduce", K, ranks=32), topology(4, 8), algo="level0:null")
    assert default.hccl_algorithm == {"level0": "null", "level1": "NHR"}


@pytest.mark.parametrize(
    ("algo", "executor"),
    [
        ("level0:NA;level1:pairwise", "RunAlltoAllVFullMesh"),
        ("level1:pairwise", "RunAlltoAllVStaged"),
        ("level0:null;level1:pairwise", "RunAlltoAllVStaged"),
    ],
)
def test_pairwise_needs_both_levels(algo: str, executor: str) -> None:
    op = call("all_to_all", K, ranks=32)
    assert chosen(op, topology(4, 8), algo=algo).hccl_executor == executor
