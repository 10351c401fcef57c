"""The algorithms between servers and superpods: settings, costs, defaults, fallbacks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.topology import Topology, topology_of
from tests.selection.calls import call, chosen, product, topology

K, M = 1 << 10, 1 << 20
A2, A3, A910 = "atlas-800t-a2", "atlas-900-a3", "atlas-800-9000"
LITE = product(A2, rdma_lite=True)


def level1(op: str, size: int, where: Topology, mode: str = "op_base", **settings: Any) -> str:
    """Return HCCL's algorithm between servers."""
    return chosen(call(op, size, ranks=where.size, mode=mode), where, **settings).hccl_algorithm[
        "level1"
    ]


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize("servers", [2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 32])
@given(size=st.integers(1, 32 * K // 4 - 1))
def test_cost_keeps_the_ring_for_two_and_three_servers(op: str, servers: int, size: int) -> None:
    expected = "ring" if servers <= 3 else "NHR"
    assert level1(op, size * 4, topology(servers, 8)) == expected


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize(
    ("servers", "default"),
    [(1, "ring"), (2, "H-D_R"), (3, "ring"), (4, "H-D_R"), (7, "ring"), (9, "H-D_R")],
)
def test_defaults_where_no_cost_is_compared(op: str, servers: int, default: str) -> None:
    assert level1(op, K, topology(servers, 8), mode="graph") == default
    assert level1(op, K, topology(servers, 8, A910)) == default


@pytest.mark.parametrize(("servers", "default"), [(2, "NHR"), (3, "ring"), (8, "NHR")])
def test_a3_takes_nhr_for_halving_doubling(servers: int, default: str) -> None:
    assert level1("all_reduce", 512 * M, topology(servers, 8, A3)) == default


@pytest.mark.parametrize(
    ("op", "least"),
    [("all_gather", 32 * K), ("reduce_scatter", 32 * K), ("all_reduce", 32 * M)],
)
def test_the_pipeline_from_its_threshold_on(op: str, least: int) -> None:
    where = Topology(LITE, (8,) * 4)
    assert level1(op, least, where) == "pipeline"
    assert level1(op, least - 4, where) == "NHR"
    assert level1(op, least, where, mode="graph") == "H-D_R"
    assert level1(op, least, Topology(LITE, (1,) * 4)) == "NHR"
    fixed = level1(op, least, where, deterministic="true")
    assert fixed == ("pipeline" if op == "all_gather" else "NHR")
    assert level1(op, least, Topology(product("ring", rdma_lite=True), (8,) * 4)) == "NHR"


@pytest.mark.parametrize(
    ("op", "least"), [("all_gather", 2 * M), ("reduce_scatter", 2 * M), ("all_reduce", 64 * M)]
)
def test_without_rdma_lite_the_threshold_is_higher(op: str, least: int) -> None:
    where = topology(4, 8)
    assert level1(op, least, where) == "pipeline"
    assert level1(op, least - 4, where) == "NHR"


def test_reductions_that_links_cannot_do_have_no_pipeline() -> None:
    where = topology(2, 8)
    op = call("all_reduce", 64 * M, dtype="int64")
    assert chosen(op, where).hccl_algorithm["level1"] == "ring"


def test_what_vector_cores_reduce_is_no_pipeline() -> None:
    where = Topology(LITE, (8, 8))
    assert level1("all_reduce", 16 * M, where, op_expansion_mode="AIV") == "ring"
    assert level1("all_reduce", 16 * M + 4, where, op_expansion_mode="AIV") == "pipeline"
    small: dict[str, Any] = {"op_expansion_mode": "AIV", "buffsize_mb": 15}
    assert level1("all_reduce", 16 * M, where, **small) == "pipeline"
    # Vector cores take it before HCCL compares costs.
    assert level1("reduce_scatter", 32 * K, where, op_expansion_mode="AIV") == "H-D_R"


def test_a_pipeline_of_too_many_contexts_becomes_halving_doubling() -> None:
    # 5 x 7 + 8 = 43 contexts a server and 5 more; all_reduce twice as many.
    fits, many = topology(761, 8), topology(762, 8)
    setting = {"algo": "level0:NA;level1:pipeline"}
    assert level1("all_reduce", K, fits, **setting) == "pipeline"
    selection = chosen(call("all_reduce", K), many, **setting)
    assert selection.hccl_algorithm["level1"] == "H-D_R"
    assert any("would take 65542 FFTS contexts of 65535" in r for r in selection.reasons)
    assert level1("all_gather", 2 * M, many) == "pipeline"


@pytest.mark.parametrize("algo", ["", "level0:NA;level1:pipeline"])
def test_a_pipeline_may_take_the_last_context(algo: str) -> None:
    """All_gather of 2 servers of 8 devices: 2 x 43 contexts and 5 more."""

    def of_devices_with(contexts: int) -> str:
        where = Topology(product(A2, contexts=contexts), (8, 8))
        return level1("all_gather", 2 * M, where, algo=algo)

    assert of_devices_with(91) == "pipeline"
    assert of_devices_with(90) == ("H-D_R" if algo else "ring")


def test_a_deterministic_all_reduce_pipeline_has_contexts_between_servers() -> None:
    """It takes 7 contexts a server more, and those of one task between each two servers: all in all
    2(50 M + 5) + M - 1, which is 65457 for 648 servers and 65558 for 649.
    """
    setting: dict[str, Any] = {
        "ruleset": "cann-2026.08",
        "deterministic": "true",
        "algo": "level0:NA;level1:pipeline",
    }
    assert level1("all_reduce", M, topology(648, 8), **setting) == "pipeline"
    selection = chosen(call("all_reduce", M), topology(649, 8), **setting)
    assert selection.hccl_algorithm["level1"] == "H-D_R"
    assert any("would take 65558 FFTS contexts of 65535" in r for r in selection.reasons)


def test_an_all_to_all_pipeline_copies_once_for_every_server() -> None:
    # Of n = 8 devices M(5 x 7 + 7 + 1) + 4 + 1 + M: 65521 for 1489 servers, 65565 for 1490.
    setting = {"algo": "level0:NA;level1:pipeline"}
    assert level1("all_to_all", K, topology(1489, 8), **setting) == "pipeline"
    assert level1("all_to_all", K, topology(1490, 8), **setting) == "pairwise"


FALLBACKS = [
    # op, product, HCCL_ALGO's level1, what runs
    ("all_reduce", A2, "NHR_V1", "NHR_V1"),
    ("all_reduce", A2, "NB", "NB"),
    ("all_reduce", A2, "pairwise", "NHR"),
    ("all_reduce", A2, "fullmesh", "NHR"),
    ("all_reduce", A2, "null", "NHR"),
    ("all_reduce", A3, "AHC", "AHC_BROKE"),
    ("all_reduce", A3, "AHC_BROKE", "AHC_BROKE"),
    ("all_reduce", A3, "H-D_R", "NHR"),
    ("all_reduce", A3, "NHR_V1", "NHR_V1"),
    ("all_reduce", A3, "ring", "ring"),
    ("all_reduce", A910, "pipeline", "H-D_R"),
    ("all_gather", A2, "H-D_R", "H-D_R"),
    ("all_gather", A3, "H-D_R", "NHR"),
    ("all_gather", A3, "AHC", "NHR"),
    ("broadcast", A2, "ring", "H-D_R"),
    ("broadcast", A2, "NHR_V1", "NHR_V1"),
    ("broadcast", A3, "NHR_V1", "NHR"),
    ("broadcast", A3, "NB", "NB"),
    ("reduce", A2, "ring", "ring"),
    ("reduce", A2, "NHR", "H-D_R"),
    ("reduce", A3, "H-D_R", "ring"),
    ("scatter", A2, "H-D_R", "ring"),
    ("scatter", A2, "NHR", "NHR"),
    ("all_to_all", A2, "ring", "pairwise"),
    ("all_to_all", A2, "pipeline", "pipeline"),
    ("all_to_all_vc", A3, "pipeline", "pairwise"),
]  # fmt: skip

ACCEPTED_AS_DEFAULT = ("pairwise", "fullmesh", "null")


@pytest.mark.parametrize(("op", "preset", "word", "runs"), FALLBACKS)
def test_a_setting_that_the_op_does_not_take_falls_back(
    op: str, preset: str, word: str, runs: str
) -> None:
    """Calls that are large enough not to be small counts of A3."""
    size = 64 * M if preset == A3 else K
    where = topology(4, 8, preset)
    selection = chosen(call(op, size, ranks=32), where, algo=f"level0:NA;level1:{word}")
    assert selection.hccl_algorithm["level1"] == runs
    said = (f"level1:{word} is none of {op}'s", f"this row takes {runs} on level1")
    noted = any(text in reason for reason in selection.reasons for text in said)
    assert noted or word == runs or word in ACCEPTED_AS_DEFAULT or word == "AHC"


def test_the_pipeline_is_for_op_base_mode() -> None:
    op = call("all_reduce", M, mode="graph")
    selection = chosen(op, topology(4, 8), algo="level0:NA;level1:pipeline")
    assert selection.hccl_algorithm["level1"] == "H-D_R"
    assert any("all_reduce's in graph mode" in r for r in selection.reasons)


def pods(superpods: int, servers: int = 2) -> Topology:
    return topology_of(superpods=superpods, servers=servers, devices=4, preset=A3)


@pytest.mark.parametrize(
    ("op", "superpods", "algo", "level2"),
    [
        ("all_reduce", 2, "", "H-D_R"),
        ("all_reduce", 3, "", "ring"),
        ("all_reduce", 9, "", "H-D_R"),
        ("broadcast", 3, "", "ring"),
        ("all_reduce", 2, "level0:NA;level1:ring;level2:NB", "NB"),
        ("all_gather", 2, "level0:NA;level1:ring;level2:pipeline", "H-D_R"),
    ],
)
def test_between_superpods(op: str, superpods: int, algo: str, level2: str) -> None:
    where = pods(superpods)
    selection = chosen(call(op, K, ranks=where.size), where, algo=algo)
    assert selection.hccl_algorithm["level2"] == level2


def test_one_superpod_has_no_level2() -> None:
    assert "level2" not in chosen(call("all_reduce", K), topology(2, 8, A3)).hccl_algorithm


def test_superpods_of_different_size_are_concatenated_by_all_reduce() -> None:
    where = Topology(product(A3), (4,) * 3, (2, 1))
    selection = chosen(call("all_reduce", 512 * M), where)
    # HCCL keeps the rings of servers, and cuts groups of 2 and 1 servers to equal ones.
    assert selection.hccl_executor == "AllReduceFastDoubleRingFor91093Executor"
    assert selection.hccl_algorithm["level1"] == "AHC_BROKE"
    odd = Topology(product(A3), (4,) * 5, (3, 2))
    assert chosen(call("all_reduce", 512 * M), odd).hccl_algorithm["level1"] == "AHC"
    other = chosen(call("all_gather", 64 * M), where)
    assert (other.hccl_executor, other.hccl_algorithm["level1"]) == ("AllGatherComm", "ring")
    assert selection.hccl_algorithm["level0"] == "double_ring"
    uneven = Topology(product(A3), (4, 4, 2), (2, 1))
    assert chosen(call("all_reduce", 512 * M), uneven).hccl_algorithm["level1"] == "ring"


@pytest.mark.parametrize(("larger", "form"), [(41, "AHC_BROKE"), (42, "AHC")])
def test_groups_are_alike_if_they_differ_by_less_than_a_twentieth(larger: int, form: str) -> None:
    """A twentieth of 40 is 2; 42 servers are exactly so many more, and no multiple of 40."""
    where = Topology(product(A3), (4,) * (40 + larger), (40, larger))
    assert level1("all_reduce", 512 * M, where) == form


@pytest.mark.parametrize(
    ("op", "preset", "servers", "word", "runs"),
    [
        ("reduce", A2, 3, "AHC", "ring"),
        ("reduce", A910, 3, "pipeline", "ring"),
        ("scatter", A3, 2, "AHC", "NHR"),
        ("all_gather", A3, 3, "pipeline", "ring"),
    ],
)
def test_an_algorithm_that_is_not_for_the_product_is_no_setting(
    op: str, preset: str, servers: int, word: str, runs: str
) -> None:
    where = topology(servers, 8, preset)
    op_param = call(op, 64 * M, ranks=where.size)
    selection = chosen(op_param, where, algo=f"level0:NA;level1:{word}")
    assert selection.hccl_algorithm["level1"] == runs
    assert any(f"level1:{word} is none of {op}'s" in r for r in selection.reasons)


@pytest.mark.parametrize(
    ("op", "word", "runs"),
    [("all_reduce", "NHR", "ring"), ("all_gather", "H-D_R", "ring"), ("broadcast", "NB", "H-D_R")],
)
def test_uneven_servers_leave_no_choice(op: str, word: str, runs: str) -> None:
    where = Topology(product(A2), (4, 3))
    selection = chosen(call(op, K, ranks=7), where, algo=f"level0:NA;level1:{word}")
    assert (selection.hccl_algorithm["level1"], selection.refusal) == (runs, "")
    note = "different numbers of devices: level1 is ring, regardless of HCCL_ALGO"
    assert note in selection.reasons
    flat = chosen(call("all_reduce", K, ranks=7), where, algo="level0:null;level1:NHR")
    assert flat.hccl_algorithm["level1"] == "NHR"


def test_superpods_of_different_size_leave_no_choice_but_ahc() -> None:
    where = Topology(product(A3), (4,) * 3, (2, 1))
    setting = {"algo": "level0:NA;level1:NHR"}
    joined = chosen(call("all_reduce", 512 * M, ranks=12), where, **setting)
    assert joined.hccl_algorithm["level1"] == "AHC_BROKE"
    assert "different numbers of servers: level1 is AHC, regardless of HCCL_ALGO" in joined.reasons
    setting = {"algo": "level0:NA;level1:AHC_BROKE"}
    assert level1("all_gather", K, where, **setting) == "ring"
    assert level1("broadcast", 512 * M, where, **setting) == "NHR"
