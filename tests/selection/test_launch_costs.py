"""The cost table after August 2026, against the formulas of HCCL's source, worked out by hand.

No run of that release's HCCL stands behind these numbers: each is the sum that its `CalcCostCoeff`
and `CalcAlgCost` spell, with the bytes of a rank's input, in microseconds.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.selection.answer import Selection
from hccl_py.selection.tables import HCCL_170DDEE as NAME
from hccl_py.topology import Topology, topology_of
from tests.selection.calls import call, chosen

K, M = 1 << 10, 1 << 20
REDUCE = 483e9
MESH = {servers: topology_of(preset="ascend950", servers=servers, devices=8) for servers in (1, 2)}
LINK, COPY = 56e9, 750e9
AG = "AicpuAllGather"
NAMES = {"all_gather": "AllGather", "all_reduce": "AllReduce", "broadcast": "Broadcast"}
NAMES |= {"all_to_all": "AllToAll", "all_gather_v": "AllGatherV"}
NAMES |= {"reduce_scatter_v": "ReduceScatterV"}
NAMES |= {"reduce": "Reduce", "reduce_scatter": "ReduceScatter", "scatter": "Scatter"}
NEVER = "StrictOrderedMesh", "StrictOrderedGroupMesh", "SoleNHRAicpuReduce"


def selected(size: int, where: Topology, op: str = "all_gather", **settings: Any) -> Selection:
    return chosen(call(op, size), where, new_selector=True, ruleset=NAME, **settings)


def costs(size: int, where: Topology, op: str = "all_gather", **settings: Any) -> dict[str, float]:
    """The microseconds of executors that may win."""
    found = selected(size, where, op, **settings).costs
    table = {cost.executor.removeprefix(f"Aicpu{NAMES[op]}"): cost.seconds * 1e6 for cost in found}
    return {name: cost for name, cost in table.items() if name not in NEVER}


def left(op: str, where: Topology, size: int = M, dtype: str = "fp32", **settings: Any) -> set[str]:
    """Executors that rules leave."""
    words = {"dtype": dtype, **({"reduce": settings.pop("reduce")} if "reduce" in settings else {})}
    found = chosen(call(op, size, **words), where, new_selector=True, ruleset=NAME, **settings)
    return {cost.executor.removeprefix(f"Aicpu{NAMES[op]}") for cost in found.costs}


def per_byte(size: int, *terms: float) -> float:
    return size * sum(terms) * 1e6


def test_one_server_of_small_data_costs_its_steps_or_its_launches() -> None:
    """1 KB on 8 ranks: 8, 16 and 8 x 3 - 7 = 17 steps of 2 us; launches: 9 x 7 tasks of 0.5 us, as
    many twice, and 9 x (5 - 1) tasks of 1 us.
    """
    found = costs(K, MESH[1])
    assert list(found) == ["SoleMesh", "SoleMeshConcur", "SoleNHR"]
    assert found["SoleMesh"] == pytest.approx(31.5)
    assert found["SoleMeshConcur"] == pytest.approx(63)
    assert found["SoleNHR"] == pytest.approx(36)
    best = selected(K, MESH[1])
    assert best.hccl_executor == f"{AG}SoleMesh"
    assert best.engine == "AICPU_TS"
    assert "efbe1cd" in best.source


def test_one_server_of_large_data() -> None:
    """16 MB on 8 ranks. Two copies each but NHR's one; the detour sends half over 8 ports, 7 of 16
    of the data, while the mesh sends the other half; NHR uses links by 16 MB x 8 / 2.
    """
    size = 16 * M
    found = costs(size, MESH[1])
    mesh = per_byte(size, 1 / LINK / 0.84, 2 / COPY) + 16
    detour = per_byte(size, 0.5 / LINK / 0.84, 2 / COPY) + 32
    nhr = per_byte(size, 7 / LINK / 0.8475, 1 / COPY) + 34
    assert found == pytest.approx({"SoleMesh": mesh, "SoleMeshConcur": detour, "SoleNHR": nhr})
    assert selected(size, MESH[1]).hccl_executor == f"{AG}SoleMeshConcur"


def test_two_servers() -> None:
    """1 MB on 2 x 8 ranks. The formula of reduce_scatter splits a parallel call: clos 1 / 16, mesh
    21 / 160, their ratio 0.32 is 3 eighths; each of its four parts has 40 us besides.
    """
    found = costs(M, MESH[2])
    first, last = 0.625, 0.375
    parts = (
        per_byte(M, first / LINK / 0.7135, 2 * first / COPY) + 16 + 40,
        per_byte(M, last / 8 / LINK / 0.1855, last / COPY) + 2 + 40,
        per_byte(M, last * 2 / LINK / 0.7135) + 16 + 40,
        per_byte(M, first * 8 / 8 / LINK / 0.5302) + 2 + 40,
    )
    inside = per_byte(M, 1 / LINK / 0.7758, 4 / COPY) + 32 + 6
    between = per_byte(M, 1 / 8 / LINK / 0.1855) + 2 + 6
    nhr = per_byte(M, 15 / 8 / LINK / 0.5302, 1 / COPY) + 2 * 25
    assert found == pytest.approx(
        {
            "ParallelMeshNHR": max(parts[:2]) + max(parts[2:]),
            "SequenceMeshConcurNHR": inside + between,
            "SoleNHR": nhr,
        }
    )


def test_launches_grow_with_the_ranks() -> None:
    """1 KB on 4 x 8 ranks: a detour of 126 tasks at 0.5 us and NHR of 9 x (3 - 1) at 1 us, and
    (32 - 16) / 2 us more of each; a parallel call has 63 x 0.5 + 18 us twice, and 320 / 32 us more
    of each of its four parts.
    """
    where = topology_of(preset="ascend950", servers=4, devices=8)
    found = costs(K, where)
    assert found["SequenceMeshConcurNHR"] == pytest.approx(63 + 18 + 16)
    assert found["ParallelMeshNHR"] == pytest.approx(2 * 31.5 + 2 * 18 + 4 * 10)


def test_all_reduce_on_one_server() -> None:
    """16 MB on 8 ranks, in eighths of 2 MB: NHR uses links by 8 MB. One shot sends all to all and
    reduces 7 times; a detour of reduce_scatter goes over two of the mesh's ports, the other over 8.
    """
    size = 16 * M
    assert costs(size, MESH[1], "all_reduce") == pytest.approx(
        {
            "SoleMeshOneShot": per_byte(size, 1 / LINK / 0.7758, 1 / COPY, 7 / REDUCE) + 2,
            "SoleMeshTwoShot": per_byte(size, 2 / 8 / LINK / 0.7758, 1 / 8 / COPY, 7 / 8 / REDUCE)
            + 40,
            "SoleNHR": per_byte(size, 2 / 8 * 7 / LINK / 0.8301, 2 / COPY) + 20,
            "SoleMeshChunkTwoShot": (5 * 7 * 8 + 2 * 7 * 8) * 0.5,
            "SoleMeshConcur": per_byte(size, 0.5 * 7 / 2 / LINK / 0.7758, 1 / COPY, 7 / REDUCE)
            + per_byte(size, 0.5 / LINK / 0.7758, 1 / COPY)
            + 30
            + 32,
        }
    )
    few = costs(K, MESH[1], "all_reduce")
    assert few["SoleMeshOneShot"] == pytest.approx(10 * 7 * 0.5)
    assert few["SoleMeshTwoShot"] == pytest.approx((16 * 7 + 10) * 0.5)
    assert few["SoleNHR"] == pytest.approx(8 * 7)


def test_all_reduce_on_two_servers() -> None:
    """16 MB on 2 x 8 ranks, 3 eighths inside first: four steps of two parts, 25 us more each."""
    size, inside, between = 16 * M, 3 / 8, 5 / 8
    found = costs(size, MESH[2], "all_reduce")
    parallel = (
        (
            per_byte(size, inside / 8 / LINK / 0.7135, inside / 8 / COPY, inside * 7 / 8 / REDUCE)
            + 22,
            per_byte(size, between / 2 / 8 / LINK / 0.5302, between / 2 / COPY) + 30,
        ),
        (
            per_byte(size, between / 16 / LINK / 0.7135, between * 7 / 16 / REDUCE) + 22,
            per_byte(size, inside / 16 / 8 / LINK / 0.10388) + 30,
        ),
        (
            per_byte(size, between / 16 / LINK / 0.7135) + 16,
            per_byte(size, inside / 16 / 8 / LINK / 0.10388) + 2,
        ),
        (
            per_byte(size, inside / 8 / LINK / 0.7135, inside / 8 / COPY) + 16,
            per_byte(size, between / 2 / 8 / LINK / 0.5302) + 2,
        ),
    )
    assert found["ParallelMeshNHR"] == pytest.approx(sum(max(step) + 25 for step in parallel))
    sequence = (
        per_byte(size, 0.5 * 7 / 2 / 8 / LINK / 0.7758, 1 / 8 / COPY, 7 / 8 / REDUCE) + 30,
        per_byte(size, 1 / 16 / 8 / LINK / 0.1855, 1 / 16 / COPY) + 30,
        per_byte(size, 1 / 16 / 8 / LINK / 0.1855) + 2,
        per_byte(size, 0.5 / 8 / LINK / 0.7758, 1 / 8 / COPY) + 32,
    )
    assert found["SequenceMeshConcurNHR"] == pytest.approx(sum(sequence) + 4 * 5)
    nhr = per_byte(size, 2 / 16 * 15 / 8 / LINK / 0.5302, 2 / COPY) + 20
    assert found["SoleNHR"] == pytest.approx(nhr)
    assert costs(K, MESH[2], "all_reduce")["SoleNHR"] == pytest.approx(8 * 15)


def test_reduce_scatter() -> None:
    """16 MB for each of 8 ranks, and of 2 x 8: NHR's links are used as those of a Clos network."""
    size = 16 * M
    assert costs(size, MESH[1], "reduce_scatter") == pytest.approx(
        {
            "SoleMesh": per_byte(size, 1 / LINK / 0.84, 1 / COPY, 7 / REDUCE) + 22,
            "SoleMeshChunk": per_byte(size, 1 / LINK / 0.84, 2 / COPY) + 5 * 8 * 2,
            "SoleNHR": per_byte(size, 7 / LINK / 0.7184, 4 / COPY) + 30,
            "SoleMeshConcur": per_byte(size, 1.75 / LINK / 0.84, 1 / COPY, 7 / REDUCE) + 30,
        }
    )
    parallel = (
        per_byte(size, 1 / LINK / 0.84, 1 / COPY, 7 / REDUCE) + 22,
        per_byte(size, 4 / 8 / LINK / 0.7184, 4 / COPY) + 30,
        per_byte(size, 0.5 / 8 / LINK / 0.5302) + 30,
        per_byte(size, 0.5 / LINK / 0.8301, 0.5 * 7 / REDUCE) + 22,
    )
    assert costs(size, MESH[2], "reduce_scatter") == pytest.approx(
        {
            "ParallelMeshNHR": max(parallel[:2]) + max(parallel[2:]) + 2 * 20,
            "SoleNHR": per_byte(size, 15 / 8 / LINK / 0.7408, 8 / COPY) + 30,
        }
    )
    assert costs(K, MESH[2], "reduce_scatter")["SoleNHR"] == pytest.approx(46 + 8)


