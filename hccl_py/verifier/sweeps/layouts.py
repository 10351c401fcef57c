"""Layouts of a sweep: ranks on servers and superpods, or the networks that a call names."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from hccl_py.errors import HcclError
from hccl_py.topology.factory import topology_of
from hccl_py.topology.presets import PRESETS
from hccl_py.topology.topology import Topology
from hccl_py.verifier.sweeps.cases import Cases


class ServerLayout(NamedTuple):
    """Devices of each server, and servers of each superpod where there are several."""

    servers: tuple[int, ...]
    superpods: tuple[int, ...] = ()


LAYOUTS = (
    *map(ServerLayout, ((1,), (2,), (3,), (4,), (5,), (6,), (7,), (8,), (16,))),
    *map(ServerLayout, ((1, 1), (1, 1, 1), (2, 2, 2), (4, 4), (3, 2), (2, 1, 3))),
    *(
        ServerLayout((2, 2, 2, 2), (2, 2)),
        ServerLayout((1, 1, 1), (2, 1)),
        ServerLayout((4, 4, 4), (1, 1, 1)),
    ),
)
"""SDMA links only, RDMA only, both; even and uneven."""

LARGE_LAYOUTS = (ServerLayout((32,)), ServerLayout((8, 8, 8)))
"""Run once per preset: what grows with the ranks has to show."""


def layouts_of(cases: Cases, presets: tuple[str, ...]) -> tuple[ServerLayout, ...]:
    """Return the layouts of a sweep; raise the first preset's error if a narrowing fits none."""
    if not cases.has_layout:
        return LAYOUTS + LARGE_LAYOUTS
    found: dict[ServerLayout, None] = {}
    error = None
    if cases.servers is None and cases.devices is None and cases.superpods is None:
        found = {layout: None for layout in LAYOUTS if sum(layout.servers) in cases.ranks}
    for preset, ranks in product(presets, cases.ranks or (None,)):
        try:
            topology = _topology(cases, ranks, preset)
            pods = topology.superpods if len(topology.superpods) > 1 else ()
            found[ServerLayout(topology.servers, pods)] = None
        except HcclError as refusal:
            error = error or refusal
    if error is not None and not found:
        raise error
    return tuple(found)


def networks_of(cases: Cases, spelling: str) -> tuple[Topology, ...]:
    """Return a network that places its ranks itself, or its first ranks."""
    return tuple(_topology(cases, ranks, spelling) for ranks in cases.ranks or (None,))


def _topology(cases: Cases, ranks: int | None, preset: str) -> Topology:
    return topology_of(
        ranks,
        servers=cases.servers,
        devices=cases.devices,
        superpods=cases.superpods,
        preset=preset,
    )


def fitted(layout: ServerLayout, name: str) -> Topology | None:
    """Return the servers of a product; None where the product's are smaller."""
    preset = PRESETS[name]
    if max(layout.servers) > preset.devices_per_server:
        return None
    if layout.superpods and not preset.superpod_servers:
        return None
    return Topology(preset, layout.servers, layout.superpods or None)
