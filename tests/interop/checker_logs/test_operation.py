"""The op of a test, as far as its name says it."""

import pytest

from hccl_interop.checker_logs.operation import op_named

OPS = {
    "AllGatherTest.allgather_910B": "all_gather",
    "AllGatherVTestFor310P.all_gather_v_310P3_opbase_varying_size_7": "all_gather_v",
    "AllGatherTest.all_gather_varying": "all_gather",
    "AHCTest.all_reduce_910_93_2spod": "all_reduce",
    "AllReduceTest.AllReduceOrderPreservedFor91093Executor1": "all_reduce",
    "ReduceScatterVTest.reduce_scatter_v_910B": "reduce_scatter_v",
    "ReduceScatterTest.ReduceScatterMeshOpbaseSmallCount": "reduce_scatter",
    "AllToAllTest.alltoall_test_910B_offload_RunAlltoAllVFullMesh": "all_to_all",
    "AllToAllVCTest.alltoallvc_test": "all_to_all_vc",
    "AllToAllVTest.alltoall_test": "all_to_all_v",
    "BatchSendRecvTest.batch_send_recv_ring": "batch_send_recv",
    "SendRecvTest.two_ranks": "send_recv",
    "ReduceTest.reduce_superpod": "reduce",
    "ScatterTest.scatter_offload": "scatter",
    "BroadcastTest.one": "broadcast",
    "arsAlgTest.reducescatter_ARS_NB_4_4": "reduce_scatter",
    "MiscTest.preduced_gathering": None,
    "": None,
}


@pytest.mark.parametrize("name", OPS)
def test_the_name_of_a_test_says_the_op(name: str) -> None:
    assert op_named(name) == OPS[name]
