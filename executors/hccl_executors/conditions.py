"""What several executors demand of a call and a topology; for use in `suits`."""

from hccl_py.executor import Mode, OpParam, Topology, Unsuitable, require

__all__ = ["one_mesh_in_op_base_mode"]


def one_mesh_in_op_base_mode(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand one server whose ranks form a full mesh, and CCL buffers."""
    return require(
        (topology.product.level0 == "mesh", "needs a full mesh inside the server"),
        (topology.is_single_server, f"needs one server, there are {len(topology.servers)}"),
        (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
    )
