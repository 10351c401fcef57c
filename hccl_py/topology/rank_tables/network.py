"""The network of a rank table v2.0: levels that hold groups of ranks, and the links of a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkLayer:
    """A network layer: `instance` is the number of each rank's network in it, -1 where it has
    none; `ids` are the networks' names, `types` `TOPO_FILE_DESC` (links as in the topology file)
    or `CLOS` (all ranks reach each other).
    """

    layer: int
    ids: tuple[str, ...]
    types: tuple[str, ...]
    instance: tuple[int, ...]


@dataclass(frozen=True)
class Edge:
    """A link of the topology file: from a peer to another one, or (`local_b` None) to a switch."""

    layer: int
    local_a: int
    local_b: int | None
    protocols: tuple[str, ...]
    topo_type: str
    topo_instance: int
    position: str
    ports_a: tuple[str, ...]
    ports_b: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class RankTableNetwork:
    """Levels from the rank table, edges and peers from the topology file (empty without one).

    `local` is the id of each rank in the topology file.
    """

    levels: tuple[NetworkLayer, ...]
    local: tuple[int, ...]
    peers: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()

    def links(self, layer: int = 0) -> tuple[tuple[int, int], ...]:
        """Return the pairs of ranks (lower first) that an edge of this layer joins directly."""
        return tuple(sorted({(min(pair), max(pair)) for pair in self._pairs(layer)}))

    def members(self, layer: int, instance: int) -> tuple[int, ...]:
        """Return the ranks of a network of a layer."""
        found = next((level for level in self.levels if level.layer == layer), None)
        numbers = found.instance if found is not None else ()
        return tuple(rank for rank, number in enumerate(numbers) if number == instance)

    def layer_between(self, rank: int, peer: int) -> int | None:
        """Return the lowest layer in whose network both ranks are; None where there is none."""
        for level in self.levels:
            if level.instance[rank] == level.instance[peer] >= 0:
                return level.layer
        return None

    def _pairs(self, layer: int) -> Iterator[tuple[int, int]]:
        described = self.levels[0]
        by_local: dict[tuple[int, int], int] = {
            (instance, local): rank
            for rank, (instance, local) in enumerate(
                zip(described.instance, self.local, strict=True)
            )
        }
        direct = [edge for edge in self.edges if edge.layer == layer and edge.local_b is not None]
        for instance, kind in enumerate(described.types):
            for edge in direct if kind == "TOPO_FILE_DESC" else ():
                a = by_local.get((instance, edge.local_a))
                b = by_local.get((instance, edge.local_b)) if edge.local_b is not None else None
                if a is not None and b is not None:
                    yield a, b

    def __repr__(self) -> str:
        return f"RankTableNetwork({len(self.levels)} levels, {len(self.edges)} edges of a server)"
