"""Where the ranks of something are that says itself how many there are."""

from __future__ import annotations

from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import cluster_of
from hccl_py.config import Config
from hccl_py.errors import ParameterError
from hccl_py.topology import Topology

__all__ = ["placed"]


def placed(ranks: int, options: CallOptions, noun: str) -> Topology:
    """Return where so many ranks are, by default on as few servers as hold them; ParameterError
    where the options say other ranks.
    """
    cluster = cluster_of(options)
    is_sized = any((cluster.servers, cluster.superpods, cluster.rank_table))
    if not is_sized and not _has_size(cluster.topology):
        cluster = cluster_of(options, ranks=ranks)
    topology = cluster.build(Config.load())
    if topology.size != ranks:
        raise ParameterError(
            f"The {noun} has {ranks} ranks, the options make {topology.size}.",
            "Give a topology of as many ranks as the program has.",
        )
    return topology


def _has_size(topology: str | None) -> bool:
    """Whether a topology says itself how many ranks there are: networks and files do."""
    from hccl_py.topology import PRESETS

    return topology is not None and topology not in PRESETS
