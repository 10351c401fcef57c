"""Rounds of executors that run templates level after level."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_executors.aicpu import sequence
from hccl_py.orchestration.rank import RankView
from hccl_py.topology import topology_of


@given(
    st.sampled_from(("ar", "reduce")),
    st.integers(2, 8),
    st.integers(1, 3),
    st.integers(1, 1 << 22),
    st.integers(1, 8),
)
def test_a_piece_of_every_round_fits_a_slice_of_the_buffer(
    kind: str, devices: int, servers: int, count: int, megabytes: int
) -> None:
    names = {
        "ar": ("all_reduce", sequence.AicpuAllReduceSequenceMeshConcurNHRNHR),
        "reduce": ("reduce", sequence.AicpuReduceSequenceMesh1DNHRNHR),
    }
    name, executor = names[kind]
    topology = topology_of(servers=servers, devices=devices, superpods=2, preset="ascend950")
    root = 0 if name == "reduce" else None
    op = hccl.OpParam(name, count, hccl.DataType.parse("fp32"), reduce=hccl.ReduceOp.SUM, root=root)
    rank = RankView(np.arange(topology.size), op, topology, megabytes << 20)
    rounds = executor().schedule(op, rank)
    assert sum(rounds) == count
    for elements in rounds:
        each, rest = divmod(elements, devices)
        assert (each + rest) * op.unit <= executor().slice_bytes(op, rank)
