"""Mesh all-reduce in two shots, from user memory to user memory; for SDMA links.

    reduce-scatter   put the own chunk in a landing place; every rank adds its chunk d at rank d's
    all-gather       every rank reads every peer's landing place

So CCL_Out holds one chunk only. Each shot is two forks: all ranks exchange Acks, then data goes
(mesh_peers.py). Chunks are added as they come, in an open order.

Cost for p ranks and n bytes: 2α + 2nβ/p + nγ/p; β is per link, links are parallel. Source: HCCL's
AllReduceMeshDirect (hcomm b5f3e5b, alg_template/temp_all_reduce/all_reduce_mesh_opbase.cc).
"""

from hccl_executors.templates.mesh_peers import empty_copy, exchange_acks, peer_assignments
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.plugins.executor import AnyRank


def mesh_all_reduce(
    rank: AnyRank, plane: Plane, inputs: Chunks, outputs: Chunks, land: Region
) -> None:
    """Leave in `outputs` the sum of all ranks' `inputs`; `land` is exported and holds a chunk."""
    mine = land.head(inputs[plane.id].size)
    with rank.main.phase("reduce-scatter"):
        rank.main.copy(mine, inputs[plane.id])
        members = peer_assignments(rank, plane)
        with rank.fork():
            exchange_acks(members)
        empty_copy(rank, land)
        with rank.fork():
            for stream, peer, link in members:
                stream.reduce(link.remote(land.head(inputs[peer].size)), inputs[peer])
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)
    with rank.main.phase("all-gather"):
        rank.main.copy(outputs[plane.id], mine)
        members = peer_assignments(rank, plane, ahead=False)
        with rank.fork():
            exchange_acks(members)
        empty_copy(rank, land)
        with rank.fork():
            for stream, peer, link in members:
                stream.copy(outputs[peer], link.remote(land.head(outputs[peer].size)))
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)
