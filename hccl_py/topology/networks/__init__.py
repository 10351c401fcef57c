"""Networks that join the ranks: the links of products, generated networks, graphs from files."""

from hccl_py.topology.networks.by_name import KINDS, OPTIONS, WORDS, find_network
from hccl_py.topology.networks.cuts import Cut, Partition
from hccl_py.topology.networks.files import read_network
from hccl_py.topology.networks.network import Network, Rates, Routes
from hccl_py.topology.networks.product import ProductNetwork, network_of

__all__ = [
    "KINDS",
    "OPTIONS",
    "WORDS",
    "Cut",
    "Network",
    "Partition",
    "ProductNetwork",
    "Rates",
    "Routes",
    "find_network",
    "network_of",
    "read_network",
]
