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
MESH = {servers: topology_of(preset="ascend950", servers=servers, devices=8) for servers in (1, 2)}
LINK, COPY = 56e9, 750e9
AG = "AicpuAllGather"


def selected(size: int, where: Topology, op: str = "all_gather", **settings: Any) -> Selection:
    return chosen(call(op, size), where, new_selector=True, ruleset=NAME, **settings)


def costs(size: int, where: Topology) -> dict[str, float]:
    found = selected(size, where).costs
    return {cost.executor.removeprefix(AG): cost.seconds * 1e6 for cost in found}


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


def test_ports_to_the_network_count() -> None:
    product = MESH[2].product
    narrow = replace(product, bus=replace(product.bus, clos_ports=(4,)))
    wide = costs(16 * M, MESH[2])["SoleNHR"]
    assert costs(16 * M, Topology(narrow, (8, 8)))["SoleNHR"] > 1.9 * wide


def test_servers_of_one_device_have_nhr_alone() -> None:
    where = topology_of(preset="ascend950", servers=4, devices=1)
    assert list(costs(M, where)) == ["SoleNHR"]


@pytest.mark.parametrize(
    "settings",
    [
        {"op": "all_reduce"},
        {"op": "broadcast"},
        {"op_expansion_mode": "CCU_MS"},
        {"algo": "mesh"},
        {"where": topology_of(preset="ascend950", servers=1, devices=1)},
        {"where": Topology(MESH[2].product, (8, 4))},
    ],
)
def test_what_was_not_read_is_not_known(settings: dict[str, Any]) -> None:
    found = selected(M, settings.pop("where", MESH[1]), **settings)
    assert found.hccl_executor is None
    assert "knows the cost table of all_gather" in found.unknown
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
