"""Modules of Box16 are what selection counts."""

import pytest

from hccl_py.topology import PRESETS, Topology
from tests.selection.calls import call, chosen, topology

K = 1 << 10


def test_selection_counts_the_modules_of_box16() -> None:
    """Two hosts of two modules each are four: NHR, where two servers of A2 take a ring."""
    box = topology(4, 8, "atlas-200t-a2-box16")
    a2 = topology(2, 8)
    op = call("all_gather", 4 * K, ranks=32)
    assert chosen(op, box).hccl_algorithm["level1"] == "NHR"
    assert chosen(call("all_gather", 4 * K, ranks=16), a2).hccl_algorithm["level1"] == "ring"
    one_host = topology(2, 8, "atlas-200t-a2-box16")
    one_server = topology(1, 8)
    small = call("all_reduce", 4 * K)
    assert chosen(small, one_host).hccl_executor == "AllReduceMeshExecutor"
    assert chosen(small, one_server).hccl_executor == "AllReduceMeshSmallCountExecutor"


def box16(*modules: int) -> Topology:
    """Hosts of two modules each."""
    hosts = tuple(number // 2 for number in range(len(modules)))
    return Topology(PRESETS["atlas-200t-a2-box16"], modules, (len(modules),), hosts=hosts)


def test_ahc_joins_hosts_of_box16() -> None:
    """Both have nine devices, whatever their modules have; servers of six and three differ."""
    flat = {"algo": "level0:null;level1:AHC"}
    box = chosen(call("all_reduce", K, ranks=18), box16(6, 3, 5, 4), **flat)
    assert box.hccl_algorithm["level1"] == "AHC_BROKE"
    apart = Topology(PRESETS["atlas-800t-a2"], (6, 3, 5, 4))
    servers = chosen(call("all_reduce", K, ranks=18), apart, **flat)
    assert servers.hccl_algorithm["level1"] == "AHC"


@pytest.mark.parametrize(
    ("modules", "executor"),
    [
        ((1, 3, 3, 3), "AllGatherVMeshGraphPipelineExecutor"),
        ((2, 1, 1, 1), "AllGatherVMeshExecutor"),
    ],
)
def test_a_module_has_half_of_the_first_host(modules: tuple[int, ...], executor: str) -> None:
    """HCCL halves the host's devices, so that one and three are two each, two and one one."""
    op = call("all_gather_v", 2 << 20, ranks=sum(modules), mode="graph")
    found = chosen(op, box16(*modules), ruleset="cann-2026.08")
    assert found.hccl_executor == executor
