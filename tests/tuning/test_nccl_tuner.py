"""Tuning tables as the CSV files of NCCL's and RCCL's example tuner plugins."""

from hccl_py.tuning.nccl_tuner import tuner_csv
from hccl_py.tuning.table import Shape
from tests.tuning.test_table import entry, table, winner


def test_rings_become_lines_and_others_are_listed() -> None:
    ring = entry(winner(100, "AllReduceDoubling"), winner(10000, "AllReduceRing"))
    gather = entry(winner(1, "AllGatherComm"), op="all_gather", reduce_op=None)
    text, count, unsaid = tuner_csv(table(ring, gather))
    assert count == 2
    assert text.splitlines()[1:] == [
        "allgather,0,9223372036854775807,ring,simple,-1,1,4",  # the bytes of the whole output
        "allreduce,1001,9223372036854775807,ring,simple,-1,1,4",
    ]
    assert any(
        "from 0 bytes: AllReduceDoubling is none of NCCL's algorithms, but H-D_R" in line
        for line in unsaid
    )
    assert any("calls that differ in dtype fp32, buffsize 200" in line for line in unsaid)


def test_rings_in_servers_and_across_are_one_ring_in_one_server_alone() -> None:
    name = "AllReduceRingExecutor"
    two = Shape(product="atlas-800-9000", superpods=1, servers=2, devices=8, rdma=True)
    inside = entry(winner(1, name), topology=two.model_copy(update={"servers": 1}))
    assert tuner_csv(table(inside))[1] == 1
    assert tuner_csv(table(entry(winner(1, name), topology=two)))[1] == 0


def test_an_executor_that_is_not_installed() -> None:
    _, count, [line] = tuner_csv(table(entry(winner(1, "Gone"))))
    assert count == 0
    assert "Gone is not installed" in line