def test_broadcast() -> None:
    """16 MB on 8 ranks: NHR leaves two of 7 ports free, unless it uses all links. On 2 x 8 ranks
    halves of the data go inside and between servers first, scattered and gathered.
    """
    size = 16 * M
    assert costs(size, MESH[1], "broadcast") == pytest.approx(
        {
            "SoleMeshTwoShot": per_byte(size, 2 / 8 / LINK / 0.7758, 1 / COPY) + 20,
            "SoleNHR": per_byte(size, 2 / 8 * 7 / 5 / LINK / 0.8301, 1 / COPY) + 20,
            "SoleNHRMultiLink": per_byte(size, 2 / 8 * 7 / 7 / LINK / 0.8301, 1 / COPY) + 24,
        }
    )
    size = 256 * M
    steps = (
        (
            per_byte(size, 1 / 16 / LINK / 0.84, 1 / 16 / COPY) + 8,
            per_byte(size, 1 / 4 / 8 / LINK / 0.7184, 2 / 4 / COPY) + 2,
        ),
        (
            per_byte(size, 1 / 32 / 8 / LINK / 0.5302) + 2,
            per_byte(size, 1 / 32 / LINK / 0.8301) + 8,
        ),
        (
            per_byte(size, 1 / 32 / 8 / LINK / 0.5302) + 2,
            per_byte(size, 1 / 32 / LINK / 0.8301) + 16,
        ),
        (
            per_byte(size, 1 / 16 / LINK / 0.84, 1 / 16 / COPY) + 16,
            per_byte(size, 1 / 4 / 8 / LINK / 0.7184) + 2,
        ),
    )
    found = costs(size, MESH[2], "broadcast")
    assert found["ParallelMeshNHR"] == pytest.approx(sum(map(max, steps)))
    scatter, gather = (7 * 7 + 1 + 7 * 7 + 1 + 4 + 2 + 1 + 4) * 0.5, 2 * 31.5 + 2 * 9
    few = costs(K, MESH[2], "broadcast")["ParallelMeshNHR"]
    assert few == pytest.approx(scatter + gather)


