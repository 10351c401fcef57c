"""What joins the ranks: the links of products, generated networks, graphs from files."""

from hccl_py.topology.networks.network import Network, Rates, Routes
from hccl_py.topology.networks.product import ProductNetwork, network_of

__all__ = ["Network", "ProductNetwork", "Rates", "Routes", "network_of"]
