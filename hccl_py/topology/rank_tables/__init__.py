"""Rank tables: the files that tell HCCL which rank runs on which device of which server.

    table = read_rank_table("rank_table.json")
    topology = table.topology("atlas-800t-a2")

Versions 1.0 (servers), 1.2 (superpods), 2.0 (network levels, with a topology file) and the older
template 2 (groups of pods). Any defect is a RankTableError: one sentence with the file, the
JSON path, the value found and the one expected, and HCCL's code for it.
"""

from hccl_py.topology.rank_tables.network import Edge, NetworkLayer, RankTableNetwork
from hccl_py.topology.rank_tables.reader import read_rank_table
from hccl_py.topology.rank_tables.table import RankTable
from hccl_py.topology.rank_tables.writer import rank_table_of

__all__ = [
    "Edge",
    "NetworkLayer",
    "RankTable",
    "RankTableNetwork",
    "rank_table_of",
    "read_rank_table",
]