def test_reduce() -> None:
    """As all_reduce, but for what two shots copy and wait for; a sequence has two steps of one rank
    between superpods, of 8 and 9 launches.
    """
    size = 16 * M
    assert costs(size, MESH[1], "reduce") == pytest.approx(
        {
            "SoleMesh": per_byte(size, 1 / LINK / 0.7758, 1 / COPY, 7 / REDUCE) + 2,
            "SoleMeshTwoShot": per_byte(size, 2 / 8 / LINK / 0.7758, 2 / 8 / COPY, 7 / 8 / REDUCE)
            + 22,
            "SoleNHR": per_byte(size, 2 / 8 * 7 / LINK / 0.8301, 2 / COPY) + 20,
        }
    )
    few = costs(K, MESH[2], "reduce")
    assert few["SequenceMeshConcurNHR"] == pytest.approx(63 + 19 + 8 + 9 + 9 + 63)
    assert few["ParallelMeshNHR"] == pytest.approx(30 + 30 + 16 + 16 + 4 * 25, rel=1e-3)
    assert left("reduce", MESH[1], reduce="prod") == {
        *("SoleMesh", "SoleMeshTwoShot", "SoleNHRAicpuReduce"),
    }
    assert not left("reduce", MESH[1], deterministic="strict")


def test_scatter() -> None:
    """16 MB for each of 8 ranks, and of 2 x 8: 3 eighths go inside servers first, a root lays out
    all parts for NHR, and a mesh is used over the network, too.
    """
    size = 16 * M
    assert costs(size, MESH[1], "scatter") == pytest.approx(
        {
            "SoleMesh": per_byte(size, 1 / LINK / 0.84, 2 / COPY) + 8,
            "SoleNHR": per_byte(size, 7 / LINK / 0.8475, 9 / COPY) + 6,
        }
    )
    parallel = (
        per_byte(size, 0.75 / LINK / 0.84, 0.75 / COPY) + 8,
        per_byte(size, 5 / 8 / LINK / 0.7408, 2 * 5 / COPY) + 2,
        per_byte(size, 0.375 / 8 / LINK / 0.5302, 0.375 / COPY) + 2,
        per_byte(size, 0.625 / LINK / 0.84, 2 * 0.625 / COPY) + 8,
    )
    inside = per_byte(size, 2 * 0.5 / LINK / 0.8449, 2 / COPY) + 8
    between = per_byte(size, 1 / 8 / LINK / 0.568, 1 / COPY) + 2
    assert costs(size, MESH[2], "scatter") == pytest.approx(
        {
            "ParallelMeshNHR": max(parallel[:2]) + max(parallel[2:]),
            "SequenceMeshConcurNHR": inside + between,
            "SoleMesh": per_byte(size, 15 / 8 / LINK / 0.568, 2 / COPY) + 8,
            "SoleNHR": per_byte(size, 15 / 8 / LINK / 0.7408, 17 / COPY) + 8,
        }
    )
    few = costs(K, MESH[2], "scatter")
    assert few["SoleMesh"] == pytest.approx((7 * 15 + 1) * 0.5)
    assert few["SoleNHR"] == pytest.approx((15 + 2 * 5 + 16 + 1) * 0.5)
    assert few["SequenceMeshConcurNHR"] == pytest.approx((9 * 7 + 12 + 1 + 1 + 4 + 1) * 0.5)


