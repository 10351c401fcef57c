"""Servers, planes and links: where the ranks of a communicator are."""

from hccl_py.topology.factory import topology_of
from hccl_py.topology.planes import PLANES
from hccl_py.topology.presets import PRESETS, Product
from hccl_py.topology.topology import Topology

__all__ = ["PLANES", "PRESETS", "Product", "Topology", "topology_of"]
