"""Seats: where nodes stand in a picture, as they are joined, in parts of its width and height."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, cos, pi, sin, sqrt
from typing import Literal, NamedTuple

from hccl_py.topology import Topology
from hccl_py.topology.networks.torus import Torus
from hccl_py.trace.pictures.pairings import ServerPlaces


class SeatBox(NamedTuple):
    """A box around the nodes of a server: its edges, and its name."""

    left: float
    top: float
    right: float
    bottom: float
    name: str


class Seats(NamedTuple):
    """The middle of every node; `across` nodes stand beside each other in rows."""

    kind: Literal["ring", "rows", "grid"]
    across: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    boxes: tuple[SeatBox, ...] = ()


def ring_seats(count: int) -> Seats:
    """Return places on a circle, the first at the top, then clockwise."""
    turns = [2 * pi * node / count for node in range(count)]
    x = tuple(round(0.5 + 0.5 * sin(turn), 4) for turn in turns)
    y = tuple(round(0.5 - 0.5 * cos(turn), 4) for turn in turns)
    return Seats("ring", 1, x, y)


def grid_seats(count: int, across: int = 0) -> Seats:
    """Return places in rows of `across` nodes, by default a little wider than high."""
    across = across or ceil(sqrt(count * 1.8))
    down = ceil(count / across)
    x = tuple(round((node % across + 0.5) / across, 4) for node in range(count))
    y = tuple(round((node // across + 0.5) / down, 4) for node in range(count))
    return Seats("grid", across, x, y)


def server_seats(places: ServerPlaces) -> Seats:
    """Return a row of places for every server."""
    down, across = places.servers, int(places.place.max(initial=0)) + 1
    x = tuple(round((place + 0.5) / across, 4) for place in places.place.tolist())
    y = tuple(round((server + 0.5) / down, 4) for server in places.server.tolist())
    boxes = tuple(
        SeatBox(0, server / down, 1, (server + 1) / down, f"server {server}")
        for server in range(down)
    )
    return Seats("rows", across, x, y, boxes)


def seats_of_ranks(
    places: ServerPlaces, topology: Topology | None, pairs: Sequence[tuple[int, int]]
) -> Seats:
    """Return the places of a few ranks: by their coordinates in a torus; by server, where all
    pairs are inside servers or join devices with their likes; else on a circle.
    """
    network = None if topology is None else topology.network
    if isinstance(network, Torus) and len(network.sizes) > 1:
        return grid_seats(len(places.server), network.sizes[0])
    server, place = places.server.tolist(), places.place.tolist()
    crosses = any(server[a] != server[b] and place[a] != place[b] for a, b in pairs)
    if crosses or places.servers in (1, len(server)):
        return ring_seats(len(server))
    return server_seats(places)
