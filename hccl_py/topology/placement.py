"""The place of every rank: its server, its device there and its superpod; and checks of these
against a product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.topology.presets import Product
from hccl_py.values import IntArray, count_up

MAX_DEVICE_ID = 1 << 20


@dataclass(frozen=True, eq=False)
class Placement:
    """Every rank's server and superpod, both numbered from 0, and the id of its device."""

    server: IntArray
    device_id: IntArray
    superpod: IntArray

    @staticmethod
    def filled(servers: tuple[int, ...], superpods: tuple[int, ...]) -> Placement:
        """Return ranks that fill servers of so many devices, and superpods of so many servers."""
        return Placement(
            np.repeat(np.arange(len(servers)), servers),
            np.concatenate([np.arange(devices) for devices in servers]),
            np.repeat(np.repeat(np.arange(len(superpods)), superpods), servers),
        )

    @property
    def servers(self) -> tuple[int, ...]:
        """The devices of each server."""
        return tuple(np.bincount(self.server).tolist())

    @property
    def superpods(self) -> tuple[int, ...]:
        """The servers of each superpod."""
        pods = self.superpod[np.unique(self.server, return_index=True)[1]]
        return tuple(np.bincount(pods).tolist())


def dense(keys: IntArray) -> IntArray:
    """Number keys by first appearance."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    numbers: IntArray = np.argsort(np.argsort(first))[number.reshape(-1)]
    return numbers


def grouped(key: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return for every element: the number of its group of equal keys, its place in it by position,
    and the group's size.
    """
    _, number, count = np.unique(key, return_inverse=True, return_counts=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    index = np.empty(len(key), np.int64)
    index[order] = count_up(count)
    return number, index, count[number]


def check_servers(product: Product, servers: tuple[int, ...], superpods: tuple[int, ...]) -> None:
    """Raise ParameterError for servers or superpods that a product does not have."""
    for number, devices in enumerate(servers):
        if devices < 1:
            raise ParameterError(
                f"Server {number} has {devices} devices.", "Every server has at least one."
            )
        if devices > product.devices_per_server:
            raise ParameterError(
                f"Server {number} has {devices} devices, "
                f"but {product.name} has {product.devices_per_server}.",
                "Use more servers or another topology.",
            )
    if not servers:
        raise ParameterError("A topology needs at least one server.", "Give --servers 1 or more.")
    if sum(superpods) != len(servers) or min(superpods) < 1:
        raise ParameterError(
            f"Superpods of {', '.join(map(str, superpods))} servers do not hold "
            f"{len(servers)} servers.",
            "The servers of all superpods add up to all servers.",
        )
    if len(superpods) > 1 and not product.superpod_servers:
        raise ParameterError(
            f"{product.title} has no superpods.", "Leave superpods out: atlas-900-a3 has them."
        )
    if product.superpod_servers and max(superpods) > product.superpod_servers:
        raise ParameterError(
            f"A superpod has {max(superpods)} servers, but {product.name} joins at most "
            f"{product.superpod_servers}.",
            "Use more superpods.",
        )


def check_placement(placement: Placement) -> None:
    """Raise ParameterError for a server in two superpods, and for two ranks on one device."""
    pods = grouped(placement.server * len(placement.server) + placement.superpod)[2]
    if (pods != grouped(placement.server)[2]).any():
        rank = int(np.argmax(pods != grouped(placement.server)[2]))
        raise ParameterError(
            f"The server of rank {rank} lies in two superpods.", "A server lies in one."
        )
    here = placement.server * MAX_DEVICE_ID + placement.device_id
    _, first, count = np.unique(here, return_index=True, return_counts=True)
    if (count > 1).any():
        raise ParameterError(
            f"Rank {int(first[count > 1][0])} shares its device with another rank.",
            "Give every rank a device of its own.",
        )