def test_all_to_all() -> None:
    """16 MB for each rank: twice the launches with two channels, of one channel in all cases that
    many ports; over servers 15 transfers over 8 ports. A sequence is known, and never taken.
    """
    size, few = 16 * M, costs(K, MESH[1], "all_to_all")
    same = per_byte(size, 1 / LINK / 0.84, 1 / COPY) + 20
    assert costs(size, MESH[1], "all_to_all") == pytest.approx(
        {"SoleMesh": same, "SoleMeshSingleChannel": same}
    )
    assert few == pytest.approx({"SoleMesh": 63, "SoleMeshSingleChannel": 31.5})
    found = costs(size, MESH[2], "all_to_all")
    assert found["SoleMesh"] == pytest.approx(per_byte(size, 15 / 8 / LINK / 0.568, 1 / COPY) + 20)
    assert found["SequenceMeshMesh"] == pytest.approx(per_byte(size, 1000 / 0.84) + 1e9)


def test_parts_of_different_sizes_cost_as_the_largest() -> None:
    sizes = (*(K,) * 6, 4 * M, K)
    counts = tuple(n // 4 for n in sizes)
    known: dict[str, Any] = {"new_selector": True, "ruleset": NAME}
    gather = chosen(call("all_gather_v", sum(sizes), counts=counts), MESH[1], **known)
    assert gather.costs[0].seconds * 1e6 == pytest.approx(
        per_byte(4 * M, 1 / LINK / 0.8112, 1 / COPY) + 2
    )
    sums = chosen(call("reduce_scatter_v", sum(sizes), counts=counts), MESH[1], **known)
    assert sums.costs[0].seconds * 1e6 == pytest.approx(
        per_byte(4 * M, 1 / LINK / 0.8112, 1 / COPY, 7 / REDUCE) + 28
    )


def test_what_cannot_reduce_so_is_struck() -> None:
    """A product, and 64 bits: meshes that reduce on the AI CPU, and NHR that does."""
    mesh = {"SoleMeshOneShot", "SoleMeshTwoShot"}
    ordered = {"StrictOrderedMesh"}
    assert left("all_reduce", MESH[1], reduce="prod") == mesh | ordered | {"SoleNHRAicpuReduce"}
    assert left("all_reduce", MESH[2], dtype="int64") == {"SoleNHRAicpuReduce"}
    assert left("reduce_scatter", MESH[1], dtype="int64") == {"SoleMesh", "SoleNHRAicpuReduce"}
    assert left("broadcast", MESH[1], dtype="fp64") == {"SoleNHRMultiLink"}


def test_strict_order_leaves_the_executors_that_have_it() -> None:
    assert left("all_reduce", MESH[1], deterministic="strict") == {"StrictOrderedMesh"}
    assert left("reduce_scatter", MESH[2], deterministic="strict") == {"StrictOrderedGroupMesh"}


def test_a_sequence_of_reduce_scatters_is_for_much_data() -> None:
    sequence = "SequenceMeshConcurNHR"
    assert sequence not in left("reduce_scatter", MESH[2], 256 * M)
    assert sequence in left("reduce_scatter", MESH[2], 256 * M + 4)


def test_ports_to_the_network_count() -> None:
    product = MESH[2].product
    narrow = replace(product, bus=replace(product.bus, clos_ports=(4,)))
    wide = costs(16 * M, MESH[2])["SoleNHR"]
    assert costs(16 * M, Topology(narrow, (8, 8)))["SoleNHR"] > 1.9 * wide


def test_servers_of_one_device_have_nhr_alone() -> None:
    where = topology_of(preset="ascend950", servers=4, devices=1)
    assert list(costs(M, where)) == ["SoleNHR"]
    assert left("reduce_scatter", where) == {"SoleNHR"}
    assert left("all_reduce", where) == {"SoleNHR", "SoleNHRAicpuReduce", "StrictOrderedMesh"}
    assert left("broadcast", where) == {"SoleNHR", "SoleNHRMultiLink"}


@pytest.mark.parametrize(
    "settings",
    [
        {"op": "batch_send_recv"},
        {"op": "barrier"},
        {"op_expansion_mode": "CCU_MS"},
        {"algo": "mesh"},
        {"where": topology_of(preset="ascend950", servers=1, devices=1)},
        {"where": Topology(MESH[2].product, (8, 4))},
    ],
)
def test_what_was_not_read_is_not_known(settings: dict[str, Any]) -> None:
    found = selected(M, settings.pop("where", MESH[1]), **settings)
    assert found.hccl_executor is None
    assert "knows the cost table on AICPU_TS of all_gather(_v), all_reduce" in found.unknown
    assert not found.costs
    assert not found.refusal


def test_rules_of_the_release_are_not_known() -> None:
    found = chosen(call("all_gather", M), MESH[1], ruleset=NAME)
    assert "HCCL_USE_NEW_SELECTOR=1" in found.unknown


def test_explain_shows_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_USE_NEW_SELECTOR", "1")
    words = ["explain", "all_gather", "--topology", "ascend950", "--devices", "8", "-b", "8K"]
    assert main([*words, "--json", "--ruleset", NAME]) == 0
    document = json.loads(capsys.readouterr().out)
    table = {row["executor"]: row["seconds"] for row in document["costs"]}
    assert document["hccl_executor"] == min(table, key=table.__getitem__)
    assert document["ruleset"] == NAME
