"""Modules of Box16 are what selection counts."""

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
