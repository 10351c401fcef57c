"""Demands and resources of executors on meshes: one server, or servers alike, whose devices are all
linked to each other.
"""

from hccl_py.enums import Buffer
from hccl_py.plugins.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


def require_mesh(topology: Topology) -> bool | Unsuitable:
    """Demand one server whose ranks form a full mesh of SDMA links."""
    return require(
        (topology.has_mesh, "needs every device linked to every other one"),
        (topology.is_single_server, f"needs one server, there are {len(topology.servers)}"),
        (not topology.has_rdma, "needs SDMA between all devices, some are linked by RoCE"),
    )


def require_mesh_op_base(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand the same, and CCL buffers."""
    return require_mesh(topology) and require(
        (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only")
    )


def require_even_meshes(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand servers alike, each a full mesh of SDMA links, and CCL buffers."""
    devices = sorted(set(topology.servers))
    return require(
        (topology.has_mesh, "needs every device linked to every other one"),
        (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
        (len(devices) == 1, f"needs as many devices in every server, there are {devices}"),
        (topology.is_in_server_order, "needs ranks numbered server by server"),
        (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
    )


def require_inline_reduce(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand links that reduce the call's data."""
    inline = topology.reduces_inline(op.dtype, op.reduce)
    return require((inline, f"needs links that reduce {op.dtype.value} on their way"))


def mesh_request(
    op: OpParam,
    rank: RankView,
    *,
    max_bytes: int,
    scratch_bytes: int = 0,
    memories: tuple[Buffer | None, Buffer | None] = (None, None),
) -> ResourceRequest:
    """Ask for a link to every peer and a stream for each: subs, and main for the last in graph
    mode. `scratch_bytes` and `memories` are those of graph mode.
    """
    is_graph = op.mode is Mode.GRAPH
    pair = memories if is_graph else (None, None)
    return ResourceRequest(
        planes=(PlaneRequest("level0", "mesh", *pair),),
        sub_streams=max(int(rank.level0.size) - (2 if is_graph else 1), 0),
        scratch_bytes=scratch_bytes if is_graph else 0,
        max_count=max_bytes // op.unit,
    )
